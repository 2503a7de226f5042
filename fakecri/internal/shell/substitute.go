package shell

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/arith"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"mvdan.cc/sh/v3/syntax"
)

// cmdSubst runs $(...) in a subshell and returns what it wrote, without
// newlines at the end and without zero bytes. The pipe is the shell's until
// then, so it closes if the shell dies.
func (e *expander) cmdSubst(x *syntax.CmdSubst) string {
	s := e.s
	if len(x.Stmts) == 0 {
		s.substStatus = 0
		return ""
	}
	// The machine's pipe has Linux's capacity, so a child that writes more waits for readAll.
	r, w := s.p.Container().Machine().Pipe()
	fds := append([]kernel.File(nil), s.p.FDs()...)
	// A closed stdin keeps its place, so that stdout is number 1.
	for len(fds) < 2 {
		fds = append(fds, nil)
	}
	// Both ends belong to this shell until Fork has duplicated w into the child.
	fds[1] = w
	child := s.fork(fds, func(c *shell) int {
		// trap in $(trap) lists the parent's, as POSIX wants.
		c.traps.shown = s.traps.set
		return c.stmts(x.Stmts, evalExit)
	})
	// Else the pipe would not end with the child.
	_ = w.Close()
	// If the shell dies while it reads, the pipe is closed with it.
	s.p.Own(r)
	// Reading goes to the end of the pipe and not to that of the child: as with a real shell, a
	// background process that keeps stdout open keeps the substitution waiting.
	out := e.readAll(r)
	if s.p.Disown(r) {
		_ = r.Close()
	}
	s.substStatus = s.kids.foreground(child)
	// $? is the substitution's while the rest of the words is expanded.
	s.status = s.substStatus
	t := strings.TrimRight(string(out), "\n")
	if strings.IndexByte(t, 0) >= 0 {
		t = strings.ReplaceAll(t, "\x00", "")
	}
	return t
}

// readAll reads a pipe to its end. What has no end is the end of the shell. The second bound is
// for what is dropped: a stream of zero bytes adds nothing to out.
func (e *expander) readAll(f kernel.File) []byte {
	s := e.s
	var out []byte
	var read int
	var buf [512]byte
	for {
		n, err := f.Read(s.ctx, buf[:])
		out = append(out, buf[:n]...)
		// Even zeros, which are dropped, must not go on for ever.
		if read += n; bytes.IndexByte(buf[:n], 0) >= 0 {
			// As ash drops them.
			out = slices.DeleteFunc(out, func(b byte) bool { return b == 0 })
		}
		// Traps run after the command, so a signal does not cut the output short.
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			return out
		}
		if len(out) > maxString || read > 128*maxString {
			s.outOfMemory()
			return nil
		}
	}
}

// procSubst is <(...) and >(...): a descriptor that leads to another process,
// by its name in /dev/fd. Nobody waits for that process. The command sees a path and opens it;
// simple closes the shell's end after the command.
func (e *expander) procSubst(x *syntax.ProcSubst) string {
	s := e.s
	r, w := s.p.Container().Machine().Pipe()
	fds := append([]kernel.File(nil), s.p.FDs()...)
	for len(fds) < 2 {
		fds = append(fds, nil)
	}
	mine := r
	if x.Op == syntax.CmdIn {
		fds[1] = w
	} else {
		fds[0] = r
		mine = w
	}
	s.fork(fds, func(c *shell) int { return c.stmts(x.Stmts, evalExit) })
	// The other end is the child's alone, or the pipe would have no end.
	if mine == r {
		_ = w.Close()
	} else {
		_ = r.Close()
	}
	// ash begins here as well. The descriptors below 10 are the script's.
	n := 64
	for s.p.FD(n) != nil {
		n++
	}
	s.p.SetFD(n, mine)
	s.procFDs = append(s.procFDs, n)
	return "/dev/fd/" + strconv.Itoa(n)
}

// arithmetic evaluates $((expr)): the text is expanded first, then read, so
// that $a may hold an operator's operands. An error ends the shell.
//
// The cache has the text, or the word that expands to it, so that a loop's $((i+1)) is not
// printed from the tree each time.
func (e *expander) arithmetic(x *syntax.ArithmExp) string {
	s := e.s
	if x.X == nil {
		return "0"
	}
	t := s.in.cache.Arith(x)
	text := t.Text
	if t.Word != nil {
		if text = s.expandDocument(t.Word); s.skip == skipExit {
			return ""
		}
	}
	v, err := arith.Eval(text, arithVars{s})
	if err != nil {
		s.fail(2, "%v", err)
		return ""
	}
	return strconv.FormatInt(v, 10)
}

// arithSource is the text of an expression that is not worth remembering: one
// of let or of a substring.
func (e *expander) arithSource(x syntax.ArithmExpr) string {
	s := e.s
	t := script.PrintArith(x)
	if t.Word == nil {
		return t.Text
	}
	return s.expandDocument(t.Word)
}

// expandText expands text as if it stood in double quotes; what can't be read
// stays as it is.
func (e *expander) expandText(t string) string {
	s := e.s
	w, err := script.Document(t)
	if err != nil {
		return t
	}
	return s.expandDocument(w)
}

// arithVars are the shell's parameters as an expression has them.
//
// It makes $((x)) see what $x would, LINENO and RANDOM included; an unset name counts as 0, even
// under set -u.
type arithVars struct{ s *shell }

// Lookup knows all parameters, positional and special ones too.
func (v arithVars) Lookup(name string) (string, bool) { return v.s.lookup(name) }

// Assign fails for read-only variables.
func (v arithVars) Assign(name, value string) error { return v.s.trySet(name, value, 0) }

// closeProcFDs closes what procSubst opened for a command.
func (s *shell) closeProcFDs() {
	for _, n := range s.procFDs {
		s.p.SetFD(n, nil)
	}
	s.procFDs = nil
}
