package shell

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// savedFD is what a file descriptor was before a redirection.
type savedFD struct {
	fd   int
	file kernel.File // nil if it was closed
}

// pipeSize is what a pipe takes without a reader.
// It is Linux's default capacity. A here-document up to it is written at once, with nobody
// reading yet; a bigger one would block.
const pipeSize = 64 << 10

// maxFD bounds the numbers of file descriptors in scripts. The descriptors are a slice, so a
// large number would make it large.
const maxFD = 255

// redirection is what the redirections of a command have changed, so that it can
// be undone after it.
//
// It is used in three ways: simple and compound commands do and restore; exec without a command
// does and drops; a subshell's child does with save false, as it has nothing to go back to.
type redirection struct {
	s     *shell
	saved []savedFD
}

// do does redirections, from the left; with save, restore undoes them. On an
// error it has said what is wrong and the status is not 0; those before it stay
// to be undone. From the left matters: in ">f 2>&1" stderr follows stdout to f, in "2>&1 >f" it
// does not.
func (r *redirection) do(list []*syntax.Redirect, save bool) int {
	s := r.s
	for _, x := range list {
		// Output is the default; the operators that read have 0.
		fd := 1
		switch x.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc:
			fd = 0
		}
		if x.N != nil {
			n, err := strconv.Atoi(x.N.Value)
			if err != nil || n > maxFD {
				return s.fail(2, "syntax error: bad fd number")
			}
			fd = n
		}
		f, both, ok := r.target(x, fd)
		if !ok {
			if s.skip == skipExit {
				return s.status
			}
			// A failed redirection is status 1 in ash, and the command is not run.
			return 1
		}
		// Saved only once it is certain that the descriptor changes.
		if save {
			r.saveFD(fd)
			if both {
				r.saveFD(2)
			}
		}
		// stderr is a duplicate, so that closing one leaves the other.
		if both {
			s.p.SetFD(2, f.Dup())
		}
		s.p.SetFD(fd, f)
	}
	return 0
}

// saveFD remembers what a descriptor is, the first time that it is changed.
func (r *redirection) saveFD(fd int) {
	for _, x := range r.saved {
		// The first state is the one to go back to.
		if x.fd == fd {
			return
		}
	}
	p := r.s.p
	f := p.FD(fd)
	if f != nil {
		// The copy is the shell's until restore, so that it is closed if the shell dies.
		f = f.Dup()
		p.Own(f)
	}
	r.saved = append(r.saved, savedFD{fd, f})
}

// restore undoes redirections, unless exec has replaced the shell: then they
// are the program's. Disown reports whether the copy was still the shell's: if not, somebody has
// closed it already.
func (r *redirection) restore() {
	p := r.s.p
	if r.s.gone {
		return
	}
	for i := len(r.saved) - 1; i >= 0; i-- {
		// In the reverse order, since a descriptor may have been changed twice.
		if f := r.saved[i].file; f == nil || p.Disown(f) {
			p.SetFD(r.saved[i].fd, f)
		}
	}
}

// drop forgets what redirections changed: exec makes them stay, and the saved
// files are closed.
func (r *redirection) drop() {
	for _, x := range r.saved {
		if x.file != nil && r.s.p.Disown(x.file) {
			_ = x.file.Close()
		}
	}
	r.saved = nil
}

// target opens what a redirection leads to; nil closes the descriptor. both
// says that stderr goes there as well, as &> and >&FILE say, which ash has of
// Bash.
//
// What it returns belongs to the caller, who hands it to SetFD. Descriptors are duplicated, so
// that each number has a file of its own to close, as dup2(2) does.
func (r *redirection) target(x *syntax.Redirect, fd int) (f kernel.File, both, ok bool) {
	s := r.s
	if x.Op == syntax.Hdoc || x.Op == syntax.DashHdoc {
		f, ok = r.hereDoc(x)
		return f, false, ok
	}
	name := s.expandString(x.Word)
	if s.skip == skipExit {
		return nil, false, false
	}
	switch x.Op {
	case syntax.DplIn, syntax.DplOut:
		if name == "-" {
			return nil, false, true
		}
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 {
			// Only >&FILE without a number is as &>FILE; N>&FILE is an error.
			if x.Op == syntax.DplOut && x.N == nil {
				f, ok = r.create(name, os.O_TRUNC)
				return f, true, ok
			}
			// A word that is no number, as in 2>&x, is an error of syntax for ash.
			s.fail(2, "redir error")
			return nil, false, false
		}
		g := s.p.FD(n)
		if g == nil {
			s.message("%d: %s", n, posix.Strerror(linux.EBADF))
			return nil, false, false
		}
		return g.Dup(), false, true
	case syntax.RdrIn:
		f, ok = r.open(name, os.O_RDONLY)
	case syntax.RdrInOut:
		if f, ok = r.create(name, 0); ok {
			return f, false, true
		}
	case syntax.AppOut:
		f, ok = r.create(name, os.O_APPEND)
	case syntax.RdrOut:
		if s.opts.noclobber {
			f, ok = r.createNew(name)
		} else {
			f, ok = r.create(name, os.O_TRUNC)
		}
	case syntax.RdrClob:
		f, ok = r.create(name, os.O_TRUNC)
	case syntax.RdrAll:
		f, ok = r.create(name, os.O_TRUNC)
		both = true
	default:
		// The parser knows operators of Bash that ash does not have.
		s.warn("unsupported redirection %s", x.Op)
		s.fail(2, "syntax error: unexpected redirection")
	}
	return f, both, ok
}

// open opens a file for reading.
func (r *redirection) open(name string, flag int) (kernel.File, bool) {
	s := r.s
	f, err := s.p.View().Open(name, flag, 0)
	if err != nil {
		s.message("can't open %s: %s", name, explain(err, "no such file"))
		return nil, false
	}
	return f, true
}

// create opens a file for writing, and makes it; flag is how. For <> it is
// opened for both, and not emptied. 0666 is before the umask, which the view applies.
func (r *redirection) create(name string, flag int) (kernel.File, bool) {
	s := r.s
	mode := os.O_WRONLY
	// Only <> comes without a flag.
	if flag == 0 {
		mode = os.O_RDWR
	}
	f, err := s.p.View().Open(name, mode|os.O_CREATE|flag, 0o666)
	if err != nil {
		s.message("can't create %s: %s", name, explain(err, "nonexistent directory"))
		return nil, false
	}
	return f, true
}

// createNew is create under set -C: a regular file that exists is an error, a
// device or pipe is not.
func (r *redirection) createNew(name string) (kernel.File, bool) {
	s := r.s
	fi, err := s.p.View().Stat(name)
	switch {
	case err == nil && !fi.Mode().IsRegular():
		return r.create(name, os.O_TRUNC)
	case err == nil:
		s.message("can't create %s: %s", name, posix.Strerror(linux.EEXIST))
		return nil, false
	case errors.Is(err, fs.ErrNotExist):
		// O_EXCL catches a file that somebody makes in between.
		return r.create(name, os.O_EXCL)
	}
	return r.create(name, os.O_TRUNC)
}

// hereDoc returns the end of a pipe with the document in it. One that is bigger
// than a pipe is written by a subshell, as ash does. Up to pipeSize no process is needed, which
// process numbers show.
func (r *redirection) hereDoc(x *syntax.Redirect) (kernel.File, bool) {
	s := r.s
	text := ""
	if x.Hdoc != nil {
		w := x.Hdoc
		if x.Op == syntax.DashHdoc {
			w = withoutTabs(w)
		}
		if isQuoted(x) {
			// A quoted delimiter leaves the text alone, backslashes too.
			for _, p := range w.Parts {
				if lit, ok := p.(*syntax.Lit); ok {
					text += lit.Value
				}
			}
		} else {
			text = s.expandDocument(w)
		}
	}
	if s.skip == skipExit {
		return nil, false
	}
	rd, w := s.p.Container().Machine().Pipe()
	if len(text) <= pipeSize {
		if text != "" {
			_, _ = w.Write(s.ctx, []byte(text))
		}
	} else {
		fds := []kernel.File{nil, w}
		s.fork(fds, func(c *shell) int {
			if c.write(1, []byte(text)) != nil {
				return 1
			}
			return 0
		})
	}
	// The reader would see no end as long as the shell holds the write end.
	_ = w.Close()
	return rd, true
}

// withoutTabs takes the tabs off the starts of a document's lines, also of
// those whose start is in the middle of a part. It is for <<-: tabs go before expansions are
// done, so tabs in a value stay.
func withoutTabs(w *syntax.Word) *syntax.Word {
	out := &syntax.Word{}
	start := true
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			// What follows an expansion is in the middle of a line.
			out.Parts = append(out.Parts, p)
			start = false
			continue
		}
		var b strings.Builder
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c == '\t' && start {
				continue
			}
			b.WriteByte(c)
			start = c == '\n'
		}
		// The tree is shared by all who run the script, so the literal is copied.
		l := *lit
		l.Value = b.String()
		out.Parts = append(out.Parts, &l)
	}
	return out
}

// isQuoted reports whether the delimiter of a here-document was quoted in any
// way, so that nothing in it is expanded. Any quoting of any part counts: <<'E', <<"E" and <<\E
// are the same.
func isQuoted(r *syntax.Redirect) bool {
	for _, p := range r.Word.Parts {
		switch x := p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			if strings.Contains(x.Value, `\`) {
				return true
			}
		}
	}
	return false
}
