package sed

import (
	"io"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// run is one execution of a script: the pattern space and hold space, and for
// each range whether the present line is in it. The zero value of until is right for all
// commands: nobody is in a range.
type run struct {
	script *Script
	host   Host

	space   string
	newline bool // whether the present line ended with one
	hold    string
	line    int
	// until is, for each command with two addresses, the line at which its
	// range ends: 0 outside of a range, -1 where a pattern says.
	until   []int
	changed bool // a substitution was made since the last line or t
	// last is the expression used last, for empty ones; it is that of the run, not of the text.
	last *posix.Regexp
	// appends are what a and r have put off.
	appends []func() error
	files   map[string]io.Writer
	// steps counts commands, for Host.Step.
	steps int
	noEOL bool // the last thing written lacks its newline
}

// Run edits the host's lines and returns the exit status of a q command. An
// error is *Error, or what the host's files return. It ends at the last line or
// with q, and leaves closing files to the host. A script without input ends at once, with 0.
func Run(s *Script, host Host) (code int, err error) {
	defer recoverError(&err)
	r := &run{script: s, host: host, until: make([]int, len(s.cmds)), files: map[string]io.Writer{}}
	if err := r.openFiles(); err != nil {
		return 1, err
	}
	for {
		ok, err := r.read()
		if err != nil || !ok {
			return 0, err
		}
		// D asks for another cycle on what is left.
		for restart := true; restart; {
			var quit bool
			restart, quit, code, err = r.cycle()
			if err != nil || quit {
				return code, err
			}
		}
	}
}

// openFiles empties the files of w commands before the first line is read,
// whether or not a line ever gets there. POSIX wants them created before processing.
func (r *run) openFiles() error {
	for _, c := range r.script.cmds {
		name := ""
		if c.op == 'w' {
			name = c.text
		} else if c.sub != nil {
			name = c.sub.file
		}
		// Several commands may write to one file.
		if name == "" || r.files[name] != nil {
			continue
		}
		if name == "/dev/stdout" {
			r.files[name] = r.host.Stdout()
			continue
		}
		w, err := r.host.WriteFile(name)
		if err != nil {
			return err
		}
		r.files[name] = w
	}
	return nil
}

// read takes the next line into the pattern space. Line numbers go on from file to file.
func (r *run) read() (bool, error) {
	line, newline, ok, err := r.host.Next()
	if err != nil || !ok {
		return false, err
	}
	r.space, r.newline = line, newline
	r.line++
	return true, nil
}

// write writes a line. The newline that the last line of the input lacks is
// left out, and made up for if something follows: so a file without one at its
// end keeps it so. What i and = write has a newline in any case.
func (r *run) write(w io.Writer, text string, newline bool) error {
	if r.noEOL {
		text = "\n" + text
		r.noEOL = false
	}
	if newline {
		text += "\n"
	} else {
		r.noEOL = true
	}
	_, err := io.WriteString(w, text)
	return err
}

// print writes a text with the newline of the present line.
func (r *run) print(text string) error { return r.write(r.host.Stdout(), text, r.newline) }

// flush writes what a and r have put off to the end of the cycle, in their
// order. It runs also where the line itself is not printed.
func (r *run) flush() error {
	for _, fn := range r.appends {
		if err := fn(); err != nil {
			return err
		}
	}
	r.appends = r.appends[:0]
	return nil
}

// endCycle prints the pattern space, unless quiet or print says no, and what
// was put off after it.
func (r *run) endCycle(print bool) error {
	if print && !r.script.quiet {
		if err := r.print(r.space); err != nil {
			return err
		}
	}
	return r.flush()
}

// cycle runs the script on the pattern space. restart asks for another run
// without reading a line, as D wants; quit ends the run with a status. An error ends the run with
// status 1 or the one returned.
func (r *run) cycle() (restart, quit bool, code int, err error) {
	r.changed = false
	cmds := r.script.cmds
	for i := 0; i < len(cmds); {
		// A script can loop for ever by itself.
		if r.steps++; r.steps&255 == 0 {
			r.host.Step()
		}
		c := cmds[i]
		i++
		// negate is the ! of a command.
		if r.selected(c) == c.negate {
			// A block that is not entered is jumped over.
			if c.op == '{' {
				i = c.jump
			}
			continue
		}
		switch c.op {
		case 'b':
			i = c.jump
		case 't', 'T':
			// t jumps if there was a substitution, T if there was none.
			if r.changed == (c.op == 't') {
				i = c.jump
			}
			// Either starts over, whether or not it jumped.
			r.changed = false
		case 'd':
			return false, false, 0, r.endCycle(false)
		// D goes on without reading if a newline was left, which restart says.
		case 'D':
			_, rest, ok := strings.Cut(r.space, "\n")
			if err := r.endCycle(false); err != nil || !ok {
				return false, false, 0, err
			}
			r.space = rest
			return true, false, 0, nil
		// A range is replaced once, at its end.
		case 'c':
			// Within a negated range there is no end to wait for.
			if c.to == nil || c.negate || r.until[c.n] == 0 {
				if err := r.write(r.host.Stdout(), strings.TrimSuffix(c.text, "\n"), true); err != nil {
					return false, true, 1, err
				}
			}
			return false, false, 0, r.endCycle(false)
		case 'q':
			return false, true, 0, r.endCycle(true)
		case 'n', 'N':
			ok, err := r.nextLine(c.op)
			if err != nil || !ok {
				return false, true, 0, err
			}
		default:
			if err := r.simple(c); err != nil {
				return false, true, 1, err
			}
		}
	}
	return false, false, 0, r.endCycle(true)
}

// nextLine does n and N; false ends the run. Without a next line the pattern
// space is printed, which POSIX leaves out for N. n prints before it reads, N appends.
func (r *run) nextLine(op byte) (bool, error) {
	if r.host.Last() {
		// Without a next line both print, as GNU's does, and end.
		return false, r.endCycle(true)
	}
	before := r.space
	if op == 'n' {
		if err := r.endCycle(true); err != nil {
			return false, err
		}
	} else if err := r.flush(); err != nil {
		return false, err
	}
	ok, err := r.read()
	if op == 'N' {
		r.space = before + "\n" + r.space
	}
	return ok, err
}

// simple does the commands that go on with the next one. A text of i is written
// at once, one of a after the line. Labels, comments and closings never come here.
func (r *run) simple(c *command) error {
	out := r.host.Stdout()
	switch c.op {
	case '=':
		return r.write(out, strconv.Itoa(r.line), true)
	case 'p':
		return r.print(r.space)
	case 'P':
		first, _, _ := strings.Cut(r.space, "\n")
		// P ends with a newline, even if the last line lacks one.
		return r.write(out, first, true)
	// It is taken and does nothing in busybox.
	case 'l':
	case 'i':
		return r.write(out, strings.TrimSuffix(c.text, "\n"), true)
	case 'a':
		r.appends = append(r.appends, func() error {
			return r.write(r.host.Stdout(), strings.TrimSuffix(c.text, "\n"), true)
		})
	case 'r':
		r.appends = append(r.appends, func() error { return r.insert(c.text) })
	case 'w':
		return r.toFile(c.text)
	case 'g':
		r.space = r.hold
	case 'G':
		r.space += "\n" + r.hold
	case 'h':
		r.hold = r.space
	case 'H':
		r.hold += "\n" + r.space
	case 'x':
		r.space, r.hold = r.hold, r.space
	case 'y':
		// There is no locale, so y goes by bytes.
		b := []byte(r.space)
		for i := range b {
			b[i] = c.yank[b[i]]
		}
		r.space = string(b)
	case 's':
		return r.substitute(c.sub)
	}
	if len(r.space) > maxSpace || len(r.hold) > maxSpace {
		fail("out of memory")
	}
	return nil
}

// maxSpace bounds the pattern and hold spaces, in bytes: a script that doubles
// its line ends, as with the memory of a real one.
const maxSpace = 64 << 20

// insert writes a file after the cycle; one that can't be read is none. /dev/stdin is not special
// here.
func (r *run) insert(name string) error {
	data, err := r.host.ReadFile(name)
	if err != nil || len(data) == 0 {
		return nil
	}
	return r.write(r.host.Stdout(), strings.TrimSuffix(string(data), "\n"), true)
}

// toFile writes the pattern space to a file of w, which Run has opened before
// the first line. Lines are written as they come, so another command may read them.
func (r *run) toFile(name string) error {
	// The standard output heeds the newline that a last line lacks, see write.
	if name == "/dev/stdout" {
		return r.print(r.space)
	}
	text := r.space
	if r.newline {
		text += "\n"
	}
	_, err := io.WriteString(r.files[name], text)
	return err
}

// regexp remembers the expression used last, for empty ones. It is asked only when it is used: an
// address that is not reached leaves it.
func (r *run) regexp(re *posix.Regexp, same bool) *posix.Regexp {
	if same {
		if r.last == nil {
			fail("no previous regexp")
		}
		return r.last
	}
	r.last = re
	return re
}

// matches reports whether an address by itself picks the present line. A number picks by the
// count of lines over all files.
func (r *run) matches(a *address) bool {
	switch {
	case a.last:
		return r.host.Last()
	case a.re != nil || a.same:
		return r.regexp(a.re, a.same).Match(r.space)
	}
	return r.line == a.line
}

// selected reports whether a command's addresses pick the present line. A
// range's second address is looked for from the next line on; a number that is
// past picks one line. It must be called exactly once for each command and line, as it moves
// ranges on.
func (r *run) selected(c *command) bool {
	switch {
	case c.from == nil:
		return true
	case c.to == nil:
		return r.matches(c.from)
	}
	switch until := r.until[c.n]; {
	case until == 0:
		if !r.matches(c.from) {
			return false
		}
		switch {
		case c.to.isAdd:
			r.until[c.n] = r.line + c.to.plus
		// The end is looked for from the next line on, so /a/,/a/ takes two lines at least.
		case c.to.re != nil || c.to.same:
			r.until[c.n] = -1
		case c.to.last:
			r.until[c.n] = -1
			if r.host.Last() {
				r.until[c.n] = 0
			}
		default:
			r.until[c.n] = c.to.line
		}
		// A second address before the first picks one line.
		if u := r.until[c.n]; u > 0 && u <= r.line {
			r.until[c.n] = 0
		}
		return true
	// The line that ends the range is in it.
	case until < 0:
		if r.matches(c.to) {
			r.until[c.n] = 0
		}
		return true
	// A line that was jumped over may be past the end.
	default:
		if r.line >= until {
			r.until[c.n] = 0
		}
		return r.line <= until
	}
}

// substitute is an s command. changed is set even if the text is the same afterwards.
func (r *run) substitute(s *substitution) error {
	re := r.regexp(s.re, s.same)
	var locs [][]int
	// Only the first match is needed otherwise.
	if s.global || s.nth > 1 {
		locs = re.FindAll(r.space)
		if !s.global {
			// Of all matches only the nth is left.
			locs = locs[min(s.nth-1, len(locs)):]
			locs = locs[:min(1, len(locs))]
		}
	} else if loc := re.Find(r.space); loc != nil {
		locs = [][]int{loc}
	}
	if len(locs) == 0 {
		return nil
	}
	var b strings.Builder
	from := 0
	for _, loc := range locs {
		b.WriteString(r.space[from:loc[0]])
		for _, p := range s.repl {
			if !p.isRef {
				b.WriteString(p.text)
			} else if 2*p.group+1 < len(loc) && loc[2*p.group] >= 0 {
				b.WriteString(r.space[loc[2*p.group]:loc[2*p.group+1]])
			}
		}
		from = loc[1]
		if b.Len() > maxSpace {
			fail("out of memory")
		}
	}
	b.WriteString(r.space[from:])
	r.space = b.String()
	r.changed = true
	if s.print {
		if err := r.print(r.space); err != nil {
			return err
		}
	}
	if s.file != "" {
		return r.toFile(s.file)
	}
	return nil
}
