package shell

import (
	"os/exec"
	"syscall"
)

func signalOf(e *exec.ExitError) syscall.Signal {
	if ws, ok := e.Sys().(syscall.WaitStatus); ok {
		return ws.Signal()
	}
	return 0
}
