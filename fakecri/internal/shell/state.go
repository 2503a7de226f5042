package shell

import (
	"errors"
	"maps"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Bounds that a real shell has in its memory and its stack.
const (
	// maxDepth is how deep commands may nest, calls of functions included. ash crashes when its
	// stack ends; here it would be the Go stack of the simulation.
	maxDepth = 1000
	// maxString bounds, in bytes, each text that a script can make grow: a field, a
	// substitution's output, a line that is read. See shell.outOfMemory.
	maxString = 8 << 20
	// maxForks is how many subshells may live at one time on a machine. Without it a fork bomb
	// would take the simulator's own memory.
	maxForks = 8192
)

// skip says why the commands that would come next are not run. Each level of
// the tree walk looks at it after each command, and ends what it is for: a loop
// a break, a function a return; an exit goes all the way up.
//
// The level that is meant sets skipNone again: looped does for break and continue, callFunction,
// dotCmd and invocation.end do for return. An exit is only taken back by finish, to run the trap
// of EXIT.
type skip uint8

const (
	skipNone skip = iota
	skipBreak
	skipContinue
	skipReturn
	skipExit
)

// options are what set changes, by name; set -o lists them in ash's order.
// ignoreeof, notify, monitor and vi are kept and change nothing: nobody types.
type options struct {
	errexit, noglob, noexec, xtrace, verbose, noclobber, allexport, nounset, pipefail bool
	ignoreeof, monitor, notify, errtrace, vi                                          bool
	// fromC and fromStdin are how the shell was called: c and s in $-.
	fromC, fromStdin bool
}

// shell is one shell process: its state, of which a subshell gets a copy. What
// a subshell may change without its parent's seeing it is copied by clone, or
// shared until it is written (own).
type shell struct {
	*process
	in   *interp
	kids children
	// args is replaced, never written to: copies of the shell have the same slice.
	args []string // $1 and so on

	// A fork copies vars; funcs and alias are shared until one of the two sides defines
	// something.
	vars  vars
	opts  options
	funcs map[string]*function
	alias map[string]string
	// shared says that funcs and alias belong to a parent, too.
	shared bool
	// frames has an entry for each function call around the present command, the innermost last.
	frames []*frame

	traps  traps
	status int // $?
	// inTrap says that a trap runs, trapStatus what $? was before it: exit
	// without a number goes back to that.
	inTrap     bool
	trapStatus int
	// procFDs are the descriptors of <(...) and >(...) that the present command was given, and
	// limits what ulimit has set.
	procFDs []int
	limits  []limit
	cwd     string // the directory by the names that led there
	// rootPID is $$, which a subshell does not change.
	rootPID int

	skip skip
	// skipCount is how many loops a break or continue has still to end.
	skipCount int
	// loops and calls say what break and return can end.
	loops int // loops around the present command
	calls int // functions and sourced files around it
	// depth counts the statements around the present one, against maxDepth.
	depth int
	// gone says that exec has replaced the shell: nothing more is done.
	gone bool
	// raised says that a builtin failed in a way that ends a shell if the
	// builtin is a special one.
	raised bool
	// substStatus is the status of the last command substitution.
	substStatus int

	// OPTIND counts words alone, so it can't say where in one getopts is. A function call starts
	// over.
	optPos int // within a cluster of options, of getopts
	// randoms counts the draws of $RANDOM, so that each draw has a name of its own.
	randoms uint64
	// input is nil for sh -c; firstLine says what that decides.
	input   *input
	aliases int // depth of alias expansion

	// The map in it is shared with subshells until one of the two changes PATH: both search
	// alike.
	programs pathCache
	// traced are assignments that set -x shows with their command, traceTo is
	// where, if the command's own stderr leads elsewhere.
	traced  []string
	traceTo kernel.File
}

// interp is what the shells of one Command share: the scripts that were parsed,
// and how many subshells live. It belongs to one loop.
type interp struct {
	cache script.Cache
	// forks counts the living subshells, against maxForks; noElide is Options.NoElide.
	forks   int
	noElide bool
}

// function is a defined function. Its body is a node of the script's tree,
// which lives as long as somebody has the function.
type function struct {
	body *syntax.Stmt
}

// frame holds what a function's local variables were outside, so that they can
// be put back, the last one first.
type frame struct {
	saved []variable
}

// clone is the state that a subshell begins with.
//
// Only what one side could change behind the other's back is copied. The status, the options, $0
// and the arguments come along by value.
func (s *shell) clone() *shell {
	c := *s
	c.process = s.process.clone()
	// A subshell has no children of its own yet, but $! stays.
	c.kids = children{process: c.process, count: s.kids.count, lastBg: s.kids.lastBg}
	c.vars = s.vars.clone()
	if s.funcs != nil || s.alias != nil {
		s.shared, c.shared = true, true
	}
	c.frames = nil
	if len(s.frames) > 0 {
		// In a subshell of a function local still works, and nothing needs to
		// be put back.
		c.frames = []*frame{{}}
	}
	return &c
}

// own makes the functions and aliases the shell's own before they change: a
// fork shares them, and most subshells define nothing.
func (s *shell) own() {
	if s.shared {
		s.funcs, s.alias, s.shared = maps.Clone(s.funcs), maps.Clone(s.alias), false
	}
}

// fail ends the shell with a message, as errors of the shell itself do: in a
// script that is the end of the script.
func (s *shell) fail(status int, format string, args ...any) int {
	s.message(format, args...)
	s.exit(status)
	return status
}

// outOfMemory is the end of a shell whose text grows beyond maxString, which is
// taken to have no end: it takes what memory there is, until the OOM killer
// comes. The real one would have come to that by itself, byte by byte.
func (s *shell) outOfMemory() {
	// 64 GiB in 1024 pieces rather than at once, so that a limit of memory is met where it is.
	for range 1024 {
		_ = s.p.Alloc(s.ctx, 64<<20)
	}
	s.fail(2, "out of memory")
}

// raise is an error of a builtin: status 2, and the end of the shell if the
// builtin is a special one, which runBuiltin sees to. 2 is ash's status for wrong usage; Bash has
// 1 for many of them.
func (s *shell) raise(format string, args ...any) int {
	s.message(format, args...)
	s.raised = true
	return 2
}

// exit makes everything return up to the end of the shell. Nothing is unwound
// by force, so redirections are undone on the way. Callers return at once after it. What they
// return then doesn't count: s.status does.
func (s *shell) exit(status int) {
	s.skip = skipExit
	s.status = status
}

// setVar assigns to a variable; false if that is read-only, which ends the
// shell as a syntax error would.
func (s *shell) setVar(name, value string, flags uint8) bool {
	if err := s.trySet(name, value, flags); err != nil {
		s.fail(2, "%v", err)
		return false
	}
	return true
}

// trySet assigns to a variable; the error is ash's message for a read-only one.
//
// Builtins call it, which report such an error as theirs (raise); an assignment before a command
// is the shell's own, and calls setVar.
func (s *shell) trySet(name, value string, flags uint8) error {
	if x := s.vars.find(name); x != nil && x.flags&flagReadonly != 0 {
		return errors.New(name + ": is read only")
	}
	if s.opts.allexport {
		flags |= flagExport
	}
	// An assignment to OPTIND makes getopts start over.
	if name == "OPTIND" {
		s.optPos = 0
	}
	s.vars.set(name, value, flags)
	return nil
}

// exitStatus is the status of a command that says yes or no.
func exitStatus(yes bool) int {
	if yes {
		return 0
	}
	return 1
}
