package podworkers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
)

// fakeSyncer notes what is run; each run takes a second.
type fakeSyncer struct {
	l        *loop.Loop
	lines    []string
	events   []string
	terminal bool
	fail     error
	took     time.Duration
}

func (f *fakeSyncer) note(ctx context.Context, what string) error {
	f.lines = append(f.lines, fmt.Sprintf("%.0f %s", f.l.Since(loop.Epoch()).Seconds(), what))
	if err := f.l.Sleep(ctx, f.took); err != nil {
		return err
	}
	return f.fail
}

func (f *fakeSyncer) SyncPod(ctx context.Context, t kubetypes.SyncPodType, pod, _ *v1.Pod, _ *kubecontainer.PodStatus) (SyncResult, error) {
	err := f.note(ctx, "sync "+t.String()+" "+pod.Labels["v"])
	return SyncResult{Terminal: f.terminal}, err
}
func (f *fakeSyncer) SyncTerminatingPod(ctx context.Context, _ *v1.Pod, _ *kubecontainer.PodStatus, grace *int64, _ PodStatusFunc) error {
	if grace == nil {
		return f.note(ctx, "terminating")
	}
	return f.note(ctx, fmt.Sprintf("terminating grace=%d", *grace))
}
func (f *fakeSyncer) SyncTerminatingRuntimePod(ctx context.Context, _ *kubecontainer.Pod) error {
	return f.note(ctx, "runtime pod")
}
func (f *fakeSyncer) SyncTerminatedPod(ctx context.Context, _ *v1.Pod, _ *kubecontainer.PodStatus) error {
	return f.note(ctx, "terminated")
}
func (f *fakeSyncer) Event(_ *v1.ObjectReference, _, reason, _ string) {
	f.events = append(f.events, reason)
}

// workersWorld is a set of workers whose cache is renewed every second.
func workersWorld(t *testing.T) (*Workers, *fakeSyncer, func(float64)) {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	g := l.NewGroup("kubelet")
	f := &fakeSyncer{l: l, took: time.Second}
	cache := kubecontainer.NewCache()
	w := New(Options{Group: g, Syncer: f, Cache: cache, Queue: queue.NewWorkQueue(), Recorder: f, Resync: time.Minute})
	cache.UpdateTime(l.Now())
	g.Every("relist", time.Second, 0, func() { cache.UpdateTime(l.Now()) })
	return w, f, func(at float64) {
		t.Helper()
		if err := l.RunUntil(loop.Epoch().Add(time.Duration(at * float64(time.Second)))); err != nil {
			t.Fatal(err)
		}
	}
}

func version(v string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels = map[string]string{"v": v} } }

func want(t *testing.T, f *fakeSyncer, lines ...string) {
	t.Helper()
	if !reflect.DeepEqual(f.lines, lines) {
		t.Errorf("got %q, want %q", f.lines, lines)
	}
}

func TestUpdatesCoalesce(t *testing.T) {
	w, f, run := workersWorld(t)
	w.UpdatePod(UpdatePodOptions{Pod: testPod(version("1")), UpdateType: kubetypes.SyncPodCreate})
	run(0.5)
	for _, v := range []string{"2", "3", "4"} {
		w.UpdatePod(UpdatePodOptions{Pod: testPod(version(v)), UpdateType: kubetypes.SyncPodUpdate})
	}
	run(10)
	// The first run sees any cache; the second waits for one newer than its end.
	want(t, f, "0 sync create 1", "2 sync update 4")
	if w.Queue.Due(w.l.UnixNano()+int64(50*time.Second)) || !w.Queue.Due(w.l.UnixNano()+int64(90*time.Second)) {
		t.Error("the next sync is not due 60 to 90 s after the last")
	}
}

// TestUpdatesOfOneTurn: what the sync loop tells an idle worker before it waits
// again is one update, as upstream, where the worker's goroutine takes longer to
// wake than the loop to take what is in its channels.
func TestUpdatesOfOneTurn(t *testing.T) {
	type tell func(w *Workers)
	update := func(v string) tell {
		return func(w *Workers) {
			w.UpdatePod(UpdatePodOptions{Pod: testPod(version(v)), UpdateType: kubetypes.SyncPodUpdate})
		}
	}
	remove := func(w *Workers) { w.remove(w.records.get("u")) }
	for _, c := range []struct {
		name  string
		turns [][]tell // a second and a half apart
		want  []string
	}{
		{"one turn", [][]tell{{update("1"), update("2"), update("3")}}, []string{"0 sync update 3"}},
		{"two turns", [][]tell{{update("1")}, {update("2"), update("3")}}, []string{"0 sync update 1", "2 sync update 3"}},
		{"forgotten before it woke", [][]tell{{update("1"), remove}}, nil},
	} {
		w, f, run := workersWorld(t)
		f.took = 0
		for i, turn := range c.turns {
			run(1.5 * float64(i))
			for _, fn := range turn {
				fn(w)
			}
		}
		run(10)
		if !reflect.DeepEqual(f.lines, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, f.lines, c.want)
		}
	}
}

func TestLifeOfAPod(t *testing.T) {
	w, f, run := workersWorld(t)
	w.UpdatePod(UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodCreate})
	run(5)
	w.UpdatePod(UpdatePodOptions{Pod: testPod(deleted(7)), UpdateType: kubetypes.SyncPodUpdate})
	run(5.5)
	if !w.IsPodTerminationRequested("u") || w.IsPodKnownTerminated("u") || !w.CouldHaveRunningContainers("u") {
		t.Error("predicates while terminating")
	}
	run(20)
	want(t, f, "0 sync create ", "5 terminating grace=7", "7 terminated")
	if !w.ShouldPodBeFinished("u") || !w.ShouldPodContentBeRemoved("u") || w.CouldHaveRunningContainers("u") {
		t.Error("predicates when finished")
	}
	if _, acted := w.SyncKnownPods(func(types.UID) bool { return false }); !acted || w.Known("u") {
		t.Error("housekeeping forgets a finished pod that no source has")
	}
	if !w.ShouldPodBeFinished("u") || w.CouldHaveRunningContainers("u") {
		t.Error("after the first housekeeping an unknown pod is finished")
	}
}

func TestPodThatEndsByItself(t *testing.T) {
	w, f, run := workersWorld(t)
	f.terminal = true
	w.UpdatePod(UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodCreate})
	run(20)
	want(t, f, "0 sync create ", "2 terminating", "4 terminated")
}

func TestErrorsAreTriedAgain(t *testing.T) {
	w, f, run := workersWorld(t)
	f.fail = errors.New("x")
	w.UpdatePod(UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodCreate})
	run(2)
	now := w.l.UnixNano()
	if w.Queue.Due(now+int64(8*time.Second)) || !w.Queue.Due(now+int64(15*time.Second)) {
		t.Error("not due 10 to 15 s after the error")
	}
	f.fail = nil
	// An orphan's failed end is tried again at each housekeeping.
	f.took = 0
	w.SyncKnownPods(func(types.UID) bool { return false })
	run(20)
	want(t, f, "0 sync create ", "2 terminating", "3 terminated")
}

func TestRuntimePodIsForgottenAtOnce(t *testing.T) {
	w, f, run := workersWorld(t)
	w.UpdatePod(UpdatePodOptions{RunningPod: &kubecontainer.Pod{ID: "r", Name: "x", Namespace: "y"}, UpdateType: kubetypes.SyncPodKill})
	run(5)
	want(t, f, "0 runtime pod")
	if w.Known("r") {
		t.Error("the record is still there")
	}
}

func TestKillPodNow(t *testing.T) {
	for _, tc := range []struct {
		name string
		took time.Duration
		want error
		at   float64
	}{
		{"in time", 2 * time.Second, nil, 2},
		{"too slow", time.Minute, errKillTimeout, 10},
	} {
		w, f, run := workersWorld(t)
		f.took = 0
		pod := testPod()
		w.UpdatePod(UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodCreate})
		run(1)
		f.took = tc.took
		var err error
		var took time.Duration
		w.Group.Go("evict", func(ctx context.Context) {
			start := w.l.Now()
			err = w.KillPodNow(ctx, pod, true, i64(3), func(*v1.PodStatus) {})
			took = w.l.Since(start)
		})
		run(70)
		if !errors.Is(err, tc.want) || took.Seconds() < tc.at || took.Seconds() > tc.at+1 {
			t.Errorf("%s: %v after %v", tc.name, err, took)
		}
		if (len(f.events) > 0) != (tc.want != nil) {
			t.Errorf("%s: events %v", tc.name, f.events)
		}
	}
}

// Three quick edits of a static pod: an instance that was told to end before
// it could start gives its name free, and the newest one starts.
func TestRapidlyEditedStaticPod(t *testing.T) {
	w, f, run := workersWorld(t)
	static := func(uid string) *v1.Pod {
		return testPod(version(uid), func(p *v1.Pod) {
			p.UID = types.UID(uid)
			p.Annotations = map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}
		})
	}
	w.UpdatePod(UpdatePodOptions{Pod: static("a"), UpdateType: kubetypes.SyncPodCreate})
	run(3)
	f.took = 5 * time.Second
	for i, uid := range []string{"b", "c"} {
		w.UpdatePod(UpdatePodOptions{Pod: static([]string{"a", "b"}[i]), UpdateType: kubetypes.SyncPodKill})
		w.UpdatePod(UpdatePodOptions{Pod: static(uid), UpdateType: kubetypes.SyncPodCreate})
	}
	run(4)
	if !w.ShouldPodBeFinished("b") {
		t.Error("b never started, so it is finished at once")
	}
	run(40)
	if len(w.Queue.Take(w.l.UnixNano())) == 0 {
		t.Error("c is not looked at again")
	}
	w.UpdatePod(UpdatePodOptions{Pod: static("c"), UpdateType: kubetypes.SyncPodSync})
	run(50)
	want(t, f, "0 sync create a", "3 terminating grace=30", "9 terminated", "40 sync sync c")
}
