package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Arch is arch.
func Arch() applet.Applet {
	return applet.Applet{Run: runArch, Names: []applet.Name{
		{Name: "arch", Usage: ""},
	}}
}

func runArch(c *applet.Call) int { c.Print("x86_64\n"); return 0 }
