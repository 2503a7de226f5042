package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// True is true: status 0, whatever the arguments, --help among them.
func True() applet.Applet { return applet.New(runTrue, "true", "") }

func runTrue(*applet.Call) int { return 0 }
