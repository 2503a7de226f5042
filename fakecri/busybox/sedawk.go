package busybox

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/busybox/awk"
	"github.com/drydock-sim/drydock/fakecri/busybox/sed"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func runAwk(c *call) int {
	o := c.getopt("+F:v:f:e:W:")
	var program strings.Builder
	for _, f := range o.value['f'] {
		data, err := c.readAll(f)
		if err != nil {
			c.die(cantOpen, f, strerror(err))
		}
		program.Write(data)
		program.WriteByte('\n')
	}
	for _, e := range o.value['e'] {
		program.WriteString(e + "\n")
	}
	args := o.args
	if !o.has('f') && !o.has('e') {
		if len(args) == 0 {
			c.usage()
		}
		program.WriteString(args[0])
		args = args[1:]
	}
	prog, err := awk.Parse(program.String())
	if err != nil {
		c.die("%s", err)
	}
	cfg := awk.Config{Vars: o.value['v'], Args: args}
	if o.has('F') {
		cfg.FS = awk.Unescape(o.str('F'))
	}
	for _, v := range cfg.Vars {
		if !strings.Contains(v, "=") {
			c.usage()
		}
	}
	code, err := awk.Run(prog, cfg, &awkHost{c})
	if err != nil {
		c.die("%s", err)
	}
	return code
}

// awkHost connects awk to the process.
type awkHost struct{ c *call }

func (h *awkHost) Open(name string) (io.ReadCloser, error) { return h.c.open(name) }

func (h *awkHost) Create(name string, appending bool) (io.WriteCloser, error) {
	return h.c.create(name, appending)
}

func (h *awkHost) Stdout() io.Writer { return h.c.out }
func (h *awkHost) Flush()            { h.c.out.flush() }
func (h *awkHost) Environ() []string { return h.c.p.Env }
func (h *awkHost) Now() time.Time    { return h.c.p.Now() }
func (h *awkHost) Hold(n int)        { h.c.hold(int64(n)) }
func (h *awkHost) Step()             { h.c.spend(workPerStep / 2) }

// shellPipe is a shell command and the pipe to or from it.
type shellPipe struct {
	stream
	child *kernel.Process
}

func (p shellPipe) Wait() int {
	p.f.Close()
	return p.c.wait(p.child)
}

func (h *awkHost) pipe(command string, fd int) (awk.Pipe, error) {
	c := h.c
	r, w := c.p.Container().Machine().Pipe()
	ours, theirs := r, w
	if fd == 0 {
		ours, theirs = w, r
	}
	fds := append([]kernel.File(nil), c.p.FDs()...)
	for len(fds) <= fd {
		fds = append(fds, nil)
	}
	fds[fd] = theirs
	child, err := c.spawn([]string{"sh", "-c", command}, nil, fds)
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	return shellPipe{stream{c, ours}, child}, nil
}

func (h *awkHost) PipeFrom(command string) (awk.Pipe, error) { return h.pipe(command, 1) }
func (h *awkHost) PipeTo(command string) (awk.Pipe, error)   { return h.pipe(command, 0) }

func (h *awkHost) System(command string) int {
	child, err := h.c.spawn([]string{"sh", "-c", command}, nil, nil)
	if err != nil {
		return 127
	}
	return h.c.wait(child)
}

func runSed(c *call) int {
	o := c.getopt("i::rEne:f:", "in-place=i::", "regexp-extended=r", "quiet=n", "silent=n", "expression=e:", "file=f:")
	var pieces []string
	args := o.args
	e, f := 0, 0
	for _, opt := range o.order {
		switch opt {
		case 'e':
			pieces = append(pieces, o.value['e'][e])
			e++
		case 'f':
			data, err := c.readAll(o.value['f'][f])
			if err != nil {
				c.die(plainOpen, o.value['f'][f], strerror(err))
			}
			pieces = append(pieces, strings.TrimSuffix(string(data), "\n"))
			f++
		}
	}
	if len(pieces) == 0 {
		if len(args) == 0 {
			c.usage()
		}
		pieces = []string{args[0]}
		args = args[1:]
	}
	script, err := sed.Parse(pieces, o.has('r') || o.has('E'), o.has('n'))
	if err != nil {
		c.die("%s", err)
	}
	h := &sedHost{c: c, files: args, out: c.out}
	if o.has('i') {
		return c.sedInPlace(script, args, o.str('i'))
	}
	if len(args) == 0 {
		h.files = []string{"-"}
	}
	code, err := sed.Run(script, h)
	h.close()
	if err != nil {
		c.die("%s", sedError(err))
	}
	return max(code, h.code)
}

func sedError(err error) string {
	var e *sed.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return strerror(err)
}

// sedInPlace edits each file by itself.
func (c *call) sedInPlace(script *sed.Script, files []string, suffix string) int {
	code := 0
	for _, name := range files {
		fi, err := c.view().Stat(name)
		if err == nil && !fi.Mode().IsRegular() {
			c.errorf("%s: not a regular file", name)
			code = 1
			continue
		}
		var edited strings.Builder
		h := &sedHost{c: c, files: []string{name}, out: &edited}
		if _, rerr := sed.Run(script, h); rerr != nil {
			c.die("%s", sedError(rerr))
		}
		h.drain()
		h.close()
		code = max(code, h.code)
		if err != nil || h.code != 0 {
			continue
		}
		if suffix != "" {
			backup := name + suffix
			if strings.Contains(suffix, "*") {
				backup = strings.ReplaceAll(suffix, "*", base(name))
			}
			if err := c.view().Rename(name, backup); err != nil {
				c.die("%s: %s", name, strerror(err))
			}
		}
		// As the real one does: a new file in the place of the old one.
		temp := name + "~sed"
		sys := sysOf(fi)
		v := c.view()
		if err := v.WriteFile(temp, []byte(edited.String()), fi.Mode().Perm()); err != nil {
			c.die("%s: %s", name, strerror(err))
		}
		_ = v.Chmod(temp, fi.Mode())
		_ = v.Chown(temp, sys.UID, sys.GID)
		if err := v.Rename(temp, name); err != nil {
			_ = v.Remove(temp)
			c.die("%s: %s", name, strerror(err))
		}
	}
	return code
}

// sedHost connects sed to the process: its files, read one after the other.
type sedHost struct {
	c      *call
	files  []string
	out    io.Writer
	code   int
	cur    io.ReadCloser
	l      *lines
	ahead  string
	nl     bool
	loaded bool
	ended  bool
	opened []stream
}

// load reads one line ahead.
func (h *sedHost) load() {
	for !h.loaded && !h.ended {
		if h.l == nil {
			if len(h.files) == 0 {
				h.ended = true
				return
			}
			name := h.files[0]
			h.files = h.files[1:]
			r, err := h.c.open(name)
			if err != nil {
				h.c.errorf("%s: %s", name, strerror(err))
				h.code = 1
				continue
			}
			h.cur, h.l = r, h.c.lines(r, '\n')
		}
		var ok bool
		h.ahead, h.nl, ok = h.l.next()
		if ok {
			h.loaded = true
			return
		}
		if h.l.err != nil {
			h.c.errorf("read error: %s", strerror(h.l.err))
			h.code = 1
		}
		h.cur.Close()
		h.l = nil
	}
}

func (h *sedHost) Next() (string, bool, bool, error) {
	h.load()
	if h.ended {
		return "", false, false, nil
	}
	h.loaded = false
	nl := h.nl
	if !nl {
		// A file in the middle ends with a newline even if it has none.
		text := h.ahead
		h.load()
		return text, !h.ended, true, nil
	}
	return h.ahead, nl, true, nil
}

func (h *sedHost) Last() bool        { h.load(); return h.ended }
func (h *sedHost) Stdout() io.Writer { return h.out }
func (h *sedHost) Step()             { h.c.spend(workPerStep / 4) }

func (h *sedHost) ReadFile(name string) ([]byte, error) { return h.c.readAll(name) }

func (h *sedHost) WriteFile(name string) (io.Writer, error) {
	f, err := h.c.create(name, false)
	if err != nil {
		return nil, &sed.Error{Text: name + ": " + strerror(err)}
	}
	h.opened = append(h.opened, f)
	return f, nil
}

// drain passes on what a script that quit early has left.
func (h *sedHost) drain() {
	for {
		text, nl, ok, _ := h.Next()
		if !ok {
			return
		}
		_, _ = io.WriteString(h.out, text+newlineIf(nl))
	}
}

func (h *sedHost) close() {
	for _, f := range h.opened {
		f.Close()
	}
}
