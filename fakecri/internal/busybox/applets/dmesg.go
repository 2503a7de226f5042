package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Dmesg is dmesg of an empty ring: nothing of a simulated machine's kernel is
// logged. Its options are read, so that a wrong one is reported.
func Dmesg() applet.Applet { return applet.New(runDmesg, "dmesg", "[-cr] [-n LEVEL] [-s SIZE]") }

func runDmesg(c *applet.Call) int { c.Getopt("cs:n:r"); return 0 }
