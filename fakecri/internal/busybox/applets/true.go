package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// True is true.
func True() applet.Applet {
	return applet.Applet{Run: runTrue, Names: []applet.Name{
		{Name: "true", Usage: ""},
	}}
}

func runTrue(*applet.Call) int { return 0 }
