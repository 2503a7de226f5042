//go:build linux

package server_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/fakecri/server"
	"github.com/drydock-sim/drydock/ground/usage"
)

const mebibyte = 1 << 20

// user is a program that says what it uses.
var user = fakecritest.WithRuntime(func(o *fakecri.Options) {
	o.Images = append(o.Images, fakecri.Image{Name: "app:1", Present: true, Size: 1000, Unpacked: 3000}, fakecri.Image{Name: "busybox", Present: true, Unpacked: 5000})
	o.Programs = append(o.Programs, fakecri.Program{Match: fakecri.Match{Image: "app:1"}, Behaviour: fakecri.Behaviour{
		Memory: usage.Constant(50 * mebibyte), CPU: usage.Constant(250), Processes: usage.Constant(7),
		Writes: []fakecri.Write{
			{Path: "/x", Bytes: usage.Constant(5 * mebibyte)},
			{Path: "/data/x", Bytes: usage.Constant(3 * mebibyte)},
		},
		LogBytes: usage.Constant(mebibyte),
	}})
})

func (r *rig) stats(t testing.TB, id string) *runtimeapi.ContainerStats {
	t.Helper()
	resp, err := r.rt.ContainerStats(testContext(t), &runtimeapi.ContainerStatsRequest{ContainerId: id})
	if err != nil {
		t.Fatalf("ContainerStats: %v", err)
	}
	return resp.Stats
}

// What a client sees of a program's use adds up over the client's time, however
// fast the loop's clock runs.
func TestStatsInTheClientsTime(t *testing.T) {
	for _, speed := range []float64{1, 40} {
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			r := newRig(t, user, fakecritest.WithSpeed(speed))
			ctx, sandbox := testContext(t), r.runSandbox(t, "web")
			id := r.runContainer(t, sandbox, containerConfig("main"))
			status, err := r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // for something to add up
			same := func(what string, at int64, cpu, rate uint64) {
				t.Helper()
				want := (at - status.Status.StartedAt) / 4
				if off := int64(cpu) - want; off < -1000 || off > 1000 || rate != 250_000_000 {
					t.Errorf("%s: %s of processor time in %s, and a rate of %d nanocores", what, time.Duration(cpu), time.Duration(4*want), rate)
				}
			}
			st := r.stats(t, id)
			same("container", st.Cpu.Timestamp, st.Cpu.UsageCoreNanoSeconds.Value, st.Cpu.UsageNanoCores.Value)
			if got := st.Memory.WorkingSetBytes.Value; got != 50*mebibyte {
				t.Errorf("the working set has %d bytes", got)
			}
			if l := st.WritableLayer; l.UsedBytes.Value != 8*mebibyte || l.InodesUsed.Value != 2 {
				t.Errorf("the writable layer is %v", l)
			}
			pod, err := r.rt.PodSandboxStats(ctx, &runtimeapi.PodSandboxStatsRequest{PodSandboxId: sandbox})
			if err != nil {
				t.Fatal(err)
			}
			lin := pod.Stats.Linux
			same("pod", lin.Cpu.Timestamp, lin.Cpu.UsageCoreNanoSeconds.Value, lin.Cpu.UsageNanoCores.Value)
			same("pod's container", lin.Containers[0].Cpu.Timestamp, lin.Containers[0].Cpu.UsageCoreNanoSeconds.Value, lin.Containers[0].Cpu.UsageNanoCores.Value)
			if lin.Memory.WorkingSetBytes.Value != 50*mebibyte || lin.Process.ProcessCount.Value != 8 {
				t.Errorf("the pod has %v and %v", lin.Memory, lin.Process)
			}
			metrics := r.metrics(t)
			// These are whole seconds of the loop's clock, whose beginning may lie in the client's second before.
			second := func(name string, at int64) {
				t.Helper()
				got := int64(metrics[name].Value.Value)
				if earliest := at - int64(float64(time.Second)/speed); got < earliest/int64(time.Second) || got > at/int64(time.Second) {
					t.Errorf("%s is %d, of %s", name, got, time.Unix(0, at))
				}
			}
			second("container_last_seen", metrics["container_last_seen"].Timestamp)
			second("container_start_time_seconds", status.Status.StartedAt)
			for name, want := range map[string]uint64{
				"container_memory_working_set_bytes": 50 * mebibyte, "container_fs_usage_bytes": 8 * mebibyte, "container_processes": 7,
				"container_cpu_usage_seconds_total": 0, "container_fs_limit_bytes": 100 << 30,
			} {
				if got := metrics[name].Value.Value; got != want {
					t.Errorf("%s is %d, want %d", name, got, want)
				}
			}
		})
	}
}

// metrics are the metrics of the one container, by name.
func (r *rig) metrics(t testing.TB) map[string]*runtimeapi.Metric {
	t.Helper()
	resp, err := r.rt.ListPodSandboxMetrics(testContext(t), &runtimeapi.ListPodSandboxMetricsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*runtimeapi.Metric{}
	for _, m := range resp.PodMetrics[0].ContainerMetrics[0].Metrics {
		out[m.Name] = m
	}
	return out
}

// What commands write counts where it is: in the layer, or in a directory of
// this machine. What a program states for such a directory is told of.
func TestWritesOnThisMachine(t *testing.T) {
	var mu sync.Mutex
	var warnings []string
	r := newRig(t, onHost, user, fakecritest.WithOptions(func(o *server.Options) {
		o.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warnings = append(warnings, text)
		}
	}))
	ctx, dir := testContext(t), t.TempDir()
	pc := sandboxConfig("web")
	pc.LogDirectory = dir
	resp, err := r.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: pc})
	if err != nil {
		t.Fatal(err)
	}
	run := func(name, image string, command ...string) string {
		cc := containerConfig(name)
		cc.Image.Image, cc.Command, cc.LogPath = image, command, name+".log"
		cc.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: dir + "/data"}}
		return r.runContainer(t, resp.PodSandboxId, cc)
	}
	disk := func() (images, layers uint64) {
		t.Helper()
		info, err := r.img.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return info.ImageFilesystems[0].UsedBytes.GetValue(), info.ContainerFilesystems[0].UsedBytes.GetValue()
	}
	images, layers := disk()
	if images < 8000 || layers != 0 {
		t.Errorf("images take %d bytes, layers %d", images, layers)
	}
	main := run("main", "busybox", "sleep", "1000")
	exec := func(script string) {
		t.Helper()
		out, err := r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: main, Cmd: []string{"sh", "-c", script}})
		if err != nil || out.ExitCode != 0 {
			t.Fatalf("%s: %v, %v", script, out, err)
		}
	}
	exec("touch /big") // which has the layer begin with the root directory
	empty := r.stats(t, main).WritableLayer.UsedBytes.Value
	exec("dd if=/dev/zero of=/big bs=1M count=10 && dd if=/dev/zero of=/data/big bs=1M count=3")
	written := r.stats(t, main).WritableLayer
	if got := written.UsedBytes.Value - empty; got != 10*mebibyte || written.InodesUsed.Value != 2 {
		t.Errorf("the layer grew by %d bytes, and has %d inodes", got, written.InodesUsed.Value)
	}
	if st, err := os.Stat(dir + "/data/big"); err != nil || st.Size() != 3*mebibyte {
		t.Errorf("in the mount: %v, %v", st, err)
	}
	if all, layers := disk(); layers != written.UsedBytes.Value || all != images+layers {
		t.Errorf("the disk has %d bytes, of which %d of layers; the only layer has %d, and the images %d", all, layers, written.UsedBytes.Value, images)
	}
	exec("rm /big")
	if got := r.stats(t, main).WritableLayer.UsedBytes.Value; got != empty {
		t.Errorf("after rm the layer has %d bytes, before there were %d", got, empty)
	}
	for _, name := range []string{"app", "again"} {
		if got := r.stats(t, run(name, "app:1")).WritableLayer.UsedBytes.Value; got != 5*mebibyte {
			t.Errorf("the layer of %s has %d bytes", name, got)
		}
	}
	r.Close()
	mu.Lock()
	defer mu.Unlock()
	for _, part := range []string{"writes to /data/x is left out", "logBytes are left out"} {
		if n := len(slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return !strings.Contains(w, part) })); n != 1 {
			t.Errorf("%d warnings say that %s: %q", n, part, warnings)
		}
	}
}
