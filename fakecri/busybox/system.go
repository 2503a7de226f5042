package busybox

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func runDate(c *call) int {
	o := c.getopt("Rs:ud:r:I::D:", "rfc-822=R", "rfc-2822=R", "set=s:", "utc=u", "universal=u", "date=d:", "reference=r:", "iso-8601=I::")
	at := c.p.Now()
	format := "%a %b %e %H:%M:%S %Z %Y"
	switch {
	case o.has('d'):
		t, ok := parseDate(o.str('d'), at)
		if o.has('D') {
			t, ok = parseWith(o.str('D'), o.str('d'), at)
		}
		if !ok {
			c.die("invalid date '%s'", o.str('d'))
		}
		at = t
	case o.has('r'):
		fi, err := c.view().Stat(o.str('r'))
		if err != nil {
			c.die("%s: %s", o.str('r'), strerror(err))
		}
		at = fi.ModTime()
	}
	for _, a := range o.args {
		if f, ok := strings.CutPrefix(a, "+"); ok {
			format = f
			continue
		}
		if _, ok := parseStamp(a, at); !ok {
			c.die("invalid date '%s'", a)
		}
		c.die("can't set date: Operation not permitted")
	}
	if o.has('s') {
		c.die("can't set date: Operation not permitted")
	}
	if o.has('R') {
		format = "%a, %d %b %Y %H:%M:%S %z"
	}
	if o.has('I') {
		format = map[string]string{
			"": "%Y-%m-%d", "date": "%Y-%m-%d", "hours": "%Y-%m-%dT%H+00:00", "minutes": "%Y-%m-%dT%H:%M+00:00", "seconds": "%Y-%m-%dT%H:%M:%S+00:00",
		}[o.str('I')]
		if format == "" {
			c.usage()
		}
	}
	c.print(posix.Strftime(format, at.UTC()), "\n")
	return 0
}

// setHostname is hostname with a name or a file that holds one.
func (c *call) setHostname(o *options) int {
	name := ""
	if o.has('F') {
		data, err := c.view().ReadFile(o.str('F'))
		if err != nil {
			c.die("can't open '%s': %s", o.str('F'), strerror(err))
		}
		name, _, _ = strings.Cut(string(data), "\n")
	} else {
		name = o.args[0]
	}
	if err := c.p.SetHostname(name); err != nil {
		c.die("sethostname: %s", strerror(err))
	}
	return 0
}

func runHostname(c *call) int {
	o := c.getopt("sidfF:", "short=s", "ip-address=i", "domain=d", "fqdn=f", "file=F:")
	if len(o.args) > 0 || o.has('F') {
		return c.setHostname(o)
	}
	name := c.p.Container().Hostname()
	if o.has('s') {
		name, _, _ = strings.Cut(name, ".")
	}
	if o.has('f') || o.has('d') || o.has('i') {
		full, ip, ok := c.hostsEntry(name)
		if !ok && o.has('i') {
			c.die("%s: Host name lookup failure", name)
		}
		switch {
		case o.has('i'):
			name = ip
		case o.has('d'):
			_, name, _ = strings.Cut(full, ".")
		default:
			name = full
		}
	}
	if name != "" || !o.has('d') {
		c.print(name, "\n")
	}
	return 0
}

// hostsEntry finds a name in /etc/hosts: its first, full name and address.
func (c *call) hostsEntry(name string) (full, ip string, ok bool) {
	data, _ := c.view().ReadFile("/etc/hosts")
	for _, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) > 1 && slices.Contains(f[1:], name) {
			return f[1], f[0], true
		}
	}
	return name, "", false
}

func runID(c *call) int {
	o := c.getopt("rnugG", "real=r", "name=n", "user=u", "group=g", "groups=G")
	n := &names{c: c}
	cred := c.p.Cred
	uid, gid, groups := cred.UID, cred.GID, slices.Clone(cred.Groups)
	if c.name == "groups" {
		o.add('G')
		o.add('n')
	}
	if len(o.args) > 0 {
		found := false
		for _, a := range c.accounts(passwdFile) {
			if a.name == o.args[0] {
				uid, gid, found = a.id, a.gid, true
			}
		}
		if !found {
			c.die("unknown user %s", o.args[0])
		}
		groups = []int{gid}
		for _, g := range c.accounts(groupFile) {
			if slices.Contains(g.members, o.args[0]) && g.id != gid {
				groups = append(groups, g.id)
			}
		}
	}
	code := 0
	plain := func(id int, known func(int) (string, bool)) string {
		if !o.has('n') {
			return itoa(id)
		}
		name, ok := known(id)
		if !ok {
			c.errorf("unknown ID %d", id)
			code = 1
			return itoa(id)
		}
		return name
	}
	switch {
	case o.has('n') && !o.has('u') && !o.has('g') && !o.has('G'):
		c.usage()
	case o.has('u'):
		c.print(plain(uid, n.knownUser), "\n")
		return code
	case o.has('g'):
		c.print(plain(gid, n.knownGroup), "\n")
		return code
	case o.has('G'):
		list := []string{plain(gid, n.knownGroup)}
		for _, g := range groups {
			if g != gid {
				list = append(list, plain(g, n.knownGroup))
			}
		}
		c.print(strings.Join(list, " "), "\n")
		return code
	}
	named := func(id int, known func(int) (string, bool)) string {
		if name, ok := known(id); ok {
			return fmt.Sprintf("%d(%s)", id, name)
		}
		return itoa(id)
	}
	c.printf("uid=%s gid=%s", named(uid, n.knownUser), named(gid, n.knownGroup))
	for i, g := range groups {
		mark := ","
		if i == 0 {
			mark = " groups="
		}
		c.print(mark, named(g, n.knownGroup))
	}
	c.print("\n")
	return 0
}

func runWhoami(c *call) int {
	name, ok := (&names{c: c}).knownUser(c.p.Cred.UID)
	if !ok {
		c.die("unknown uid %d", c.p.Cred.UID)
	}
	c.print(name, "\n")
	return 0
}

func runLogname(c *call) int {
	c.die("getlogin: No such device or address")
	return 1
}

func runTTY(c *call) int {
	o := c.getopt("s")
	if isTTY(c.p.FD(0)) {
		if !o.has('s') {
			c.print("/dev/pts/0\n")
		}
		return 0
	}
	if !o.has('s') {
		c.print("not a tty\n")
	}
	return 1
}

// kernelRelease is what uname -r says, unless /proc/sys/kernel/osrelease does.
const kernelRelease = "6.1.0-28-amd64"

func runUname(c *call) int {
	o := c.getopt("snrvmpioa", "all=a", "kernel-name=s", "nodename=n", "kernel-release=r", "release=r", "machine=m", "processor=p", "operating-system=o")
	release := kernelRelease
	if data, err := c.view().ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = strings.TrimSpace(string(data))
	}
	values := []struct{ flag, value string }{
		{"s", "Linux"}, {"n", c.p.Container().Hostname()}, {"r", release}, {"v", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)"}, {"m", "x86_64"}, {"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"},
	}
	var out []string
	for _, v := range values {
		if o.has(v.flag[0]) || o.has('a') && v.value != "unknown" || len(o.order) == 0 && v.flag == "s" {
			out = append(out, v.value)
		}
	}
	c.print(strings.Join(out, " "), "\n")
	return 0
}

func runArch(c *call) int { c.print("x86_64\n"); return 0 }

func runNproc(c *call) int {
	data, _ := c.view().ReadFile("/proc/cpuinfo")
	n := max(1, strings.Count(string(data), "processor\t"))
	c.printf("%d\n", n)
	return 0
}

func runDf(c *call) int {
	o := c.getopt("kmhTPaiB:t:", "human-readable=h")
	unit, heading := int64(1024), "1K-blocks"
	switch o.last("kmh") {
	case 'm':
		unit, heading = 1<<20, "1M-blocks"
	case 'h':
		unit, heading = 0, "Size"
	}
	if o.has('P') && unit == 1024 {
		heading = "1024-blocks"
	}
	show := func(n int64) string {
		if unit == 0 {
			return humanSize(n)
		}
		return i64((n + unit/2) / unit)
	}
	if o.has('T') {
		c.printf("%-20s %-10s %9s %9s %9s Use%% Mounted on\n", "Filesystem", "Type", heading, "Used", "Available")
	} else if o.has('i') {
		c.printf("%-20s %9s %9s %9s Use%% Mounted on\n", "Filesystem", "Inodes", "Used", "Available")
	} else {
		c.printf("%-20s %9s %9s %9s Use%% Mounted on\n", "Filesystem", heading, "Used", "Available")
	}
	code := 0
	names := o.args
	all := len(names) == 0
	if all {
		for _, m := range c.view().Namespace().Mounts() {
			if !slices.Contains(names, m.Path) {
				names = append(names, m.Path)
			}
		}
	}
	for _, name := range names {
		s, err := c.view().Statfs(name)
		if err != nil {
			if !all {
				c.errorf("%s: can't find mount point", name)
				code = 1
			}
			continue
		}
		if all && s.Size == 0 && !o.has('a') {
			continue
		}
		size, used, avail := s.Size, s.Used, s.Avail
		print := show
		if o.has('i') {
			size, used, avail = s.Files, s.Files-s.FreeFiles, s.FreeFiles
			print = i64
		}
		percent := int64(0)
		if used+avail > 0 {
			percent = (used*100 + (used+avail)/2) / (used + avail)
		}
		source := fmt.Sprintf("%-20s", s.Source)
		if len(s.Source) > 20 && !o.has('P') {
			source = s.Source + "\n" + strings.Repeat(" ", 20)
		}
		if o.has('T') {
			source += fmt.Sprintf(" %-10s", s.Type)
		}
		c.printf("%s %9s %9s %9s %3d%% %s\n", source, print(size), print(used), print(avail), percent, s.MountPoint)
	}
	return code
}

// duRun is one run of du; sizes are in units of 512 bytes.
type duRun struct {
	c        *call
	o        *options
	maxDepth int
	seen     map[uint64]bool
	code     int
}

func runDu(c *call) int {
	o := c.getopt("aHkLsxd:lchm", "max-depth=d:", "summarize=s", "human-readable=h", "all=a", "total=c")
	d := &duRun{c: c, o: o, maxDepth: 1 << 30, seen: map[uint64]bool{}}
	if o.has('d') {
		d.maxDepth = int(c.number(o.str('d')))
	}
	if o.has('s') {
		d.maxDepth = 0
	}
	args := o.args
	if len(args) == 0 {
		args = []string{"."}
	}
	total := int64(0)
	for _, a := range args {
		total += d.sum(a, 0)
	}
	if o.has('c') {
		d.show("total", total)
	}
	return d.code
}

func (d *duRun) show(name string, blocks int64) {
	text := i64((blocks + 1) / 2)
	switch d.o.last("kmh") {
	case 'm':
		text = i64((blocks*512 + 1<<19) >> 20)
	case 'h':
		text = humanSize(blocks * 512)
	}
	d.c.print(text, "\t", name, "\n")
}

func (d *duRun) sum(name string, depth int) int64 {
	c := d.c
	c.spend(4096)
	stat := c.view().Lstat
	if d.o.has('L') || d.o.has('H') && depth == 0 {
		stat = c.view().Stat
	}
	fi, err := stat(name)
	if err != nil {
		c.errorf("%s: %s", name, strerror(err))
		d.code = 1
		return 0
	}
	blocks := diskBlocks(fi)
	if !fi.IsDir() {
		if sys := sysOf(fi); sys.Nlink > 1 && !d.o.has('l') {
			if d.seen[sys.Ino] {
				return 0
			}
			d.seen[sys.Ino] = true
		}
		if depth == 0 || d.o.has('a') && depth <= d.maxDepth {
			d.show(name, blocks)
		}
		return blocks
	}
	list, err := c.view().ReadDir(name)
	if err != nil {
		c.errorf(cantOpen, name, strerror(err))
		d.code = 1
	}
	for _, e := range list {
		blocks += d.sum(join(name, e.Name()), depth+1)
	}
	if depth <= d.maxDepth {
		d.show(name, blocks)
	}
	return blocks
}

func runMount(c *call) int {
	o := c.getopt("art:o:fnwvO:T:")
	if len(o.args) == 0 {
		for _, m := range c.view().Namespace().Mounts() {
			rw := "rw"
			if m.ReadOnly {
				rw = "ro"
			}
			c.printf("%s on %s type %s (%s,%s)\n", m.Source, m.Path, m.Type, rw, m.Options)
		}
		return 0
	}
	if !c.p.Can(kernel.CapSysAdmin) || len(o.args) < 2 {
		c.die("permission denied (are you root?)")
	}
	if o.str('t') == "tmpfs" {
		if err := c.view().Namespace().Tmpfs(o.args[1], 0); err != nil {
			c.errorf("mounting %s on %s failed: %s", o.args[0], o.args[1], strerror(err))
			return 255
		}
		return 0
	}
	c.errorf("mounting %s on %s failed: Permission denied", o.args[0], o.args[1])
	return 255
}

func runUmount(c *call) int {
	o := c.getopt("fldrat:D")
	for _, a := range o.args {
		c.errorf("can't unmount %s: Operation not permitted", a)
	}
	if len(o.args) == 0 {
		c.usage()
	}
	return 1
}

func runSysctl(c *call) int {
	o := c.getopt("neAapwq")
	code := 0
	for _, a := range o.args {
		key, _, isSet := strings.Cut(a, "=")
		file := path.Join("/proc/sys", strings.ReplaceAll(key, ".", "/"))
		if isSet {
			c.errorf("error setting key '%s': Read-only file system", key)
			code = 1
			continue
		}
		data, err := c.view().ReadFile(file)
		if err != nil {
			if !o.has('e') {
				c.errorf("error: '%s' is an unknown key", key)
			}
			code = 1
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if !o.has('n') {
				c.print(key, " = ")
			}
			c.print(line, "\n")
		}
	}
	return code
}

func runDmesg(c *call) int { c.getopt("cs:n:r"); return 0 }

func runClear(c *call) int { c.print("\x1b[H\x1b[J"); return 0 }

func runReset(c *call) int { c.print("\x1bc\x1b(B\x1b[m\x1b[J\x1b[?25h"); return 0 }

// runMore is more and less, which without a terminal are cat.
func runMore(c *call) int {
	o := c.getopt("EFIMmNRSh~")
	if len(o.args) == 0 && isTTY(c.p.FD(0)) {
		c.usage()
	}
	args := o.args
	if len(args) == 0 {
		args = []string{"-"}
	}
	code := 0
	for _, a := range args {
		if !c.catFile(a) {
			code = 1
		}
	}
	return code
}

func runHostid(c *call) int { c.print("00000000\n"); return 0 }

// runBusybox is the program by its own name.
func runBusybox(c *call) int {
	args := c.p.Argv[min(1, len(c.p.Argv)):]
	switch {
	case len(args) > 0 && args[0] == "--list":
		for _, a := range applets() {
			c.print(a.name, "\n")
		}
		return 0
	case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		for _, a := range applets() {
			if a.name == args[0] && a.name != "busybox" {
				return a.command()(c.ctx, c.p)
			}
		}
		c.name = args[0]
		c.errorf("applet not found")
		return 127
	}
	c.print("BusyBox v1.35.0 multi-call binary.\n")
	return 0
}

func parseUint(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}
