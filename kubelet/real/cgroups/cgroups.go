// Package cgroups makes the cgroups of a machine's pods, on cgroup v1 (also
// hybrid) and v2, as the cgroupfs driver does: kubepods, in it burstable and
// besteffort, and in these three one for each pod. It answers to upstream's
// pkg/kubelet/cm (cgroup_manager_linux.go, pod_container_manager_linux.go). The
// kernel's files are written by github.com/containerd/cgroups.
//
// The systemd driver, which has slices made by systemd, is left to runtimes.
package cgroups

import (
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
	specs "github.com/opencontainers/runtime-spec/specs-go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/sim/loop"
)

const (
	mountRoot = "/sys/fs/cgroup"
	kubepods  = "kubepods"
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
}

// Cgroups are the machine's.
type Cgroups struct {
	o       Options
	unified bool
	// top is the path of kubepods in each hierarchy; mounts are the hierarchies'
	// mount points.
	top    string
	mounts []string
}

var _ cm.Cgroups = (*Cgroups)(nil)

// New makes the cgroup of all pods. An error says that cgroups can't be made,
// because they are not there or not permitted.
func New(o Options) (*Cgroups, error) {
	if o.CFSPeriod == 0 {
		o.CFSPeriod = 100 * time.Millisecond
	}
	c := &Cgroups{o: o, top: path.Join("/", o.Root, kubepods)}
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
	if err := c.write(c.top, values{}); err != nil {
		return nil, err
	}
	return c, nil
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

// values are what a cgroup is given. 0 leaves as it is; below 0 is no limit.
type values struct {
	shares, quota, memory, pids int64
}

// write makes a cgroup, with those above it, or changes it.
func (c *Cgroups) write(name string, v values) error {
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

func (c *Cgroups) v1(v values) *specs.LinuxResources {
	r := &specs.LinuxResources{CPU: &specs.LinuxCPU{}, Memory: &specs.LinuxMemory{}}
	if v.shares > 0 {
		shares := uint64(v.shares)
		r.CPU.Shares = &shares
	}
	if v.quota != 0 {
		period := uint64(c.o.CFSPeriod.Microseconds())
		r.CPU.Quota, r.CPU.Period = &v.quota, &period
	}
	if v.memory != 0 {
		r.Memory.Limit = &v.memory
	}
	if v.pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: &v.pids}
	}
	return r
}

func (c *Cgroups) v2(v values) *cgroup2.Resources {
	r := &cgroup2.Resources{CPU: &cgroup2.CPU{}, Memory: &cgroup2.Memory{}, Pids: &cgroup2.Pids{}}
	if v.shares > 0 {
		weight := sharesToWeight(v.shares)
		r.CPU.Weight = &weight
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

// The bounds of cpu.shares and cpu.weight.
const (
	minShares = 2
	maxShares = 262144
	maxWeight = 10000
	minQuota  = 1000 // µs
)

// milliToShares is cm.MilliCPUToShares of upstream.
func milliToShares(milli int64) int64 {
	return min(max(milli*1024/1000, minShares), maxShares)
}

// milliToQuota is cm.MilliCPUToQuota of upstream; without a limit there is no
// quota.
func (c *Cgroups) milliToQuota(milli int64) int64 {
	if milli <= 0 || c.o.NoCPUQuota {
		return -1
	}
	return max(milli*c.o.CFSPeriod.Microseconds()/1000, minQuota)
}

// sharesToWeight is cm.CpuSharesToCpuWeight of upstream.
func sharesToWeight(shares int64) uint64 {
	if shares >= maxShares {
		return maxWeight
	}
	return uint64(1 + ((max(shares, minShares)-minShares)*9999)/262142)
}

// class is the path of the cgroup of a class.
func (c *Cgroups) class(class v1.PodQOSClass) string {
	switch class {
	case v1.PodQOSBurstable:
		return path.Join(c.top, "burstable")
	case v1.PodQOSBestEffort:
		return path.Join(c.top, "besteffort")
	}
	return c.top
}

func (c *Cgroups) pod(class v1.PodQOSClass, uid types.UID) string {
	return path.Join(c.class(class), podPrefix+string(uid))
}

// await runs what touches the kernel on a goroutine.
func await(ctx context.Context, fn func() error) error {
	_, err := loop.Await(ctx, func(context.Context) (struct{}, error) { return struct{}{}, fn() })
	return err
}

// SetRoot implements cm.Cgroups.
func (c *Cgroups) SetRoot(ctx context.Context, v cm.RootCgroup) error {
	return await(ctx, func() error {
		return c.write(c.top, values{shares: milliToShares(v.MilliCPU), memory: orUnlimited(v.MemoryLimit), pids: v.Pids})
	})
}

// SetClass implements cm.Cgroups.
func (c *Cgroups) SetClass(ctx context.Context, class v1.PodQOSClass, milliCPU int64) error {
	return await(ctx, func() error { return c.write(c.class(class), values{shares: milliToShares(milliCPU)}) })
}

// SetPod implements cm.Cgroups.
func (c *Cgroups) SetPod(ctx context.Context, class v1.PodQOSClass, uid types.UID, v cm.PodCgroup) error {
	return await(ctx, func() error {
		return c.write(c.pod(class, uid), values{
			shares: milliToShares(v.MilliCPU), quota: c.milliToQuota(v.MilliCPULimit), memory: orUnlimited(v.MemoryLimit), pids: c.o.PodPids,
		})
	})
}

func orUnlimited(limit int64) int64 {
	if limit <= 0 {
		return -1
	}
	return limit
}

// PodExists implements cm.Cgroups.
func (c *Cgroups) PodExists(class v1.PodQOSClass, uid types.UID) bool {
	name := c.pod(class, uid)
	for _, m := range c.mounts {
		switch filepath.Base(m) {
		case "unified", "systemd": // nobody needs these
			continue
		}
		if _, err := os.Stat(filepath.Join(m, name)); err != nil {
			return false
		}
	}
	return true
}

var classes = [...]v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort}

// Pods implements cm.Cgroups.
func (c *Cgroups) Pods() []types.UID {
	var out []types.UID
	for _, m := range c.mounts {
		for _, class := range classes {
			entries, err := os.ReadDir(filepath.Join(m, c.class(class)))
			if err != nil {
				continue
			}
			for _, e := range entries {
				if uid, ok := strings.CutPrefix(e.Name(), podPrefix); ok && e.IsDir() {
					out = append(out, types.UID(uid))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// dirs are the directories of a pod's cgroup, of whatever class.
func (c *Cgroups) dirs(uid types.UID) []string {
	var out []string
	for _, m := range c.mounts {
		for _, class := range classes {
			dir := filepath.Join(m, c.pod(class, uid))
			if _, err := os.Stat(dir); err == nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

// ShrinkPod implements cm.Cgroups.
func (c *Cgroups) ShrinkPod(ctx context.Context, uid types.UID) error {
	return await(ctx, func() error {
		for _, class := range classes {
			if c.PodExists(class, uid) {
				return c.write(c.pod(class, uid), values{shares: minShares})
			}
		}
		return nil
	})
}

// RemovePod implements cm.Cgroups.
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
		for _, dir := range dirs {
			errs = append(errs, remove(dir))
		}
		return errors.Join(errs...)
	})
}

// kill sends SIGKILL to all processes in and below directories and returns how
// many there were.
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
