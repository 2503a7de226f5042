package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Clear is clear: the two sequences that BusyBox prints, whatever TERM says,
// and whether or not the output is a terminal.
func Clear() applet.Applet { return applet.New(runClear, "clear", "") }

// runClear moves the cursor home (ESC [H) and erases from there to the end (ESC [J).
func runClear(c *applet.Call) int { c.Print("\x1b[H\x1b[J"); return 0 }
