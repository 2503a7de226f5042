package shell

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// savedFD is what a file descriptor was before a redirection.
type savedFD struct {
	fd   int
	file kernel.File // nil if it was closed
}

// pipeSize is what a pipe takes without a reader.
const pipeSize = 64 << 10

// maxFD bounds the numbers of file descriptors in scripts.
const maxFD = 255

// redirect does redirections. With save it returns what restore needs. On an
// error it has said what is wrong and the status is not 0.
func (s *shell) redirect(list []*syntax.Redirect, save bool) ([]savedFD, int) {
	var saved []savedFD
	for _, r := range list {
		fd := 1
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc:
			fd = 0
		}
		if r.N != nil {
			n, err := strconv.Atoi(r.N.Value)
			if err != nil || n > maxFD {
				return saved, s.fail(2, "syntax error: bad fd number")
			}
			fd = n
		}
		f, both, ok := s.target(r, fd)
		if !ok {
			if s.skip == skipExit {
				return saved, s.status
			}
			return saved, 1
		}
		if save {
			saved = s.saveFD(saved, fd)
			if both {
				saved = s.saveFD(saved, 2)
			}
		}
		if both {
			s.p.SetFD(2, f.Dup())
		}
		s.p.SetFD(fd, f)
	}
	return saved, 0
}

func (s *shell) saveFD(saved []savedFD, fd int) []savedFD {
	for _, x := range saved {
		if x.fd == fd {
			return saved
		}
	}
	f := s.p.FD(fd)
	if f != nil {
		f = f.Dup()
		s.p.Own(f)
	}
	return append(saved, savedFD{fd, f})
}

// restore undoes redirections.
func (s *shell) restore(saved []savedFD) {
	if s.gone {
		return
	}
	for i := len(saved) - 1; i >= 0; i-- {
		if f := saved[i].file; f == nil || s.p.Disown(f) {
			s.p.SetFD(saved[i].fd, f)
		}
	}
}

// drop forgets what redirections changed: exec makes them stay.
func (s *shell) drop(saved []savedFD) {
	for _, x := range saved {
		if x.file != nil && s.p.Disown(x.file) {
			_ = x.file.Close()
		}
	}
}

// target opens what a redirection leads to; nil closes the descriptor. both
// says that stderr goes there as well.
func (s *shell) target(r *syntax.Redirect, fd int) (f kernel.File, both, ok bool) {
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		f, ok = s.hereDoc(r)
		return f, false, ok
	}
	name := s.expandString(r.Word)
	if s.skip == skipExit {
		return nil, false, false
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		if name == "-" {
			return nil, false, true
		}
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 {
			if r.Op == syntax.DplOut && r.N == nil {
				f, ok = s.create(name, os.O_TRUNC)
				return f, true, ok
			}
			s.fail(2, "redir error")
			return nil, false, false
		}
		g := s.p.FD(n)
		if g == nil {
			s.message("%d: %s", n, posix.Strerror(syscall.EBADF))
			return nil, false, false
		}
		return g.Dup(), false, true
	case syntax.RdrIn:
		f, ok = s.open(name, os.O_RDONLY)
	case syntax.RdrInOut:
		if f, ok = s.create(name, 0); ok {
			return f, false, true
		}
	case syntax.AppOut:
		f, ok = s.create(name, os.O_APPEND)
	case syntax.RdrOut:
		if s.opts.noclobber {
			f, ok = s.createNew(name)
		} else {
			f, ok = s.create(name, os.O_TRUNC)
		}
	case syntax.RdrClob:
		f, ok = s.create(name, os.O_TRUNC)
	case syntax.RdrAll:
		f, ok = s.create(name, os.O_TRUNC)
		both = true
	default:
		s.warn("unsupported redirection %s", r.Op)
		s.fail(2, "syntax error: unexpected redirection")
	}
	return f, both, ok
}

func (s *shell) open(name string, flag int) (kernel.File, bool) {
	f, err := s.p.View().Open(name, flag, 0)
	if err != nil {
		s.message("can't open %s: %s", name, explain(err, "no such file"))
		return nil, false
	}
	return f, true
}

func (s *shell) create(name string, flag int) (kernel.File, bool) {
	mode := os.O_WRONLY
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

// createNew is create under set -C: a regular file that exists is an error.
func (s *shell) createNew(name string) (kernel.File, bool) {
	fi, err := s.p.View().Stat(name)
	switch {
	case err == nil && !fi.Mode().IsRegular():
		return s.create(name, os.O_TRUNC)
	case err == nil:
		s.message("can't create %s: %s", name, posix.Strerror(syscall.EEXIST))
		return nil, false
	case errors.Is(err, fs.ErrNotExist):
		return s.create(name, os.O_EXCL)
	}
	return s.create(name, os.O_TRUNC)
}

// hereDoc returns the end of a pipe with the document in it.
func (s *shell) hereDoc(r *syntax.Redirect) (kernel.File, bool) {
	text := ""
	if r.Hdoc != nil {
		w := r.Hdoc
		if r.Op == syntax.DashHdoc {
			w = withoutTabs(w)
		}
		if isQuoted(r) {
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
	_ = w.Close()
	return rd, true
}

// withoutTabs takes the tabs off the starts of a document's lines.
func withoutTabs(w *syntax.Word) *syntax.Word {
	out := &syntax.Word{}
	start := true
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
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
		l := *lit
		l.Value = b.String()
		out.Parts = append(out.Parts, &l)
	}
	return out
}

// isQuoted tells whether the delimiter of a here-document was quoted, so that
// nothing in it is expanded.
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
