package awk

import (
	"bytes"
	"io"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// reader cuts an input into records. It keeps what was read beyond the last
// one, so RS may change between two. src is a file, the standard input or a command's output.
type reader struct {
	src io.Reader
	buf []byte
	eof bool
	err error
}

// fill reads once more. What one read gives is enough: a line that was typed is
// not waited beyond. An error other than the end is kept for who asks.
func (r *reader) fill() {
	chunk := make([]byte, 4096)
	n, err := r.src.Read(chunk)
	// Read may return data together with its error, as io.Reader allows.
	r.buf = append(r.buf, chunk[:n]...)
	if err != nil {
		r.eof = true
		if err != io.EOF {
			r.err = err
		}
	}
}

// close closes the source, if it is one that can be.
func (r *reader) close() {
	if c, ok := r.src.(io.Closer); ok {
		c.Close()
	}
}

// recordOf returns the next record without its separator. RS is a character, a
// regular expression, or, when empty, blank lines; newlines before the first
// paragraph don't count. RS is looked at for each record, so a program may change it in between.
func (in *interp) recordOf(r *reader) (string, bool) {
	rs := in.vars[vRS].value.text("")
	// searched is up to where no separator begins.
	searched := 0
	if rs == "" {
		for {
			r.buf = bytes.TrimLeft(r.buf, "\n")
			if len(r.buf) > 0 || r.eof {
				break
			}
			r.fill()
		}
	}
	for {
		at, n := -1, 1
		switch {
		case rs == "":
			if i := bytes.Index(r.buf[searched:], []byte("\n\n")); i >= 0 {
				at, n = searched+i, 2
				// Further blank lines belong to the same separator.
				for at+n < len(r.buf) && r.buf[at+n] == '\n' {
					n++
				}
			}
		// One character is itself, whatever it means in an expression.
		case len(rs) == 1:
			if i := bytes.IndexByte(r.buf[searched:], rs[0]); i >= 0 {
				at = searched + i
			}
		default:
			// A match that ends where the buffer does might go on. A separator that the data may
			// still lengthen is not one yet.
			if loc := in.compiled(rs).Find(string(r.buf)); loc != nil && loc[1] > loc[0] && (loc[1] < len(r.buf) || r.eof) {
				at, n = loc[0], loc[1]-loc[0]
			}
		}
		if at >= 0 {
			rec := string(r.buf[:at])
			r.buf = r.buf[at+n:]
			return rec, true
		}
		// The last record needs no separator.
		if r.eof {
			if len(r.buf) == 0 {
				return "", false
			}
			rec := r.buf
			r.buf = nil
			if rs == "" {
				rec = bytes.TrimRight(rec, "\n")
			}
			return string(rec), true
		}
		// What was searched is not searched again, but for one byte that may
		// begin a separator.
		searched = max(0, len(r.buf)-1)
		r.fill()
	}
}

// readMain returns the next record of the operands' files, opening each as it
// comes. main input is what rules and plain getline share.
func (in *interp) readMain() (string, bool, error) {
	for {
		if in.in == nil {
			ok, err := in.nextFile()
			if err != nil || !ok {
				return "", false, err
			}
		}
		if rec, ok := in.recordOf(in.in); ok {
			in.count(true)
			return rec, true, nil
		}
		// A file that can't be read on ends the program.
		if err := in.in.err; err != nil {
			return "", false, &Error{in.vars[vFILENAME].value.text("") + ": " + posix.Strerror(err)}
		}
		in.in.close()
		in.in = nil
	}
}

// count counts a record; only those of the operands' files count for FNR. getline from a command
// counts in NR alone.
func (in *interp) count(file bool) {
	in.vars[vNR].value = num(in.vars[vNR].value.float() + 1)
	if file {
		in.vars[vFNR].value = num(in.vars[vFNR].value.float() + 1)
	}
}

// nextFile opens the next operand, makes assignments on the way, and takes
// stdin if there was no file. ARGV is looked at then, since a program may
// change it. An operand x=1 between two files is an assignment for what comes after it.
func (in *interp) nextFile() (bool, error) {
	argv := in.vars[vARGV].arr()
	for {
		in.argAt++
		if float64(in.argAt) >= in.vars[vARGC].value.float() {
			// There were files, or only assignments and then stdin.
			if in.anyFile {
				return false, nil
			}
			in.anyFile = true
			return true, in.openMain("-", "")
		}
		key := itoa(in.argAt)
		// Elements of ARGV that were deleted are passed over.
		if !argv.has(key) {
			continue
		}
		name := argv.get(key).value.text("")
		// An assignment among the operands takes place when it is reached.
		if name == "" || in.assignArg(name) {
			continue
		}
		in.anyFile = true
		return true, in.openMain(name, name)
	}
}

// openMain opens an operand; shown is what FILENAME says. A missing file ends the program with an
// error, as in busybox.
func (in *interp) openMain(name, shown string) error {
	src, err := in.host.Open(name)
	if err != nil {
		return &Error{name + ": " + posix.Strerror(err)}
	}
	in.in = &reader{src: src}
	in.vars[vFNR].value = num(0)
	in.vars[vFILENAME].value = str(shown)
	return nil
}

// input is what getline reads beside the main input: a file, or the output of a
// command. It stays open, at its place, until close or the end.
type input struct {
	r    *reader
	pipe Pipe
}

// output is what print writes to beside the standard output: a file, or a
// command's input. > empties a file once, not for each print.
type output struct {
	w    io.Writer
	c    io.Closer
	pipe Pipe
}

// getline reads a record into $0 or a variable: 1, 0 at the end, -1 on an
// error. The forms: getline, getline x, getline < file, cmd | getline, and the latter two with a
// variable.
func (in *interp) getline(e *expr) value {
	var line string
	ok := false
	switch e.str {
	// Without a source getline reads the main input.
	case "":
		l, more, err := in.readMain()
		if err != nil {
			return num(-1)
		}
		line, ok = l, more
	default:
		name := in.eval(e.b).text(in.convfmt())
		src := in.input(e.str, name)
		if src == nil {
			return num(-1)
		}
		line, ok = in.recordOf(src.r)
		if !ok && src.r.err != nil {
			return num(-1)
		}
	}
	if !ok {
		return num(0)
	}
	if e.a != nil {
		in.assign(e.a, inputStr(line))
	} else {
		in.setRecord(line)
	}
	return num(1)
}

// input returns what is open under a file's or command's name, or opens it; nil
// if that fails. A name that is open stays what it was opened as.
func (in *interp) input(how, name string) *input {
	if i := in.ins[name]; i != nil {
		return i
	}
	i := &input{}
	// What was printed so far comes before what the command does.
	in.host.Flush()
	if how == "|" {
		p, err := in.host.PipeFrom(name)
		if err != nil {
			return nil
		}
		i.pipe = p
		i.r = &reader{src: p}
	} else {
		f, err := in.host.Open(name)
		if err != nil {
			return nil
		}
		i.r = &reader{src: f}
	}
	in.ins[name] = i
	in.inKeys = append(in.inKeys, name)
	return i
}

// output returns what print writes to under a name, or opens it. A file is
// emptied once, when it is opened. The command or file stays open until close, or the end of the
// program.
func (in *interp) output(how, name string) io.Writer {
	if o := in.outs[name]; o != nil {
		return o.w
	}
	o := &output{}
	switch {
	case how == "|":
		// The command's output comes after what was printed so far.
		in.host.Flush()
		p, err := in.host.PipeTo(name)
		if err != nil {
			fail(posix.Strerror(err))
		}
		o.w, o.pipe = p, p
	// Both are the output itself, with its buffer.
	case name == "/dev/stdout" || name == "-":
		o.w = in.host.Stdout()
	default:
		if name == "" {
			fail("cmd. line:1: Empty redirect")
		}
		f, err := in.host.Create(name, how == ">>")
		if err != nil {
			fail("can't open '" + name + "': " + posix.Strerror(err))
		}
		o.w, o.c = f, f
	}
	in.outs[name] = o
	in.outKeys = append(in.outKeys, name)
	return o.w
}

// closeOne closes what is open under a name and returns its status, -1 if there
// is none: of a command the exit status, as busybox and gawk have it. Closing and printing again
// makes the file or command anew.
func (in *interp) closeOne(name string) float64 {
	// One name may be open both ways.
	result := -1.0
	if o := in.outs[name]; o != nil {
		delete(in.outs, name)
		result = 0
		if o.pipe != nil {
			result = float64(o.pipe.Wait())
		} else if o.c != nil {
			o.c.Close()
		}
	}
	if i := in.ins[name]; i != nil {
		delete(in.ins, name)
		result = 0
		if i.pipe != nil {
			result = float64(i.pipe.Wait())
		} else {
			i.r.close()
		}
	}
	return result
}

// closeAll closes outputs before inputs, each in the order of opening, and
// waits for commands. A command's own output comes before this awk ends, as it is waited for.
func (in *interp) closeAll() {
	in.host.Flush()
	for _, k := range append(in.outKeys, in.inKeys...) {
		in.closeOne(k)
	}
}
