package records

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// The signals that are told apart, by their numbers on Linux.
const (
	SigINT   = 2
	SigQUIT  = 3
	SigKILL  = 9
	SigTERM  = 15
	SigWINCH = 28
)

// stopSignals are the Linux numbers of the signals that a request can name.
// Realtime signals are left out: they count as SIGTERM.
var stopSignals = map[runtimeapi.Signal]int{
	runtimeapi.Signal_SIGABRT: 6, runtimeapi.Signal_SIGALRM: 14, runtimeapi.Signal_SIGBUS: 7,
	runtimeapi.Signal_SIGHUP: 1, runtimeapi.Signal_SIGINT: 2, runtimeapi.Signal_SIGKILL: SigKILL,
	runtimeapi.Signal_SIGQUIT: 3, runtimeapi.Signal_SIGTERM: SigTERM, runtimeapi.Signal_SIGUSR1: 10,
	runtimeapi.Signal_SIGUSR2: 12, runtimeapi.Signal_SIGWINCH: 28, runtimeapi.Signal_SIGPWR: 30,
	runtimeapi.Signal_SIGCONT: 18, runtimeapi.Signal_SIGTSTP: 20,
}

// SignalNamed is the CRI's name of a signal number; SIGTERM if it has none.
func SignalNamed(n int) runtimeapi.Signal {
	switch n {
	case SigTERM:
		return runtimeapi.Signal_SIGTERM
	case SigQUIT:
		return runtimeapi.Signal_SIGQUIT
	case SigWINCH:
		return runtimeapi.Signal_SIGWINCH
	}
	found := runtimeapi.Signal_SIGTERM
	for s, k := range stopSignals { //drydock:unordered numbers differ
		if k == n {
			found = s
		}
	}
	return found
}
