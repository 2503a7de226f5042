//go:build linux

package stats

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	cadvisorapi "github.com/google/cadvisor/info/v1"
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

// TestProcesses counts the processes of cgroups, without those below, one of which has gone.
func TestProcesses(t *testing.T) {
	id := strings.Repeat("0a", 32)
	m := fake(t, map[string]string{
		"proc/meminfo": meminfo, "cgroup/cgroup.controllers": "", "cgroup/cgroup.procs": "7\n",
		"cgroup/g/cgroup.procs": "7\n8\n", "cgroup/g/pids.current": "5\n", "cgroup/g/pids.max": "100\n",
		"cgroup/g/cri-" + id + ".scope/cgroup.procs": "10\n", "cgroup/g/cri-" + id + ".scope/pids.current": "3\n", "cgroup/g/cri-" + id + ".scope/pids.max": "max\n",
		"proc/7/limits":  "Max open files            1               1            files\n",
		"proc/10/limits": "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 unlimited            files\n",
	})
	for pid, files := range map[string][]string{"7": {"/dev/null", "socket:[1]"}, "10": {"socket:[2]", "socket:[1]", "pipe:[3]"}} {
		dir := filepath.Join(m.proc, pid, "fd")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for i, to := range files {
			if err := os.Symlink(to, filepath.Join(dir, string(rune('0'+i)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, want := range map[string]cadvisorapi.ProcessStats{
		"/":  {ProcessCount: 1, FdCount: 2, SocketCount: 1, ThreadsCurrent: 1},
		"/g": {ProcessCount: 2, FdCount: 2, SocketCount: 1, ThreadsCurrent: 5, ThreadsMax: 100},
		"/g/cri-" + id + ".scope": {ProcessCount: 1, FdCount: 3, SocketCount: 2, ThreadsCurrent: 3,
			Ulimits: []cadvisorapi.UlimitSpec{{Name: "max_open_files", SoftLimit: 1024, HardLimit: -1}}},
		"/gone": {},
	} {
		if got := m.processInfo(path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// TestFilesystems: a device is told once, a tmpfs by its mount point, and what has neither not at all.
func TestFilesystems(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mounts := strings.ReplaceAll("overlay DIR/a overlay rw 0 0\nnone\n\n/dev/sda1 DIR/none ext4 rw 0 0\n/dev/sda1 DIR/a ext4 rw 0 0\n"+
		"/dev/sda1 DIR/b ext4 ro 0 0\ntmpfs DIR/c tmpfs rw 0 0\ntmpfs DIR/d tmpfs rw 0 0\ntmpfs DIR/d tmpfs rw 0 0\n/dev/sdb DIR/e xfs rw 0 0\n", "DIR", dir)
	m := fake(t, map[string]string{"proc/meminfo": meminfo, "cgroup/cgroup.controllers": "", "proc/self/mounts": mounts})
	var got []string
	for _, f := range m.filesystems() {
		if f.Limit == 0 || f.Usage+f.Available > f.Limit || f.InodesFree > f.Inodes {
			t.Errorf("%+v", f)
		}
		got = append(got, f.Type+" "+strings.Replace(f.Device, dir, "DIR", 1))
	}
	if want := "ext4 /dev/sda1, tmpfs DIR/c, tmpfs DIR/d, xfs /dev/sdb"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}
