package applets

import (
	"errors"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Killall is killall, by the name of the program as /proc/PID/comm has it. A
// process that is gone by the time is no error. -q keeps quiet, but leaves the
// status. -o is not built.
func Killall() applet.Applet { return applet.New(runKillall, "killall", "[-l] [-q] [-SIG] NAME...") }

func runKillall(c *applet.Call) int {
	sig, args, done := c.KillArgs()
	if done {
		return 0
	}
	quiet := len(args) > 0 && args[0] == "-q"
	if quiet {
		args = args[1:]
	}
	if len(args) == 0 {
		c.Die("you need to specify whom to kill")
	}
	code := 0
	for _, name := range args {
		list := c.Named(name)
		if len(list) == 0 {
			code = 1
			if !quiet {
				c.Errorf("%s: no process killed", name)
			}
		}
		// Each process of the name gets it, those of other users with an error.
		for _, p := range list {
			if err := c.P.Kill(p.PID, sig); err != nil && !errors.Is(err, linux.ESRCH) {
				code = 1
				if !quiet {
					c.Errorf("can't kill pid %d: %s", p.PID, applet.Strerror(err))
				}
			}
		}
	}
	return code
}
