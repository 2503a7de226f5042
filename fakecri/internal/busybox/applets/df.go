package applets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Df is df: a line for each mount that has a size, in the order of mounting; -a
// shows those of /proc and the like, too. Numbers are rounded to the nearest
// unit, and Use% to the nearest whole one, as BusyBox does where GNU rounds up.
// -B and -t are read and do nothing.
//
// A source longer than its column gets a line of its own, unless -P.
func Df() applet.Applet { return applet.New(runDf, "df", "[-PkmhTai] [FILESYSTEM]...") }

func runDf(c *applet.Call) int {
	o := c.Getopt("kmhTPaiB:t:", "human-readable=h")
	unit, heading := int64(1024), "1K-blocks"
	switch o.Last("kmh") {
	case 'm':
		unit, heading = 1<<20, "1M-blocks"
	case 'h':
		unit, heading = 0, "Size"
	}
	// POSIX names the unit by its size; other units keep their headings.
	if o.Has('P') && unit == 1024 {
		heading = "1024-blocks"
	}
	show := func(n int64) string {
		if unit == 0 {
			return applet.HumanSize(n)
		}
		return applet.I64((n + unit/2) / unit)
	}
	if o.Has('T') {
		c.Printf("%-20s %-10s %9s %9s %9s Use%% Mounted on\n", "Filesystem", "Type", heading, "Used", "Available")
	} else if o.Has('i') {
		c.Printf("%-20s %9s %9s %9s Use%% Mounted on\n", "Filesystem", "Inodes", "Used", "Available")
	} else {
		c.Printf("%-20s %9s %9s %9s Use%% Mounted on\n", "Filesystem", heading, "Used", "Available")
	}
	code := 0
	names := o.Args
	all := len(names) == 0
	if all {
		for _, m := range c.View().Namespace().Mounts() {
			// A place that was mounted on twice shows what is on top, once.
			if !slices.Contains(names, m.Path) {
				names = append(names, m.Path)
			}
		}
	}
	for _, name := range names {
		s, err := c.View().Statfs(name)
		if err != nil {
			// An error matters only for what was named.
			if !all {
				c.Errorf("%s: can't find mount point", name)
				code = 1
			}
			continue
		}
		// A file system without blocks is only listed when it is asked for.
		if all && s.Size == 0 && !o.Has('a') {
			continue
		}
		size, used, avail := s.Size, s.Used, s.Avail
		print := show
		// Files are counted one by one, whatever unit was asked for.
		if o.Has('i') {
			size, used, avail = s.Files, s.Files-s.FreeFiles, s.FreeFiles
			print = applet.I64
		}
		percent := int64(0)
		// The share is of what can be used: blocks kept back for root count neither as
		// used nor as available.
		if used+avail > 0 {
			percent = (used*100 + (used+avail)/2) / (used + avail)
		}
		source := fmt.Sprintf("%-20s", s.Source)
		// POSIX wants each file system on one line, BusyBox only with -P.
		if len(s.Source) > 20 && !o.Has('P') {
			source = s.Source + "\n" + strings.Repeat(" ", 20)
		}
		if o.Has('T') {
			source += fmt.Sprintf(" %-10s", s.Type)
		}
		c.Printf("%s %9s %9s %9s %3d%% %s\n", source, print(size), print(used), print(avail), percent, s.MountPoint)
	}
	return code
}
