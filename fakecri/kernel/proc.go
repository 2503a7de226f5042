package kernel

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
)

// procFS is /proc. What it shows is by the pid namespace of the container. A container with
// hostPID sees the node's processes, as View.pids says. Files of the machine are the same for
// all; LXCFS and its like are not simulated.
type procFS struct{}

// machineFiles are the files of /proc that are not of a process. By their path below /proc. What
// is here is what commands of images and the tests of Kubernetes read; values that nothing
// simulates are a common kernel's defaults.
var machineFiles = map[string]func(v *View) string{
	"meminfo": meminfo,
	"cpuinfo": func(v *View) string {
		var b strings.Builder
		for i := range v.ns.m.opts.CPUs {
			fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: Virtual CPU\ncpu MHz\t\t: 2000.000\ncache size\t: 16384 KB\n\n", i)
		}
		return b.String()
	},
	"uptime": func(v *View) string {
		up := v.ns.m.uptime().Seconds()
		return fmt.Sprintf("%.2f %.2f\n", up, up*float64(v.ns.m.opts.CPUs))
	},
	"loadavg": func(v *View) string {
		ns := v.pids()
		return fmt.Sprintf("0.00 0.00 0.00 1/%d %d\n", len(ns.list), ns.last)
	},
	"stat": func(v *View) string {
		m := v.ns.m
		// In ticks of 10 ms, all of it idle.
		total := m.uptime().Milliseconds() / 10 * int64(m.opts.CPUs)
		return fmt.Sprintf("cpu  0 0 0 %d 0 0 0 0 0 0\nctxt 0\nbtime %d\nprocesses %d\nprocs_running 1\nprocs_blocked 0\n", total, m.opts.BootTime/1e9, m.pids.last)
	},
	"version": func(v *View) string {
		return "Linux version " + v.ns.m.opts.Kernel + " (root@localhost) #1 SMP\n"
	},
	"filesystems": func(*View) string {
		return "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tcgroup\nnodev\toverlay\n\text4\n"
	},
	"cmdline": func(*View) string { return "console=ttyS0\n" },
	"sys/kernel/hostname": func(v *View) string {
		if v.ns.c != nil {
			return v.ns.c.Hostname() + "\n"
		}
		return v.ns.m.opts.Hostname + "\n"
	},
	"sys/kernel/ostype":                    func(*View) string { return "Linux\n" },
	"sys/kernel/osrelease":                 func(v *View) string { return v.ns.m.opts.Kernel + "\n" },
	"sys/kernel/pid_max":                   func(*View) string { return "4194304\n" },
	"sys/kernel/shm_rmid_forced":           func(*View) string { return "0\n" },
	"sys/kernel/msgmax":                    func(*View) string { return "8192\n" },
	"sys/kernel/sem":                       func(*View) string { return "32000\t1024000000\t500\t32000\n" },
	"sys/kernel/shmall":                    func(*View) string { return "18446744073692774399\n" },
	"sys/kernel/shmmni":                    func(*View) string { return "4096\n" },
	"sys/kernel/domainname":                func(*View) string { return "(none)\n" },
	"sys/net/ipv4/tcp_keepalive_time":      func(*View) string { return "7200\n" },
	"sys/net/ipv4/tcp_keepalive_intvl":     func(*View) string { return "75\n" },
	"sys/net/ipv4/tcp_keepalive_probes":    func(*View) string { return "9\n" },
	"sys/net/ipv4/tcp_fin_timeout":         func(*View) string { return "60\n" },
	"sys/net/ipv4/tcp_rmem":                func(*View) string { return "4096\t131072\t33554432\n" },
	"sys/net/ipv4/tcp_wmem":                func(*View) string { return "4096\t16384\t4194304\n" },
	"sys/net/ipv4/ip_local_reserved_ports": func(*View) string { return "\n" },
	"sys/kernel/shmmax":                    func(*View) string { return "18446744073692774399\n" },
	"sys/kernel/random/uuid":               func(v *View) string { return v.ns.m.uuid() + "\n" },
	"sys/vm/overcommit_memory":             func(*View) string { return "1\n" },
	"sys/vm/max_map_count":                 func(*View) string { return "65530\n" },
	"sys/fs/file-max":                      func(*View) string { return "9223372036854775807\n" },
	"sys/net/core/somaxconn":               func(*View) string { return "4096\n" },
	"sys/net/ipv4/ip_forward":              func(*View) string { return "1\n" },
	"sys/net/ipv4/tcp_syncookies":          func(*View) string { return "1\n" },
	"sys/net/ipv4/ip_local_port_range": func(*View) string {
		return "32768\t60999\n"
	},
	"sys/net/ipv4/ip_unprivileged_port_start": func(*View) string { return "0\n" },
	"sys/net/ipv4/ping_group_range":           func(*View) string { return "0\t2147483647\n" },
	"net/dev": func(*View) string {
		return "Inter-|   Receive                                                |  Transmit\n" +
			" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n" +
			"    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n" +
			"  eth0:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n"
	},
	"net/tcp": netTCP,
}

// processFiles are the names in /proc/PID. "fd" is a directory; the others are files and links.
var processFiles = []string{"cgroup", "cmdline", "comm", "cwd", "environ", "exe", "fd", "gid_map", "limits", "mountinfo", "mounts", "oom_score", "oom_score_adj", "root", "stat", "statm", "status", "uid_map"}

// uptime is the machine's, not the container's: /proc/uptime is not virtualized by runc.
func (m *Machine) uptime() time.Duration {
	return time.Duration(m.l.UnixNano() - m.opts.BootTime)
}

// pids is the pid namespace that the View is seen from. A process sees its own namespace, root
// that of the container.
func (v *View) pids() *PIDNamespace {
	if v.p != nil {
		return v.p.ns
	}
	if v.ns.c != nil {
		return v.ns.c.pids
	}
	return &v.ns.m.pids
}

// lookup goes from the special to the general: self, a process, a sysctl of the pod, a file of
// the machine, and at last directories, which exist if something is below them.
func (procFS) lookup(v *View, rel string) *synth {
	name := strings.TrimPrefix(rel, "/")
	switch name {
	case "":
		return synthDir()
	case "self", "thread-self":
		if v.p == nil {
			return nil
		}
		return synthLink(itoa(v.p.pid))
	case "mounts":
		return synthLink("self/mounts")
	}
	head, rest, _ := strings.Cut(name, "/")
	if pid, err := strconv.Atoi(head); err == nil {
		if p := v.pids().Find(pid); p != nil {
			return processDir{p, v}.lookup(rest)
		}
		return nil
	}
	if key, ok := strings.CutPrefix(name, "sys/"); ok && v.ns.c != nil {
		// A sysctl that the pod's security context sets shows with the name's dots as slashes.
		// Setting it in the container is refused, as /proc/sys is mounted read-only.
		if val, ok := v.ns.c.opts.Sysctls[strings.ReplaceAll(key, "/", ".")]; ok {
			return &synth{mode: 0o644, ro: true, data: func() string { return val + "\n" }}
		}
	}
	if text, ok := machineFiles[name]; ok {
		s := synthText(func() string { return text(v) })
		if strings.HasPrefix(name, "sys/") {
			s.mode, s.ro = 0o644, true
		}
		return s
	}
	for file := range machineFiles { //drydock:unordered any of them makes it a directory
		if strings.HasPrefix(file, name+"/") {
			return synthDir()
		}
	}
	if slices.ContainsFunc(sysctls(v), func(file string) bool { return strings.HasPrefix(file, name+"/") }) {
		return synthDir()
	}
	return nil
}

// sysctls are the files of the sandbox's sysctls. They are sorted, so listings don't depend on
// the map's order.
func sysctls(v *View) []string {
	if v.ns.c == nil || len(v.ns.c.opts.Sysctls) == 0 {
		return nil
	}
	out := sortedKeys(v.ns.c.opts.Sysctls)
	for i, k := range out {
		out[i] = "sys/" + strings.ReplaceAll(k, ".", "/")
	}
	return out
}

// sortedKeys lists a map's keys in an order that is the same in each run.
func sortedKeys[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for k := range m { //drydock:unordered sorted below
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// names lists what lookup would find in a directory.
func (procFS) names(v *View, rel string) []string {
	name := strings.TrimPrefix(rel, "/")
	head, rest, _ := strings.Cut(name, "/")
	if pid, err := strconv.Atoi(head); err == nil {
		p := v.pids().Find(pid)
		switch {
		case p == nil:
			return nil
		case rest == "fd":
			return processDir{p, v}.openNumbers()
		}
		return slices.Clone(processFiles)
	}
	var out []string
	if name == "" {
		for _, p := range v.pids().list {
			out = append(out, itoa(p.PIDIn(v.pids())))
		}
		out = append(out, "self", "thread-self", "mounts")
	} else {
		name += "/"
	}
	for _, f := range append(sortedKeys(machineFiles), sysctls(v)...) {
		if rest, ok := strings.CutPrefix(f, name); ok {
			next, _, _ := strings.Cut(rest, "/")
			out = append(out, next)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// openNumbers lists /proc/PID/fd. They are the descriptors in use.
func (d processDir) openNumbers() []string {
	var out []string
	for i, f := range d.p.fds {
		if f != nil {
			out = append(out, itoa(i))
		}
	}
	return out
}

// processDir is /proc/PID of a process, as somebody sees it. v is who looks: numbers of other
// processes are those of the viewer's namespace.
type processDir struct {
	p *Process
	v *View
}

// lookup returns the file of a name, which belongs to the process.
func (d processDir) lookup(name string) *synth {
	s := d.file(name)
	if s != nil {
		s.uid, s.gid = d.p.Cred.UID, d.p.Cred.GID
	}
	return s
}

// file returns the file of a name, as its owner is not set yet. What is shown
// is read when the file is, not when it is found.
func (d processDir) file(name string) *synth {
	p := d.p
	switch name {
	case "":
		return synthDir()
	case "cmdline":
		return synthText(func() string {
			if len(p.Argv) == 0 {
				return ""
			}
			return strings.Join(p.Argv, "\x00") + "\x00"
		})
	case "environ":
		s := synthText(func() string { return strings.Join(append(slices.Clone(p.Env), ""), "\x00") })
		s.mode = 0o400
		return s
	case "comm":
		return synthText(func() string { return p.Comm() + "\n" })
	case "status":
		return synthText(func() string { return d.status() })
	case "stat":
		return synthText(func() string { return d.stat() })
	// In pages of 4096 bytes: the size has something for code on top of what is resident.
	case "statm":
		return synthText(func() string { return fmt.Sprintf("%d %d 0 0 0 0 0\n", p.mem/4096+100, p.mem/4096) })
	case "mounts":
		return synthText(func() string { return mountLines(d.v) })
	case "mountinfo":
		return synthText(func() string { return mountInfo(d.v) })
	case "cgroup":
		return synthText(d.cgroupLines)
	case "limits":
		return synthText(func() string {
			return "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1048576              1048576              files     \n"
		})
	case "oom_score":
		return synthText(func() string { return "0\n" })
	case "oom_score_adj":
		// What is written is taken and has no effect: the score is the runtime's to set.
		return &synth{mode: 0o644, data: d.oomScoreAdj, write: func(string) linux.Errno { return 0 }}
	case "uid_map", "gid_map":
		return synthText(func() string { return d.idMap(name) })
	case "cwd":
		return synthLink(p.Dir)
	case "root":
		return synthLink("/")
	// Images are of busybox, and which applet runs is not in the file.
	case "exe":
		return synthLink("/bin/busybox")
	case "fd":
		return &synth{mode: fs.ModeDir | 0o500}
	}
	if n, ok := strings.CutPrefix(name, "fd/"); ok {
		fd, err := strconv.Atoi(n)
		if err != nil || fd < 0 || fd >= len(p.fds) || p.fds[fd] == nil {
			return nil
		}
		target := cmp.Or(Path(p.fds[fd]), "pipe:[1]")
		return &synth{mode: fs.ModeSymlink | 0o700, link: target, file: p.fds[fd]}
	}
	return nil
}

// The kubelet's value for the container's QoS class (pkg/kubelet/qos); a stated process has 0.
func (d processDir) oomScoreAdj() string {
	p := d.p
	if p.c == nil {
		return "0\n"
	}
	return itoa(int(p.c.opts.OOMScoreAdj)) + "\n"
}

// idMap is what uid_map or gid_map says. Without a user namespace it is the identity over all
// numbers, or the machine's own map.
func (d processDir) idMap(name string) string {
	p := d.p
	switch {
	case p.c != nil && p.c.opts.IDMaps == nil && p.c.m.opts.Host != nil:
		return p.c.m.hostText("/proc/self/" + name)
	case p.c == nil || p.c.opts.IDMaps == nil:
		return fmt.Sprintf("%10d %10d %10d\n", 0, 0, uint32(math.MaxUint32))
	case name == "uid_map":
		return p.c.opts.IDMaps.UID
	}
	return p.c.opts.IDMaps.GID
}

// status is /proc/PID/status, as far as ps and runtimes' tests read it. VmSize and VmRSS are in
// KiB. Every process sleeps: whoever reads it is the one that runs.
func (d processDir) status() string {
	p, ns := d.p, d.v.pids()
	pp := 0
	if p.parent != nil {
		pp = p.parent.PIDIn(ns)
	}
	pid := p.PIDIn(ns)
	groups := ""
	for _, g := range p.Cred.Groups {
		groups += itoa(g) + " "
	}
	u, g := p.Cred.UID, p.Cred.GID
	return fmt.Sprintf("Name:\t%s\nUmask:\t%04o\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\nTracerPid:\t0\nUid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\nFDSize:\t64\nGroups:\t%s\nVmSize:\t%8d kB\nVmRSS:\t%8d kB\nThreads:\t1\nSigIgn:\t%016x\nSigCgt:\t%016x\n%s",
		p.Comm(), p.Umask, pid, pid, pp, u, u, u, u, g, g, g, g, groups, p.mem/1024+400, p.mem/1024, p.ignored, p.caught, d.securityLines())
}

// stat is /proc/PID/stat; fields that are not simulated are 0. The fields are those of proc(5);
// the 22nd is the start in ticks since boot.
func (d processDir) stat() string {
	p, ns := d.p, d.v.pids()
	pp := 0
	if p.parent != nil {
		pp = p.parent.PIDIn(ns)
	}
	start := (p.startedAt - ns.m.opts.BootTime) / int64(10*time.Millisecond)
	return fmt.Sprintf("%d (%s) S %d %d %d 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %d %d %d 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		p.PIDIn(ns), p.Comm(), pp, p.PGIDIn(ns), p.PGIDIn(ns), max(start, 0), p.mem+400<<10, p.mem/4096)
}

// cgroupLines is /proc/PID/cgroup. In version 2 the container's own cgroup namespace hides the
// path.
func (d processDir) cgroupLines() string {
	p := d.p
	at := "/"
	if p.c != nil && p.c.opts.CgroupPath != "" {
		at = p.c.opts.CgroupPath
	}
	if p.ns.m.opts.CgroupV2 {
		return "0::/\n"
	}
	var b strings.Builder
	for i, c := range []string{"pids", "memory", "cpuset", "cpu,cpuacct", "blkio", "devices", "freezer"} {
		fmt.Fprintf(&b, "%d:%s:%s\n", 7-i, c, at)
	}
	return b.String()
}

// mountLines is /proc/PID/mounts. The two zeros are dump and pass of fstab(5).
func mountLines(v *View) string {
	var b strings.Builder
	for _, m := range v.ns.Mounts() {
		how := "rw"
		if m.ReadOnly {
			how = "ro"
		}
		fmt.Fprintf(&b, "%s %s %s %s,%s 0 0\n", m.Source, m.Path, m.Type, how, m.Options)
	}
	return b.String()
}

// mountInfo is /proc/PID/mountinfo, with numbers of mounts in the order of the
// table. Device numbers only have to differ from mount to mount; the fields are those of proc(5).
func mountInfo(v *View) string {
	var b strings.Builder
	for i, m := range v.ns.Mounts() {
		how, parent := "rw", 100
		if m.ReadOnly {
			how = "ro"
		}
		if i == 0 {
			parent = 99
		}
		root := "/"
		if x := v.ns.list[i]; x.bind {
			root = x.source
		}
		fmt.Fprintf(&b, "%d %d 0:%d %s %s %s,%s - %s %s rw\n", 100+i, parent, 30+i, root, m.Path, how, m.Options, m.Type, m.Source)
	}
	return b.String()
}

// meminfo is /proc/meminfo of the node: containers see all of it, as on a real
// node. Values are KiB. Programs that size themselves by it, and not by their cgroup, see the
// node's memory: a classic cause of OOM kills, and kept for that reason.
func meminfo(v *View) string {
	m := v.ns.m
	total := m.opts.Memory / 1024
	used := int64(0)
	if m.opts.MemoryUsed != nil {
		used = m.opts.MemoryUsed() / 1024
	} else {
		for _, p := range m.pids.list {
			used += p.mem / 1024
		}
	}
	free := max(total-used, 0)
	return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nBuffers:        %8d kB\nCached:         %8d kB\nSwapTotal:      %8d kB\nSwapFree:       %8d kB\nShmem:          %8d kB\nSReclaimable:   %8d kB\n",
		total, free, free, 0, 0, 0, 0, 0, 0)
}

// netTCP is /proc/net/tcp: the ports that are listened on. Each line is a listening socket (0A)
// on all addresses; connections are not listed.
func netTCP(v *View) string {
	out := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	if v.ns.c == nil {
		return out
	}
	for i, port := range v.ns.c.Net().Listeners() {
		out += fmt.Sprintf("%4d: 00000000:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 100 0 0 10 0\n", i, port)
	}
	return out
}

// securityLines are the lines of /proc/PID/status about what a process may do. Seccomp is 2 with
// a filter (SECCOMP_MODE_FILTER). The mode and the capabilities are what tests of security
// contexts read.
func (d processDir) securityLines() string {
	p := d.p
	eff := p.effective()
	noNew, seccomp := 0, 0
	if p.c != nil && p.c.opts.NoNewPrivileges {
		noNew = 1
	}
	if p.c != nil && p.c.opts.Seccomp {
		seccomp = 1
	}
	return fmt.Sprintf("CapInh:\t%016x\nCapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t%016x\nCapAmb:\t%016x\nNoNewPrivs:\t%d\nSeccomp:\t%d\nSeccomp_filters:\t%d\n",
		0, eff, eff, p.c.bounding(), 0, noNew, 2*seccomp, seccomp)
}
