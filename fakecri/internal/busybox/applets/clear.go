package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Clear is clear.
func Clear() applet.Applet { return applet.New(runClear, "clear", "") }

func runClear(c *applet.Call) int { c.Print("\x1b[H\x1b[J"); return 0 }
