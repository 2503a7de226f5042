package applets

import (
	"strconv"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Kill is kill of process numbers; negative ones are process groups. Job
// numbers are the shell's business, whose own kill scripts get. All operands
// are tried; one that fails makes the status 1.
func Kill() applet.Applet { return applet.New(runKill, "kill", "[-l] [-SIG] PID...") }

func runKill(c *applet.Call) int {
	sig, args, done := c.KillArgs()
	if done {
		return 0
	}
	if len(args) == 0 {
		c.Die("you need to specify whom to kill")
	}
	code := 0
	for _, a := range args {
		// A sign is taken as well: it makes the number a group's.
		pid, err := strconv.Atoi(a)
		if err != nil {
			c.Errorf("invalid number '%s'", a)
			code = 1
			continue
		}
		if err := c.P.Kill(pid, sig); err != nil {
			c.Errorf("can't kill pid %d: %s", pid, applet.Strerror(err))
			code = 1
		}
	}
	return code
}
