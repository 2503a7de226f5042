package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Reset is reset: the terminal's sequences. The real one then runs stty sane,
// which has nothing to mend here.
func Reset() applet.Applet { return applet.New(runReset, "reset", "") }

func runReset(c *applet.Call) int { c.Print("\x1bc\x1b(B\x1b[m\x1b[J\x1b[?25h"); return 0 }
