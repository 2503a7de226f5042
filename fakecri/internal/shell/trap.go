package shell

import (
	"sort"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/lists"
)

// trap is what a shell does on a signal; 0 is the end of the shell. An empty
// action ignores the signal. The number is the signal's on Linux, as in package kernel.
type trap struct {
	sig    int
	action string
}

// traps are a shell's, sorted by signal. The list is never written to in place:
// a subshell has the same one. Copying a shell therefore copies one slice header, and most shells
// have no traps at all.
type traps struct {
	set []trap
	// shown is what a command substitution lists: its parent's.
	shown []trap
	// caught says that a signal has an action to run, may that something was
	// trapped, so that programs don't take the shell's place.
	caught, may bool
}

// get returns what is done on a signal; false if nothing was said.
func (t *traps) get(sig int) (string, bool) {
	for _, x := range t.set {
		if x.sig == sig {
			return x.action, true
		}
	}
	return "", false
}

// remove forgets a trap. The list is copied: a subshell may share it.
func (t *traps) remove(sig int) {
	for i, x := range t.set {
		if x.sig == sig {
			t.set = append(append([]trap(nil), t.set[:i]...), t.set[i+1:]...)
			break
		}
	}
	t.recount()
}

// put sets a trap.
func (t *traps) put(sig int, action string) {
	t.remove(sig)
	t.set = append(t.set, trap{sig, action})
	// trap lists them by number. They are few, at most one for each signal.
	sort.Slice(t.set, func(i, j int) bool { return t.set[i].sig < t.set[j].sig })
	t.recount()
}

// recount finds out whether there is a trap to run. may never goes back: ash
// stops replacing itself by programs with the first trap.
func (t *traps) recount() {
	t.caught = false
	for _, x := range t.set {
		if x.action != "" {
			t.may = true
			t.caught = t.caught || x.sig != 0
		}
	}
}

// inherit leaves a subshell the signals that its parent ignores; those that it
// catches are back to what they do by themselves.
func (t *traps) inherit() {
	set := lists.Filter(t.set, func(x trap) bool { return x.action == "" })
	t.set, t.caught, t.may = set, false, false
}

// assign sets what a signal does. One that the shell was started to ignore
// stays ignored, as nohup relies on it; the trap is listed all the same.
//
// The kernel is told of the disposition, so that it knows without asking the shell which signals
// interrupt, kill or are dropped.
func (t *traps) assign(p *kernel.Process, sig int, action string, reset bool) {
	_, had := t.get(sig)
	// POSIX: what was ignored from the beginning can't be trapped. had: a trap that the script
	// itself has set to ignore may be changed.
	fixed := sig != 0 && !had && p.DispositionOf(sig) == kernel.Ignore
	if reset {
		t.remove(sig)
	} else {
		t.put(sig, action)
	}
	if sig == 0 || fixed {
		return
	}
	d := kernel.Catch
	switch {
	case reset:
		d = kernel.Default
	case action == "":
		d = kernel.Ignore
	}
	p.Disposition(sig, d)
}

// dotrap runs the traps of the signals that have come, between two commands. A
// trap sees $? of before and leaves it, unless it returns or exits; a break of
// before goes on afterwards.
//
// stmt calls it after each command, whileClause after a parked lap, and the reading of stdin when
// it is interrupted. It runs all that have come, in their order.
func (s *shell) dotrap() {
	// After a return or exit the traps wait: for the caller's next command, or for ever.
	for s.skip == skipNone || s.skip == skipBreak || s.skip == skipContinue {
		sig := s.nextSignal()
		if sig == 0 {
			return
		}
		action, ok := s.traps.get(sig)
		// The trap may have been reset since the signal came.
		if !ok || action == "" {
			continue
		}
		// Traps nest: a signal may come while one runs.
		status, trapStatus, inTrap := s.status, s.trapStatus, s.inTrap
		skip, count := s.skip, s.skipCount
		// A break or continue waits until the trap is done.
		s.skip = skipNone
		s.trapStatus, s.inTrap = status, true
		s.runString(action, 0)
		s.inTrap = inTrap
		// inTrap is the outer trap's already; the status is that of the exit.
		if s.skip == skipExit {
			return
		}
		s.trapStatus = trapStatus
		if s.skip != skipReturn {
			s.status = status
		}
		// A break of the trap's own wins over the one before.
		if s.skip == skipNone {
			s.skip, s.skipCount = skip, count
		}
	}
}

// ignoreInterrupts is done to background commands, before they take a step:
// without job control ^C and ^\ are none of their business. POSIX 2.11: a command started with &
// while job control is off ignores SIGINT and SIGQUIT.
func ignoreInterrupts(p *kernel.Process) *kernel.Process {
	p.Disposition(int(linux.SIGINT), kernel.Ignore)
	p.Disposition(int(linux.SIGQUIT), kernel.Ignore)
	return p
}

// trapCmd is trap. A single operand resets; "-" resets too, and "" ignores.
// What is listed can be run to set the same traps.
func trapCmd(s *shell, argv []string) int {
	args := argv[1:]
	if len(args) > 0 && args[0] == "-l" {
		return s.raise("illegal option -l")
	}
	if len(args) > 0 && args[0] == "-p" {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		return s.raise("illegal option %s", args[0][:2])
	}
	if len(args) == 0 {
		list := s.traps.set
		// A command substitution lists its parent's traps, until it sets some itself.
		if s.traps.shown != nil {
			list = s.traps.shown
		}
		for _, x := range list {
			s.out = append(s.out, "trap -- "+singleQuote(x.action)+" "+signalName(x.sig)+"\n"...)
		}
		return 0
	}
	// With one operand alone that is no number ash resets as well: "trap INT" is "trap - INT".
	action, reset := "", true
	// A first operand that is a number is a signal, and all of them are reset.
	if len(args) > 1 {
		if _, err := strconv.ParseUint(args[0], 10, 31); err != nil {
			action, reset, args = args[0], args[0] == "-", args[1:]
		}
	}
	// From the first change on, a subshell lists its own traps.
	s.traps.shown = nil
	status := 0
	for _, name := range args {
		sig, ok := kernel.SignalNumber(name)
		if !ok {
			s.message("%s: invalid signal specification", name)
			status = 1
			continue
		}
		s.traps.assign(s.p, sig, action, reset)
	}
	return status
}

// signalName returns a signal's name without SIG, or its number; 0 is EXIT.
func signalName(n int) string {
	if n == 0 {
		return "EXIT"
	}
	return kernel.SignalName(n)
}

// signalText is strsignal(3), the words in which a shell tells of what killed a
// child.
//
// The words are those of musl's or glibc's table; for the signals that are not listed here Go's
// own names are the same but for the capital.
func signalText(sig int) string {
	switch linux.Signal(sig) {
	case 0:
		return ""
	case linux.SIGHUP:
		return "Hangup"
	case linux.SIGKILL:
		return "Killed"
	case linux.SIGTERM:
		return "Terminated"
	case linux.SIGALRM:
		return "Alarm clock"
	case linux.SIGUSR1:
		return "User defined signal 1"
	case linux.SIGUSR2:
		return "User defined signal 2"
	case linux.SIGBUS:
		return "Bus error"
	case linux.SIGSTKFLT:
		return "Stack fault"
	case linux.SIGPWR:
		return "Power failure"
	case linux.SIGFPE:
		return "Floating point exception"
	case linux.SIGTRAP:
		return "Trace/breakpoint trap"
	case linux.SIGXCPU:
		return "CPU time limit exceeded"
	case linux.SIGXFSZ:
		return "File size limit exceeded"
	case linux.SIGVTALRM:
		return "Virtual timer expired"
	case linux.SIGPROF:
		return "Profiling timer expired"
	case linux.SIGPOLL:
		return "I/O possible"
	}
	t := linux.Signal(sig).String()
	return strings.ToUpper(t[:1]) + t[1:]
}
