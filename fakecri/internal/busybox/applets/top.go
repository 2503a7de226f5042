package applets

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Top is top without a terminal's keys: a list of all processes, every 5 s or
// -d, -n times. Processor time is shown as idle, since what programs compute is
// not counted by process. -H and -m are read and do nothing.
func Top() applet.Applet { return applet.New(runTop, "top", "[-b] [-n COUNT] [-d SECONDS]") }

// runTop reads the same /proc as ps. Without -b it clears the screen before
// each list.
func runTop(c *applet.Call) int {
	o := c.Getopt("d:n:bHm")
	period, times := 5*time.Second, -1
	if o.Has('d') {
		d, ok := applet.Duration(o.Str('d'))
		if !ok {
			c.Die("invalid number '%s'", o.Str('d'))
		}
		// A delay of 0 would never let the clock advance.
		period = max(d, time.Second)
	}
	if o.Has('n') {
		times = int(c.Number(o.Str('n')))
	}
	n := &applet.Names{C: c}
	// It puts the terminal right before it dies, so that as pid 1 too it ends on
	// signals.
	for _, sig := range []int{kernel.SIGHUP, kernel.SIGINT, kernel.SIGQUIT, kernel.SIGTERM} {
		c.P.Disposition(sig, kernel.Catch)
	}
	for i := 0; ; i++ {
		m := c.Meminfo()
		if !o.Has('b') {
			c.Print("\x1b[H\x1b[J")
		}
		c.Printf("Mem: %dK used, %dK free, %dK shrd, %dK buff, %dK cached\n", m["MemTotal"]-m["MemFree"], m["MemFree"], m["Shmem"], m["Buffers"], m["Cached"])
		c.Print("CPU:   0% usr   0% sys   0% nic 100% idle   0% io   0% irq   0% sirq\n")
		load, _ := c.View().ReadFile("/proc/loadavg")
		c.Print("Load average: ", strings.TrimSuffix(string(load), "\n"), "\n  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n")
		for _, p := range c.Processes() {
			// %VSZ is the share of the node's memory, in whole per cent.
			share := int64(0)
			if total := m["MemTotal"]; total > 0 {
				share = p.Vsz * 100 / total
			}
			c.Printf("%5d %5d %-8.8s %-4s %5s %3d%%   0%% %s\n", p.PID, p.PPID, n.User(p.UID), p.State, applet.ScaledKiB(p.Vsz), share, p.Command())
		}
		if i+1 == times || times == 0 {
			return 0
		}
		c.Out.Flush()
		if c.P.Sleep(c.Ctx, period) != nil && c.Ctx.Err() != nil || c.Out.Failed() {
			return 1
		}
		// As if the signal had killed it.
		if sig, ok := c.P.NextSignal(); ok {
			return 128 + sig
		}
	}
}
