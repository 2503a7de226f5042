package fakecri

import (
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
)

// shell starts a container that runs a script.
func (e *env) shell(pod, name, script string) string {
	e.Helper()
	cfg := containerConfig(pod, name, 0)
	cfg.Image.Image, cfg.Image.UserSpecifiedImage = "busybox:1", "busybox:1"
	_, err := e.c.PullImage(e.ctx, cfg.Image, nil, nil)
	e.ok(err)
	cfg.Command = []string{"sh", "-c", script}
	id, err := e.c.CreateContainer(e.ctx, e.sandbox(pod, 0), cfg, nil)
	e.ok(err)
	e.ok(e.c.StartContainer(e.ctx, id))
	return id
}

// What interpreted processes compute counts, and what they sleep doesn't.
func TestCPUOfProcesses(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		runs         time.Duration
		min, max     int64 // millicores
	}{
		{"a loop of programs", "while true; do /bin/ls > /dev/null; done", 2 * time.Second, 900, 1010},
		{"asleep", "sleep 1000", 10 * time.Second, 0, 5},
		{"now and then", "while true; do sleep 1; done", 10 * time.Second, 0, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, Options{FS: memfs.New(memfs.Options{})}, func(e *env) {
				id := e.shell("a", "main", tc.script)
				e.sleep(tc.runs)
				st, err := e.c.ContainerStats(e.ctx, id)
				e.ok(err)
				total := int64(st.Cpu.UsageCoreNanoSeconds.Value)
				milli := (total - int64(records.StartCPU)) / int64(tc.runs/1000)
				if milli < tc.min || milli > tc.max {
					t.Errorf("%d millicores, want %d to %d", milli, tc.min, tc.max)
				}
				if rate := int64(st.Cpu.UsageNanoCores.Value) / 1_000_000; rate < tc.min-20 || rate > tc.max {
					t.Errorf("the rate is %d millicores", rate)
				}
				if u := e.rt.use.NodeUsage(); u.PodsCPU != total-int64(records.StartCPU) {
					t.Errorf("the node's total is %d, the container's %d", u.PodsCPU, total)
				}
				e.ok(e.c.StopContainer(e.ctx, id, 0))
			})
		})
	}
}

// A quota holds a program back; what it has used it keeps when the quota changes.
func TestCPUQuota(t *testing.T) {
	for name, curve := range map[string]*usage.Curve{"constant": usage.Constant(2000), "varying": usage.Ramp(1900, 2000, time.Hour)} {
		t.Run(name, func(t *testing.T) {
			p := []Program{{Behaviour: Behaviour{CPU: curve}}}
			run(t, Options{Images: []Image{appImage}, Programs: p}, func(e *env) {
				cfg := containerConfig("web", "main", 0)
				cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000}}
				id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				used := func(milli, total int64) {
					e.Helper()
					st, err := e.c.ContainerStats(e.ctx, id)
					e.ok(err)
					got := int64(st.Cpu.UsageCoreNanoSeconds.Value)
					if rate := int64(st.Cpu.UsageNanoCores.Value) / 1_000_000; rate != milli || got < total || got > total+int64(100*time.Millisecond) {
						e.Errorf("%d millicores, %s in all; want %d, %s", rate, time.Duration(got), milli, time.Duration(total))
					}
					u := e.rt.use.NodeUsage()
					if d := u.PodsCPU - got; u.PodsMilliCPU != milli || d > 100 || d < -100 {
						e.Errorf("the node: %d millicores, %s in all; the container %s", u.PodsMilliCPU, time.Duration(u.PodsCPU), time.Duration(got))
					}
				}
				e.sleep(10 * time.Second)
				used(500, int64(5*time.Second))
				for _, quota := range []int64{100_000, 20_000} {
					e.ok(e.c.UpdateContainerResources(e.ctx, id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuQuota: quota, CpuPeriod: 100_000}}))
					e.sleep(10 * time.Second)
				}
				used(200, int64(5+10+2)*int64(time.Second)-int64(20*time.Millisecond))
				before := e.rt.use.NodeUsage().PodsCPU
				e.ok(e.c.StopContainer(e.ctx, id, 0))
				if d := e.rt.use.NodeUsage().PodsCPU - before; d < 0 || d > int64(50*time.Millisecond) {
					e.Errorf("the end changes what was used by %s", time.Duration(d))
				}
			})
		})
	}
}

// At a limit of processes forks fail.
func TestProcessLimits(t *testing.T) {
	script := "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait"
	for _, tc := range []struct {
		name string
		opts Options
		runs int
	}{
		{"none", Options{}, 9},
		{"the pod's", Options{PodPIDs: 6}, 5}, // and the sandbox's
		{"the machine's", Options{MaxPIDs: 10, System: SystemUsage{PIDs: usage.Constant(4)}}, 5}, // likewise
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.FS = memfs.New(memfs.Options{})
			logs := &memoryLogs{}
			tc.opts.Logs = logs
			run(t, tc.opts, func(e *env) {
				id := e.shell("a", "main", script)
				e.sleep(time.Minute)
				if got := e.rt.recs.ContainerFor(id).Process.Interpreted.Kernel.ProcessCount(); got != tc.runs {
					t.Errorf("%d processes run, want %d", got, tc.runs)
				}
				if got := strings.Count(logs.text, "can't fork: Resource temporarily unavailable"); got != 9-tc.runs {
					t.Errorf("%d forks are refused:\n%s", got, logs.text)
				}
			})
		})
	}
	t.Run("a stated program", func(t *testing.T) {
		opts := Options{Images: []Image{appImage}, PodPIDs: 30, Programs: []Program{{Behaviour: Behaviour{Processes: usage.Ramp(1, 101, 100*time.Second)}}}}
		run(t, opts, func(e *env) {
			e.start(e.sandbox("web", 0), "web", "main", 0)
			e.sleep(20 * time.Second)
			if got := e.rt.use.NodeUsage().PodsPIDs; got != 22 {
				t.Errorf("%d processes after 20 s", got)
			}
			e.sleep(80 * time.Second)
			if got := e.rt.use.NodeUsage().PodsPIDs; got != 31 {
				t.Errorf("%d processes in the end", got)
			}
		})
	})
}

// memoryLogs keeps what containers write.
type memoryLogs struct{ text string }

func (m *memoryLogs) WriteLog(_ string, line []byte) { m.text += string(line) }
func (m *memoryLogs) OpenLog(string)                 {}
