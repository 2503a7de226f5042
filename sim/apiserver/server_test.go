package apiserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC)

func ptr[T any](v T) *T { return &v }

func testPod(name string, edit ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "app:1"}}},
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func onNode(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }

// rig is an API and one node on two loops of an engine.
type rig struct {
	t    *testing.T
	e    *loop.Engine
	srv  *Server
	node *loop.Loop
	g    *loop.Group
	c    *Client
	rec  *trace.Recorder
	log  []string // what the node saw
}

func newRig(t *testing.T, workers int, opts Options) *rig {
	t.Helper()
	e, err := loop.NewEngine(loop.EngineOptions{Seed: 3, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	opts.Loop = e.NewLoop("api")
	rec := trace.NewRecorder(opts.Loop, "", nil)
	opts.Recorder = rec
	r := &rig{t: t, e: e, srv: New(opts), node: e.NewLoop("n"), rec: rec}
	r.g = r.node.NewGroup("kubelet")
	r.c = r.srv.Client(r.node, "n")
	return r
}

func (r *rig) seconds(l *loop.Loop) float64 { return l.Now().Sub(loop.Epoch()).Seconds() }

func (r *rig) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%.0fs ", r.seconds(r.node))+fmt.Sprintf(format, args...))
}

// at has fn run on the API's loop.
func (r *rig) at(d time.Duration, fn func()) { r.srv.Loop().Root().At(loop.Epoch().Add(d), fn) }

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	if err := r.e.RunUntil(loop.Epoch().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) create(pod *v1.Pod) {
	if _, err := r.srv.Create(pod); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) watchPods() {
	r.c.WatchPods(r.g, "n", func(pods []*v1.Pod) {
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		r.note("list %s", strings.Join(names, ","))
	}, func(t watch.EventType, p *v1.Pod) { r.note("%s %s", t, p.Name) })
}

func (r *rig) expect(want ...string) {
	r.t.Helper()
	if !reflect.DeepEqual(r.log, want) {
		r.t.Errorf("saw:\n%s\nwant:\n%s", strings.Join(r.log, "\n"), strings.Join(want, "\n"))
	}
}

func TestWatchPods(t *testing.T) {
	r := newRig(t, 2, Options{LatencyMin: 5 * time.Millisecond, LatencyMax: 80 * time.Millisecond})
	r.create(testPod("b", onNode("n")))
	r.create(testPod("a", onNode("n")))
	r.create(testPod("elsewhere", onNode("m")))
	r.create(testPod("unbound"))
	r.watchPods()
	r.at(2*time.Second, func() {
		for i := range 5 {
			r.create(testPod(fmt.Sprintf("p%d", i), onNode("n"))) // one after another, in order
		}
	})
	r.at(4*time.Second, func() {
		if _, err := r.srv.Bind("default", "unbound", "n", metav1.ObjectMeta{}); err != nil {
			t.Error(err)
		}
		if err := r.srv.Delete(KindPod, "default", "a", metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))}); err != nil {
			t.Error(err)
		}
	})
	r.at(6*time.Second, func() {
		r.g.Kill()
	})
	r.at(8*time.Second, func() { r.create(testPod("late", onNode("n"))) })
	r.run(10 * time.Second)
	r.expect("0s list a,b", "2s ADDED p0", "2s ADDED p1", "2s ADDED p2", "2s ADDED p3", "2s ADDED p4",
		"4s ADDED unbound", "4s MODIFIED a", "4s DELETED a")
}

func TestPartition(t *testing.T) {
	t.Run("short: what happened comes late", func(t *testing.T) {
		r := newRig(t, 1, Options{})
		r.watchPods()
		r.at(10*time.Second, func() {
			heal := r.srv.Partition("n")
			r.at(30*time.Second, heal)
		})
		r.at(20*time.Second, func() { r.create(testPod("p", onNode("n"))) })
		r.run(time.Minute)
		r.expect("0s list ", "30s ADDED p")
	})
	t.Run("long: the watch breaks and lists again", func(t *testing.T) {
		r := newRig(t, 1, Options{})
		r.watchPods()
		r.at(10*time.Second, func() {
			heal := r.srv.Partition("n")
			r.at(200*time.Second, heal)
		})
		r.at(20*time.Second, func() { r.create(testPod("p", onNode("n"))) })
		r.run(5 * time.Minute)
		if len(r.log) != 2 || !strings.HasSuffix(r.log[1], "list p") {
			t.Fatalf("saw %q", r.log)
		}
		var at float64
		fmt.Sscanf(r.log[1], "%fs", &at)
		if at < 200 || at > 292 { // at worst a dial of 30 s and a back-off of 60 s later
			t.Errorf("listed at %v", at)
		}
	})
	t.Run("calls time out", func(t *testing.T) {
		r := newRig(t, 1, Options{})
		r.srv.Partition("n")
		r.g.Go("node", func(ctx context.Context) {
			_, err := r.c.GetNode(ctx, "n")
			r.note("heartbeat %v %v", errors.Is(err, context.DeadlineExceeded), apierrors.ReasonForError(err))
		})
		r.g.Go("pod", func(ctx context.Context) {
			_, err := r.c.GetPod(ctx, "default", "p")
			r.note("other %v", errors.Is(err, context.DeadlineExceeded))
		})
		r.g.Go("deadline", func(ctx context.Context) {
			ctx, cancel := loop.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			_, err := r.c.GetPod(ctx, "default", "p")
			r.note("own %v", errors.Is(err, context.DeadlineExceeded))
		})
		r.run(time.Minute)
		r.expect("3s own true", "10s heartbeat true ", "30s other true")
	})
}

func TestOutage(t *testing.T) {
	r := newRig(t, 1, Options{})
	r.watchPods()
	r.at(10*time.Second, func() {
		end := r.srv.Outage()
		r.create(testPod("p", onNode("n"))) // the scenario's own hand is not stopped
		r.at(20*time.Second, end)
	})
	r.g.After(12*time.Second, func() {
		r.g.Go("call", func(ctx context.Context) {
			_, err := r.c.GetPod(ctx, "default", "p")
			r.note("refused %v", errors.Is(err, linux.ECONNREFUSED))
		})
	})
	r.run(time.Minute)
	if len(r.log) != 3 || r.log[1] != "12s refused true" || !strings.HasSuffix(r.log[2], "list p") {
		t.Errorf("saw %q", r.log)
	}
}

func TestFaults(t *testing.T) {
	r := newRig(t, 1, Options{})
	r.create(testPod("p", onNode("n")))
	p := r.srv.Pod("default", "p")
	st := p.Status
	st.Phase = v1.PodRunning
	remove := r.srv.AddFault(wire.Fault{Verb: "patch", Resource: "pods", Code: 409})
	r.srv.AddFault(wire.Fault{Verb: "get", Resource: "pods", Latency: 2 * time.Second})
	r.srv.AddFault(wire.Fault{Resource: "leases", Latency: time.Minute})
	r.g.Go("call", func(ctx context.Context) {
		_, err := r.c.PatchPodStatus(ctx, "default", "p", p.UID, &p.Status, &st, nil)
		r.note("patch: conflict %v", apierrors.IsConflict(err))
		_, err = r.c.GetPod(ctx, "default", "p")
		r.note("get %v", err)
		_, err = r.c.CreateLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "kube-node-lease"}})
		r.note("lease: timeout %v", errors.Is(err, context.DeadlineExceeded))
	})
	r.run(30 * time.Second)
	remove()
	r.g.Go("again", func(ctx context.Context) {
		got, err := r.c.PatchPodStatus(ctx, "default", "p", p.UID, &p.Status, &st, nil)
		r.note("%v %v", got.Status.Phase, err)
	})
	r.run(2 * time.Minute)
	r.expect("0s patch: conflict true", "2s get <nil>", "12s lease: timeout true", "30s Running <nil>")
	if r.srv.Store().Lookup(KindLease, "kube-node-lease", "n") == nil {
		t.Error("the slow request never took effect")
	}
}

func TestRequestOutlivesCaller(t *testing.T) {
	r := newRig(t, 1, Options{LatencyMin: 50 * time.Millisecond})
	r.create(testPod("p", onNode("n")))
	r.g.Go("call", func(ctx context.Context) {
		_ = r.c.DeletePod(ctx, "default", "p", metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))})
		r.note("answered")
	})
	r.g.After(20*time.Millisecond, r.g.Kill)
	r.run(time.Second)
	if r.srv.Pod("default", "p") != nil {
		t.Error("the request did not arrive")
	}
	r.expect()
}

// TestDeterminism runs many nodes on one and on two workers.
func TestDeterminism(t *testing.T) {
	run := func(workers int) (uint64, types.UID) {
		e, err := loop.NewEngine(loop.EngineOptions{Seed: 9, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		l := e.NewLoop("api")
		rec := trace.NewRecorder(l, "", nil)
		srv := New(Options{Loop: l, Recorder: rec, LatencyMax: 20 * time.Millisecond})
		for i := range 20 {
			name := fmt.Sprintf("n%d", i)
			node := e.NewLoop(name)
			c := srv.Client(node, name)
			g := node.NewGroup("kubelet")
			g.Go("register", func(ctx context.Context) {
				if _, err := c.CreateNode(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
					t.Error(err)
				}
				lease, err := c.CreateLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-node-lease"}})
				for err == nil {
					if node.Sleep(ctx, time.Second) != nil {
						return
					}
					next := *lease
					next.Spec.RenewTime = &metav1.MicroTime{Time: node.Now()}
					lease, err = c.UpdateLease(ctx, &next)
				}
				t.Error(err)
			})
		}
		if err := e.RunUntil(loop.Epoch().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return rec.Hash(), srv.Nodes()[0].UID
	}
	h1, u1 := run(1)
	h2, u2 := run(2)
	if h1 != h2 || u1 != u2 {
		t.Errorf("hashes %x and %x, UIDs %s and %s", h1, h2, u1, u2)
	}
}

func TestEventTTL(t *testing.T) {
	r := newRig(t, 1, Options{EventTTL: 10 * time.Second})
	ev := &v1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"}, Count: 1}
	made, err := r.srv.CreateEvent(ev)
	if err != nil {
		t.Fatal(err)
	}
	r.at(8*time.Second, func() {
		next := *made
		next.Count = 2
		if _, err := r.srv.PatchEvent(made, &next); err != nil {
			t.Error(err)
		}
	})
	r.run(15 * time.Second)
	if n := len(r.srv.Events()); n != 1 {
		t.Errorf("%d events, want 1: the patch renews its life", n)
	}
	r.run(20 * time.Second)
	if n := len(r.srv.Events()); n != 0 {
		t.Errorf("%d events, want none", n)
	}
}
