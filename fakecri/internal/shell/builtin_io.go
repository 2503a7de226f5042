package shell

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/arith"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// echoCmd is echo: options n, e and E in any mixture, else they are text. It is
// the applet's twin, as in busybox, where both share their code. POSIX leaves the options to the
// implementation; scripts for Alpine rely on -e and -n.
func echoCmd(s *shell, argv []string) int {
	args := argv[1:]
	newline, escapes := true, false
options:
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		// A word counts as options only if all of its letters do.
		n, e := newline, escapes
		for i := 1; i < len(args[0]); i++ {
			switch args[0][i] {
			case 'n':
				n = false
			case 'e':
				e = true
			case 'E':
				e = false
			default:
				break options
			}
		}
		newline, escapes = n, e
		args = args[1:]
	}
	for i, a := range args {
		if i > 0 {
			s.out = append(s.out, ' ')
		}
		if !escapes {
			s.out = append(s.out, a...)
			continue
		}
		stop := false
		if s.out, stop = appendEscapes(s.out, a); stop {
			return 0
		}
	}
	if newline {
		s.out = append(s.out, '\n')
	}
	return 0
}

// appendEscapes adds text with the escapes of echo -e and %b; \c ends it all,
// which stop says. An octal escape begins with a 0 here. After the 0 up to three digits more
// count, as in XSI's echo: \0101 is A.
func appendEscapes(b []byte, t string) (out []byte, stop bool) {
	for i := 0; i < len(t); i++ {
		if t[i] != '\\' || i+1 == len(t) {
			b = append(b, t[i])
			continue
		}
		switch {
		case t[i+1] == 'c':
			return b, true
		case t[i+1] == '0':
			n := i + 2
			for n < len(t) && n < i+5 && arith.Digit(t[n], 8) >= 0 {
				n++
			}
			v, _ := strconv.ParseUint("0"+t[i+2:n], 8, 16)
			b = append(b, byte(v))
			i = n - 1
		default:
			n := 0
			b, n = appendEscape(b, t[i:])
			i += n - 1
		}
	}
	return b, false
}

// readCmd is read. It reads byte by byte, so that what follows the line is left
// for others, and splits as IFS says; -s and -u are taken, -a and -i are not.
//
// Status 1 at the end of the input is what ends "while read line"; the text of a last line
// without a newline is assigned all the same.
func readCmd(s *shell, argv []string) int {
	r := reader{s: s, fd: 0, delim: '\n', max: -1}
	// Names are judged before anything is read: a wrong one costs no line.
	args, ok := r.options(argv[1:])
	if !ok {
		return 2
	}
	for _, name := range args {
		if !script.ValidName(name) {
			s.plain("read: '%s': bad variable name", name)
			return 1
		}
	}
	if r.prompt != "" {
		_ = s.write(2, []byte(r.prompt))
	}
	// Each name is set even if nothing was read: those without a field become empty.
	status := r.read()
	if s.skip == skipExit {
		return s.status
	}
	if len(args) == 0 {
		if err := s.trySet("REPLY", string(r.text), 0); err != nil {
			return s.raise("%v", err)
		}
		return status
	}
	for i, name := range args {
		var v string
		if i == len(args)-1 {
			v = r.last()
		} else {
			v = r.field()
		}
		if err := s.trySet(name, v, 0); err != nil {
			return s.raise("%v", err)
		}
	}
	return status
}

// reader is one call of read: its options, and what it has read so far. text is
// what was read without its backslashes, of which escaped remembers where they
// were.
//
// max is how many bytes -n asks for, -1 for a line; timed says that timeout counts, which may be
// 0.
type reader struct {
	s       *shell
	fd      int
	raw     bool
	prompt  string
	timeout time.Duration
	timed   bool
	max     int
	delim   byte
	text    []byte
	// escaped marks the bytes of text that a backslash was before.
	escaped []bool
	pos     int
}

// options reads the options of read; false after an error.
func (r *reader) options(args []string) ([]string, bool) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		o := args[0]
		args = args[1:]
		if o == "--" {
			break
		}
		for i := 1; i < len(o); i++ {
			c := o[i]
			// These letters take a value, in the same word or the next; others stand
			// alone.
			if strings.IndexByte("ptnud", c) < 0 {
				switch c {
				case 'r':
					r.raw = true
				case 's':
				default:
					r.s.raise("illegal option -%c", c)
					return nil, false
				}
				continue
			}
			v := o[i+1:]
			if v == "" {
				if len(args) == 0 {
					r.s.raise("No arg for -%c option", c)
					return nil, false
				}
				v, args = args[0], args[1:]
			}
			if !r.option(c, v) {
				return nil, false
			}
			break
		}
	}
	return args, true
}

// option sets an option with a value.
func (r *reader) option(c byte, v string) bool {
	switch c {
	case 'p':
		r.prompt = v
	case 'd':
		// An empty delimiter is the zero byte.
		r.delim = 0
		if v != "" {
			r.delim = v[0]
		}
	case 't':
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 || f > 1e9 {
			r.s.raise("invalid timeout")
			return false
		}
		r.timed, r.timeout = true, time.Duration(f*float64(time.Second))
	case 'n', 'u':
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			r.s.raise("invalid count")
			return false
		}
		if c == 'u' {
			r.fd = n
		} else {
			// read -n 0 reads a line, as without -n.
			if r.max = n; n == 0 {
				r.max = -1
			}
		}
	}
	return true
}

// read reads up to the delimiter; 1 at the end of the file, after the timeout,
// or on a signal. What was read until then is assigned all the same.
func (r *reader) read() int {
	s := r.s
	f := s.p.FD(r.fd)
	if f == nil {
		s.message("read error: %s", posix.Strerror(linux.EBADF))
		return 1
	}
	ctx := s.ctx
	if r.timed {
		// Virtual time. What was read before it ended is assigned.
		c, cancel := loop.WithTimeout(ctx, r.timeout)
		defer cancel()
		ctx = c
	}
	var b [1]byte
	// back: a backslash was read, and waits for what it hides. At the end of a
	// line it takes the newline away.
	back := false
	for (r.max < 0 || len(r.text) < r.max) && len(r.text) < maxString {
		n, err := f.Read(ctx, b[:])
		if n == 0 {
			// A signal without a trap does not end it.
			if errors.Is(err, kernel.ErrInterrupted) && s.takeSignals() == 0 {
				continue
			}
			if err == nil {
				continue
			}
			if !errors.Is(err, io.EOF) && !errors.Is(err, kernel.ErrInterrupted) && ctx.Err() == nil {
				s.message("read error: %s", explain(err, ""))
			}
			return 1
		}
		c := b[0]
		switch {
		// Zero bytes are dropped, as C strings could not hold them.
		case c == 0 && r.delim != 0:
		case back:
			back = false
			if c != '\n' {
				r.add(c, true)
			}
		case c == r.delim:
			return 0
		case c == '\\' && !r.raw:
			back = true
		default:
			r.add(c, false)
		}
		// A byte costs a call of read(2) in the real one, too.
		s.spend(time.Microsecond)
	}
	return 0
}

// add adds a byte of the input; escaped ones separate nothing. text and escaped grow together:
// one mark for each byte.
func (r *reader) add(c byte, escaped bool) {
	r.text = append(r.text, c)
	r.escaped = append(r.escaped, escaped)
}

// is reports whether the byte at i separates fields, and whether it is white.
func (r *reader) is(i int, ifs string) (sep, white bool) {
	c := r.text[i]
	sep = !r.escaped[i] && strings.IndexByte(ifs, c) >= 0
	return sep, sep && (c == ' ' || c == '\t' || c == '\n')
}

// skipWhite goes past white space of IFS.
func (r *reader) skipWhite(ifs string) {
	for r.pos < len(r.text) {
		if _, white := r.is(r.pos, ifs); !white {
			return
		}
		r.pos++
	}
}

// field takes one field off the text. A field ends with white space, or with one other separator
// and the white space around it.
func (r *reader) field() string {
	ifs := r.s.vars.ifs()
	r.skipWhite(ifs)
	start := r.pos
	for r.pos < len(r.text) {
		if sep, _ := r.is(r.pos, ifs); sep {
			break
		}
		r.pos++
	}
	f := string(r.text[start:r.pos])
	r.skipWhite(ifs)
	if r.pos < len(r.text) {
		if sep, white := r.is(r.pos, ifs); sep && !white {
			r.pos++
			r.skipWhite(ifs)
		}
	}
	return f
}

// last takes the rest of the text, without the separators at its end.
//
// The last name gets all that is left, separators in the middle included, so that "read a b"
// keeps a path with blanks whole in b.
func (r *reader) last() string {
	ifs := r.s.vars.ifs()
	r.skipWhite(ifs)
	start, rest := r.pos, *r
	rest.field()
	if rest.pos == len(r.text) {
		// A single field: a separator that ends it is not part of it.
		return r.field()
	}
	end := len(r.text)
	for end > start {
		if _, white := r.is(end-1, ifs); !white {
			break
		}
		end--
	}
	r.pos = len(r.text)
	return string(r.text[start:end])
}
