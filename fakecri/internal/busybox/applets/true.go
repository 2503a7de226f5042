package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// True is true.
func True() applet.Applet { return applet.New(runTrue, "true", "") }

func runTrue(*applet.Call) int { return 0 }
