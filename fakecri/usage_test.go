package fakecri

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/accounts"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
)

// checkUse compares the node's sums with those over its processes.
func (e *env) checkUse(when string) {
	e.Helper()
	r, now := e.rt, e.l.UnixNano()
	var memory, pids, milli int64
	for _, s := range r.recs.Sandboxes {
		if s.State == records.SandboxReady {
			pids++
		}
	}
	for _, c := range r.recs.Containers {
		p := c.Process
		if p == nil {
			continue
		}
		if p.Interpreted != nil {
			pids += int64(len(p.Interpreted.Kernel.Processes()))
			for _, k := range p.Interpreted.Kernel.Processes() {
				memory += k.Memory()
			}
			continue
		}
		memory += p.UsageOf(r.l, p.Behaviour.MemoryCurve(), now)
		pids += p.UsageOf(r.l, p.Behaviour.ProcessesCurve(), now)
		milli += p.UsageOf(r.l, r.use.CpuOf(p).Curve, now)
	}
	u := r.use.NodeUsage()
	if u.PodsMemory != memory || u.PodsPIDs != pids || u.PodsMilliCPU != milli {
		e.Fatalf("%s: the node's sums are %d bytes, %d processes, %d millicores; the processes' %d, %d, %d",
			when, u.PodsMemory, u.PodsPIDs, u.PodsMilliCPU, memory, pids, milli)
	}
}

// randomCurve is of about size.
func randomCurve(r *rand.Rand, size int64) *usage.Curve {
	switch r.Intn(6) {
	case 0:
		return nil
	case 1:
		return usage.Constant(r.Int63n(size))
	case 2:
		return usage.Ramp(r.Int63n(size), r.Int63n(size), time.Duration(1+r.Intn(60))*time.Second)
	case 3:
		c, _ := usage.Periodic(0, r.Int63n(size), time.Duration(1+r.Intn(30))*time.Second, usage.Shape(r.Intn(3)))
		return c
	case 4:
		c, _ := usage.Constant(r.Int63n(size)).WithNoise(r.Int63n(size), time.Second)
		return c
	}
	c, _ := usage.Steps([]usage.Point{{At: 0, Value: r.Int63n(size)}, {At: 10 * time.Second, Value: r.Int63n(size)}, {At: 20 * time.Second, Value: r.Int63n(size)}})
	return c
}

func TestSumsAreTheProcesses(t *testing.T) {
	for seed := int64(0); seed < 30; seed++ {
		r := rand.New(rand.NewSource(seed))
		var programs []Program
		for i := range 8 {
			programs = append(programs, Program{Match: Match{Container: fmt.Sprintf("c%d", i)}, Behaviour: Behaviour{
				Memory: randomCurve(r, 1<<30), CPU: randomCurve(r, 4000), Processes: randomCurve(r, 50), RunFor: Exactly(time.Duration(r.Intn(40)) * time.Second),
			}})
		}
		// Little enough that the OOM killer comes along in some of the runs.
		opts := Options{Images: []Image{appImage}, Programs: programs, Memory: 2 << 30, FS: memfs.New(memfs.Options{}), System: SystemUsage{Memory: randomCurve(r, 1<<30)}}
		run(t, opts, func(e *env) {
			var ids []string
			for step := range 150 {
				switch n := r.Intn(10); {
				case n < 4 && len(ids) < 30:
					pod := fmt.Sprintf("p%d", step)
					cfg := containerConfig(pod, fmt.Sprintf("c%d", r.Intn(9)), 0)
					if cfg.Metadata.Name == "c8" {
						cfg.Command = []string{"sh", "-c", "while true; do x=$(echo hi); (sleep 3); sleep 1; done"}
						cfg.Image.Image, cfg.Image.UserSpecifiedImage = "busybox:1", "busybox:1"
						_, _ = e.c.PullImage(e.ctx, cfg.Image, nil, nil)
					}
					id, err := e.c.CreateContainer(e.ctx, e.sandbox(pod, 0), cfg, nil)
					e.ok(err)
					e.ok(e.c.StartContainer(e.ctx, id))
					ids = append(ids, id)
				case n < 6 && len(ids) > 0:
					e.ok(e.c.StopContainer(e.ctx, ids[r.Intn(len(ids))], 1))
				case n < 7 && len(ids) > 0:
					i := r.Intn(len(ids))
					e.ok(e.c.RemoveContainer(e.ctx, ids[i]))
					ids = append(ids[:i], ids[i+1:]...)
				default:
					e.sleep(time.Duration(r.Intn(3000)) * time.Millisecond)
				}
				e.checkUse(fmt.Sprintf("seed %d, step %d", seed, step))
			}
			e.sleep(2 * time.Millisecond) // the OOM killer has a step of its own
			if n := e.rt.use.NodeUsage(); n.Memory > 2<<30 && n.PodsMemory > 0 {
				e.Errorf("seed %d: %d bytes are used of %d", seed, n.Memory, 2<<30)
			}
			if len(e.rt.use.Memory.Users) != len(e.rt.use.Memory.Owners) {
				e.Errorf("seed %d: %d users, %d owners", seed, len(e.rt.use.Memory.Users), len(e.rt.use.Memory.Owners))
			}
		})
	}
}

// A watch calls at the first instant at which more is used, and not if never.
func TestWatchNeverMisses(t *testing.T) {
	const memory, pids = 3 << 30, 200
	for seed := int64(0); seed < 60; seed++ {
		r := rand.New(rand.NewSource(seed))
		var programs []Program
		for i := range 6 {
			programs = append(programs, Program{Match: Match{Container: fmt.Sprintf("c%d", i)}, Behaviour: Behaviour{
				Memory: randomCurve(r, 1<<30), Processes: randomCurve(r, 80),
			}})
		}
		opts := Options{Images: []Image{appImage}, Programs: programs, System: SystemUsage{Memory: randomCurve(r, 2<<30), PIDs: randomCurve(r, 50)}}
		run(t, opts, func(e *env) {
			called := time.Duration(-1)
			start := e.l.UnixNano()
			since := func() time.Duration { return time.Duration(e.l.UnixNano() - start) }
			over := func() bool {
				u := e.rt.use.NodeUsage()
				return u.Memory > memory || u.PIDs > pids
			}
			if !e.rt.use.WatchUsage(memory, accounts.NoLimit, pids, func() {
				if called >= 0 {
					e.Errorf("seed %d: called twice", seed)
				}
				called = since()
				if !over() {
					e.Errorf("seed %d: called at %s, but there is enough", seed, called)
				}
			}) {
				e.Fatalf("seed %d: more is used before the start", seed)
			}
			id := [12]string{}
			for i := range id {
				id[i] = e.create(e.sandbox(fmt.Sprintf("p%d", i), 0), fmt.Sprintf("p%d", i), fmt.Sprintf("c%d", r.Intn(6)), 0)
			}
			begun := 0
			for since() < 90*time.Second && called < 0 {
				if begun < len(id) && r.Intn(100) == 0 {
					e.ok(e.c.StartContainer(e.ctx, id[begun]))
					begun++
				}
				if over() {
					e.sleep(2 * time.Millisecond)
					if called < 0 {
						e.Fatalf("seed %d: at %s more is used, and nobody said so", seed, since())
					}
				}
				e.sleep(10 * time.Millisecond)
			}
		})
	}
}

// Whom the kernel takes when the machine's memory is used up.
func TestVictims(t *testing.T) {
	const mib = 1 << 20
	type pod struct {
		name   string
		memory int64
		adj    int64
	}
	for _, tc := range []struct {
		name string
		pods []pod
		grow int64 // what the machine uses after a minute
		want []string
	}{
		{"the largest of equals", []pod{{"a", 300 * mib, 1000}, {"b", 400 * mib, 1000}}, 400 * mib, []string{"b"}},
		{"the youngest of the same size", []pod{{"a", 300 * mib, 1000}, {"b", 300 * mib, 1000}}, 500 * mib, []string{"b"}},
		{"best effort before burstable", []pod{{"burst", 500 * mib, 500}, {"best", 10 * mib, 1000}}, 520 * mib, []string{"best"}},
		{"and on until there is enough", []pod{{"burst", 500 * mib, 500}, {"best", 10 * mib, 1000}, {"best2", 20 * mib, 1000}}, 600 * mib, []string{"best2", "best", "burst"}},
		{"burstable before guaranteed", []pod{{"guaranteed", 600 * mib, -997}, {"burst", 10 * mib, 3}}, 420 * mib, []string{"burst"}},
		{"much more memory outweighs", []pod{{"burst", 700 * mib, 500}, {"best", 10 * mib, 900}}, 400 * mib, []string{"burst"}},
		{"never -1000", []pod{{"sacred", 700 * mib, -1000}, {"burst", 10 * mib, -999}}, 400 * mib, []string{"burst"}},
		{"nobody while it fits", []pod{{"a", 300 * mib, 1000}, {"b", 400 * mib, 1000}}, 324 * mib, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := Options{Images: []Image{appImage}, Memory: 1024 * mib, System: SystemUsage{Memory: usage.Ramp(0, tc.grow, time.Minute)}}
			for _, p := range tc.pods {
				opts.Programs = append(opts.Programs, Program{Match: Match{Pod: p.name}, Behaviour: Behaviour{Memory: usage.Constant(p.memory)}})
			}
			run(t, opts, func(e *env) {
				g := e.l.NewGroup("watcher")
				var kills []OOMKill
				e.rt.use.WatchOOM(g, func(k OOMKill) { kills = append(kills, k) })
				ids := map[string]string{}
				for _, p := range tc.pods {
					cfg := containerConfig(p.name, "main", 0)
					cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{OomScoreAdj: p.adj}}
					id, err := e.c.CreateContainer(e.ctx, e.sandbox(p.name, 0), cfg, nil)
					e.ok(err)
					e.ok(e.c.StartContainer(e.ctx, id))
					ids[id] = p.name
				}
				e.sleep(2 * time.Minute)
				var got []string
				for _, k := range kills {
					id := k.Victim[len(k.Victim)-64:]
					got = append(got, ids[id])
					e.exited(id, 137, "OOMKilled")
					if k.Cgroup != "/" || k.PID == 0 || k.Process == "" {
						t.Errorf("the record is %+v", k)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(tc.want) {
					t.Errorf("killed: %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// A limit that is not the machine's: the container's, the pod's, all pods'.
func TestLimitsAbove(t *testing.T) {
	const mib = 1 << 20
	grows := Program{Match: Match{Container: "grows"}, Behaviour: Behaviour{Memory: usage.Ramp(0, 100*mib, 100*time.Second)}}
	still := Program{Match: Match{Container: "still"}, Behaviour: Behaviour{Memory: usage.Constant(60 * mib)}}
	for _, tc := range []struct {
		name                 string
		container, pod, pods int64
		after                time.Duration
		cgroup, dies         string
	}{
		{name: "the container's", container: 50 * mib, after: 50 * time.Second, cgroup: "own", dies: "grows"},
		{name: "the pod's", pod: 110 * mib, after: 50 * time.Second, cgroup: "/pod", dies: "still"},
		{name: "all pods'", pods: 130 * mib, after: 70 * time.Second, cgroup: "/kubepods", dies: "grows"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, Options{Images: []Image{appImage}, Memory: 1 << 30, Programs: []Program{grows, still}}, func(e *env) {
				e.rt.use.SetPodsMemoryLimit(tc.pods)
				var kills []OOMKill
				e.rt.use.WatchOOM(e.l.NewGroup("watcher"), func(k OOMKill) { kills = append(kills, k) })
				cfg := podConfig("web", 0)
				cfg.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/pod", Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: tc.pod}}
				sb, err := e.c.RunPodSandbox(e.ctx, cfg, "")
				e.ok(err)
				ids := map[string]string{}
				for _, name := range []string{"still", "grows"} {
					cfg := containerConfig("web", name, 0)
					cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{OomScoreAdj: 1000}}
					if name == "grows" {
						cfg.Linux.Resources.MemoryLimitInBytes = tc.container
					}
					ids[name], err = e.c.CreateContainer(e.ctx, sb, cfg, nil)
					e.ok(err)
					e.ok(e.c.StartContainer(e.ctx, ids[name]))
				}
				e.sleep(200 * time.Second)
				e.exited(ids[tc.dies], 137, "OOMKilled")
				st := e.status(ids[tc.dies])
				e.within(time.Duration(st.FinishedAt-e.status(ids["grows"]).StartedAt), tc.after, tc.after+time.Millisecond)
				cgroup := tc.cgroup
				if cgroup == "own" {
					cgroup = "/pod/" + ids[tc.dies]
				}
				if len(kills) != 1 || kills[0].Cgroup != cgroup || kills[0].Victim != "/pod/"+ids[tc.dies] {
					t.Errorf("kills: %+v", kills)
				}
			})
		})
	}
}

// An interpreted process counts beside stated ones, and is a victim like them.
func TestInterpretedAndStated(t *testing.T) {
	const mib = 1 << 20
	opts := Options{Memory: 512 * mib, FS: memfs.New(memfs.Options{}), Programs: []Program{
		{Match: Match{Container: "stated"}, Behaviour: Behaviour{Memory: usage.Constant(100 * mib)}},
	}}
	run(t, opts, func(e *env) {
		start := func(pod, name string, command ...string) string {
			cfg := containerConfig(pod, name, 0)
			cfg.Image.Image, cfg.Image.UserSpecifiedImage = "busybox:1", "busybox:1"
			_, err := e.c.PullImage(e.ctx, cfg.Image, nil, nil)
			e.ok(err)
			cfg.Command = command
			id, err := e.c.CreateContainer(e.ctx, e.sandbox(pod, 0), cfg, nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			return id
		}
		stated := start("a", "stated")
		shell := start("b", "shell", "sh", "-c", "sleep 1000")
		e.sleep(time.Second)
		e.checkUse("both")
		var sh *kernel.Process
		for _, p := range e.rt.recs.ContainerFor(shell).Process.Interpreted.Kernel.Processes() {
			sh = p
		}
		sh.Go("grow", func(ctx context.Context) { _ = sh.Alloc(ctx, 600*mib) })
		e.sleep(time.Second)
		e.exited(shell, 137, "OOMKilled")
		if st := e.status(stated); st.State != records.StateRunning {
			t.Errorf("the stated program is %s", st.State)
		}
		e.checkUse("after the kill")
	})
}
