package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Nproc is nproc: the node's processors, as cpuset shows all of them. --all and
// --ignore are not looked at.
func Nproc() applet.Applet { return applet.New(runNproc, "nproc", "") }

func runNproc(c *applet.Call) int {
	data, _ := c.View().ReadFile("/proc/cpuinfo")
	// At least one, since scripts divide by it or pass it to make -j.
	n := max(1, strings.Count(string(data), "processor\t"))
	c.Printf("%d\n", n)
	return 0
}
