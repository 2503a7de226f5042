//go:build linux

package app

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// cgroupV1 reports whether the unified hierarchy is not what is mounted.
// It asks for the kind of the file system that is mounted there, as
// containerd/cgroups does: a hybrid hierarchy counts as v1. A machine on which nothing can be
// found out counts as v2.
func cgroupV1() bool {
	var st unix.Statfs_t
	err := unix.Statfs("/sys/fs/cgroup", &st)
	return err == nil && st.Type != unix.CGROUP2_SUPER_MAGIC
}

// swapOn reports whether a swap file or partition is in use. Swap in compressed
// memory that the kernel may drop (tmpfs noswap) doesn't count for upstream
// either way, so neither here.
// A machine without /proc/swaps has no swap. The kernel writes a header line even without swap.
func swapOn() (bool, error) {
	f, err := os.Open("/proc/swaps")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to determine if swap is on: %w", err)
	}
	defer func() { _ = f.Close() }()
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.TrimSpace(s.Text()) != "" {
			lines++
		}
	}
	return lines > 1, nil // the first line is the header
}

// checkCPUs refuses reserved CPUs that the machine doesn't have.
// Upstream discovers the topology for that; which CPUs are online is enough. CPUs that are
// offline count as missing.
func checkCPUs(list string) error {
	want, err := cm.ParseCPUs(list)
	if err != nil {
		return fmt.Errorf("unable to parse reserved-cpus list: %w", err)
	}
	data, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return fmt.Errorf("unable to discover CPU topology info: %w", err)
	}
	online, err := cpuset.Parse(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("unable to discover CPU topology info: %w", err)
	}
	if !want.IsSubsetOf(online) {
		return fmt.Errorf("reserved-cpus: %s is not a subset of online-cpus: %s", list, online)
	}
	return nil
}
