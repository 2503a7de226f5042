package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Pidof is pidof, by program name, the youngest first. -o leaves a number out.
func Pidof() applet.Applet { return applet.New(runPidof, "pidof", "[-s] [-o PID] [NAME]...") }

// runPidof prints nothing, not even an empty line, when no process has a name.
func runPidof(c *applet.Call) int {
	o := c.Getopt("so:")
	var pids []string
	for _, name := range o.Args {
		list := c.Named(name)
		// Named lists by number, and numbers grow: from the end is the youngest
		// first.
		for i := len(list) - 1; i >= 0; i-- {
			if pid := applet.Itoa(list[i].PID); !strings.Contains(" "+strings.Join(o.Value['o'], " ")+" ", " "+pid+" ") {
				pids = append(pids, pid)
			}
		}
	}
	if len(pids) == 0 {
		return 1
	}
	if o.Has('s') {
		pids = pids[:1]
	}
	c.Print(strings.Join(pids, " "), "\n")
	return 0
}
