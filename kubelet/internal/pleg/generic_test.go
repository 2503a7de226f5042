package pleg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

func TestComputeEvents(t *testing.T) {
	states := map[string]kubecontainer.State{
		"running": kubecontainer.StateRunning, "exited": kubecontainer.StateExited,
		"unknown": kubecontainer.StateUnknown, "created": kubecontainer.StateCreated,
	}
	pod := func(state string) *kubecontainer.Pod {
		p := &kubecontainer.Pod{ID: "u"}
		if s, ok := states[state]; ok {
			p.Containers = []*kubecontainer.Container{{ID: "c", State: s}}
		}
		return p
	}
	for _, tc := range []struct{ was, is, want string }{
		{"running", "running", ""},
		{"unknown", "created", ""},
		{"none", "running", "ContainerStarted"},
		{"exited", "running", "ContainerStarted"},
		{"created", "running", "ContainerStarted"},
		{"none", "exited", "ContainerDied"},
		{"running", "exited", "ContainerDied"},
		{"unknown", "exited", "ContainerDied"},
		{"none", "created", "ContainerChanged"},
		{"running", "unknown", "ContainerChanged"},
		{"exited", "none", "ContainerRemoved"},
		{"running", "none", "ContainerDied,ContainerRemoved"},
		{"unknown", "none", "ContainerDied,ContainerRemoved"},
		{"none", "none", ""},
	} {
		var got []string
		for _, e := range computeEvents("u", pod(tc.was), pod(tc.is)) {
			if e.ID != "u" || e.Data != "c" {
				t.Errorf("%+v", e)
			}
			got = append(got, string(e.Type))
		}
		if s := strings.Join(got, ","); s != tc.want {
			t.Errorf("%s to %s: %s", tc.was, tc.is, s)
		}
	}
}

func TestComputeEventsOrder(t *testing.T) {
	c := func(id string, s kubecontainer.State) *kubecontainer.Container {
		return &kubecontainer.Container{ID: id, State: s}
	}
	was := &kubecontainer.Pod{
		Containers: []*kubecontainer.Container{c("a", kubecontainer.StateRunning)},
		Sandboxes:  []*kubecontainer.Container{c("s", kubecontainer.StateRunning)},
	}
	is := &kubecontainer.Pod{
		Containers: []*kubecontainer.Container{c("b", kubecontainer.StateRunning), c("a", kubecontainer.StateExited)},
		Sandboxes:  []*kubecontainer.Container{c("t", kubecontainer.StateRunning), c("s", kubecontainer.StateExited)},
	}
	var got []string
	for _, e := range computeEvents("u", was, is) {
		got = append(got, e.Data+":"+string(e.Type))
	}
	want := []string{"a:ContainerDied", "s:ContainerDied", "b:ContainerStarted", "t:ContainerStarted"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// fakeRuntime lists pods of one container each.
type fakeRuntime struct {
	version    loop.Version
	l          *loop.Loop
	latency    time.Duration
	pods       map[types.UID]kubecontainer.State
	order      []types.UID
	gen        uint64
	listErr    error
	inspectErr error
	noIP       bool
	calls      []string
}

func (f *fakeRuntime) set(uid types.UID, s kubecontainer.State) {
	if _, ok := f.pods[uid]; !ok {
		f.order = append(f.order, uid)
	}
	f.pods[uid] = s
	f.change()
}

func (f *fakeRuntime) Generation() uint64 { return f.gen }

func (f *fakeRuntime) change() {
	f.gen++
	f.version.Grow()
}

func (f *fakeRuntime) note(format string, args ...any) {
	f.calls = append(f.calls, fmt.Sprintf("%v ", f.l.Since(loop.Epoch()).Truncate(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (f *fakeRuntime) pod(uid types.UID) *kubecontainer.Pod {
	s, ok := f.pods[uid]
	if !ok {
		return nil
	}
	return &kubecontainer.Pod{ID: uid, Containers: []*kubecontainer.Container{{ID: string(uid) + "-c", State: s}}}
}

func (f *fakeRuntime) ListPods(ctx context.Context, all bool) ([]*kubecontainer.Pod, error) {
	f.note("list")
	var out []*kubecontainer.Pod
	for _, uid := range f.order {
		if p := f.pod(uid); p != nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *kubecontainer.Pod) int { return cmp.Compare(a.ID, b.ID) })
	return out, errors.Join(f.l.Sleep(ctx, f.latency), f.listErr)
}

func (f *fakeRuntime) GetPod(ctx context.Context, uid types.UID) (*kubecontainer.Pod, error) {
	f.note("list %s", uid)
	p := f.pod(uid)
	return p, f.l.Sleep(ctx, f.latency)
}

func (f *fakeRuntime) GetPodStatus(ctx context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	f.note("inspect %s", pod.ID)
	if err := errors.Join(f.l.Yield(ctx), f.inspectErr); err != nil {
		return nil, err
	}
	s := &kubecontainer.PodStatus{ID: pod.ID, SandboxStatuses: []*runtimeapi.PodSandboxStatus{{State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}}
	if !f.noIP {
		s.IPs = []string{"10.0.0.1"}
	}
	return s, nil
}

type rig struct {
	l *loop.Loop
	f *fakeRuntime
	c *kubecontainer.Cache
	p generator
	g *loop.Group
}

// generator is a Generic, elided or not.
type generator interface {
	Start(g *loop.Group)
	Events() *loop.Queue[PodLifecycleEvent]
	Healthy() error
	LastRelist() time.Time
	RequestRelist(uid types.UID)
	RequestReinspect(uid types.UID)
	Stats() Stats
}

func newRig(t *testing.T, elide bool) *rig {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	r := &rig{l: l, f: &fakeRuntime{l: l, pods: map[types.UID]kubecontainer.State{}}, c: kubecontainer.NewCache(), g: l.NewGroup("kubelet")}
	p := New(Options{Loop: l, Runtime: r.f, Cache: r.c})
	r.p = p
	if elide {
		r.p = Elide(p, r.f, &r.f.version)
	}
	return r
}

func (r *rig) run(t *testing.T, until time.Duration) {
	t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(until)); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) events() string {
	var out []string
	for {
		e, ok := r.p.Events().TryGet()
		if !ok {
			return strings.Join(out, " ")
		}
		out = append(out, string(e.ID)+":"+string(e.Type))
	}
}

func (r *rig) takeCalls() string {
	s := strings.Join(r.f.calls, ", ")
	r.f.calls = nil
	return s
}

func TestRelistBeginsAPeriodAfterTheLastEnded(t *testing.T) {
	r := newRig(t, false)
	r.f.latency = 200 * time.Millisecond
	r.p.Start(r.g)
	r.run(t, 3*time.Second)
	if got, want := r.takeCalls(), "0s list, 1.2s list, 2.4s list"; got != want {
		t.Errorf("calls: %s", got)
	}
	if err := r.p.Healthy(); err != nil {
		t.Error(err)
	}
	if got := r.p.LastRelist().Sub(loop.Epoch()).Round(time.Millisecond); got != 2400*time.Millisecond {
		t.Errorf("the last relist counts from %v, not from its start", got)
	}
}

// A relist of one pod that finds nothing new says when that was.
func TestRelistOnDemandOfAnUnchangedPod(t *testing.T) {
	r := newRig(t, false)
	r.f.set("a", kubecontainer.StateRunning)
	r.p.Start(r.g)
	r.run(t, 300*time.Millisecond)
	r.events()
	r.takeCalls()
	served := false
	r.c.Notify("a", r.l.Now(), func(*kubecontainer.PodStatus, error) { served = true })
	r.p.RequestRelist("a")
	r.run(t, 500*time.Millisecond)
	if got := r.takeCalls(); got != "300ms list a" || !served || r.events() != "" {
		t.Errorf("calls: %s, served %v", got, served)
	}
}

func TestRelistTellsWhatChanged(t *testing.T) {
	r := newRig(t, true)
	r.f.set("b", kubecontainer.StateRunning)
	r.f.set("a", kubecontainer.StateExited)
	r.p.Start(r.g)
	r.run(t, 500*time.Millisecond)
	if got, want := r.events(), "a:ContainerDied b:ContainerStarted"; got != want {
		t.Errorf("events: %s", got)
	}
	r.takeCalls()
	r.f.set("b", kubecontainer.StateExited)
	r.run(t, 1500*time.Millisecond)
	if got, want := r.takeCalls(), "1s list, 1s inspect b"; got != want {
		t.Errorf("calls: %s", got)
	}
	delete(r.f.pods, "a")
	r.f.change()
	r.f.noIP = true
	r.f.set("b", kubecontainer.StateRunning)
	r.run(t, 2500*time.Millisecond)
	if got, want := r.events(), "b:ContainerDied a:ContainerRemoved b:ContainerStarted"; got != want {
		t.Errorf("events: %s", got)
	}
	if r.c.Len() != 1 {
		t.Error("the pod that is gone is still in the cache")
	}
	// No READY sandbox and no IPs: the last known ones stay.
	if s, _ := r.c.Get("b"); len(s.IPs) != 1 {
		t.Errorf("IPs %v", s.IPs)
	}
}

func TestUnchangedRelistIsElidedButSeen(t *testing.T) {
	for _, elide := range []bool{false, true} {
		r := newRig(t, elide)
		r.f.set("a", kubecontainer.StateRunning)
		r.p.Start(r.g)
		r.run(t, 2500*time.Millisecond)
		var at []time.Duration
		served := func(*kubecontainer.PodStatus, error) {
			at = append(at, r.l.Since(loop.Epoch()).Truncate(time.Millisecond))
		}
		r.c.Notify("a", r.l.Now(), served)
		r.c.Notify("unknown", r.l.Now(), served)
		r.run(t, 10500*time.Millisecond)
		if want := []time.Duration{3 * time.Second, 3 * time.Second}; !reflect.DeepEqual(at, want) {
			t.Errorf("elide %v: served %v", elide, at)
		}
		if got := r.l.Since(r.p.LastRelist()).Round(time.Millisecond); got != 500*time.Millisecond {
			t.Errorf("elide %v: last relist %v ago", elide, got)
		}
		s := r.p.Stats()
		if elide && (s.Relists != 1 || s.Elided != 10) || !elide && s.Relists != 11 {
			t.Errorf("elide %v: %+v", elide, s)
		}
	}
}

func TestGenerationZeroMeansUnknown(t *testing.T) {
	r := newRig(t, true)
	r.p.Start(r.g)
	r.run(t, 2500*time.Millisecond)
	if s := r.p.Stats(); s.Relists != 3 || s.Elided != 0 {
		t.Errorf("%+v", s)
	}
}

func TestInspectionErrorIsCachedAndTriedAgain(t *testing.T) {
	r := newRig(t, true)
	r.f.set("a", kubecontainer.StateRunning)
	r.f.inspectErr = errors.New("boom")
	r.p.Start(r.g)
	r.run(t, 1500*time.Millisecond)
	if got, want := r.takeCalls(), "0s list, 0s inspect a, 1s list, 1s inspect a"; got != want {
		t.Errorf("calls: %s", got)
	}
	if _, err := r.c.Get("a"); err == nil || r.events() != "" {
		t.Errorf("cached %v", err)
	}
	r.f.inspectErr = nil
	r.run(t, 4500*time.Millisecond)
	if got, want := r.events(), "a:ContainerStarted"; got != want {
		t.Errorf("events: %s", got)
	}
	if s := r.p.Stats(); s.Relists != 3 || s.Elided != 2 {
		t.Errorf("%+v", s)
	}
}

func TestReinspect(t *testing.T) {
	r := newRig(t, true)
	r.f.set("a", kubecontainer.StateRunning)
	r.p.Start(r.g)
	r.run(t, 500*time.Millisecond)
	r.events()
	r.takeCalls()
	r.p.RequestReinspect("a")
	r.p.RequestReinspect("gone") // must not stand in the way of eliding
	r.run(t, 4500*time.Millisecond)
	if got, want := r.takeCalls(), "1s list, 1s inspect a"; got != want {
		t.Errorf("calls: %s", got)
	}
	if got, want := r.events(), "a:PodSync"; got != want {
		t.Errorf("events: %s", got)
	}
}

// The error of a pod that went before it was ever inspected goes with it.
func TestGoneBeforeItsFirstInspection(t *testing.T) {
	r := newRig(t, true)
	r.f.inspectErr = errors.New("boom")
	r.f.set("a", kubecontainer.StateRunning)
	r.p.Start(r.g)
	r.run(t, 1500*time.Millisecond)
	if _, err := r.c.Get("a"); err == nil {
		t.Fatal("the inspection did not fail")
	}
	delete(r.f.pods, "a")
	r.f.change()
	r.run(t, 3500*time.Millisecond)
	if _, err := r.c.Get("a"); err != nil || r.c.Len() != 0 {
		t.Errorf("the cache has %d pods; error %v", r.c.Len(), err)
	}
}

func TestRelistOnDemand(t *testing.T) {
	r := newRig(t, true)
	r.p.Start(r.g)
	r.f.gen = 5
	r.f.version.Grow()
	r.run(t, 300*time.Millisecond)
	r.takeCalls()
	r.f.set("a", kubecontainer.StateRunning)
	asked := r.l.Now()
	served := false
	r.c.Notify("a", asked, func(s *kubecontainer.PodStatus, _ error) { served = true })
	r.p.RequestRelist("a")
	r.p.RequestRelist("none")
	r.run(t, 500*time.Millisecond)
	if got, want := r.takeCalls(), "300ms list a, 300ms inspect a, 300ms list none"; got != want {
		t.Errorf("calls: %s", got)
	}
	if got, want := r.events(), "a:ContainerStarted"; got != want || !served {
		t.Errorf("events: %s, served %v", got, served)
	}
	// The global relist finds the same and stays silent.
	r.run(t, 1500*time.Millisecond)
	if got := r.events(); got != "" || r.takeCalls() != "1s list" {
		t.Errorf("events: %s", got)
	}
	// Nothing changed since: no call, but the pod counts as observed.
	served = false
	r.c.Notify("a", r.l.Now(), func(s *kubecontainer.PodStatus, _ error) { served = true })
	r.p.RequestRelist("a")
	r.run(t, 1600*time.Millisecond)
	if got := r.takeCalls(); got != "" || !served {
		t.Errorf("calls: %s, served %v", got, served)
	}
}

func TestHealthy(t *testing.T) {
	r := newRig(t, true)
	r.f.listErr = errors.New("down")
	r.p.Start(r.g)
	r.run(t, time.Second)
	if err := r.p.Healthy(); err == nil || err.Error() != "pleg has yet to be successful" {
		t.Error(err)
	}
	r.f.listErr = nil
	r.run(t, 2500*time.Millisecond)
	r.f.listErr = errors.New("down")
	r.f.change()
	last := r.p.LastRelist()
	r.run(t, last.Add(3*time.Minute).Sub(loop.Epoch()))
	if err := r.p.Healthy(); err != nil {
		t.Error(err)
	}
	r.run(t, 4*time.Minute)
	if err := r.p.Healthy(); err == nil || !strings.HasPrefix(err.Error(), "pleg was last seen active 3m") || !strings.HasSuffix(err.Error(), "; threshold is 3m0s") {
		t.Error(err)
	}
}

func TestFullEventQueueDrops(t *testing.T) {
	r := newRig(t, true)
	for i := range eventCapacity + 5 {
		r.f.set(types.UID(fmt.Sprintf("%05d", i)), kubecontainer.StateRunning)
	}
	r.p.Start(r.g)
	r.run(t, 500*time.Millisecond)
	if s := r.p.Stats(); s.DroppedEvents != 5 || r.p.Events().Len() != eventCapacity {
		t.Errorf("%+v, %d", s, r.p.Events().Len())
	}
}

func BenchmarkElidedRelist(b *testing.B) {
	l := loop.New(loop.Options{Name: "n"})
	defer l.Close()
	f := &fakeRuntime{l: l, pods: map[types.UID]kubecontainer.State{}}
	f.set("a", kubecontainer.StateRunning)
	p := Elide(New(Options{Loop: l, Runtime: f, Cache: kubecontainer.NewCache()}), f, &f.version)
	p.Start(l.Root())
	if err := l.RunUntil(loop.Epoch().Add(time.Second / 2)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := l.RunUntil(l.Now().Add(time.Duration(b.N) * time.Second)); err != nil {
		b.Fatal(err)
	}
}

// A relist that can find nothing has no timer, and leaves behind what it would.
func TestParks(t *testing.T) {
	r := newRig(t, true)
	r.f.set("u", kubecontainer.StateRunning)
	r.p.Start(r.g)
	r.run(t, 3500*time.Millisecond)
	steps := r.l.Steps()
	r.takeCalls()
	r.run(t, 100500*time.Millisecond)
	if took := r.l.Steps() - steps; took != 0 {
		t.Errorf("%d steps while nothing happens", took)
	}
	if got := r.p.LastRelist().Sub(loop.Epoch()).Truncate(time.Millisecond); got != 100*time.Second || r.p.Healthy() != nil {
		t.Errorf("last relist %v, %v", got, r.p.Healthy())
	}
	if s := r.p.Stats(); s.Elided != 100 || s.Relists != 1 {
		t.Errorf("%+v", s)
	}
	if !r.c.SeenSince(loop.Epoch().Add(99*time.Second)) || r.c.SeenSince(loop.Epoch().Add(100500*time.Millisecond)) {
		t.Error("the cache was not kept up to date")
	}
	var seen time.Duration
	r.c.Notify("u", r.l.Now(), func(*kubecontainer.PodStatus, error) { seen = r.l.Since(loop.Epoch()).Truncate(time.Millisecond) })
	r.run(t, 105500*time.Millisecond)
	if seen != 101*time.Second {
		t.Errorf("who waits is served at %v", seen)
	}
	r.f.set("u", kubecontainer.StateExited)
	r.run(t, 107500*time.Millisecond)
	if got := r.takeCalls(); !strings.HasPrefix(got, "1m46s list") {
		t.Errorf("calls after a change: %s", got)
	}
}
