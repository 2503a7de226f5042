package shell

import (
	"os/exec"
	"syscall"

	"github.com/drydock-sim/drydock/ground/linux"
)

func signalOf(e *exec.ExitError) linux.Signal {
	if ws, ok := e.Sys().(syscall.WaitStatus); ok {
		return ws.Signal()
	}
	return 0
}
