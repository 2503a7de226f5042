package applets

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Uptime is uptime, from /proc: the node's time since its boot, nobody logged
// in, no load.
func Uptime() applet.Applet { return applet.New(runUptime, "uptime", "") }

func runUptime(c *applet.Call) int {
	c.Getopt("")
	data, _ := c.View().ReadFile("/proc/uptime")
	first, _, _ := strings.Cut(string(data), " ")
	up, _ := strconv.ParseFloat(first, 64)
	c.Print(c.P.Now().UTC().Format(" 15:04:05 up "))
	minutes := int64(up) / 60
	// Days and hours are left out while they are 0, as in BusyBox.
	if days := minutes / (24 * 60); days > 0 {
		s := "s"
		if days == 1 {
			s = ""
		}
		c.Printf("%d day%s, ", days, s)
	}
	if hours := minutes / 60 % 24; hours > 0 {
		c.Printf("%2d:%02d", hours, minutes%60)
	} else {
		c.Printf("%d min", minutes%60)
	}
	load, _ := c.View().ReadFile("/proc/loadavg")
	// The zeros stand in for an absent /proc/loadavg.
	f := append(strings.Fields(string(load)), "0.00", "0.00", "0.00")
	c.Printf(",  0 users,  load average: %s, %s, %s\n", f[0], f[1], f[2])
	return 0
}
