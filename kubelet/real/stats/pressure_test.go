//go:build linux

package stats

import (
	"context"
	"testing"
)

// TestPressure reads what cgroup v2 says of waiting, and the machine's interfaces.
func TestPressure(t *testing.T) {
	const text = "some avg10=1.50 avg60=2.00 avg300=0.25 total=70\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
	m := fake(t, map[string]string{
		"proc/meminfo": meminfo, "cgroup/cgroup.controllers": "cpu memory io\n", "cgroup/kubepods/io.pressure": text, "proc/pressure/cpu": text,
		"proc/net/dev": "Inter-| Receive | Transmit\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0: 10 1 2 0 0 0 0 0 20 3 4 0 0 0 0 0\n veth1: 1 1 1 1 1 1 1 1 1 1 1 1\n",
	})
	for _, tc := range []struct{ resource, path string }{{"io", "/kubepods"}, {"cpu", "/"}} {
		p := m.pressure(tc.resource, tc.path)
		if p == nil || p.Some.Avg10 != 1.5 || p.Some.Avg300 != .25 || p.Some.Total != 70 || p.Full.Total != 7 {
			t.Errorf("%s of %s: %+v", tc.resource, tc.path, p)
		}
	}
	if p := m.pressure("cpu", "/kubepods"); p != nil {
		t.Errorf("a kernel that counts none: %+v", p)
	}
	onLoop(t, func(ctx context.Context) {
		n, err := m.Network(ctx)
		if err != nil || len(n.Interfaces) != 1 || n.Name != "eth0" || *n.RxBytes != 10 || *n.RxErrors != 2 || *n.TxBytes != 20 || *n.TxErrors != 4 {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

// TestCgroupList walks this machine's own cgroups, with everything that is there to read.
func TestCgroupList(t *testing.T) {
	onLoop(t, func(ctx context.Context) {
		m, err := open(nil, cgroupRoot, procRoot)
		if err != nil {
			t.Skip(err)
		}
		all, err := m.Cgroups(ctx)
		if err != nil || len(all.List) == 0 {
			t.Fatalf("%v, %v", all, err)
		}
		root := all.List[0]
		if s := root.Stats[0]; root.Name != "/" || !root.Spec.HasCpu || s.Cpu.Usage.Total == 0 || s.Memory.Usage == 0 || s.Processes.ProcessCount == 0 || len(s.Network.Interfaces) == 0 {
			t.Errorf("the root: %+v, %+v", root.Spec, s)
		}
	})
}
