//go:build linux

package machine

import (
	"testing"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

func TestSwap(t *testing.T) {
	const header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	const device = header + "/dev/sda2 partition 8388604 0 -2\n"
	total := uint64(8 << 30)
	for _, tc := range []struct {
		name, kernel string
		files        map[string]string
		want         cm.Swap
	}{
		{"none", "6.18.44", map[string]string{"proc/swaps": header, "sys/fs/cgroup/cgroup.controllers": "memory", "proc/self/cgroup": "0::/a\n"}, cm.Swap{}},
		{"v2", "6.4.0-rc1", map[string]string{"proc/swaps": device, "sys/fs/cgroup/cgroup.controllers": "memory", "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.swap.max": "max"},
			cm.Swap{Capacity: 8 << 30, Controller: true, Noswap: true}},
		{"v2, in the topmost cgroup", "10.0", map[string]string{"proc/swaps": device, "sys/fs/cgroup/cgroup.controllers": "memory", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/x/memory.swap.max": "max"},
			cm.Swap{Capacity: 8 << 30, Controller: true, Noswap: true}},
		{"v1", "6.10", map[string]string{"proc/swaps": device, "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": "1"}, cm.Swap{Capacity: 8 << 30, Controller: true, CgroupV1: true, Noswap: true}},
		{"v1 without accounting", "6.10", map[string]string{"proc/swaps": header}, cm.Swap{CgroupV1: true}},
	} {
		m := &Machine{kernel: tc.kernel}
		if m.readSwap(fakeRoot(t, tc.files), &total); m.Swap() != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, m.Swap(), tc.want)
		}
	}
}
