package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Command returns sh. Its shells share a cache of parsed scripts, so a Command
// belongs to one loop: make one for each machine.
//
// Laps of "while true; do sleep N; done" are not run one by one: the container
// shows one sleeping process all along, with the process number of the third
// lap's. Traps run when they would. See Options.NoElide.
func Command() kernel.Command { return New(Options{}) }

// Options configure New; the zero value is what Command does.
type Options struct {
	// NoElide runs each lap of an idle loop, see [Command].
	NoElide bool
}

// New is Command with options. Each call has its own cache of scripts.
func New(opts Options) kernel.Command {
	in := &interp{noElide: opts.NoElide}
	return func(ctx context.Context, p *kernel.Process) int {
		// It is one value for both, so that a wait's time and signals are the shell's.
		self := &process{p: p, ctx: ctx}
		s := &shell{process: self, kids: children{process: self}, in: in, rootPID: p.PID()}
		return (&invocation{s: s}).run()
	}
}

// usage is what sh --help shows, to stderr as busybox does.
const usage = `Usage: sh [-il] [-|+Cabefmnuvx] [-|+o OPT]... [-c 'SCRIPT' [ARG0 ARGS] | FILE ARGS | -s ARGS]

Unix shell interpreter
`

// invocation is how sh was called: with -c, with a file, or with neither. It
// makes the shell's first state and reads the commands that the shell runs.
type invocation struct{ s *shell }

// run does what the command line says and returns the exit status.
func (i *invocation) run() int {
	s := i.s
	argv := s.p.Argv
	s.arg0 = "sh"
	if len(argv) > 0 {
		s.arg0 = argv[0]
		argv = argv[1:]
	}
	// It counts as the first argument alone; further on it would be an operand.
	if len(argv) > 0 && argv[0] == "--help" {
		_ = s.write(2, []byte(usage))
		return 0
	}
	i.environment()
	// login(1) puts a dash before the name of a login shell.
	login := strings.HasPrefix(s.arg0, "-")
	rest, _, ok := s.setOptions(argv, func(c byte) bool {
		switch c {
		case 'c':
			s.opts.fromC = true
		case 's':
			s.opts.fromStdin = true
		case 'l':
			login = true
		// -i is taken and changes nothing: the terminal decides about prompts.
		case 'i':
		default:
			return false
		}
		return true
	})
	if !ok {
		return 2
	}
	// set -o lists options as soon as it is read; with sh -o that is before any command.
	if s.out != nil {
		s.flush(0)
	}
	if login {
		i.profile()
	}
	// A profile that exits ends the shell before it has run anything.
	if s.skip == skipExit {
		return s.finish(s.status)
	}
	// Without operands sh reads stdin, as if -s were given.
	if !s.opts.fromC && len(rest) == 0 {
		s.opts.fromStdin = true
	}
	switch {
	// -c comes before -s and before a file's name: its operand is the text, whatever else is
	// given.
	case s.opts.fromC:
		return i.text(rest)
	case s.opts.fromStdin:
		s.args = rest
		return i.stdin()
	}
	return i.file(rest)
}

// text is sh -c: the first operand is the script, the second $0. The last
// command takes the shell's place if it ends the text.
func (i *invocation) text(rest []string) int {
	s := i.s
	if len(rest) == 0 {
		s.message("-c requires an argument")
		return 2
	}
	text := rest[0]
	if len(rest) > 1 {
		s.arg0, s.command, s.args = rest[1], rest[1], rest[2:]
	}
	// With -s as well more commands may come from stdin, so the text has no last command.
	flags := evalExit
	if s.opts.fromStdin {
		flags = 0
	}
	// The order matters: run leaves skip and status, end takes a return for the end, finish runs
	// the trap of EXIT and sees the status that came of it.
	return s.finish(i.end(s.run(s.in.cache.Get(text), flags)))
}

// file is sh FILE. $0 is the name as it was given; a file that can't be read is
// status 2, as ash has it, not 127.
func (i *invocation) file(rest []string) int {
	s := i.s
	name := rest[0]
	file := name
	// The first error is the one that is shown if PATH does not help.
	data, err := s.p.View().ReadFile(file)
	// A script without a slash is looked for here first, then in PATH.
	if err != nil && !strings.Contains(name, "/") {
		if found, err2 := s.p.LookPath(name, s.vars.value("PATH")); err2 == nil {
			file = found
			data, err = s.p.View().ReadFile(file)
		}
	}
	if err != nil {
		s.message("can't open '%s': %s", name, explain(err, ""))
		// Without finish: nothing has run, so there is no trap of EXIT.
		return 2
	}
	s.arg0, s.command, s.args = name, name, rest[1:]
	// An input makes lines count from 1, see firstLine.
	s.input = &input{}
	return s.finish(i.end(s.run(s.in.cache.Get(string(data)), 0)))
}

// end takes a return at the end of a script for what it is: it ends the script,
// and is no error there.
func (i *invocation) end(status int) int {
	s := i.s
	switch s.skip {
	case skipReturn:
		s.skip = skipNone
		return s.status
	case skipExit:
		return s.status
	}
	s.skip = skipNone
	return status
}

// stdin runs commands from stdin line by line. It reads in blocks as ash does:
// what is in the block is gone for the commands.
//
// It is what "kubectl exec -i POD -- sh" and "cat script | sh" use. text gathers lines until they
// parse as commands; first is the number, in the input, of the first of them.
func (i *invocation) stdin() int {
	s := i.s
	s.input = &input{}
	// ash reads its input in blocks of IBUFSIZ - 1 bytes.
	var buf [1023]byte
	text, lines, first := "", 0, 1
	status := 0
	// At a terminal it asks for commands, and ^C begins a new line.
	prompts := kernel.Prompts(s.p.FD(0))
	for {
		if prompts {
			i.prompt(text != "")
		}
		line, err := s.input.line(s, buf[:])
		if s.skip == skipExit {
			return s.finish(s.status)
		}
		text += line
		if line != "" {
			lines++
		}
		// Any error of the read counts as the end; what came before it still runs.
		eof := err != nil
		if text == "" && eof {
			break
		}
		// Empty lines before the text make the parser count as the input does.
		p := script.Parse(strings.Repeat("\n", first-1) + text)
		// More of the command may come with the next line.
		if p.Incomplete && !eof {
			continue
		}
		text, first = "", lines+1
		status = s.run(p, 0)
		if s.skip == skipExit {
			return s.finish(s.status)
		}
		// A return ends the input as it ends a script.
		if s.skip != skipNone {
			status = i.end(status)
			break
		}
		if eof {
			break
		}
	}
	return s.finish(status)
}

// prompt asks for a command at a terminal, or for more of one, with the escapes
// of busybox's prompts.
//
// It is only called when stdin is a terminal: "tty: true" in a container's spec, or kubectl exec
// -t. PS1 and PS2 know these escapes and are not expanded as words.
func (i *invocation) prompt(more bool) {
	s := i.s
	text := s.vars.value("PS1")
	if more {
		text = s.vars.value("PS2")
	}
	sign := "$"
	if s.p.Cred.UID == 0 {
		sign = "#"
	}
	dir := s.cwd
	// A home of / would turn every path into one below ~.
	if home := s.vars.value("HOME"); home != "" && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + dir[len(home):]
	}
	text = strings.NewReplacer(`\w`, dir, `\W`, path.Base(dir), `\$`, sign, `\h`, s.vars.value("HOSTNAME"), `\u`, s.vars.value("USER"), `\n`, "\n").Replace(text)
	// Prompts go to stderr, as POSIX wants them.
	if f := s.p.FD(2); f != nil {
		_, _ = f.Write(s.ctx, []byte(text))
	}
}

// profile runs what a login shell starts with; a missing file is none. The files run in the shell
// itself, so what they set stays.
func (i *invocation) profile() {
	s := i.s
	files := []string{"/etc/profile"}
	if home := s.vars.value("HOME"); home != "" {
		files = append(files, home+"/.profile")
	}
	for _, f := range files {
		if data, err := s.p.View().ReadFile(f); err == nil && s.skip == skipNone {
			s.run(s.in.cache.Get(string(data)), 0)
		}
	}
}

// environment makes the variables that a shell begins with: ash's own, then
// those of the environment whose names can be variables', then those that ash
// sets whatever the environment says.
//
// A container's environment is the image's, then the pod's. Names such as my.config, which
// Kubernetes allows, can't be variables of a shell: ash drops them, and so the programs that it
// starts don't get them either.
func (i *invocation) environment() {
	s := i.s
	// With room for the names below, so that the list does not grow.
	s.vars.list = make([]variable, 0, len(s.p.Env)+14)
	v := &s.vars
	v.set("IFS", defaultIFS, 0)
	// It is ash's default, which the environment's replaces.
	v.set("PATH", "/sbin:/usr/sbin:/bin:/usr/bin", 0)
	v.set("PS1", `\w \$ `, 0)
	v.set("PS2", "> ", 0)
	v.set("PS4", "+ ", 0)
	// The order in which variables are made shows in what env prints, see vars.environ.
	v.set("OPTIND", "1", 0)
	v.set("LINENO", "", flagDynamic)
	v.set("FUNCNAME", "", 0)
	v.set("RANDOM", "", flagDynamic)
	for _, kv := range s.p.Env {
		name, value, ok := strings.Cut(kv, "=")
		if ok && script.ValidName(name) {
			v.set(name, value, flagExport)
		}
	}
	// POSIX: IFS is not taken from the environment.
	v.set("IFS", defaultIFS, 0)
	v.set("OPTIND", "1", 0)
	v.set("PPID", strconv.Itoa(s.p.PPID()), 0)
	// SHLVL counts nested shells; what is no number counts as 0.
	level, _ := strconv.Atoi(v.value("SHLVL"))
	v.set("SHLVL", strconv.Itoa(level+1), flagExport)
	if _, ok := v.get("HOSTNAME"); !ok {
		v.set("HOSTNAME", s.p.Container().Hostname(), 0)
	}
	s.cwd = s.p.Dir
	// PWD is believed if it leads to the same directory, so that links in it are kept.
	if pwd := v.value("PWD"); pwd != "" && pwd != s.cwd && path.IsAbs(pwd) {
		if r, err := s.p.View().EvalSymlinks(pwd); err == nil && r == path.Clean(s.cwd) {
			s.cwd = pwd
		}
	}
	v.set("PWD", s.cwd, flagExport)
}

// input is where a script comes from if that is no argument of sh -c. That
// there is one also decides from what number lines count. data has been taken from the
// descriptor, so a command that reads the same stdin misses it.
type input struct {
	data []byte // read from stdin, but not run yet
}

// line returns the next line of stdin with its newline; buf is what one read may
// take.
func (in *input) line(s *shell, buf []byte) (string, error) {
	var line []byte
	// A line without an end counts as the input's end.
	for len(line) < maxString {
		if i := bytes.IndexByte(in.data, '\n'); i >= 0 {
			line = append(line, in.data[:i+1]...)
			in.data = in.data[i+1:]
			return string(line), nil
		}
		line = append(line, in.data...)
		in.data = nil
		f := s.p.FD(0)
		if f == nil {
			return string(line), linux.EBADF
		}
		n, err := f.Read(s.ctx, buf)
		in.data = append(in.data, buf[:n]...)
		if errors.Is(err, kernel.ErrInterrupted) {
			// Traps run while the shell waits for input, too.
			s.dotrap()
			if s.skip == skipExit {
				return "", io.EOF
			}
			continue
		}
		if err != nil && n == 0 {
			return string(line), err
		}
	}
	return string(line), io.EOF
}
