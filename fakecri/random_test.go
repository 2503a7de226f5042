package fakecri

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// randomRun has several callers make random calls, beside outside acts, and
// returns the trace's hash. The invariants are checked after each call.
func randomRun(t *testing.T, seed uint64, steps int) uint64 {
	l := loop.New(loop.Options{Name: "node", Seed: seed + 1})
	defer l.Close()
	rec := trace.NewRecorder(l, "node", nil)
	rt := New(Options{Loop: l, Recorder: rec, PodCIDR: "10.0.0.0/28", Images: []Image{appImage, {Name: "b:1", Pull: Exactly(time.Second)}},
		Programs: []Program{
			{Match: Match{Container: "c0"}, Behaviour: Behaviour{RunFor: Range{Min: 1, Max: 2 * time.Second}, ExitCode: 1}},
			{Match: Match{Container: "c1"}, Behaviour: Behaviour{OnTerm: OnTerm{Ignore: true}}},
			{Match: Match{Container: "c2"}, Behaviour: Behaviour{StartError: "no"}}}})
	rt.StartDaemon()
	seen := map[string]bool{}   // ids that were ever listed
	gone := map[string]bool{}   // ids that were listed and are no more
	last := map[string]string{} // state of what is listed
	changes := newMirror(rt.Client(l.Root()))
	checks := 0
	check := func() {
		now := map[string]string{}
		ready := map[string]bool{}
		for _, s := range rt.recs.ListSandboxes(nil) {
			now[s.Id] = s.State.String()
			ready[s.Id] = s.State == records.SandboxReady
			if last[s.Id] == records.SandboxNotReady.String() && ready[s.Id] {
				panic("a sandbox became READY again")
			}
		}
		for _, c := range rt.recs.ListContainers(nil) {
			if now[c.PodSandboxId] == "" {
				panic("a container without its sandbox")
			}
			if c.State == records.StateRunning && !ready[c.PodSandboxId] {
				panic("a running container in a sandbox that isn't READY")
			}
			if was := last[c.Id]; was == records.StateExited.String() && c.State != records.StateExited || was != "" && was != records.StateCreated.String() && c.State == records.StateCreated {
				panic("a container went from " + was + " to " + c.State.String())
			}
			now[c.Id] = c.State.String()
		}
		for id := range now {
			if gone[id] {
				panic("id " + id + " came back")
			}
			seen[id] = true
		}
		for id := range seen {
			gone[id] = now[id] == ""
		}
		last = now
		ips := map[string]bool{}
		for _, s := range rt.recs.Sandboxes {
			if s.IP.IsValid() {
				if ips[s.IP.String()] {
					panic("two sandboxes with IP " + s.IP.String())
				}
				ips[s.IP.String()] = true
			}
		}
		checkFilters(rt)
		checks++
		if err := changes.list([...]string{"", "uid-p0", "uid-p1", ""}[checks%4]); err != nil {
			panic(err)
		}
	}
	for caller := range 3 {
		name := fmt.Sprint("caller ", caller)
		g := l.NewGroup(name)
		c := rt.Client(g)
		g.Go(name, func(ctx context.Context) {
			for i := range steps {
				draw := func(purpose string, n int) int { return int(l.Uint64(purpose, name, uint64(i)) % uint64(n)) }
				cctx, cancel := loop.WithTimeout(ctx, time.Duration(draw("deadline", 400))*time.Millisecond)
				randomCall(cctx, rt, c, draw)
				cancel()
				check()
				if draw("nap", 3) == 0 {
					_ = l.Sleep(ctx, time.Duration(draw("nap for", 2000))*time.Millisecond)
				}
			}
		})
	}
	if err := l.RunUntil(l.Now().Add(24 * time.Hour)); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return rec.Hash()
}

// checkFilters compares filtered listings with filtering the whole by hand.
func checkFilters(rt *Runtime) {
	uid := "uid-p1"
	sel := map[string]string{records.LabelPodUID: uid}
	var want []*runtimeapi.Container
	for _, c := range rt.recs.ListContainers(nil) {
		if c.Labels[records.LabelPodUID] == uid && c.State == records.StateRunning {
			want = append(want, c)
		}
	}
	got := rt.recs.ListContainers(&runtimeapi.ContainerFilter{LabelSelector: sel, State: &runtimeapi.ContainerStateValue{State: records.StateRunning}})
	if fmt.Sprintf("%p", want) != fmt.Sprintf("%p", got) && len(want) != len(got) {
		panic("a filtered listing of containers is not the whole, filtered")
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			panic("a filtered listing has other entries or another order")
		}
	}
	n := 0
	for _, s := range rt.recs.ListSandboxes(nil) {
		if s.Labels[records.LabelPodUID] == uid {
			n++
		}
	}
	if len(rt.recs.ListSandboxes(&runtimeapi.PodSandboxFilter{LabelSelector: sel})) != n {
		panic("a filtered listing of sandboxes is not the whole, filtered")
	}
}

func randomCall(ctx context.Context, rt *Runtime, c *Client, draw func(string, int) int) {
	pod := fmt.Sprint("p", draw("pod", 4))
	ctr := fmt.Sprint("c", draw("container", 4))
	attempt := uint32(draw("attempt", 2))
	var sb, id string
	if n := len(rt.recs.Sandboxes); n > 0 {
		sb = rt.recs.Sandboxes[draw("sandbox", n)].ID
		pod = rt.recs.SandboxFor(sb).Config.Metadata.Name
	}
	if n := len(rt.recs.Containers); n > 0 {
		id = rt.recs.Containers[draw("id", n)].ID
	}
	switch draw("what", 24) {
	case 0, 1, 2:
		_, _ = c.RunPodSandbox(ctx, podConfig(fmt.Sprint("p", draw("new", 4)), attempt), "")
	case 3, 4, 5, 6:
		_, _ = c.CreateContainer(ctx, sb, containerConfig(pod, ctr, attempt), nil)
	case 7, 8, 9, 10:
		_ = c.StartContainer(ctx, id)
	case 11, 12:
		_ = c.StopContainer(ctx, id, int64(draw("timeout", 2)))
	case 13:
		_ = c.StopPodSandbox(ctx, sb)
	case 14:
		_ = c.RemoveContainer(ctx, id)
	case 15:
		_ = c.RemovePodSandbox(ctx, sb)
	case 16:
		_, _ = c.PullImage(ctx, &runtimeapi.ImageSpec{Image: "b:1"}, nil, nil)
	case 17:
		_ = c.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: "b:1"})
	case 18:
		rt.calls.AddFault(Fault{Method: "*Container", Error: &FaultError{}, Latency: Exactly(time.Second), For: 3 * time.Second})
	case 19:
		rt.calls.AddFault(Fault{Hang: true, For: 200 * time.Millisecond, Count: 3})
	case 20:
		_ = rt.StopContainerOutside("default/"+pod, ctr)
	case 21:
		_ = rt.KillSandboxOutside("default/" + pod)
	case 22:
		if draw("daemon", 3) == 0 {
			rt.StopDaemon()
			rt.l.Root().After(time.Second, rt.StartDaemon)
		}
	case 23:
		if draw("power", 5) == 0 {
			rt.PowerCut()
			rt.StartDaemon()
		}
	}
}

func TestRandomCalls(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := range uint64(25) {
		h := randomRun(t, seed, 250)
		if seed < 3 && randomRun(t, seed, 250) != h {
			t.Fatalf("seed %d gives two traces", seed)
		}
		hashes[h] = true
	}
	if len(hashes) != 25 {
		t.Errorf("25 seeds give %d traces", len(hashes))
	}
}

func FuzzCalls(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { randomRun(t, seed, 100) })
}

// bench runs body as one task and measures it.
func bench(b *testing.B, body func(ctx context.Context, rt *Runtime, c *Client)) {
	l := loop.New(loop.Options{Name: "node"})
	defer l.Close()
	rt := New(Options{Loop: l, Recorder: trace.NewRecorder(l, "node", nil), Images: []Image{appImage}, PodCIDR: "10.0.0.0/8"})
	rt.StartDaemon()
	g := l.NewGroup("caller")
	g.Go("bench", func(ctx context.Context) { body(ctx, rt, rt.Client(g)) })
	if err := l.RunUntil(l.Now().Add(100 * 365 * 24 * time.Hour)); err != nil {
		b.Fatal(err)
	}
}

// fill runs n pods of one container.
func fill(ctx context.Context, c *Client, n int) {
	for i := range n {
		pod := fmt.Sprint("pod-", i)
		sb, err := c.RunPodSandbox(ctx, podConfig(pod, 0), "")
		if err != nil {
			panic(err)
		}
		id, err := c.CreateContainer(ctx, sb, containerConfig(pod, "main", 0), nil)
		if err != nil {
			panic(err)
		}
		if err := c.StartContainer(ctx, id); err != nil {
			panic(err)
		}
	}
}

func BenchmarkUnchangedList(b *testing.B) {
	bench(b, func(ctx context.Context, rt *Runtime, c *Client) {
		fill(ctx, c, 100)
		_, _ = c.ListContainers(ctx, nil)
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			if i%1000 == 0 { // the loop takes a million steps at one instant for a livelock
				_ = rt.l.Sleep(ctx, time.Second)
			}
			_, _ = c.ListContainers(ctx, nil)
		}
	})
}

func BenchmarkGeneration(b *testing.B) {
	bench(b, func(_ context.Context, _ *Runtime, c *Client) {
		for range b.N {
			_ = c.Generation()
		}
	})
}

func BenchmarkPodCycle(b *testing.B) {
	bench(b, func(ctx context.Context, _ *Runtime, c *Client) {
		pod, ctr := podConfig("web", 0), containerConfig("web", "main", 0)
		b.ReportAllocs()
		for range b.N {
			sb, _ := c.RunPodSandbox(ctx, pod, "")
			id, _ := c.CreateContainer(ctx, sb, ctr, pod)
			_ = c.StartContainer(ctx, id)
			_ = c.StopContainer(ctx, id, 30)
			_ = c.StopPodSandbox(ctx, sb)
			_ = c.RemoveContainer(ctx, id)
			if err := c.RemovePodSandbox(ctx, sb); err != nil {
				panic(err)
			}
		}
	})
}

// A pod of one container stays under 4 KB beside the requests' own objects,
// listed and inspected.
func TestBytesPerPod(t *testing.T) {
	const n = 500
	run(t, Options{Images: []Image{appImage}, PodCIDR: "10.0.0.0/8"}, func(e *env) {
		e.rt.calls.Recorder = nil
		pods := make([]*runtimeapi.PodSandboxConfig, n)
		ctrs := make([]*runtimeapi.ContainerConfig, n)
		for i := range n {
			pod := fmt.Sprint("pod-", i)
			pods[i], ctrs[i] = podConfig(pod, 0), containerConfig(pod, "main", 0)
		}
		heap := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		for i := range n {
			sb, err := e.c.RunPodSandbox(e.ctx, pods[i], "")
			e.ok(err)
			id, err := e.c.CreateContainer(e.ctx, sb, ctrs[i], nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			_, err = e.c.PodSandboxStatus(e.ctx, sb, false)
			e.ok(err)
		}
		_, _ = e.c.ListContainers(e.ctx, nil)
		_, _ = e.c.ListPodSandbox(e.ctx, nil)
		per := (heap() - before) / n
		runtime.KeepAlive(pods)
		runtime.KeepAlive(ctrs)
		t.Logf("%d bytes per pod", per)
		if per > 4096 {
			t.Errorf("%d bytes per pod", per)
		}
	})
}
