package busybox

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// defaultPath is searched where there is no PATH.
const defaultPath = "/sbin:/usr/sbin:/bin:/usr/bin"

// find looks a program up in PATH.
func (c *call) find(name string, env []string) (string, error) {
	return c.p.LookPath(name, searchPath(env))
}

// searchPath is the PATH of an environment.
func searchPath(env []string) string {
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	if search == "" {
		search = defaultPath
	}
	return search
}

// lookIn finds an executable file in the directories of a search path.
func (c *call) lookIn(name, search string) (string, error) {
	for _, dir := range strings.Split(search, ":") {
		file := join(dir, name)
		if info, err := c.view().Stat(file); err == nil && info.Mode().IsRegular() && c.view().Access(file, 1) == nil {
			return file, nil
		}
	}
	return "", syscall.ENOENT
}

// spawn starts a program; nil env and fds mean the own ones.
func (c *call) spawn(argv, env []string, fds []kernel.File) (*kernel.Process, error) {
	c.out.flush()
	if env == nil {
		env = c.p.Env
	}
	path, err := c.find(argv[0], env)
	if err != nil {
		return nil, err
	}
	if fds == nil {
		fds = c.p.FDs()
	}
	return c.p.Spawn(c.ctx, kernel.Spec{Path: path, Argv: argv, Env: env, FDs: fds})
}

// wait waits for a child and returns its status as a shell has it.
func (c *call) wait(child *kernel.Process) int {
	for {
		exit, err := c.p.Wait(c.ctx, child)
		if err == nil {
			return exit.Code
		}
		if !errors.Is(err, kernel.ErrInterrupted) || c.ctx.Err() != nil {
			return 127
		}
	}
}

// become replaces the applet by a program; it returns the status, with a
// message if the program can't be run.
func (c *call) become(argv, env []string, message string) int {
	c.out.flush()
	if env == nil {
		env = c.p.Env
	}
	path, err := c.find(argv[0], env)
	if err == nil {
		var code int
		if code, err = c.p.Exec(c.ctx, path, argv, env); err == nil {
			return code
		}
	}
	c.errorf(message, argv[0], strerror(err))
	return notRun(err)
}

// notRun is the status for a program that can't be run.
func notRun(err error) int {
	if errors.Is(err, syscall.ENOENT) {
		return 127
	}
	return 126
}

const cantExec = "can't execute '%s': %s"

func runEnv(c *call) int {
	o := c.getopt("+iu:0", "ignore-environment=i", "unset=u:", "null=0")
	env := append([]string(nil), c.p.Env...)
	args := o.args
	if o.has('i') || len(args) > 0 && args[0] == "-" {
		env = []string{}
		if len(args) > 0 && args[0] == "-" {
			args = args[1:]
		}
	}
	for _, u := range o.value['u'] {
		env = unsetEnv(env, u)
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, _, _ := strings.Cut(args[0], "=")
		replaced := false
		for i, kv := range env {
			if strings.HasPrefix(kv, name+"=") {
				env[i] = args[0]
				replaced = true
			}
		}
		if !replaced {
			env = append(env, args[0])
		}
		args = args[1:]
	}
	if len(args) > 0 {
		return c.become(args, env, cantExec)
	}
	end := "\n"
	if o.has('0') {
		end = "\x00"
	}
	for _, kv := range env {
		c.print(kv, end)
	}
	return 0
}

func unsetEnv(env []string, name string) []string {
	out := env[:0:0]
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return out
}

func runPrintenv(c *call) int {
	if len(c.args) == 0 {
		for _, kv := range c.p.Env {
			c.print(kv, "\n")
		}
		return 0
	}
	code := 0
	for _, name := range c.args {
		found := false
		for _, kv := range c.p.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				c.print(v, "\n")
				found = true
				break
			}
		}
		if !found {
			code = 1
		}
	}
	return code
}

func runNohup(c *call) int {
	if len(c.args) == 0 {
		c.usage()
	}
	c.p.Disposition(1, kernel.Ignore)
	return c.become(c.args, nil, cantExec)
}

func runNice(c *call) int {
	o := c.getopt("+n:", "adjustment=n:")
	if len(o.args) == 0 {
		c.print("0\n")
		return 0
	}
	return c.become(o.args, nil, cantExec)
}

func runSetsid(c *call) int {
	o := c.getopt("+c")
	if len(o.args) == 0 {
		c.usage()
	}
	return c.become(o.args, nil, cantExec)
}

func runTime(c *call) int {
	o := c.getopt("+vpao:f:", "verbose=v", "portability=p", "format=f:")
	if len(o.args) == 0 {
		c.usage()
	}
	start := c.p.Now()
	code := 0
	child, err := c.spawn(o.args, nil, nil)
	if err != nil {
		c.errorf(cantExec, o.args[0], strerror(err))
		code = notRun(err)
	} else {
		code = c.wait(child)
	}
	d := c.p.Now().Sub(start)
	if o.has('p') {
		c.stderr("real " + secondsOf(d) + "\nuser 0.00\nsys 0.00\n")
	} else {
		m := int(d / time.Minute)
		c.stderr("real\t" + itoa(m) + "m " + secondsOf(d%time.Minute) + "s\nuser\t0m 0.00s\nsys\t0m 0.00s\n")
	}
	return code
}

func secondsOf(d time.Duration) string {
	hundredths := int(d / (10 * time.Millisecond))
	text := itoa(hundredths % 100)
	if len(text) < 2 {
		text = "0" + text
	}
	return itoa(hundredths/100) + "." + text
}

// runTimeout runs the program in the applet's own process, as the real one
// does, so that who waits sees how the program ended; a timer watches.
func runTimeout(c *call) int {
	o := c.getopt("+s:k:", "signal=s:", "kill-after=k:")
	if len(o.args) < 2 {
		c.usage()
	}
	sig := 15
	if o.has('s') {
		n, ok := kernel.SignalNumber(o.str('s'))
		if !ok {
			c.die("unknown signal '%s'", o.str('s'))
		}
		sig = n
	}
	limit, ok := duration(o.args[0])
	if !ok {
		c.die("invalid number '%s'", o.args[0])
	}
	var again time.Duration
	if o.has('k') {
		if again, ok = duration(o.str('k')); !ok {
			c.die("invalid number '%s'", o.str('k'))
		}
	}
	if _, err := c.find(o.args[1], c.p.Env); err != nil {
		c.errorf(cantExec, o.args[1], strerror(err))
		return notRun(err)
	}
	if limit == 0 {
		return c.become(o.args[1:], nil, cantExec)
	}
	target := c.p
	watchdog := c.p.Group().After(limit, func() { target.Signal(sig) })
	var second *loop.Timer
	if o.has('k') {
		second = c.p.Group().After(limit+again, func() { target.Signal(kernel.SIGKILL) })
	}
	code := c.become(o.args[1:], nil, cantExec)
	watchdog.Stop()
	if second != nil {
		second.Stop()
	}
	return code
}

func runWatch(c *call) int {
	o := c.getopt("+n:t", "interval=n:", "no-title=t")
	if len(o.args) == 0 {
		c.usage()
	}
	period := 2 * time.Second
	if o.has('n') {
		d, ok := duration(o.str('n'))
		if !ok {
			c.die("invalid number '%s'", o.str('n'))
		}
		period = max(d, 100*time.Millisecond)
	}
	command := strings.Join(o.args, " ")
	for {
		c.print("\x1b[H\x1b[J")
		if !o.has('t') {
			c.printf("Every %ds: %s\n\n", period/time.Second, command)
		}
		c.out.flush()
		if child, err := c.spawn([]string{"sh", "-c", command}, nil, nil); err == nil {
			c.wait(child)
		}
		if c.p.Sleep(c.ctx, period) != nil && c.ctx.Err() != nil || c.out.failed() {
			return 1
		}
	}
}

func runWhich(c *call) int {
	o := c.getopt("a")
	if len(o.args) == 0 {
		c.usage()
	}
	code := 0
	for _, name := range o.args {
		path, err := c.find(name, c.p.Env)
		if path == kernel.StandaloneApplet {
			path, err = c.lookIn(name, searchPath(c.p.Env)) // which(1) looks at files alone
		}
		if err != nil {
			code = 1
			continue
		}
		c.print(path, "\n")
	}
	return code
}

func runXargs(c *call) int {
	o := c.getopt("+tr0pxI:i::n:s:P:L:e::E:", "no-run-if-empty=r", "null=0", "max-args=n:", "replace=I:")
	argv := o.args
	if len(argv) == 0 {
		argv = []string{"echo"}
	}
	data, err := c.slurp(c.stdin())
	if err != nil {
		c.die("read error: %s", strerror(err))
	}
	replace := ""
	if o.has('I') {
		replace = o.str('I')
	} else if o.has('i') {
		if replace = o.str('i'); replace == "" {
			replace = "{}"
		}
	}
	x := &xargs{c: c, verbose: o.has('t')}
	if replace != "" {
		for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if line = strings.TrimLeft(line, " \t"); line == "" {
				continue
			}
			args := make([]string, len(argv))
			for i, a := range argv {
				args[i] = strings.ReplaceAll(a, replace, line)
			}
			if !x.run(args) {
				break
			}
		}
		return x.code
	}
	var words []string
	if o.has('0') {
		if text := strings.TrimSuffix(string(data), "\x00"); len(data) > 0 {
			words = strings.Split(text, "\x00")
		}
	} else {
		words = c.xargsWords(string(data))
	}
	perRun := 1 << 30
	if o.has('n') {
		perRun = max(1, int(c.number(o.str('n'))))
	} else if o.has('L') {
		perRun = max(1, int(c.number(o.str('L'))))
	}
	maxBytes := 32 << 10
	if o.has('s') {
		maxBytes = int(c.number(o.str('s')))
	}
	if len(words) == 0 && !o.has('r') {
		x.run(argv)
	}
	for len(words) > 0 {
		n, size := 0, 0
		for n < len(words) && n < perRun && (n == 0 || size+len(words[n])+1 <= maxBytes) {
			size += len(words[n]) + 1
			n++
		}
		if !x.run(append(append([]string(nil), argv...), words[:n]...)) {
			break
		}
		words = words[n:]
	}
	return x.code
}

type xargs struct {
	c       *call
	verbose bool
	code    int
}

// run runs one command line; false ends it all.
func (x *xargs) run(argv []string) bool {
	c := x.c
	if x.verbose {
		c.stderr(strings.Join(argv, " ") + "\n")
	}
	child, err := c.spawn(argv, nil, nil)
	if err != nil {
		c.errorf("%s: %s", argv[0], strerror(err))
		x.code = notRun(err)
		return false
	}
	exit, err := c.p.Wait(c.ctx, child)
	switch {
	case err != nil:
		x.code = 1
		return false
	case exit.Signal != 0:
		c.errorf("'%s' terminated by signal %d", argv[0], exit.Signal)
		x.code = 125
		return false
	case exit.Code == 255:
		c.errorf("%s: exited with status 255; aborting", argv[0])
		x.code = 124
		return false
	case exit.Code == 126 || exit.Code == 127:
		x.code = exit.Code
		return false
	case exit.Code != 0:
		x.code = 123
	}
	return true
}

// xargsWords splits at white space, minding quotes and backslashes.
func (c *call) xargsWords(s string) []string {
	var out []string
	var b strings.Builder
	inWord := false
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '\'' || ch == '"':
			end := strings.IndexByte(s[i+1:], ch)
			if end < 0 || strings.Contains(s[i+1:i+1+end], "\n") {
				kind := "single"
				if ch == '"' {
					kind = "double"
				}
				c.die("unmatched %s quote", kind)
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
			inWord = true
		case ch == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			inWord = true
		case ch == ' ' || ch == '\t' || ch == '\n':
			if inWord {
				out = append(out, b.String())
				b.Reset()
				inWord = false
			}
		default:
			b.WriteByte(ch)
			inWord = true
		}
	}
	if inWord {
		out = append(out, b.String())
	}
	return out
}
