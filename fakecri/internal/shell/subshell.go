package shell

import (
	"context"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"mvdan.cc/sh/v3/syntax"
)

// fork runs body in a subshell. fds nil means the shell's own. The copy of the
// shell is made at once, so that what the parent does next is not seen; the
// child's first step comes later. In ps the process is called sh until it execs. A nil entry of
// fds is a closed descriptor.
func (s *shell) fork(fds []kernel.File, body func(c *shell) int) *kernel.Process {
	c := s.clone()
	return s.p.Fork("sh", fds, func(ctx context.Context, p *kernel.Process) int {
		in := c.in
		// From here on the copy's waits and signals are the child's own.
		c.ctx, c.p = ctx, p
		// Too many are refused as by a limit of processes, before they do anything.
		if in.forks >= maxForks || p.Refused() {
			c.message("can't fork: %s", posix.Strerror(linux.EAGAIN))
			return 2
		}
		// A child that execs holds its place until the program has ended, too.
		in.forks++
		defer func() { in.forks-- }()
		// Traps are reset in the child, not before: the copy is the parent's. POSIX has a
		// subshell reset the traps that catch and keep those that ignore.
		c.traps.inherit()
		return c.finish(body(c))
	})
}

// finish ends a shell: it runs the trap of EXIT and returns the exit status,
// which is that of before the trap unless the trap exits by itself.
//
// fork and invocation call it once for each shell. A status is cut to 8 bits, as wait(2) reports
// it.
func (s *shell) finish(status int) int {
	if s.skip == skipExit {
		status = s.status
	}
	// Exec has replaced the shell: there is no shell left to run a trap.
	if s.gone {
		return status
	}
	if action, ok := s.traps.get(0); ok && action != "" {
		// First, so that an exit in the action does not run the action again.
		s.traps.remove(0)
		s.skip = skipNone
		s.status = status
		s.trapStatus, s.inTrap = status, true
		// Whatever the shell was in the middle of is over: a break in the action has no loop to
		// end.
		s.loops, s.calls, s.depth = 0, 0, 0
		s.runString(action, 0)
		status = s.trapStatus
		// The trap of EXIT may itself exec.
		if s.gone {
			return s.status
		}
	}
	if status &= 0xff; s.debt > 0 {
		s.settle()
	}
	return status
}

// subshellCmd is ( ... ). If nothing comes after it, it needs no process: the
// shell itself goes on as the subshell, and ends with it. Process numbers show
// that in ash, too. The redirections are done in the child, so nobody needs to undo them.
func (s *shell) subshellCmd(x *syntax.Subshell, redirs []*syntax.Redirect, flags evalFlags) int {
	body := func(c *shell) int {
		if len(redirs) > 0 {
			if status := (&redirection{s: c}).do(redirs, false); status != 0 {
				return status
			}
		}
		return c.stmts(x.Stmts, evalExit|flags&evalTested)
	}
	// Nobody would notice the missing process, as ash finds, too.
	// A shell with traps stays, to run them.
	if flags&evalExit != 0 && !s.traps.may {
		s.traps = traps{}
		status := body(s)
		if s.skip != skipExit {
			s.exit(status)
		}
		return s.status
	}
	child := s.fork(nil, body)
	return s.kids.foreground(child)
}

// pipeline runs a | b | c, each in a process of its own, also the last one:
// what it sets is gone afterwards, unlike in zsh or ksh. set -e judges its status in stmt.
func (s *shell) pipeline(x *syntax.BinaryCmd, flags evalFlags) int {
	procs := s.startPipeline(x, false)
	status := s.kids.pipeline(procs, s.opts.pipefail)
	return status
}

// startPipeline starts the processes of a pipeline, the first one first, each
// with the pipe from the one before. The parser nests to the left, so the parts
// are gathered from the right. One in the background reads from /dev/null. The
// shell closes its ends as it goes, or no reader would ever see an end.
func (s *shell) startPipeline(x *syntax.BinaryCmd, background bool) []*kernel.Process {
	var parts []*syntax.Stmt
	for n := syntax.Command(x); ; {
		b, ok := n.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe {
			break
		}
		parts = append(parts, b.Y)
		left := b.X
		// A left side with redirections or negation of its own is one part, not more of the
		// chain.
		if lb, ok := left.Cmd.(*syntax.BinaryCmd); ok && lb.Op == syntax.Pipe && len(left.Redirs) == 0 && !left.Negated {
			n = lb
			continue
		}
		parts = append(parts, left)
		break
	}
	m := s.p.Container().Machine()
	procs := make([]*kernel.Process, 0, len(parts))
	var in kernel.File
	for i := len(parts) - 1; i >= 0; i-- {
		st := parts[i]
		fds := append([]kernel.File(nil), s.p.FDs()...)
		for len(fds) < 2 {
			fds = append(fds, nil)
		}
		if in != nil {
			fds[0] = in
		} else if background {
			fds[0] = m.Null()
		}
		var r, w kernel.File
		if i > 0 {
			r, w = m.Pipe()
			fds[1] = w
		}
		// evalExit lets a program take the child's place, so a pipeline of programs has no shells
		// between.
		child := s.fork(fds, func(c *shell) int { return c.stmt(st, evalExit) })
		if background {
			ignoreInterrupts(child)
		}
		procs = append(procs, child)
		// The child has its own copies of the pipe's ends.
		if in != nil || background && i == len(parts)-1 {
			_ = fds[0].Close()
		}
		if w != nil {
			_ = w.Close()
		}
		// The next part reads it; after the last part it is nil.
		in = r
	}
	return procs
}

// background starts a command with & and does not wait for it. Without job
// control its stdin is /dev/null, and ^C does not reach it.
//
// POSIX 2.9.3 has stdin be /dev/null unless the command redirects it, which it does later, in the
// child. The status is 0 whatever becomes of the command.
func (s *shell) background(st *syntax.Stmt) int {
	var procs []*kernel.Process
	if b, ok := st.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe && len(st.Redirs) == 0 && !st.Negated {
		procs = s.startPipeline(b, true)
	} else {
		fds := append([]kernel.File(nil), s.p.FDs()...)
		if len(fds) == 0 {
			fds = append(fds, nil)
		}
		null := s.p.Container().Machine().Null()
		fds[0] = null
		// The tree is shared by all who run the script, so the node is copied.
		fg := *st
		fg.Background = false
		procs = []*kernel.Process{ignoreInterrupts(s.fork(fds, func(c *shell) int {
			// The child itself is the subshell: ( ... ) & makes one process and not two.
			if sub, ok := fg.Cmd.(*syntax.Subshell); ok && !fg.Negated {
				return c.subshellCmd(sub, fg.Redirs, evalExit)
			}
			return c.stmt(&fg, evalExit)
		}))}
		_ = null.Close()
	}
	s.kids.add(procs)
	return 0
}
