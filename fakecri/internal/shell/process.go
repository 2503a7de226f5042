package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// job is a command that runs in the background.
type job struct {
	number int
	procs  []*kernel.Process
	pids   []int
	exits  []kernel.Exit
	left   int // processes that still run
	used   int // of a counter: the highest is the current job
}

func (j *job) done() bool { return j.left == 0 }

// status is the exit status of the job's last process.
func (j *job) status() int { return j.exits[len(j.exits)-1].Code }

// fork runs body in a subshell. fds nil means the shell's own.
func (s *shell) fork(fds []kernel.File, body func(c *shell) int) *kernel.Process {
	c := s.clone()
	return s.p.Fork("sh", fds, func(ctx context.Context, p *kernel.Process) int {
		in := c.in
		c.ctx, c.p = ctx, p
		if in.forks >= maxForks || p.Refused() {
			c.message("can't fork: %s", posix.Strerror(syscall.EAGAIN))
			return 2
		}
		in.forks++
		defer func() { in.forks-- }()
		c.traps.inherit()
		return c.finish(body(c))
	})
}

// finish ends a shell: it runs the trap of EXIT and returns the exit status.
func (s *shell) finish(status int) int {
	if s.skip == skipExit {
		status = s.status
	}
	if s.gone {
		return status
	}
	if action, ok := s.traps.get(0); ok && action != "" {
		s.traps.remove(0)
		s.skip = skipNone
		s.status = status
		s.trapStatus, s.inTrap = status, true
		s.loops, s.calls, s.depth = 0, 0, 0
		s.runString(action, 0)
		status = s.trapStatus
		if s.gone {
			return s.status
		}
	}
	if status &= 0xff; s.debt > 0 {
		s.settle()
	}
	return status
}

// reap notes how a child ended.
func (s *shell) reap(p *kernel.Process, ex kernel.Exit) {
	for _, j := range s.jobs {
		for i, q := range j.procs {
			if q == p {
				j.exits[i] = ex
				j.procs[i] = nil
				j.left--
				return
			}
		}
	}
}

// waitForeground waits for a child and returns its status. Signals that come
// meanwhile stay for dotrap.
func (s *shell) waitForeground(child *kernel.Process) int {
	var buf [1]*kernel.Process
	buf[0] = child
	return s.waitAll(buf[:])[0].Code
}

// waitPipeline waits for all processes of a pipeline.
func (s *shell) waitPipeline(procs []*kernel.Process) int {
	exits := s.waitAll(procs)
	status := exits[len(exits)-1].Code
	if s.opts.pipefail {
		status = 0
		for _, ex := range exits {
			if ex.Code != 0 {
				status = ex.Code
			}
		}
	}
	return status
}

func (s *shell) waitAll(procs []*kernel.Process) []kernel.Exit {
	exits := make([]kernel.Exit, len(procs))
	for left := len(procs); left > 0; {
		p, ex, err := s.p.WaitAny(s.ctx)
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			break
		}
		mine := false
		for i, q := range procs {
			if q == p {
				exits[i], mine = ex, true
				left--
			}
		}
		if mine {
			s.tellSignal(ex)
		} else {
			s.reap(p, ex)
		}
	}
	return exits
}

// addJob remembers background processes; the last one's number is $!.
func (s *shell) addJob(procs []*kernel.Process) {
	// Jobs that have ended and that nobody asked for make room.
	if len(s.jobs) >= 64 {
		s.poll()
		kept := s.jobs[:0]
		for _, j := range s.jobs {
			if !j.done() {
				kept = append(kept, j)
			}
		}
		s.jobs = kept
	}
	n := 1
	for again := true; again; {
		again = false
		for _, j := range s.jobs {
			if j.number == n {
				n++
				again = true
			}
		}
	}
	s.jobCount++
	j := &job{number: n, procs: procs, exits: make([]kernel.Exit, len(procs)), left: len(procs), used: s.jobCount}
	for _, p := range procs {
		j.pids = append(j.pids, p.PID())
	}
	s.jobs = append(s.jobs, j)
	s.lastBg = j.pids[len(j.pids)-1]
}

// poll notes which background processes have ended.
func (s *shell) poll() {
	for _, j := range s.jobs {
		for i, p := range j.procs {
			if p == nil {
				continue
			}
			if _, ended := p.Ended(); ended {
				ex, err := s.p.Wait(s.ctx, p)
				for errors.Is(err, kernel.ErrInterrupted) {
					ex, err = s.p.Wait(s.ctx, p)
				}
				if err == nil {
					j.exits[i], j.procs[i] = ex, nil
					j.left--
				}
			}
		}
	}
}

func (s *shell) removeJob(j *job) {
	for i, x := range s.jobs {
		if x == j {
			s.jobs = append(s.jobs[:i], s.jobs[i+1:]...)
			return
		}
	}
}

// waitJob waits for a job, or with nil for all. A signal with a trap cuts it
// short; its number is returned.
func (s *shell) waitJob(j *job) (signal int) {
	for {
		busy := j != nil && !j.done()
		if j == nil {
			for _, x := range s.jobs {
				busy = busy || !x.done()
			}
		}
		if !busy {
			return 0
		}
		if sig := s.takeSignals(); sig != 0 {
			return sig
		}
		p, ex, err := s.p.WaitAny(s.ctx)
		switch {
		case errors.Is(err, kernel.ErrInterrupted):
			if sig := s.takeSignals(); sig != 0 {
				return sig
			}
		case err != nil:
			return 0
		default:
			s.reap(p, ex)
			if j != nil && j.done() {
				s.tellSignal(ex)
			}
			// A child that sends a signal and ends at once cuts it short too.
			if sig := s.takeSignals(); sig != 0 {
				return sig
			}
		}
	}
}

// tellSignal says what killed a process that the shell has waited for.
func (s *shell) tellSignal(ex kernel.Exit) {
	if t := signalText(ex.Signal); t != "" && ex.Signal != int(syscall.SIGINT) && ex.Signal != int(syscall.SIGPIPE) {
		_ = s.write(2, []byte(t+"\n"))
	}
}

// cmdSubst runs $(...) and returns what it wrote, without newlines at the end.
func (s *shell) cmdSubst(x *syntax.CmdSubst) string {
	if len(x.Stmts) == 0 {
		s.substStatus = 0
		return ""
	}
	r, w := s.p.Container().Machine().Pipe()
	fds := append([]kernel.File(nil), s.p.FDs()...)
	for len(fds) < 2 {
		fds = append(fds, nil)
	}
	fds[1] = w
	child := s.fork(fds, func(c *shell) int {
		c.traps.shown = s.traps.set
		return c.stmts(x.Stmts, evalExit)
	})
	_ = w.Close()
	s.p.Own(r)
	out := s.readAll(r)
	if s.p.Disown(r) {
		_ = r.Close()
	}
	s.substStatus = s.waitForeground(child)
	s.status = s.substStatus
	t := strings.TrimRight(string(out), "\n")
	if strings.IndexByte(t, 0) >= 0 {
		t = strings.ReplaceAll(t, "\x00", "")
	}
	return t
}

func (s *shell) readAll(f kernel.File) []byte {
	var out []byte
	var read int
	var buf [512]byte
	for {
		n, err := f.Read(s.ctx, buf[:])
		out = append(out, buf[:n]...)
		if read += n; bytes.IndexByte(buf[:n], 0) >= 0 {
			out = slices.DeleteFunc(out, func(b byte) bool { return b == 0 }) // as ash drops them
		}
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

// procSubst is <(...) and >(...): a descriptor that leads to another process.
func (s *shell) procSubst(x *syntax.ProcSubst) string {
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
	if mine == r {
		_ = w.Close()
	} else {
		_ = r.Close()
	}
	n := 10
	for s.p.FD(n) != nil {
		n++
	}
	s.p.SetFD(n, mine)
	s.procFDs = append(s.procFDs, n)
	return "/dev/fd/" + strconv.Itoa(n)
}

// closeProcFDs closes what procSubst opened for a command.
func (s *shell) closeProcFDs() {
	for _, n := range s.procFDs {
		s.p.SetFD(n, nil)
	}
	s.procFDs = nil
}

// input is where a script comes from if that is no argument of sh -c.
type input struct {
	data []byte // read from stdin, but not run yet
}

// readLine returns the next line of stdin with its newline; buf is what one
// read may take.
func (s *shell) readLine(buf []byte) (string, error) {
	in := s.input
	var line []byte
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
			return string(line), syscall.EBADF
		}
		n, err := f.Read(s.ctx, buf)
		in.data = append(in.data, buf[:n]...)
		if errors.Is(err, kernel.ErrInterrupted) {
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
