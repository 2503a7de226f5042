//go:build linux

// Package cgroups makes the cgroups of a machine's pods, on cgroup v1 (also
// hybrid) and v2, as the cgroupfs driver does: kubepods, in it burstable and
// besteffort, and in these three one for each pod. It mirrors upstream's
// pkg/kubelet/cm (cgroup_manager_linux.go, pod_container_manager_linux.go). The
// kernel's files are written by github.com/containerd/cgroups.
//
// As the systemd driver has them (Cgroups.Systemd) they are slices that systemd makes.
package cgroups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	cgroupsv3 "github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/godbus/dbus/v5"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

const (
	mountRoot = "/sys/fs/cgroup"
	podPrefix = "pod"
	procs     = "cgroup.procs"

	// What is left in a pod's cgroup is killed so often, with a pause.
	killRounds = 5
	killPause  = 20 * time.Millisecond
)

// Options are the settings of the configuration that concern cgroups.
type Options struct {
	// Root is cgroupRoot; "" means "/".
	Root string
	// CFSPeriod is cpuCFSQuotaPeriod; 0 means 100 ms.
	CFSPeriod time.Duration
	// NoCPUQuota is cpuCFSQuota: false.
	NoCPUQuota bool
	// PodPids is podPidsLimit; 0 or less means no limit.
	PodPids int64
	// Connect connects to the bus that systemd is on; nil: the system bus.
	Connect func() (*dbus.Conn, error)
}

// Cgroups are the machine's.
// Its methods that wait run what touches the kernel on a goroutine, which uses
// nothing but its arguments and fields that New has set.
type Cgroups struct {
	o       Options
	unified bool
	// names are the paths in each hierarchy; mounts are the hierarchies' mount
	// points.
	names  cm.Names
	mounts []string
	// cpus are all of the machine's, as a list; "" where nobody assigns them.
	cpus string
	// pages are the sizes of huge pages in bytes that can be limited.
	pages []int64
	// systemd makes the cgroups; nil: New's does, by files.
	systemd *systemd
}

var _ cm.Cgroups = (*Cgroups)(nil)

// New makes the cgroup of all pods. An error says that cgroups can't be made,
// because they are not there or not permitted.
// Which of the layouts is mounted decides everything below: on v1 a cgroup is a
// directory in each hierarchy, on v2 one directory.
func New(o Options) (*Cgroups, error) {
	o.CFSPeriod = cmp.Or(o.CFSPeriod, 100*time.Millisecond)
	c := &Cgroups{o: o, names: cm.Names{Root: o.Root}}
	switch cgroupsv3.Mode() {
	case cgroupsv3.Unified:
		c.unified, c.mounts = true, []string{mountRoot}
	case cgroupsv3.Legacy, cgroupsv3.Hybrid:
		var err error
		if c.mounts, err = hierarchies(mountRoot); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("no cgroups are mounted at " + mountRoot)
	}
	c.cpus, c.pages = c.allCPUs(), c.hugepages()
	if err := c.write(c.names.Pods(), values{}); err != nil {
		return nil, err
	}
	return c, nil
}

// file is the first of a cgroup's file in the hierarchies; "" if it is in none.
func (c *Cgroups) file(name string, of ...string) string {
	for _, m := range c.mounts {
		for _, f := range of {
			file := filepath.Join(m, name, f)
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}
	return ""
}

// allCPUs are those of the topmost cgroup.
// A controller that isn't there means that nobody assigns CPUs.
func (c *Cgroups) allCPUs() string {
	data, err := os.ReadFile(c.file("/", "cpuset.cpus.effective", "cpuset.cpus"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// hugepages are the sizes that a controller limits.
// A size is limited only where the controller is there and the kernel has pages
// of that size.
func (c *Cgroups) hugepages() []int64 {
	if c.unified {
		data, _ := os.ReadFile(filepath.Join(mountRoot, "cgroup.controllers"))
		if !slices.Contains(strings.Fields(string(data)), "hugetlb") {
			return nil
		}
	} else if !slices.ContainsFunc(c.mounts, func(m string) bool { return filepath.Base(m) == "hugetlb" }) {
		return nil
	}
	entries, err := os.ReadDir("/sys/kernel/mm/hugepages")
	if err != nil {
		return nil
	}
	var out []int64
	for _, e := range entries { // hugepages-2048kB
		if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"), 10, 64); err == nil {
			out = append(out, kb<<10)
		}
	}
	return out
}

// pageSize is a size of huge pages as the kernel's files are named: 2MB.
func pageSize(bytes int64) string {
	units := [...]string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for ; bytes >= 1024 && bytes%1024 == 0 && i < len(units)-1; i++ {
		bytes /= 1024
	}
	return strconv.FormatInt(bytes, 10) + units[i]
}

// hierarchies are the directories of cgroup v1 below root, each once.
func hierarchies(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("cgroup hierarchies: %w", err)
	}
	var out []string
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, procs)); err == nil && e.IsDir() { // links lead to others of them
			out = append(out, dir)
		}
	}
	return out, nil
}

// values are what a cgroup is given. 0, nil and "" leave as it is; below 0 is no
// limit.
type values struct {
	shares, quota, memory, pids int64
	cpus                        string
	// pages are limits of huge pages in bytes by their size.
	pages    map[int64]int64
	min, low *int64
}

// unboundedPages is the limit of huge pages of a class: none.
const unboundedPages = 1 << 62

// limits are those of all sizes of huge pages: those that are not in some have
// the limit other.
// Each size needs a limit of its own: one that isn't written keeps what the
// cgroup above it has.
func (c *Cgroups) limits(some map[int64]int64, other int64) map[int64]int64 {
	out := make(map[int64]int64, len(c.pages))
	for _, size := range c.pages {
		out[size] = other
		if n, ok := some[size]; ok {
			out[size] = n
		}
	}
	return out
}

// write makes a cgroup, with those above it, or changes it.
func (c *Cgroups) write(name string, v values) error {
	if u := unit(name); c.systemd != nil && u != "" {
		if err := c.systemd.set(u, v); err != nil {
			return fmt.Errorf("cgroup %s: %w", name, err)
		}
	}
	var err error
	if c.unified {
		_, err = cgroup2.NewManager(mountRoot, name, c.v2(v))
	} else {
		_, err = cgroup1.New(cgroup1.StaticPath(name), c.v1(v))
	}
	if err != nil {
		return fmt.Errorf("cgroup %s: %w", name, err)
	}
	return nil
}

// v1 are the values as cgroup v1 has them.
func (c *Cgroups) v1(v values) *specs.LinuxResources {
	r := &specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: v.cpus}, Memory: &specs.LinuxMemory{}}
	for _, size := range c.pages {
		if n, ok := v.pages[size]; ok {
			r.HugepageLimits = append(r.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: pageSize(size), Limit: uint64(n)})
		}
	}
	if v.shares > 0 {
		r.CPU.Shares = new(uint64(v.shares))
	}
	if v.quota != 0 {
		r.CPU.Quota, r.CPU.Period = &v.quota, new(uint64(c.o.CFSPeriod.Microseconds()))
	}
	if v.memory != 0 {
		r.Memory.Limit = &v.memory
	}
	if v.pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: &v.pids}
	}
	return r
}

// v2 are the values as cgroup v2 has them: weights for shares, and no quota
// rather than a negative one.
func (c *Cgroups) v2(v values) *cgroup2.Resources {
	r := &cgroup2.Resources{CPU: &cgroup2.CPU{Cpus: v.cpus}, Memory: &cgroup2.Memory{Min: v.min, Low: v.low}, Pids: &cgroup2.Pids{}}
	for _, size := range c.pages {
		if n, ok := v.pages[size]; ok {
			if r.HugeTlb == nil {
				r.HugeTlb = &cgroup2.HugeTlb{}
			}
			*r.HugeTlb = append(*r.HugeTlb, cgroup2.HugeTlbEntry{HugePageSize: pageSize(size), Limit: uint64(n)})
		}
	}
	if v.shares > 0 {
		r.CPU.Weight = new(cm.CPUSharesToCPUWeight(v.shares))
	}
	if v.quota != 0 {
		period := uint64(c.o.CFSPeriod.Microseconds())
		quota := &v.quota
		if v.quota < 0 {
			quota = nil
		}
		r.CPU.Max = cgroup2.NewCPUMax(quota, &period)
	}
	if v.memory != 0 {
		limit := v.memory
		if limit < 0 {
			limit = math.MaxInt64 // reads as max; the kernel takes no -1 here
		}
		r.Memory.Max = &limit
	}
	if v.pids > 0 {
		r.Pids.Max = v.pids
	}
	return r
}

// milliToQuota is the quota in µs; without a limit there is none.
func (c *Cgroups) milliToQuota(milli int64) int64 {
	if milli <= 0 || c.o.NoCPUQuota {
		return -1
	}
	return cm.MilliCPUToQuota(milli, c.o.CFSPeriod)
}

// await runs what touches the kernel on a goroutine.
// The loop goes on meanwhile.
func await(ctx context.Context, fn func() error) error {
	_, err := loop.Await(ctx, func(context.Context) (struct{}, error) { return struct{}{}, fn() })
	return err
}

// SetRoot implements cm.NodeCgroups.
func (c *Cgroups) SetRoot(ctx context.Context, v cm.NodeCgroup) error {
	return await(ctx, func() error { return c.write(c.names.Pods(), c.node(v)) })
}

// SetReserved implements cm.NodeCgroups.
// Such a cgroup is the administrator's: the kubelet sets its values and doesn't
// make it.
func (c *Cgroups) SetReserved(ctx context.Context, name string, v cm.NodeCgroup) error {
	return await(ctx, func() error {
		var missing []string
		for _, m := range c.mounts {
			if dir := filepath.Join(m, name); c.needed(m) && !isDir(dir) {
				missing = append(missing, dir)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("cgroup %q has some missing paths: %v", strings.Split(strings.Trim(name, "/"), "/"), strings.Join(missing, ", "))
		}
		return c.write(path.Join("/", name), c.node(v))
	})
}

// isDir reports whether there is a directory of that name.
func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// needed reports whether a cgroup that lacks a hierarchy is not there (upstream's
// allowlistControllers).
func (c *Cgroups) needed(mount string) bool {
	if c.unified {
		return true
	}
	switch filepath.Base(mount) {
	case "cpu", "cpuacct", "cpu,cpuacct", "cpuset", "memory", "pids":
		return true
	}
	return false
}

// node converts what the node's cgroups are given.
func (c *Cgroups) node(v cm.NodeCgroup) values {
	out := values{min: v.MemoryMin, pages: v.Hugepages}
	if v.CPUShares != nil {
		out.shares = *v.CPUShares
	}
	if v.MemoryLimit != nil {
		out.memory = orUnlimited(*v.MemoryLimit)
	}
	if v.Pids != nil {
		out.pids = *v.Pids
	}
	if v.AllCPUs {
		out.cpus = c.cpus
	}
	return out
}

// SetClass implements cm.Cgroups.
// Huge pages are limited in the pods' cgroups, so a class has none.
func (c *Cgroups) SetClass(ctx context.Context, class v1.PodQOSClass, v cm.ClassCgroup) error {
	return await(ctx, func() error {
		out := values{shares: v.CPUShares, min: v.MemoryMin, low: v.MemoryLow, pages: c.limits(nil, unboundedPages)}
		if v.MemoryLimit != nil {
			out.memory = orUnlimited(*v.MemoryLimit)
		}
		return c.write(c.names.Class(class), out)
	})
}

// ClassMemory implements cm.Cgroups.
func (c *Cgroups) ClassMemory(ctx context.Context, class v1.PodQOSClass) (int64, error) {
	return loop.Await(ctx, func(context.Context) (int64, error) {
		data, err := os.ReadFile(c.file(c.names.Class(class), "memory.usage_in_bytes", "memory.current"))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	})
}

// SetPod implements cm.Cgroups.
func (c *Cgroups) SetPod(ctx context.Context, class v1.PodQOSClass, uid types.UID, v cm.PodCgroup) error {
	return await(ctx, func() error {
		out := values{
			shares: cm.MilliCPUToShares(v.MilliCPU), quota: c.milliToQuota(v.MilliCPULimit), memory: orUnlimited(v.MemoryLimit),
			pids: c.o.PodPids, pages: c.limits(v.Hugepages, 0),
		}
		if v.MemoryMin > 0 {
			out.min = &v.MemoryMin
		}
		if v.MemoryLow > 0 {
			out.low = &v.MemoryLow
		}
		return c.write(c.names.Pod(class, uid), out)
	})
}

// orUnlimited is a memory limit, -1 for none: a pod that is no longer limited
// must not keep the limit that it had.
func orUnlimited(limit int64) int64 {
	if limit <= 0 {
		return -1
	}
	return limit
}

// PodExists implements cm.Cgroups.
func (c *Cgroups) PodExists(class v1.PodQOSClass, uid types.UID) bool {
	name := c.names.Pod(class, uid)
	return !slices.ContainsFunc(c.mounts, func(m string) bool {
		return c.needed(m) && !isDir(filepath.Join(m, name))
	})
}

// classes are all that a pod may be of; nobody remembers of which a pod was
// that is gone.
var classes = [...]v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort}

// Pods implements cm.Cgroups.
// A new kubelet finds by them what an earlier one left behind.
func (c *Cgroups) Pods() []types.UID {
	var out []types.UID
	for _, m := range c.mounts {
		for _, class := range classes {
			entries, err := os.ReadDir(filepath.Join(m, c.names.Class(class)))
			if err != nil {
				continue
			}
			for _, e := range entries {
				if uid, ok := c.podOf(class, e.Name()); ok && e.IsDir() {
					out = append(out, uid)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// podOf is the pod whose cgroup has a name in that of its class.
func (c *Cgroups) podOf(class v1.PodQOSClass, name string) (types.UID, bool) {
	if !c.names.Systemd {
		uid, ok := strings.CutPrefix(name, podPrefix)
		return types.UID(uid), ok
	}
	uid, ok := strings.CutPrefix(name, strings.TrimSuffix(path.Base(c.names.Class(class)), sliceSuffix)+"-"+podPrefix)
	return types.UID(strings.ReplaceAll(strings.TrimSuffix(uid, sliceSuffix), "_", "-")), ok
}

// dirs are the directories of a pod's cgroup, of whatever class.
func (c *Cgroups) dirs(uid types.UID) []string {
	var out []string
	for _, m := range c.mounts {
		for _, class := range classes {
			dir := filepath.Join(m, c.names.Pod(class, uid))
			if _, err := os.Stat(dir); err == nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

// ShrinkPod implements cm.Cgroups.
// The pod is gone and its cgroup waits for its volumes: what still runs in it
// gets what nobody else wants (upstream ReduceCPULimits).
func (c *Cgroups) ShrinkPod(ctx context.Context, uid types.UID) error {
	return await(ctx, func() error {
		for _, class := range classes {
			if c.PodExists(class, uid) {
				return c.write(c.names.Pod(class, uid), values{shares: cm.MinShares})
			}
		}
		return nil
	})
}

// RemovePod implements cm.Cgroups.
// A cgroup can't be removed while processes are in it, so those that the
// runtime left are killed first, as upstream does.
func (c *Cgroups) RemovePod(ctx context.Context, uid types.UID) error {
	return await(ctx, func() error {
		if uid == "" || strings.Contains(string(uid), "/") {
			return fmt.Errorf("remove a pod's cgroup: %q is no UID", uid)
		}
		dirs := c.dirs(uid)
		for round := range killRounds {
			left := kill(dirs)
			if left == 0 {
				break
			}
			if round == killRounds-1 {
				return fmt.Errorf("the cgroup of pod %s still has %d processes", uid, left)
			}
			time.Sleep(killPause)
		}
		var errs []error
		if c.systemd != nil && len(dirs) > 0 {
			errs = append(errs, c.systemd.stop(unit(dirs[0])))
		}
		for _, dir := range dirs {
			errs = append(errs, remove(dir))
		}
		return errors.Join(errs...)
	})
}

// kill sends SIGKILL to all processes in and below directories and returns how
// many there were.
// Neither init nor the kubelet itself is ever among them, whatever the file
// says.
func kill(dirs []string) int {
	pids := map[int]bool{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != procs {
				return nil //nolint:nilerr // it has gone
			}
			data, err := os.ReadFile(p)
			if err != nil {
				return nil //nolint:nilerr // it has gone
			}
			for _, f := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 1 && pid != os.Getpid() {
					pids[pid] = true
				}
			}
			return nil
		})
	}
	for pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(pids)
}

// remove removes the directories of a cgroup, the innermost first; the files in
// them can't be, and need not.
func remove(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("remove cgroup %s: %w", dir, err)
	}
	return nil
}
