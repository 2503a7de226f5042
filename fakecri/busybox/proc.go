package busybox

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// procInfo is what /proc says of a process.
type procInfo struct {
	pid, ppid, pgid, uid, gid int
	args                      []string
	comm, state               string
	vsz, rss                  int64 // KiB
}

// processes reads /proc.
func (c *call) processes() []procInfo {
	list, err := c.view().ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []procInfo
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := c.process(pid); ok {
			out = append(out, p)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].pid < out[j].pid })
	return out
}

func (c *call) process(pid int) (procInfo, bool) {
	v := c.view()
	dir := "/proc/" + strconv.Itoa(pid)
	p := procInfo{pid: pid, state: "S"}
	stat, err := v.ReadFile(dir + "/stat")
	if err != nil {
		return p, false
	}
	open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
	if open < 0 || end < open {
		return p, false
	}
	p.comm = string(stat[open+1 : end])
	f := strings.Fields(string(stat[end+1:]))
	field := func(i int) int64 {
		if i >= len(f) {
			return 0
		}
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return n
	}
	if len(f) > 0 {
		p.state = f[0]
	}
	p.ppid, p.pgid = int(field(1)), int(field(2))
	p.vsz, p.rss = field(20)/1024, field(21)*4
	if cmdline, err := v.ReadFile(dir + "/cmdline"); err == nil && len(cmdline) > 0 {
		p.args = strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
	}
	if status, err := v.ReadFile(dir + "/status"); err == nil {
		for _, line := range strings.Split(string(status), "\n") {
			var to *int
			switch {
			case strings.HasPrefix(line, "Uid:"):
				to = &p.uid
			case strings.HasPrefix(line, "Gid:"):
				to = &p.gid
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

// command is the command line as ps shows it: if its program goes by another
// name than its first word, that name comes first in braces.
func (p procInfo) command() string {
	if len(p.args) == 0 {
		return "[" + p.comm + "]"
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.Join(p.args, " "))
	if b := base(strings.TrimPrefix(p.args[0], "-")); p.comm != "" && !strings.HasPrefix(b, p.comm) {
		return "{" + p.comm + "} " + text
	}
	return text
}

// psColumn is a column of ps: its heading, width, and value.
type psColumn struct {
	name, heading string
	width         int
	value         func(p procInfo, n *names) string
}

func psColumns() []psColumn {
	return []psColumn{
		{"user", "USER", 8, func(p procInfo, n *names) string { return n.user(p.uid) }},
		{"group", "GROUP", 8, func(p procInfo, n *names) string { return n.group(p.gid) }},
		{"comm", "COMMAND", 16, func(p procInfo, _ *names) string { return p.comm }},
		{"args", "COMMAND", 256, func(p procInfo, _ *names) string { return p.command() }},
		{"pid", "PID", 5, func(p procInfo, _ *names) string { return fmt.Sprintf("%5d", p.pid) }},
		{"ppid", "PPID", 5, func(p procInfo, _ *names) string { return fmt.Sprintf("%5d", p.ppid) }},
		{"pgid", "PGID", 5, func(p procInfo, _ *names) string { return fmt.Sprintf("%5d", p.pgid) }},
		{"nice", "NI", 5, func(procInfo, *names) string { return fmt.Sprintf("%5d", 0) }},
		{"rgroup", "RGROUP", 8, func(p procInfo, n *names) string { return n.group(p.gid) }},
		{"ruser", "RUSER", 8, func(p procInfo, n *names) string { return n.user(p.uid) }},
		{"tty", "TT", 6, func(procInfo, *names) string { return "?" }},
		{"vsz", "VSZ", 4, func(p procInfo, _ *names) string { return fmt.Sprintf("%4s", scaledKiB(p.vsz)) }},
		{"sid", "SID", 5, func(p procInfo, _ *names) string { return fmt.Sprintf("%5d", p.pgid) }},
		{"stat", "STAT", 4, func(p procInfo, _ *names) string { return p.state }},
		{"rss", "RSS", 4, func(p procInfo, _ *names) string { return fmt.Sprintf("%4s", scaledKiB(p.rss)) }},
	}
}

// scaledKiB is a number of KiB in four places: 5604, 12m, 3.4g.
func scaledKiB(n int64) string {
	switch {
	case n < 10000:
		return i64(n)
	case n < 10000<<10:
		return i64(n>>10) + "m"
	}
	return fmt.Sprintf("%.1fg", float64(n)/(1<<20))
}

func runPs(c *call) int {
	o := c.getopt("o:TaAdefl")
	chosen := o.value['o']
	if len(chosen) == 0 {
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
				var supported []string
				for _, col := range all {
					supported = append(supported, col.name)
				}
				c.die("bad -o argument '%s', supported arguments: %s", name, strings.Join(supported, ","))
			}
		}
	}
	n := &names{c: c}
	row := func(cell func(psColumn) string) string {
		text := ""
		for i, col := range cols {
			s := cell(col)
			if i < len(cols)-1 {
				if col.name != "args" && len(s) > col.width {
					s = s[:col.width]
				}
				s = fmt.Sprintf("%-*s ", col.width, s)
			}
			text += s
		}
		return text + "\n"
	}
	heading := row(func(col psColumn) string { return col.heading })
	if strings.TrimSpace(heading) != "" {
		c.print(heading)
	}
	for _, p := range c.processes() {
		c.print(row(func(col psColumn) string { return col.value(p, n) }))
	}
	return 0
}

func runTop(c *call) int {
	o := c.getopt("d:n:bHm")
	period, times := 5*time.Second, -1
	if o.has('d') {
		d, ok := duration(o.str('d'))
		if !ok {
			c.die("invalid number '%s'", o.str('d'))
		}
		period = max(d, time.Second)
	}
	if o.has('n') {
		times = int(c.number(o.str('n')))
	}
	n := &names{c: c}
	// It puts the terminal right before it dies, so that as pid 1 too it ends on
	// signals.
	for _, sig := range []int{kernel.SIGHUP, kernel.SIGINT, kernel.SIGQUIT, kernel.SIGTERM} {
		c.p.Disposition(sig, kernel.Catch)
	}
	for i := 0; ; i++ {
		m := c.meminfo()
		if !o.has('b') {
			c.print("\x1b[H\x1b[J")
		}
		c.printf("Mem: %dK used, %dK free, %dK shrd, %dK buff, %dK cached\n", m["MemTotal"]-m["MemFree"], m["MemFree"], m["Shmem"], m["Buffers"], m["Cached"])
		c.print("CPU:   0% usr   0% sys   0% nic 100% idle   0% io   0% irq   0% sirq\n")
		load, _ := c.view().ReadFile("/proc/loadavg")
		c.print("Load average: ", strings.TrimSuffix(string(load), "\n"), "\n  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n")
		for _, p := range c.processes() {
			share := int64(0)
			if total := m["MemTotal"]; total > 0 {
				share = p.vsz * 100 / total
			}
			c.printf("%5d %5d %-8.8s %-4s %5s %3d%%   0%% %s\n", p.pid, p.ppid, n.user(p.uid), p.state, scaledKiB(p.vsz), share, p.command())
		}
		if i+1 == times || times == 0 {
			return 0
		}
		c.out.flush()
		if c.p.Sleep(c.ctx, period) != nil && c.ctx.Err() != nil || c.out.failed() {
			return 1
		}
		if sig, ok := c.p.NextSignal(); ok {
			return 128 + sig
		}
	}
}

// killArgs takes -SIGNAL and -l off the arguments; done says that a list was
// printed.
func (c *call) killArgs() (sig int, args []string, done bool) {
	sig, args = kernel.SIGTERM, c.args
	if len(args) == 0 || len(args[0]) < 2 || args[0][0] != '-' {
		return sig, args, false
	}
	a := args[0]
	switch {
	case a == "--":
		return sig, args[1:], false
	case a == "-l" && c.name != "killall5":
		if len(args) == 1 {
			for n := 1; n <= 31; n++ {
				c.printf("%2d) %s\n", n, kernel.SignalName(n))
			}
			return 0, nil, true
		}
		for _, s := range args[1:] {
			n, ok := kernel.SignalNumber(s)
			if m, err := strconv.Atoi(s); err == nil && m >= 0 {
				n, ok = m&0x7f, true
			}
			if !ok {
				c.die("unknown signal '%s'", s)
			}
			if s[0] >= '0' && s[0] <= '9' {
				c.print(kernel.SignalName(n), "\n")
			} else {
				c.printf("%d\n", n)
			}
		}
		return 0, nil, true
	case a == "-s" && len(args) > 1:
		a, args = "-"+args[1], args[1:]
	}
	n, ok := kernel.SignalNumber(a[1:])
	if !ok {
		c.die("bad signal name '%s'", a[1:])
	}
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return n, args, false
}

func runKill(c *call) int {
	sig, args, done := c.killArgs()
	if done {
		return 0
	}
	if len(args) == 0 {
		c.die("you need to specify whom to kill")
	}
	code := 0
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if err != nil {
			c.errorf("invalid number '%s'", a)
			code = 1
			continue
		}
		if err := c.p.Kill(pid, sig); err != nil {
			c.errorf("can't kill pid %d: %s", pid, strerror(err))
			code = 1
		}
	}
	return code
}

// named lists the processes of a name, but not the applet itself.
func (c *call) named(name string) []procInfo {
	var out []procInfo
	for _, p := range c.processes() {
		if p.pid == c.p.PID() {
			continue
		}
		if p.comm == name || len(p.args) > 0 && (base(p.args[0]) == name || p.args[0] == name) {
			out = append(out, p)
		}
	}
	return out
}

func runKillall(c *call) int {
	sig, args, done := c.killArgs()
	if done {
		return 0
	}
	quiet := len(args) > 0 && args[0] == "-q"
	if quiet {
		args = args[1:]
	}
	if len(args) == 0 {
		c.die("you need to specify whom to kill")
	}
	code := 0
	for _, name := range args {
		list := c.named(name)
		if len(list) == 0 {
			code = 1
			if !quiet {
				c.errorf("%s: no process killed", name)
			}
		}
		for _, p := range list {
			if err := c.p.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				code = 1
				if !quiet {
					c.errorf("can't kill pid %d: %s", p.pid, strerror(err))
				}
			}
		}
	}
	return code
}

func runPidof(c *call) int {
	o := c.getopt("so:")
	var pids []string
	for _, name := range o.args {
		list := c.named(name)
		for i := len(list) - 1; i >= 0; i-- {
			if pid := itoa(list[i].pid); !strings.Contains(" "+strings.Join(o.value['o'], " ")+" ", " "+pid+" ") {
				pids = append(pids, pid)
			}
		}
	}
	if len(pids) == 0 {
		return 1
	}
	if o.has('s') {
		pids = pids[:1]
	}
	c.print(strings.Join(pids, " "), "\n")
	return 0
}

// runPgrep is pgrep and pkill.
func runPgrep(c *call) int {
	sig := kernel.SIGTERM
	if c.name == "pkill" {
		var done bool
		if len(c.args) > 0 && len(c.args[0]) > 1 && c.args[0][0] == '-' {
			if _, ok := kernel.SignalNumber(c.args[0][1:]); ok {
				if sig, c.args, done = c.killArgs(); done {
					return 0
				}
			}
		}
	}
	o := c.getopt("flavxons:P:u:")
	if len(o.args) != 1 {
		c.usage()
	}
	f := &grepper{c: c, o: &options{}}
	if !f.compile([]string{o.args[0]}) {
		return 2
	}
	code := 1
	for _, p := range c.processes() {
		text := p.comm
		if o.has('f') {
			text = strings.Join(p.args, " ")
		}
		start, end := f.find(text, 0)
		match := start >= 0 && (!o.has('x') || start == 0 && end == len(text))
		if p.pid == c.p.PID() || match == o.has('v') {
			continue
		}
		code = 0
		switch {
		case c.name == "pkill":
			_ = c.p.Kill(p.pid, sig)
		case o.has('a'):
			c.printf("%d %s\n", p.pid, p.command())
		case o.has('l'):
			c.printf("%d %s\n", p.pid, p.comm)
		default:
			c.printf("%d\n", p.pid)
		}
	}
	return code
}

// meminfo reads /proc/meminfo, in KiB.
func (c *call) meminfo() map[string]int64 {
	out := map[string]int64{}
	data, _ := c.view().ReadFile("/proc/meminfo")
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 {
			out[strings.TrimSuffix(f[0], ":")], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return out
}

func runFree(c *call) int {
	o := c.getopt("bkmgh")
	m := c.meminfo()
	show := func(kib int64) string {
		switch o.last("bkmgh") {
		case 'b':
			return i64(kib << 10)
		case 'm':
			return i64(kib >> 10)
		case 'g':
			return i64(kib >> 20)
		case 'h':
			return humanKiB(kib)
		}
		return i64(kib)
	}
	row := func(name string, values ...int64) {
		c.printf("%-7s", name)
		for _, v := range values {
			c.printf("%12s", show(v))
		}
		c.print("\n")
	}
	cached := m["Buffers"] + m["Cached"] + m["SReclaimable"]
	c.print("              total        used        free      shared  buff/cache   available\n")
	row("Mem:", m["MemTotal"], m["MemTotal"]-m["MemFree"]-cached, m["MemFree"], m["Shmem"], cached, m["MemAvailable"])
	row("Swap:", m["SwapTotal"], m["SwapTotal"]-m["SwapFree"], m["SwapFree"])
	return 0
}

func runUptime(c *call) int {
	c.getopt("")
	data, _ := c.view().ReadFile("/proc/uptime")
	first, _, _ := strings.Cut(string(data), " ")
	up, _ := strconv.ParseFloat(first, 64)
	c.print(c.p.Now().UTC().Format(" 15:04:05 up "))
	minutes := int64(up) / 60
	if days := minutes / (24 * 60); days > 0 {
		s := "s"
		if days == 1 {
			s = ""
		}
		c.printf("%d day%s, ", days, s)
	}
	if hours := minutes / 60 % 24; hours > 0 {
		c.printf("%2d:%02d", hours, minutes%60)
	} else {
		c.printf("%d min", minutes%60)
	}
	load, _ := c.view().ReadFile("/proc/loadavg")
	f := append(strings.Fields(string(load)), "0.00", "0.00", "0.00")
	c.printf(",  0 users,  load average: %s, %s, %s\n", f[0], f[1], f[2])
	return 0
}
