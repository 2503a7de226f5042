package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// What commands cost in virtual time, and how much of it may gather before the
// shell lets it pass: waiting for each builtin would cost more than running it.
const (
	// They are orders of magnitude and no measurements. What matters is that nothing is free: a
	// busy loop in a script must use up virtual time, or it would hold its loop for ever.
	costBuiltin = 20 * time.Microsecond
	costOther   = 5 * time.Microsecond
	costSearch  = 50 * time.Microsecond // a search of PATH that finds nothing
	costLetPass = time.Millisecond
)

// process is a shell as a process of its machine: what it says, how long what it
// does takes, and the signals that have come. It knows nothing of the language.
//
// A shell and its children embed the same pointer: the time that both spend is one account, and
// the signals that a wait takes reach the shell's traps.
type process struct {
	p   *kernel.Process
	ctx context.Context

	// arg0 is $0. Messages begin with it, with command, the name of the builtin
	// or script that runs, and line.
	arg0    string
	command string
	line    int

	// debt stays below costLetPass, so no effect of a builtin seems to be earlier by more than
	// that.
	debt time.Duration // spent, but not let pass
	out  []byte        // what the builtin that runs has said
	// pending are signals that were taken, but whose traps have not run.
	pending []int
}

// clone is what a subshell begins with, until it has a process of its own.
func (s *process) clone() *process {
	c := *s
	// Both sides would write to the one buffer.
	c.out = nil
	return &c
}

// spend lets virtual time pass, now or together with what comes later. A signal
// that kills the shell meanwhile ends the task within Step.
func (s *process) spend(d time.Duration) {
	// Time passes in slices, since each wait costs more than a builtin's work.
	if s.debt += d; s.debt >= costLetPass {
		d, s.debt = s.debt, 0
		// An error means that a signal interrupted the step; its trap runs after the command.
		_ = s.p.Step(s.ctx, d)
	}
}

// settle lets the time pass that was spent so far, before others see what the
// shell did: before it sends a signal, starts a program or ends.
func (s *process) settle() {
	if s.debt > 0 {
		d := s.debt
		s.debt = 0
		_ = s.p.Step(s.ctx, d)
	}
}

// write writes all of b to a file descriptor; a caught signal in between does
// not cut it short.
func (s *process) write(fd int, b []byte) error {
	f := s.p.FD(fd)
	// As write(2) on a closed descriptor, which a script can ask for by >&-.
	if f == nil {
		return linux.EBADF
	}
	for {
		n, err := f.Write(s.ctx, b)
		// A signal in the middle leaves a rest to be written.
		if errors.Is(err, kernel.ErrInterrupted) && n < len(b) {
			b = b[n:]
			continue
		}
		return err
	}
}

// message writes a line to stderr as ash does: with the shell's name, and
// within a builtin or a script file also with that name and the line. It costs
// as much as a builtin.
//
// So there are "sh: x: not found" with -c alone, and "run.sh: line 3: x: not found" from a file,
// both of which people search logs for. The exit status is the caller's to say.
func (s *process) message(format string, args ...any) {
	var b strings.Builder
	b.WriteString(s.arg0)
	b.WriteString(": ")
	// The name is not repeated for errors of the script itself.
	if s.command != "" {
		if s.command != s.arg0 {
			b.WriteString(s.command)
			b.WriteString(": ")
		}
		fmt.Fprintf(&b, "line %d: ", s.line)
	}
	fmt.Fprintf(&b, format, args...)
	b.WriteByte('\n')
	s.spend(costBuiltin)
	_ = s.write(2, []byte(b.String()))
}

// plain writes a line to stderr as code that builtins share with applets does:
// without the shell's name and line, since ash's test and printf are the
// applets'.
func (s *process) plain(format string, args ...any) {
	_ = s.write(2, []byte("sh: "+fmt.Sprintf(format, args...)+"\n"))
}

// warn tells the run of what the interpreter can't do, so that a scenario's
// author sees it.
func (s *process) warn(format string, args ...any) {
	s.p.Container().Warn("sh: " + fmt.Sprintf(format, args...))
}

// flush writes what a builtin said to stdout, and returns its status, or 1 if
// that fails. The buffer is kept for the next builtin unless it has grown.
func (s *process) flush(status int) int {
	out := s.out
	s.out = nil
	err := s.write(1, out)
	if cap(out) <= 4096 {
		s.out = out[:0]
	}
	if err != nil {
		s.plain("write error: %s", explain(err, ""))
		return 1
	}
	return status
}

// nextSignal takes a signal that has come, 0 if there is none. Those that a
// wait has taken are older.
func (s *process) nextSignal() int {
	if len(s.pending) > 0 {
		sig := s.pending[0]
		s.pending = s.pending[1:]
		return sig
	}
	sig, ok := s.p.NextSignal()
	if !ok {
		return 0
	}
	return sig
}

// takeSignals makes the signals that have come wait for dotrap and returns the
// first: for waits that a signal ends, whose traps run after the command.
//
// Only signals that are caught come here, since the kernel acts on all others itself; so each
// has, or had, a trap.
func (s *process) takeSignals() int {
	for {
		sig, ok := s.p.NextSignal()
		if !ok {
			break
		}
		s.pending = append(s.pending, sig)
	}
	if len(s.pending) > 0 {
		return s.pending[0]
	}
	return 0
}

// errno returns the number in an error; EIO for one that has none, which should
// not happen.
//
// Most errors of the kernel's files wrap a number. Those of package fs are of filesystems below
// it that know only these classes.
func errno(err error) linux.Errno {
	var e linux.Errno
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, fs.ErrNotExist):
		return linux.ENOENT
	case errors.Is(err, fs.ErrExist):
		return linux.EEXIST
	case errors.Is(err, fs.ErrPermission):
		return linux.EACCES
	}
	return linux.EIO
}

// explain puts an error into ash's words: absent, if the file or a directory of
// its path is, else strerror(3). The two missing ones get the same word, as ash
// has it.
func explain(err error, absent string) string {
	e := errno(err)
	if absent != "" && (e == linux.ENOENT || e == linux.ENOTDIR) {
		return absent
	}
	return posix.Strerror(e)
}
