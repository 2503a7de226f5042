package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Free is free, from /proc/meminfo: in a container that shows the node's
// memory, not the cgroup's, as on a real node. There is never any swap.
func Free() applet.Applet { return applet.New(runFree, "free", "[-bkmgh]") }

func runFree(c *applet.Call) int {
	o := c.Getopt("bkmgh")
	m := c.Meminfo()
	show := func(kib int64) string {
		switch o.Last("bkmgh") {
		case 'b':
			return applet.I64(kib << 10)
		case 'm':
			return applet.I64(kib >> 10)
		case 'g':
			return applet.I64(kib >> 20)
		case 'h':
			return applet.HumanKiB(kib)
		}
		return applet.I64(kib)
	}
	row := func(name string, values ...int64) {
		c.Printf("%-7s", name)
		for _, v := range values {
			c.Printf("%12s", show(v))
		}
		c.Print("\n")
	}
	// What the kernel could give back counts as cache, as procps has it.
	cached := m["Buffers"] + m["Cached"] + m["SReclaimable"]
	c.Print("              total        used        free      shared  buff/cache   available\n")
	row("Mem:", m["MemTotal"], m["MemTotal"]-m["MemFree"]-cached, m["MemFree"], m["Shmem"], cached, m["MemAvailable"])
	row("Swap:", m["SwapTotal"], m["SwapTotal"]-m["SwapFree"], m["SwapFree"])
	return 0
}
