package applets

import (
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Nohup is nohup, without nohup.out: output goes where it went, as a container
// has no terminal that could hang up.
func Nohup() applet.Applet { return applet.New(runNohup, "nohup", "PROG ARGS") }

func runNohup(c *applet.Call) int {
	if len(c.Args) == 0 {
		c.Usage()
	}
	// Signal 1 is SIGHUP. An ignored signal stays ignored across execve(2), so
	// the program that follows inherits it.
	c.P.Disposition(1, kernel.Ignore)
	return c.Become(c.Args, nil, applet.CantExec)
}
