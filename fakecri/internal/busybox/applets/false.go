package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// False is false: status 1, whatever the arguments, --help among them.
func False() applet.Applet { return applet.New(runFalse, "false", "") }

func runFalse(*applet.Call) int { return 1 }
