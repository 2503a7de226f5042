package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sysFS is /sys, nearly empty. The cgroup below it is a mount of its own.
type sysFS struct{}

// sysDirs are the directories of /sys that scripts look for; all are empty but
// for what processors there are.
var sysDirs = []string{"block", "bus", "class", "class/net", "dev", "devices", "devices/system", "devices/system/cpu", "firmware", "fs", "fs/cgroup", "kernel", "kernel/mm", "module", "power"}

func (sysFS) lookup(v *View, rel string) *synth {
	name := strings.TrimPrefix(rel, "/")
	if name == "" || slices.Contains(sysDirs, name) {
		return synthDir()
	}
	if name == "devices/system/cpu/online" {
		return synthText(func() string { return "0-" + itoa(v.ns.m.opts.CPUs-1) + "\n" })
	}
	return nil
}

func (sysFS) names(_ *View, rel string) []string {
	return namesUnder(append(slices.Clone(sysDirs), "devices/system/cpu/online"), rel)
}

// namesUnder lists what is right below a directory among paths. rel is "/" or a path with a slash
// in front; the result is sorted, each name once.
func namesUnder(paths []string, rel string) []string {
	dir := strings.TrimPrefix(rel, "/")
	if dir != "" {
		dir += "/"
	}
	var out []string
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, dir); ok && rest != "" {
			next, _, _ := strings.Cut(rest, "/")
			out = append(out, next)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// cgroupFS is /sys/fs/cgroup as a container sees it: its own cgroup at the top. Version 1 has a
// directory for each controller, version 2 one for all. Values are of the moment.
type cgroupFS struct{}

// noLimit is what version 1 shows for no memory limit. It is the largest multiple of the page
// size that fits into 63 bits.
const noLimit = 9223372036854771712

// orElse is n, or what the kernel shows where nothing is set.
func orElse(n, other int64) int64 {
	if n == 0 {
		return other
	}
	return n
}

// number is a file with one number.
func number(n int64) string { return strconv.FormatInt(n, 10) + "\n" }

// cgroupV1 and cgroupV2 are the files, by path.
var cgroupV1 = map[string]func(c *Container) string{
	"memory/memory.limit_in_bytes":      func(c *Container) string { return number(orElse(c.opts.MemoryLimit, noLimit)) },
	"memory/memory.soft_limit_in_bytes": func(*Container) string { return number(noLimit) },
	"memory/memory.usage_in_bytes":      func(c *Container) string { return number(c.used) },
	"memory/memory.max_usage_in_bytes":  func(c *Container) string { return number(c.peak) },
	// Every failed charge counts on Linux; here only those that killed.
	"memory/memory.failcnt": func(c *Container) string { return number(int64(c.oomKills)) },
	"memory/memory.oom_control": func(c *Container) string {
		return fmt.Sprintf("oom_kill_disable 0\nunder_oom 0\noom_kill %d\n", c.oomKills)
	},
	"memory/memory.stat": func(c *Container) string {
		return fmt.Sprintf("cache 0\nrss %d\ntotal_cache 0\ntotal_rss %d\ntotal_inactive_file 0\n", c.used, c.used)
	},
	"memory/cgroup.procs": (*Container).cgroupProcs,
	// CRI has shares in version 1's units: 1024 for a core.
	"cpu,cpuacct/cpu.shares":        func(c *Container) string { return number(orElse(c.opts.CPUShares, 1024)) },
	"cpu,cpuacct/cpu.cfs_quota_us":  func(c *Container) string { return number(orElse(c.opts.CPUQuota, -1)) },
	"cpu,cpuacct/cpu.cfs_period_us": func(c *Container) string { return number(orElse(c.opts.CPUPeriod, 100000)) },
	"cpu,cpuacct/cpu.stat":          func(*Container) string { return "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n" },
	"cpu,cpuacct/cpuacct.usage":     func(c *Container) string { return number(c.CPU()) },
	"cpu,cpuacct/cgroup.procs":      (*Container).cgroupProcs,
	"cpuset/cpuset.cpus":            func(c *Container) string { return "0-" + itoa(c.m.opts.CPUs-1) + "\n" },
	"cpuset/cpuset.mems":            func(*Container) string { return "0\n" },
	"pids/pids.max":                 func(*Container) string { return "max\n" },
	"pids/pids.current":             func(c *Container) string { return number(int64(len(c.procs))) },
	"pids/cgroup.procs":             (*Container).cgroupProcs,
}

var cgroupV2 = map[string]func(c *Container) string{
	"cgroup.controllers": func(*Container) string { return "cpuset cpu io memory hugetlb pids rdma misc\n" },
	"cgroup.procs":       (*Container).cgroupProcs,
	"memory.max": func(c *Container) string {
		if c.opts.MemoryLimit == 0 {
			return "max\n"
		}
		return number(c.opts.MemoryLimit)
	},
	"memory.current":  func(c *Container) string { return number(c.used) },
	"memory.peak":     func(c *Container) string { return number(c.peak) },
	"memory.min":      func(*Container) string { return "0\n" },
	"memory.low":      func(*Container) string { return "0\n" },
	"memory.high":     func(*Container) string { return "max\n" },
	"memory.swap.max": func(*Container) string { return "0\n" },
	"memory.oom.group": func(c *Container) string {
		if c.opts.OOMGroup {
			return "1\n"
		}
		return "0\n"
	},
	"memory.events": func(c *Container) string {
		return fmt.Sprintf("low 0\nhigh 0\nmax 0\noom %d\noom_kill %d\noom_group_kill 0\n", c.oomKills, c.oomKills)
	},
	"cpu.max": func(c *Container) string {
		quota := "max"
		if c.opts.CPUQuota > 0 {
			quota = strconv.FormatInt(c.opts.CPUQuota, 10)
		}
		return quota + " " + number(orElse(c.opts.CPUPeriod, 100000))
	},
	// runc converts shares (2 to 262144) to weights (1 to 10000) by this formula.
	"cpu.weight": func(c *Container) string {
		shares := orElse(c.opts.CPUShares, 1024)
		if c.opts.CPUShares == 0 {
			return "100\n"
		}
		return number(1 + (shares-2)*9999/262142)
	},
	"pids.max":     func(*Container) string { return "max\n" },
	"pids.current": func(c *Container) string { return number(int64(len(c.procs))) },
}

// cgroupProcs lists the processes by their numbers in the container. One a line, as the kernel
// writes them.
func (c *Container) cgroupProcs() string {
	var b strings.Builder
	for _, p := range c.procs {
		fmt.Fprintln(&b, p.pid)
	}
	return b.String()
}

// cgroupFiles are those of the node's version of cgroups.
func (m *Machine) cgroupFiles() map[string]func(c *Container) string {
	if m.opts.CgroupV2 {
		return cgroupV2
	}
	return cgroupV1
}

// lookup needs a container: the runtime's own View before NewContainer has none.
func (cgroupFS) lookup(v *View, rel string) *synth {
	name := strings.TrimPrefix(rel, "/")
	files := v.ns.m.cgroupFiles()
	if f, ok := files[name]; ok && v.ns.c != nil {
		return &synth{mode: 0o644, data: func() string { return f(v.ns.c) }}
	}
	// Version 1 has links for the two controllers that share a directory.
	if !v.ns.m.opts.CgroupV2 && (name == "cpu" || name == "cpuacct") {
		return synthLink("cpu,cpuacct")
	}
	if name == "" || len(namesUnder(sortedKeys(files), rel)) > 0 {
		return synthDir()
	}
	return nil
}

func (cgroupFS) names(v *View, rel string) []string {
	out := namesUnder(sortedKeys(v.ns.m.cgroupFiles()), rel)
	if rel == "/" && !v.ns.m.opts.CgroupV2 {
		out = append(out, "cpu", "cpuacct")
		slices.Sort(out)
	}
	return out
}
