package kernel

import (
	"strconv"
	"strings"
)

// Signals, by their numbers on Linux. They are constants of their own, as syscall's differ by
// platform and tests run on any.
const (
	SIGHUP    = 1
	SIGINT    = 2
	SIGQUIT   = 3
	SIGILL    = 4
	SIGTRAP   = 5
	SIGABRT   = 6
	SIGBUS    = 7
	SIGFPE    = 8
	SIGKILL   = 9
	SIGUSR1   = 10
	SIGSEGV   = 11
	SIGUSR2   = 12
	SIGPIPE   = 13
	SIGALRM   = 14
	SIGTERM   = 15
	SIGSTKFLT = 16
	SIGCHLD   = 17
	SIGCONT   = 18
	SIGSTOP   = 19
	SIGTSTP   = 20
	SIGTTIN   = 21
	SIGTTOU   = 22
	SIGURG    = 23
	SIGXCPU   = 24
	SIGXFSZ   = 25
	SIGVTALRM = 26
	SIGPROF   = 27
	SIGWINCH  = 28
	SIGIO     = 29
	SIGPWR    = 30
	SIGSYS    = 31

	maxSignal = 64
)

// SignalName returns a signal's name without SIG, or its number. 29 is POLL, Linux's other name
// for IO, as BusyBox's kill -l has it.
func SignalName(sig int) string {
	names := [...]string{"", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
		"USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
		"XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS"}
	if sig > 0 && sig < len(names) {
		return names[sig]
	}
	return strconv.Itoa(sig)
}

// SignalNumber reads a signal's name, with or without SIG, or its number; EXIT, as
// in trap, is 0.
func SignalNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n <= maxSignal
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	switch name {
	case "EXIT":
		return 0, true
	case "IOT":
		return SIGABRT, true
	case "IO":
		return SIGIO, true
	case "CLD":
		return SIGCHLD, true
	}
	for n := 1; n <= SIGSYS; n++ {
		if SignalName(n) == name {
			return n, true
		}
	}
	return 0, false
}

// bit is a signal's place in a set, as the kernel prints them in /proc/PID/status: bit 0 is
// signal 1.
func bit(sig int) uint64 { return 1 << uint(sig-1) }

// byDefault reports whether a signal kills a process that has no disposition for
// it. A process is never stopped: what would stop it does nothing.
func byDefault(sig int) bool {
	switch sig {
	case SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU:
		return false
	}
	return true
}

// deliver lets a signal act on the process. inside says that it comes from its
// own pid namespace: then even SIGKILL spares the first process there.
//
// Process 1 of a namespace is immune to what it has no handler for: that is why a shell as a
// container's command survives SIGTERM until the grace period is over. SIGKILL from outside is
// the exception (kernel/signal.c, sig_task_ignored).
func (p *Process) deliver(sig int, inside bool) {
	// Stated processes have no task that could end.
	if p.dead || p.stated || sig == 0 {
		return
	}
	b := bit(sig)
	switch {
	case sig == SIGKILL:
		if p.pid != 1 || !inside {
			p.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL})
		}
	case p.ignored&b != 0:
	case p.caught&b != 0:
		// A signal that is pending already is not queued again; the wake-up is repeated all the
		// same.
		if p.pendingSet&b == 0 {
			p.pendingSet |= b
			p.pending = append(p.pending, uint8(sig))
		}
		p.signalled.Notify()
	case sig == SIGSTOP, sig == SIGTSTP:
		// Process 1 would ignore them anyway, so nothing is missing there.
		if p.pid != 1 {
			p.c.Warn("a process is not stopped by SIG" + SignalName(sig))
		}
	case byDefault(sig) && p.pid != 1:
		p.die(Exit{Code: 128 + sig, Signal: sig})
	}
}

// Signal sends a signal from outside the process's pid namespace, as the
// runtime does: SIGKILL always works.
func (p *Process) Signal(sig int) { p.deliver(sig, false) }
