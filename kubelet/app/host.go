//go:build linux

package app

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"
	netutils "k8s.io/utils/net"

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

// nodeName is --hostname-override or the machine's host name, trimmed and in
// lower case (component-helpers/node/util).
// API objects' names are in lower case, host names need not be.
func nodeName(override string) (string, error) {
	name := override
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("couldn't determine hostname: %w", err)
		}
		name = host
	}
	if name = strings.TrimSpace(name); name == "" {
		return "", errors.New("empty hostname is invalid")
	}
	return strings.ToLower(name), nil
}

// parseNodeIP reads --node-ip: one address, or one of each family. What is no
// address comes back as invalid.
// The error is of a combination that means nothing; a part that is no address
// is left out, as upstream does. Sloppy parsing lets leading zeros pass, as upstream's net
// utilities do.
func parseNodeIP(text string) (ips []net.IP, invalid []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if ip := netutils.ParseIPSloppy(part); ip != nil {
			ips = append(ips, ip)
		} else {
			invalid = append(invalid, part)
		}
	}
	switch {
	case len(ips) > 2, len(ips) == 2 && netutils.IsIPv6(ips[0]) == netutils.IsIPv6(ips[1]):
		return nil, invalid, errors.New("must contain either a single IP or a dual-stack pair of IPs")
	case len(ips) == 2 && (ips[0].IsUnspecified() || ips[1].IsUnspecified()):
		return nil, invalid, errors.New("dual-stack node IP cannot include '0.0.0.0' or '::'")
	}
	return ips, invalid, nil
}
