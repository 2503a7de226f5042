//go:build linux

package machine

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Swap is what this machine has of it.
func (m *Machine) Swap() cm.Swap { return m.swap }

// readSwap reads what the machine has of swap: whether there is any says
// /proc/swaps, how much meminfo. A kernel may report swap in meminfo that is not on.
func (m *Machine) readSwap(root string, total *uint64) {
	if total != nil && swapOn(filepath.Join(root, "proc/swaps")) {
		m.swap.Capacity = int64(*total)
	}
	m.swap.Controller, m.swap.CgroupV1 = swapController(root)
	m.swap.Noswap = m.swap.Capacity > 0 && noswap(m.kernel)
}

// swapOn reports whether swap is in use; a file that can't be read says no.
func swapOn(file string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	lines := 0
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if strings.TrimSpace(s.Text()) != "" {
			lines++
		}
	}
	return lines > 1 // the first is the header
}

// swapController reports whether cgroups limit swap: those that this process is in
// on v2, the topmost on v1. The kubelet's own cgroup tells whether the controller is passed down
// to it.
func swapController(root string) (found, v1 bool) {
	cgroups := filepath.Join(root, "sys/fs/cgroup")
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err != nil {
		_, err := os.Stat(filepath.Join(cgroups, "memory/memory.memsw.limit_in_bytes"))
		return err == nil, true
	}
	own := strings.TrimPrefix(firstLine(filepath.Join(root, "proc/self/cgroup")), "0::")
	if own == "/" || own == "" { // the topmost has no such file; those in it do
		own = "/*"
	}
	files, err := filepath.Glob(filepath.Join(cgroups, own, "memory.swap.max"))
	return err == nil && len(files) > 0, false
}

// The kernel from which on tmpfs has the mount option noswap.
const noswapMajor, noswapMinor = 6, 4

// noswap reports whether a tmpfs can be kept out of swap: by the kernel's version,
// or since a mount with the option succeeds (pkg/kubelet/util/swap). The version is looked at
// first, as upstream does.
func noswap(kernel string) bool {
	head, rest, _ := strings.Cut(kernel, ".")
	major, err := strconv.Atoi(head)
	digits, _, _ := strings.Cut(strings.TrimLeft(rest, "0"), ".")
	if err == nil {
		minor, _ := strconv.Atoi(strings.SplitN(digits, "-", 2)[0])
		if major > noswapMajor || major == noswapMajor && minor >= noswapMinor {
			return true
		}
	}
	dir, err := os.MkdirTemp("", "tmpfs-noswap-test-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "noswap") == nil && unix.Unmount(dir, 0) == nil
}
