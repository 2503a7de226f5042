package applets

import (
	"errors"
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/sed"
)

// Sed is sed, whose language is package sed. -e and -f make one script, in the
// order in which they come. -i takes a backup's suffix, in which * is the
// file's name; -s, -z, -l and --posix are not built.
//
// Files are read one line ahead, since $ has to know the last line, over the
// borders of files as POSIX has it; with -i each file ends by itself.
func Sed() applet.Applet {
	return applet.New(runSed, "sed", "[-i[SFX]] [-nrE] [-f FILE]... [-e CMD]... [FILE]...")
}

// runSed parses the whole script before it opens an input, so that a mistake in
// the script leaves the files of -i untouched.
func runSed(c *applet.Call) int {
	o := c.Getopt("i::rEne:f:", "in-place=i::", "regexp-extended=r", "quiet=n", "silent=n", "expression=e:", "file=f:")
	var pieces []string
	args := o.Args
	// Value keeps the two lists apart, Order tells how they mix.
	e, f := 0, 0
	for _, opt := range o.Order {
		switch opt {
		case 'e':
			pieces = append(pieces, o.Value['e'][e])
			e++
		case 'f':
			data, err := c.ReadAll(o.Value['f'][f])
			if err != nil {
				c.Die(applet.PlainOpen, o.Value['f'][f], applet.Strerror(err))
			}
			pieces = append(pieces, strings.TrimSuffix(string(data), "\n"))
			f++
		}
	}
	// Without -e and -f the first operand is the script, not a file.
	if len(pieces) == 0 {
		if len(args) == 0 {
			c.Usage()
		}
		pieces = []string{args[0]}
		args = args[1:]
	}
	script, err := sed.Parse(pieces, o.Has('r') || o.Has('E'), o.Has('n'))
	if err != nil {
		c.Die("%s", err)
	}
	h := &sedHost{c: c, files: args, out: c.Out}
	if o.Has('i') {
		return sedInPlace(c, script, args, o.Str('i'))
	}
	if len(args) == 0 {
		h.files = []string{"-"}
	}
	code, err := sed.Run(script, h)
	h.close()
	if err != nil {
		c.Die("%s", sedError(err))
	}
	// A script's q status and a file that could not be read both count; the
	// worse one wins.
	return max(code, h.code)
}

// sedError is an error of the script as it is, or of a file in words.
func sedError(err error) string {
	var e *sed.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return applet.Strerror(err)
}

// sedInPlace edits each file by itself.
func sedInPlace(c *applet.Call, script *sed.Script, files []string, suffix string) int {
	code := 0
	for _, name := range files {
		// A directory or device can't be replaced by a new file, so -i refuses
		// it.
		fi, err := c.View().Stat(name)
		if err == nil && !fi.Mode().IsRegular() {
			c.Errorf("%s: not a regular file", name)
			code = 1
			continue
		}
		var edited strings.Builder
		h := &sedHost{c: c, files: []string{name}, out: &edited}
		if _, rerr := sed.Run(script, h); rerr != nil {
			c.Die("%s", sedError(rerr))
		}
		// A script that has quit leaves the rest of the file as it was.
		h.drain()
		h.close()
		code = max(code, h.code)
		// A file that could not be read is left alone.
		if err != nil || h.code != 0 {
			continue
		}
		if suffix != "" {
			backup := name + suffix
			if strings.Contains(suffix, "*") {
				backup = strings.ReplaceAll(suffix, "*", applet.Base(name))
			}
			if err := c.View().Rename(name, backup); err != nil {
				c.Die("%s: %s", name, applet.Strerror(err))
			}
		}
		// As the real one does: a new file in the place of the old one.
		temp := name + "~sed"
		sys := applet.SysOf(fi)
		v := c.View()
		if err := v.WriteFile(temp, []byte(edited.String()), fi.Mode().Perm()); err != nil {
			c.Die("%s: %s", name, applet.Strerror(err))
		}
		// The new file takes over mode and owner. Failures are passed over:
		// without root the owner can't be kept.
		_ = v.Chmod(temp, fi.Mode())
		_ = v.Chown(temp, sys.UID, sys.GID)
		if err := v.Rename(temp, name); err != nil {
			_ = v.Remove(temp)
			c.Die("%s: %s", name, applet.Strerror(err))
		}
	}
	return code
}

// sedHost connects sed to the process: its files, read one after the other.
type sedHost struct {
	c      *applet.Call
	files  []string
	out    io.Writer
	code   int
	cur    io.ReadCloser
	l      *applet.Lines
	ahead  string
	nl     bool
	loaded bool
	ended  bool
	opened []applet.Stream
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
			r, err := h.c.Open(name)
			if err != nil {
				h.c.Errorf("%s: %s", name, applet.Strerror(err))
				h.code = 1
				continue
			}
			h.cur, h.l = r, h.c.Lines(r, '\n')
		}
		var ok bool
		h.ahead, h.nl, ok = h.l.Next()
		if ok {
			h.loaded = true
			return
		}
		if h.l.Err != nil {
			h.c.Errorf("read error: %s", applet.Strerror(h.l.Err))
			h.code = 1
		}
		h.cur.Close()
		h.l = nil
	}
}

// Next returns the next line, and whether a newline follows it.
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

// Last reports whether no line follows. It may open the next file to know,
// because $ is the last line of all input.
func (h *sedHost) Last() bool { h.load(); return h.ended }

// Stdout is where the script prints: the applet's output, or with -i the edited
// text.
func (h *sedHost) Stdout() io.Writer { return h.out }

// Step charges for the commands run since the last one. It makes a script that
// loops without reading give way to other tasks, and so end on a signal.
func (h *sedHost) Step() { h.c.Spend(applet.WorkPerStep / 4) }

// ReadFile reads what an r command names.
func (h *sedHost) ReadFile(name string) ([]byte, error) { return h.c.ReadAll(name) }

// WriteFile empties a file of a w command, once for a script.
func (h *sedHost) WriteFile(name string) (io.Writer, error) {
	f, err := h.c.Create(name, false)
	if err != nil {
		return nil, &sed.Error{Text: name + ": " + applet.Strerror(err)}
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
		_, _ = io.WriteString(h.out, text+applet.NewlineIf(nl))
	}
}

// close closes what w commands have opened.
func (h *sedHost) close() {
	for _, f := range h.opened {
		f.Close()
	}
}
