package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Arch is arch.
func Arch() applet.Applet { return applet.New(runArch, "arch", "") }

func runArch(c *applet.Call) int { c.Print("x86_64\n"); return 0 }
