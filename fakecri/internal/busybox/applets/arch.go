package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Arch is arch: the machine of uname -m. All nodes are x86_64, whatever the
// machine that the simulation runs on is, so that a scenario prints the same
// everywhere.
func Arch() applet.Applet { return applet.New(runArch, "arch", "") }

func runArch(c *applet.Call) int { c.Print("x86_64\n"); return 0 }
