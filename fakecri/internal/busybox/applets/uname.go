package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Uname is uname. The release is that of the node, as its status has it; the
// version is Debian's for all. -p and -i say unknown, and -a leaves them out.
func Uname() applet.Applet { return applet.New(runUname, "uname", "[-amnrspvio]") }

// kernelRelease is what uname -r says, unless /proc/sys/kernel/osrelease does.
const kernelRelease = "6.1.0-28-amd64"

// runUname prints the values in a fixed order, whatever the order of options.
// Without an option it is -s.
func runUname(c *applet.Call) int {
	o := c.Getopt("snrvmpioa", "all=a", "kernel-name=s", "nodename=n", "kernel-release=r", "release=r", "machine=m", "processor=p", "operating-system=o")
	release := kernelRelease
	if data, err := c.View().ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = strings.TrimSpace(string(data))
	}
	values := []struct{ flag, value string }{
		{"s", "Linux"}, {"n", c.P.Container().Hostname()}, {"r", release}, {"v", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)"}, {"m", "x86_64"}, {"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"},
	}
	var out []string
	for _, v := range values {
		if o.Has(v.flag[0]) || o.Has('a') && v.value != "unknown" || len(o.Order) == 0 && v.flag == "s" {
			out = append(out, v.value)
		}
	}
	c.Print(strings.Join(out, " "), "\n")
	return 0
}
