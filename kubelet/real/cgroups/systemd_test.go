//go:build linux

package cgroups

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/real/internal/dbustest"
)

// fakeSystemd is systemd on the bus. It notes what it is asked, and makes no cgroup: the driver
// writes those too.
type fakeSystemd struct {
	conn  *dbus.Conn
	mu    sync.Mutex // the library calls on a goroutine each
	units map[string]map[string]any
	asked []string
	jobs  int
	fail  string // a unit whose jobs fail
}

func startSystemd(t *testing.T, connect func() (*dbus.Conn, error)) *fakeSystemd {
	t.Helper()
	conn, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f := &fakeSystemd{conn: conn, units: map[string]map[string]any{}}
	if err := conn.Export(f, systemdObject, systemdManager); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName(systemdService, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeSystemd) Subscribe() *dbus.Error { return nil }

func (f *fakeSystemd) done(unit string) dbus.ObjectPath {
	f.jobs++
	number := uint32(f.jobs)
	job, result := dbus.ObjectPath(fmt.Sprintf("/org/freedesktop/systemd1/job/%d", f.jobs)), "done"
	if unit == f.fail {
		result = "failed"
	}
	// Another's job ends first, and this one's a little later than the answer.
	time.AfterFunc(5*time.Millisecond, func() {
		_ = f.conn.Emit(systemdObject, systemdManager+".JobRemoved", uint32(0), dbus.ObjectPath("/other"), "other.service", "failed")
		_ = f.conn.Emit(systemdObject, systemdManager+".JobRemoved", number, job, unit, result)
	})
	return job
}

func (f *fakeSystemd) take(unit string, list []property) {
	for _, p := range list {
		f.units[unit][p.Name] = p.Value.Value()
	}
}

func (f *fakeSystemd) property(unit, name string) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.units[unit][name]
}

// StartTransientUnit is systemd's.
func (f *fakeSystemd) StartTransientUnit(unit, mode string, list []property, aux []struct {
	Name       string
	Properties []property
}) (dbus.ObjectPath, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.units[unit] != nil {
		return "", dbus.NewError(unitExists, []any{"Unit " + unit + " was already loaded or has a fragment file."})
	}
	f.asked = append(f.asked, "start "+unit+" "+mode)
	f.units[unit] = map[string]any{}
	f.take(unit, list)
	return f.done(unit), nil
}

// SetUnitProperties is systemd's.
func (f *fakeSystemd) SetUnitProperties(unit string, runtime bool, list []property) *dbus.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !runtime {
		return dbus.MakeFailedError(errors.New("this would stay for good"))
	}
	f.asked = append(f.asked, "change "+unit)
	f.take(unit, list)
	return nil
}

// StopUnit is systemd's.
func (f *fakeSystemd) StopUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.units[unit] == nil {
		return "", dbus.NewError(noSuchUnit, []any{"Unit " + unit + " not loaded."})
	}
	f.asked = append(f.asked, "stop "+unit+" "+mode)
	delete(f.units, unit)
	return f.done(unit), nil
}

// TestSystemdDriver makes, changes and removes a pod's slice by a scripted systemd.
func TestSystemdDriver(t *testing.T) {
	connect, _ := dbustest.PrivateBus(t)
	root := fmt.Sprintf("/drydocktest%d", os.Getpid())
	files, err := New(Options{Root: root, PodPids: 100, Connect: connect})
	if err != nil {
		t.Skipf("cgroups can't be made here (it needs root): %v", err)
	}
	t.Cleanup(func() {
		for _, m := range files.mounts {
			_, _ = remove(filepath.Join(m, root)), remove(filepath.Join(m, root+sliceSuffix))
		}
	})
	onLoop(t, func(ctx context.Context) {
		if _, err := files.Systemd(ctx); err == nil {
			t.Error("it does without systemd")
		}
		f := startSystemd(t, connect)
		c, err := files.Systemd(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range files.mounts {
			if isDir(filepath.Join(m, files.names.Pods())) {
				t.Errorf("%s has the other driver's cgroup", m)
			}
		}
		base := strings.TrimPrefix(root, "/") + "-kubepods"
		pod := base + "-burstable-podu_1.slice"
		set := cm.PodCgroup{MilliCPU: 100, MilliCPULimit: 250, MemoryLimit: 64 << 20}
		shares := int64(2048)
		for _, err := range []error{
			c.SetRoot(ctx, cm.NodeCgroup{CPUShares: &shares}),
			c.SetClass(ctx, v1.PodQOSBurstable, cm.ClassCgroup{CPUShares: 768}),
			c.SetPod(ctx, v1.PodQOSBurstable, "u-1", set),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		want := map[string]any{"CPUShares": uint64(102), "MemoryLimit": uint64(64 << 20)}
		if files.unified {
			want = map[string]any{"CPUWeight": uint64(4), "MemoryMax": uint64(64 << 20)}
		}
		want["CPUQuotaPerSecUSec"], want["CPUQuotaPeriodUSec"], want["TasksMax"] = uint64(250000), uint64(100000), uint64(100)
		for name, value := range want {
			if got := f.property(pod, name); !reflect.DeepEqual(got, value) {
				t.Errorf("%s is %v, want %v", name, got, value)
			}
		}
		if !c.PodExists(v1.PodQOSBurstable, "u-1") || !slices.Equal(c.Pods(), []types.UID{"u-1"}) {
			t.Errorf("the pods are %v", c.Pods())
		}
		set.MilliCPULimit, set.MemoryLimit = 0, 0
		if err := c.SetPod(ctx, v1.PodQOSBurstable, "u-1", set); err != nil {
			t.Error(err)
		}
		if got := f.property(pod, "CPUQuotaPerSecUSec"); got != uint64(math.MaxUint64) {
			t.Errorf("without a limit the quota is %v", got)
		}
		f.mu.Lock()
		f.fail = base + "-besteffort-podu_2.slice"
		f.mu.Unlock()
		if err := c.SetPod(ctx, v1.PodQOSBestEffort, "u-2", cm.PodCgroup{}); err == nil || !strings.Contains(err.Error(), "job ended with failed") {
			t.Errorf("a job that fails: %v", err)
		}
		if err := c.RemovePod(ctx, "u-1"); err != nil {
			t.Error(err)
		}
		if err := c.RemovePod(ctx, "none"); err != nil {
			t.Error(err)
		}
		if got := c.Pods(); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
		asked := []string{
			"start " + base + ".slice replace", "change " + base + ".slice", "start " + base + "-burstable.slice replace", "start " + pod + " replace", "change " + pod,
			"start " + f.fail + " replace", "stop " + pod + " replace",
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if !slices.Equal(f.asked, asked) {
			t.Errorf("systemd was asked\n%s\nwant\n%s", strings.Join(f.asked, "\n"), strings.Join(asked, "\n"))
		}
	})
}

func TestSystemdProperties(t *testing.T) {
	two := int64(2 << 20)
	for _, tc := range []struct {
		name    string
		unified bool
		v       values
		want    map[string]any
	}{
		{"nothing", true, values{}, map[string]any{}},
		{"v1", false, values{shares: 2, quota: 1234, memory: -1, pids: 5, cpus: "0-3", min: &two}, map[string]any{
			"CPUShares": uint64(2), "CPUQuotaPerSecUSec": uint64(20000), "CPUQuotaPeriodUSec": uint64(100000), "MemoryLimit": uint64(math.MaxUint64), "TasksMax": uint64(5),
		}},
		{"v2", true, values{shares: 1024, quota: -1, memory: 4096, cpus: "0-2,9", min: &two, low: &two}, map[string]any{
			"CPUWeight": cm.CPUSharesToCPUWeight(1024), "CPUQuotaPerSecUSec": uint64(math.MaxUint64), "MemoryMax": uint64(4096),
			"MemoryMin": uint64(2 << 20), "MemoryLow": uint64(2 << 20), "AllowedCPUs": []byte{0b111, 0b10},
		}},
	} {
		got := map[string]any{}
		for _, p := range (&systemd{unified: tc.unified, period: 100 * time.Millisecond}).properties(tc.v) {
			got[p.Name] = p.Value.Value()
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
