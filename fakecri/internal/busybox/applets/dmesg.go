package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Dmesg is dmesg.
func Dmesg() applet.Applet { return applet.New(runDmesg, "dmesg", "[-cr] [-n LEVEL] [-s SIZE]") }

func runDmesg(c *applet.Call) int { c.Getopt("cs:n:r"); return 0 }
