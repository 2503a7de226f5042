package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// What commands cost in virtual time, and how much of it may gather before the
// shell lets it pass: waiting for each builtin would cost more than running it.
const (
	costBuiltin = 20 * time.Microsecond
	costOther   = 5 * time.Microsecond
	costSearch  = 50 * time.Microsecond // a search of PATH that finds nothing
	costLetPass = time.Millisecond
)

// Bounds that a real shell has in its memory and its stack.
const (
	maxDepth  = 1000
	maxString = 8 << 20
	// maxForks is how many subshells may live at one time on a machine.
	maxForks = 8192
)

// skip says why the commands that would come next are not run.
type skip uint8

const (
	skipNone skip = iota
	skipBreak
	skipContinue
	skipReturn
	skipExit
)

// Options that set changes, by letter.
type options struct {
	errexit, noglob, noexec, xtrace, verbose, noclobber, allexport, nounset, pipefail bool
	ignoreeof, monitor, notify, errtrace, vi                                          bool
	// fromC and fromStdin are how the shell was called: c and s in $-.
	fromC, fromStdin bool
}

// shell is one shell process: its state, which a subshell gets a copy of.
type shell struct {
	p   *kernel.Process
	ctx context.Context
	in  *interp

	// arg0 is $0, args $1 and so on. command begins messages beside arg0: the
	// name of the builtin that runs.
	arg0    string
	args    []string
	command string
	line    int

	vars  vars
	opts  options
	funcs map[string]*function
	alias map[string]string
	// shared says that funcs and alias belong to a parent, too.
	shared bool
	frames []*frame

	traps  traps
	status int // $?
	// pending are signals that were taken, but whose traps have not run.
	pending []int
	// inTrap says that a trap runs, trapStatus what $? was before it: exit
	// without a number goes back to that.
	inTrap     bool
	trapStatus int
	lastBg     int // $!
	jobs       []*job
	jobCount   int
	procFDs    []int
	limits     []limit
	cwd        string // the directory by the names that led there
	// rootPID is $$, which a subshell does not change.
	rootPID int

	skip      skip
	skipCount int
	loops     int // loops around the present command
	calls     int // functions and sourced files around it
	depth     int
	// gone says that exec has replaced the shell: nothing more is done.
	gone bool
	// raised says that a builtin failed in a way that ends a shell if the
	// builtin is a special one.
	raised bool
	// substStatus is the status of the last command substitution.
	substStatus int

	debt    time.Duration
	out     []byte
	optPos  int // within a cluster of options, of getopts
	randoms uint64
	input   *input
	aliases int // depth of alias expansion

	// hashed remembers where in the PATH hashedFor programs are.
	hashed    map[string]string
	hashedFor string
	// traced are assignments that set -x shows with their command, traceTo is
	// where, if the command's own stderr leads elsewhere.
	traced  []string
	traceTo kernel.File
}

// interp is what the shells of one Command share.
type interp struct {
	cache   parseCache
	forks   int
	noElide bool
}

// function is a defined function.
type function struct {
	body *syntax.Stmt
}

// frame holds what a function's local variables were outside.
type frame struct {
	saved []variable
}

func (s *shell) clone() *shell {
	c := *s
	c.vars = s.vars.clone()
	if s.funcs != nil || s.alias != nil {
		s.shared, c.shared = true, true
	}
	c.out, c.frames, c.jobs = nil, nil, nil
	if len(s.frames) > 0 {
		// In a subshell of a function local still works, and nothing needs to
		// be put back.
		c.frames = []*frame{{}}
	}
	return &c
}

// own makes the functions and aliases the shell's own before they change.
func (s *shell) own() {
	if s.shared {
		s.funcs, s.alias, s.shared = maps.Clone(s.funcs), maps.Clone(s.alias), false
	}
}

// spend lets virtual time pass, now or together with what comes later.
func (s *shell) spend(d time.Duration) {
	if s.debt += d; s.debt >= costLetPass {
		d, s.debt = s.debt, 0
		_ = s.p.Step(s.ctx, d)
	}
}

// settle lets the time pass that was spent so far, before others see what the
// shell did.
func (s *shell) settle() {
	if s.debt > 0 {
		d := s.debt
		s.debt = 0
		_ = s.p.Step(s.ctx, d)
	}
}

// write writes all of b to a file descriptor.
func (s *shell) write(fd int, b []byte) error {
	f := s.p.FD(fd)
	if f == nil {
		return syscall.EBADF
	}
	for {
		n, err := f.Write(s.ctx, b)
		if errors.Is(err, kernel.ErrInterrupted) && n < len(b) {
			b = b[n:]
			continue
		}
		return err
	}
}

// message writes a line to stderr as ash does: with the shell's name, and
// within a builtin or a script file also with that name and the line.
func (s *shell) message(format string, args ...any) {
	var b strings.Builder
	b.WriteString(s.arg0)
	b.WriteString(": ")
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

// plain writes a line to stderr as code that builtins share with applets does.
func (s *shell) plain(format string, args ...any) {
	_ = s.write(2, []byte("sh: "+fmt.Sprintf(format, args...)+"\n"))
}

// fail ends the shell with a message, as errors of the shell itself do.
func (s *shell) fail(status int, format string, args ...any) int {
	s.message(format, args...)
	s.exit(status)
	return status
}

// outOfMemory is the end of a shell whose text grows beyond maxString, which is
// taken to have no end: it takes what memory there is, until the OOM killer
// comes.
func (s *shell) outOfMemory() {
	for range 1024 {
		_ = s.p.Alloc(s.ctx, 64<<20)
	}
	s.fail(2, "out of memory")
}

// raise is an error of a builtin: status 2, and the end of the shell if the
// builtin is a special one.
func (s *shell) raise(format string, args ...any) int {
	s.message(format, args...)
	s.raised = true
	return 2
}

// exit makes everything return up to the end of the shell.
func (s *shell) exit(status int) {
	s.skip = skipExit
	s.status = status
}

// warn tells the run of what the interpreter can't do.
func (s *shell) warn(format string, args ...any) {
	s.p.Container().Warn("sh: " + fmt.Sprintf(format, args...))
}

// setVar assigns to a variable; false if that is read-only, which ends the
// shell.
func (s *shell) setVar(name, value string, flags uint8) bool {
	if err := s.trySet(name, value, flags); err != nil {
		s.fail(2, "%v", err)
		return false
	}
	return true
}

func (s *shell) trySet(name, value string, flags uint8) error {
	if x := s.vars.find(name); x != nil && x.flags&flagReadonly != 0 {
		return errors.New(name + ": is read only")
	}
	if s.opts.allexport {
		flags |= flagExport
	}
	if name == "OPTIND" {
		s.optPos = 0
	}
	s.vars.set(name, value, flags)
	return nil
}

// errno returns the number in an error.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, fs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	}
	return syscall.EIO
}

// explain puts an error into ash's words: absent, if the file or a directory
// of its path is, else strerror(3).
func explain(err error, absent string) string {
	e := errno(err)
	if absent != "" && (e == syscall.ENOENT || e == syscall.ENOTDIR) {
		return absent
	}
	return posix.Strerror(e)
}
