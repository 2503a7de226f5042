package applet

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// ProcInfo is what /proc says of a process. ps, top, pgrep and kill by name are made of it.
type ProcInfo struct {
	PID, PPID, Pgid, UID, GID int
	Args                      []string
	Comm, State               string
	Vsz, Rss                  int64 // KiB
}

// Processes reads /proc: the processes of the container's pid namespace, by
// number. It reads the files as the real one does, so a masked or missing /proc shows none.
func (c *Call) Processes() []ProcInfo {
	list, err := c.View().ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []ProcInfo
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := c.process(pid); ok {
			out = append(out, p)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].PID < out[j].PID })
	return out
}

// process reads /proc/PID; false if it is gone meanwhile, or never was.
func (c *Call) process(pid int) (ProcInfo, bool) {
	v := c.View()
	dir := "/proc/" + strconv.Itoa(pid)
	p := ProcInfo{PID: pid, State: "S"}
	stat, err := v.ReadFile(dir + "/stat")
	if err != nil {
		return p, false
	}
	// The name in brackets may have any characters, brackets among them.
	open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
	if open < 0 || end < open {
		return p, false
	}
	p.Comm = string(stat[open+1 : end])
	f := strings.Fields(string(stat[end+1:]))
	field := func(i int) int64 {
		if i >= len(f) {
			return 0
		}
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return n
	}
	if len(f) > 0 {
		p.State = f[0]
	}
	p.PPID, p.Pgid = int(field(1)), int(field(2))
	// Fields count from the state, which is the third one of the line. Resident pages have 4 KiB.
	p.Vsz, p.Rss = field(20)/1024, field(21)*4
	if cmdline, err := v.ReadFile(dir + "/cmdline"); err == nil && len(cmdline) > 0 {
		p.Args = strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
	}
	if status, err := v.ReadFile(dir + "/status"); err == nil {
		for _, line := range strings.Split(string(status), "\n") {
			var to *int
			switch {
			case strings.HasPrefix(line, "Uid:"):
				to = &p.UID
			case strings.HasPrefix(line, "Gid:"):
				to = &p.GID
			default:
				continue
			}
			if w := strings.Fields(line); len(w) > 2 {
				*to, _ = strconv.Atoi(w[2])
			}
		}
	}
	return p, true
}

// Command is the command line as ps shows it: if its program goes by another
// name than its first word, that name comes first in braces. Square brackets mark what has no
// command line, as kernel threads.
func (p ProcInfo) Command() string {
	if len(p.Args) == 0 {
		return "[" + p.Comm + "]"
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.Join(p.Args, " "))
	if b := Base(strings.TrimPrefix(p.Args[0], "-")); p.Comm != "" && !strings.HasPrefix(b, p.Comm) {
		return "{" + p.Comm + "} " + text
	}
	return text
}

// ScaledKiB is a number of KiB in four places: 5604, 12m, 3.4g.
func ScaledKiB(n int64) string {
	switch {
	case n < 10000:
		return I64(n)
	case n < 10000<<10:
		return I64(n>>10) + "m"
	}
	return fmt.Sprintf("%.1fg", float64(n)/(1<<20))
}

// KillArgs takes -SIGNAL, -s SIGNAL and -l off the arguments, for kill and
// killall; done says that a list was printed. A signal may be a name with or
// without SIG, or a number. The caller kills; an unknown signal has ended the applet.
func (c *Call) KillArgs() (sig int, args []string, done bool) {
	sig, args = kernel.SIGTERM, c.Args
	if len(args) == 0 || len(args[0]) < 2 || args[0][0] != '-' {
		return sig, args, false
	}
	a := args[0]
	switch {
	case a == "--":
		return sig, args[1:], false
	case a == "-l" && c.Name != "killall5":
		if len(args) == 1 {
			for n := 1; n <= 31; n++ {
				c.Printf("%2d) %s\n", n, kernel.SignalName(n))
			}
			return 0, nil, true
		}
		for _, s := range args[1:] {
			n, ok := kernel.SignalNumber(s)
			if m, err := strconv.Atoi(s); err == nil && m >= 0 {
				n, ok = m&0x7f, true
			}
			if !ok {
				c.Die("unknown signal '%s'", s)
			}
			if s[0] >= '0' && s[0] <= '9' {
				c.Print(kernel.SignalName(n), "\n")
			} else {
				c.Printf("%d\n", n)
			}
		}
		return 0, nil, true
	case a == "-s" && len(args) > 1:
		a, args = "-"+args[1], args[1:]
	}
	n, ok := kernel.SignalNumber(a[1:])
	if !ok {
		c.Die("bad signal name '%s'", a[1:])
	}
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return n, args, false
}

// Named lists the processes of a name, but not the applet itself. A name is
// that of the program or of argv[0], with or without its directory. It is find_pid_by_name, on
// which killall and pidof rest.
func (c *Call) Named(name string) []ProcInfo {
	var out []ProcInfo
	for _, p := range c.Processes() {
		if p.PID == c.P.PID() {
			continue
		}
		if p.Comm == name || len(p.Args) > 0 && (Base(p.Args[0]) == name || p.Args[0] == name) {
			out = append(out, p)
		}
	}
	return out
}

// Meminfo reads /proc/meminfo, in KiB.
func (c *Call) Meminfo() map[string]int64 {
	out := map[string]int64{}
	data, _ := c.View().ReadFile("/proc/meminfo")
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 {
			out[strings.TrimSuffix(f[0], ":")], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return out
}
