package applets

import (
	"fmt"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/lists"
)

// Ps is ps of all processes of the pid namespace: BusyBox takes no choice, and
// -A, -a, -d, -e, -f, -l and -T are read for the sake of scripts. The columns
// are those of Debian's build, which shows no times; the terminal is always
// unknown.
func Ps() applet.Applet { return applet.New(runPs, "ps", "[-o COL1,COL2=HEADER] [-T]") }

// psColumn is a column of ps: its heading, width, and value.
type psColumn struct {
	name, heading string
	width         int
	value         func(p applet.ProcInfo, n *applet.Names) string
}

// psColumns are the columns by the names that -o takes, in the order in which
// an error lists them.
func psColumns() []psColumn {
	// The order and the names are BusyBox's, because the message for an unknown
	// column lists them. The session is shown as the process group, since there
	// are no sessions here, and one id stands for both the effective and the
	// real one.
	return []psColumn{
		{"user", "USER", 8, func(p applet.ProcInfo, n *applet.Names) string { return n.User(p.UID) }},
		{"group", "GROUP", 8, func(p applet.ProcInfo, n *applet.Names) string { return n.Group(p.GID) }},
		{"comm", "COMMAND", 16, func(p applet.ProcInfo, _ *applet.Names) string { return p.Comm }},
		{"args", "COMMAND", 256, func(p applet.ProcInfo, _ *applet.Names) string { return p.Command() }},
		{"pid", "PID", 5, func(p applet.ProcInfo, _ *applet.Names) string { return fmt.Sprintf("%5d", p.PID) }},
		{"ppid", "PPID", 5, func(p applet.ProcInfo, _ *applet.Names) string { return fmt.Sprintf("%5d", p.PPID) }},
		{"pgid", "PGID", 5, func(p applet.ProcInfo, _ *applet.Names) string { return fmt.Sprintf("%5d", p.Pgid) }},
		{"nice", "NI", 5, func(applet.ProcInfo, *applet.Names) string { return fmt.Sprintf("%5d", 0) }},
		{"rgroup", "RGROUP", 8, func(p applet.ProcInfo, n *applet.Names) string { return n.Group(p.GID) }},
		{"ruser", "RUSER", 8, func(p applet.ProcInfo, n *applet.Names) string { return n.User(p.UID) }},
		{"tty", "TT", 6, func(applet.ProcInfo, *applet.Names) string { return "?" }},
		{"vsz", "VSZ", 4, func(p applet.ProcInfo, _ *applet.Names) string { return fmt.Sprintf("%4s", applet.ScaledKiB(p.Vsz)) }},
		{"sid", "SID", 5, func(p applet.ProcInfo, _ *applet.Names) string { return fmt.Sprintf("%5d", p.Pgid) }},
		{"stat", "STAT", 4, func(p applet.ProcInfo, _ *applet.Names) string { return p.State }},
		{"rss", "RSS", 4, func(p applet.ProcInfo, _ *applet.Names) string { return fmt.Sprintf("%4s", applet.ScaledKiB(p.Rss)) }},
	}
}

// runPs reads everything from the pid namespace's /proc, so a container sees
// its own processes only, unless it shares the namespace.
func runPs(c *applet.Call) int {
	o := c.Getopt("o:TaAdefl")
	chosen := o.Value['o']
	if len(chosen) == 0 {
		// Debian builds BusyBox without the time column.
		chosen = []string{"pid,user,args"}
	}
	all := psColumns()
	var cols []psColumn
	for _, list := range chosen {
		for list != "" {
			name, rest, _ := strings.Cut(list, ",")
			name, heading, custom := strings.Cut(name, "=")
			list = rest
			found := false
			for _, col := range all {
				if col.name == name {
					if custom {
						// The heading says how wide the column is.
						col.heading, col.width = heading, len(heading)
					}
					cols = append(cols, col)
					found = true
				}
			}
			if !found {
				supported := lists.Map(all, func(col psColumn) string { return col.name })
				c.Die("bad -o argument '%s', supported arguments: %s", name, strings.Join(supported, ","))
			}
		}
	}
	n := &applet.Names{C: c}
	row := func(cell func(psColumn) string) string {
		text := ""
		for i, col := range cols {
			s := cell(col)
			// The last column is not padded, so that lines don't end in spaces.
			if i < len(cols)-1 {
				// The command line is never cut off: who reads the output is no
				// terminal.
				if col.name != "args" && len(s) > col.width {
					s = s[:col.width]
				}
				s = fmt.Sprintf("%-*s ", col.width, s)
			}
			text += s
		}
		return text + "\n"
	}
	// With all headings empty, as by -o pid=, there is no line for them.
	heading := row(func(col psColumn) string { return col.heading })
	if strings.TrimSpace(heading) != "" {
		c.Print(heading)
	}
	for _, p := range c.Processes() {
		c.Print(row(func(col psColumn) string { return col.value(p, n) }))
	}
	return 0
}
