package applets

import (
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Nohup is nohup.
func Nohup() applet.Applet {
	return applet.Applet{Run: runNohup, Names: []applet.Name{
		{Name: "nohup", Usage: "PROG ARGS"},
	}}
}

func runNohup(c *applet.Call) int {
	if len(c.Args) == 0 {
		c.Usage()
	}
	c.P.Disposition(1, kernel.Ignore)
	return c.Become(c.Args, nil, applet.CantExec)
}
