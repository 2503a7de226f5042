package pleg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// fakeEvents streams what a test says, in one stream after the other.
type fakeEvents struct {
	g     *loop.Group
	told  func(*runtimeapi.ContainerEventResponse)
	ended *loop.Event
	err   error
	down  bool
	calls int
}

func (f *fakeEvents) ContainerEvents(ctx context.Context, connected func(), told func(*runtimeapi.ContainerEventResponse)) error {
	f.calls++
	if f.down {
		return errors.New("connection refused")
	}
	connected()
	f.told, f.ended = told, &loop.Event{}
	if err := f.ended.Wait(ctx); err != nil {
		return err
	}
	return f.err
}

// eventedRig is an Evented beside its Generic, of which the transcript tells.
type eventedRig struct {
	l     *loop.Loop
	rt    *fakeRuntime
	f     *fakeEvents
	p     *Generic
	e     *Evented
	cache *kubecontainer.Cache
	log   []string
}

const (
	created = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
	started = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	stopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	deleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
)

// newEvented starts both, and runs do at times after the start.
func newEvented(t *testing.T, until time.Duration, do map[time.Duration]func(*eventedRig)) *eventedRig {
	t.Helper()
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	r := &eventedRig{l: l, cache: kubecontainer.NewCache()}
	r.rt = &fakeRuntime{l: l, pods: map[types.UID]kubecontainer.State{}, gen: 1}
	g := l.NewGroup("kubelet")
	r.f = &fakeEvents{g: g}
	logged := func(format string, args ...any) { r.note("log " + fmt.Sprintf(format, args...)) }
	r.p = New(Options{
		Loop: l, Runtime: r.rt, Cache: r.cache, Log: logged,
		RelistPeriod: EventedRelistPeriod, RelistThreshold: EventedRelistThreshold, Shared: true,
	})
	r.e = NewEvented(EventedOptions{Service: r.f, Generate: generate, Generic: r.p, Relister: func() Relister { return r.p }})
	r.p.Start(g)
	r.e.Start(g)
	g.Go("sync-loop", func(ctx context.Context) {
		for {
			ev, err := r.p.Events().Get(ctx)
			if err != nil {
				return
			}
			r.note(fmt.Sprintf("%s %s %s", ev.ID, ev.Type, ev.Data))
		}
	})
	for at, fn := range do { //drydock:unordered at times of their own
		g.After(at, func() { fn(r) })
	}
	if err := l.RunUntil(loop.Epoch().Add(until)); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *eventedRig) note(what string) {
	r.log = append(r.log, fmt.Sprintf("%v %s", r.l.Since(loop.Epoch()).Truncate(time.Millisecond), what))
}

// tell has the runtime tell of a container c of a pod, or of its sandbox s, so long after it
// happened.
func (r *eventedRig) tell(kind runtimeapi.ContainerEventType, uid, id string, state runtimeapi.ContainerState, late time.Duration) {
	r.f.told(&runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: r.l.Now().Add(-late).UnixNano(),
		PodSandboxStatus:   &runtimeapi.PodSandboxStatus{Id: "s", Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid}, State: runtimeapi.PodSandboxState_SANDBOX_READY},
		ContainersStatuses: []*runtimeapi.ContainerStatus{{Id: "c", State: state}},
	})
}

func generate(ev *runtimeapi.ContainerEventResponse) *kubecontainer.PodStatus {
	s := &kubecontainer.PodStatus{ID: types.UID(ev.PodSandboxStatus.Metadata.Uid), SandboxStatuses: []*runtimeapi.PodSandboxStatus{ev.PodSandboxStatus}}
	for _, c := range ev.ContainersStatuses {
		state := map[runtimeapi.ContainerState]kubecontainer.State{
			runtimeapi.ContainerState_CONTAINER_CREATED: kubecontainer.StateCreated,
			runtimeapi.ContainerState_CONTAINER_RUNNING: kubecontainer.StateRunning,
			runtimeapi.ContainerState_CONTAINER_EXITED:  kubecontainer.StateExited,
		}[c.State]
		s.ContainerStatuses = append(s.ContainerStatuses, &kubecontainer.Status{ID: c.Id, State: state})
	}
	return s
}

// state is that of the container of a pod in the cache.
func (r *eventedRig) state(uid types.UID) string {
	s, err := r.cache.Get(uid)
	if err != nil || len(s.ContainerStatuses) == 0 {
		return "none"
	}
	return s.ContainerStatuses[0].State.String()
}

func TestEvented(t *testing.T) {
	const running, exited = runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED
	by := func(r *eventedRig) string {
		m := map[string]int{}
		r.e.AddContainers(m)
		return fmt.Sprint(m)
	}
	r := newEvented(t, 30*time.Second, map[time.Duration]func(*eventedRig){
		1 * time.Second: func(r *eventedRig) {
			r.tell(created, "u", "c", runtimeapi.ContainerState_CONTAINER_CREATED, 0)
			r.note(r.state("u"))
		},
		2 * time.Second: func(r *eventedRig) { r.tell(started, "u", "c", running, 0); r.note(r.state("u") + by(r)) },
		3 * time.Second: func(r *eventedRig) { r.tell(stopped, "u", "c", exited, 0); r.note(r.state("u") + by(r)) },
		// What happened before the last event that is known tells nothing.
		4 * time.Second: func(r *eventedRig) { r.tell(started, "u", "c", running, 2*time.Second); r.note(r.state("u")) },
		6 * time.Second: func(r *eventedRig) { r.tell(deleted, "u", "c", exited, 0); r.note(r.state("u")) },
		7 * time.Second: func(r *eventedRig) { r.tell(deleted, "u", "s", exited, 0); r.note(r.state("u")) },
		8 * time.Second: func(r *eventedRig) {
			r.f.told(&runtimeapi.ContainerEventResponse{ContainerId: "d", ContainerEventType: started})
		},
		// Who waits for what no event brings goes on with the time of the cache.
		9 * time.Second: func(r *eventedRig) {
			r.cache.Notify("other", r.l.Now(), func(*kubecontainer.PodStatus, error) { r.note("served") })
		},
	})
	want := []string{
		"1s created", "2s running" + "map[running:1]", "2s u ContainerStarted c", "3s exitedmap[exited:1]", "3s u ContainerDied c",
		"4s exited", "6s exited", "6s u ContainerDied c", "6s u ContainerRemoved c",
		"7s none", "7s u ContainerDied s", "7s u ContainerRemoved s",
		"8s log Evented PLEG: received an event of container d without its pod sandbox", "10s served",
	}
	if !slices.Equal(r.log, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(r.log, "\n"), strings.Join(want, "\n"))
	}
	if n := r.p.Stats().Relists; n != 1 {
		t.Errorf("%d relists", n)
	}
}

// A relist that listed before an event, and inspects after it, knows more.
func TestEventedBesideRelists(t *testing.T) {
	r := newEvented(t, 301*time.Second, map[time.Duration]func(*eventedRig){
		10 * time.Second: func(r *eventedRig) { r.rt.set("u", kubecontainer.StateRunning) }, // no event tells of it
		20 * time.Second: func(r *eventedRig) { r.note(r.state("u")) },
		// From the future, as a machine's clock has it: the cache keeps it.
		30 * time.Second: func(r *eventedRig) {
			r.tell(started, "v", "c", runtimeapi.ContainerState_CONTAINER_RUNNING, -time.Hour)
			r.rt.set("v", kubecontainer.StateExited)
		},
	})
	want := []string{"20s none", "30s v ContainerStarted c", "5m0s u ContainerStarted u-c"}
	if !slices.Equal(r.log, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(r.log, "\n"), strings.Join(want, "\n"))
	}
	if s := r.state("v"); s != "running" {
		t.Errorf("v is %s in the cache", s)
	}
}

// What a relist inspects after an event is newer than that, though it listed before it.
func TestEventedWhileARelistLists(t *testing.T) {
	r := newEvented(t, 310*time.Second, map[time.Duration]func(*eventedRig){
		299 * time.Second: func(r *eventedRig) {
			r.rt.set("w", kubecontainer.StateExited)
			r.rt.latency = 2 * time.Second
		},
		301 * time.Second: func(r *eventedRig) {
			r.tell(started, "w", "c", runtimeapi.ContainerState_CONTAINER_RUNNING, 0)
			r.note(r.state("w"))
		},
	})
	want := []string{"5m1s running", "5m1s w ContainerStarted c", "5m2s w ContainerDied w-c"}
	// The fake's inspections name no containers.
	if got := r.state("w"); got != "none" || !slices.Equal(r.log, want) {
		t.Errorf("w is %s; got:\n%s\nwant:\n%s", got, strings.Join(r.log, "\n"), strings.Join(want, "\n"))
	}
}

func TestEventedFallsBack(t *testing.T) {
	r := newEvented(t, 30*time.Second, map[time.Duration]func(*eventedRig){
		5 * time.Second: func(r *eventedRig) { r.f.err = errors.New("EOF"); r.f.ended.Fire() },
		6 * time.Second: func(r *eventedRig) { r.note(fmt.Sprint(r.f.calls, " calls, ", r.p.Stats().Relists, " relists")) },
		10 * time.Second: func(r *eventedRig) {
			r.f.down = true
			r.f.ended.Fire()
		},
		10*time.Second + time.Millisecond: func(r *eventedRig) {
			r.note(fmt.Sprint(r.f.calls, " calls, ", r.p.Stats().Relists, " relists"))
		},
	})
	want := []string{
		"5s log Evented PLEG: Failed to get container events, retrying: EOF", "6s 2 calls, 2 relists",
		"10s log Evented PLEG: Failed to get container events, retrying: EOF",
	}
	for range 3 {
		want = append(want, "10s log Evented PLEG: Failed to get container events, retrying: connection refused")
	}
	// Five streams, each with a relist after its end, and then those of each second.
	want = append(want, "10s log Fall back to Generic PLEG relisting since Evented PLEG is not working", "10.001s 5 calls, 7 relists")
	if !slices.Equal(r.log, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(r.log, "\n"), strings.Join(want, "\n"))
	}
	if s := r.p.Stats(); s.Relists != 26 || s.Period != time.Second {
		t.Errorf("%+v", s)
	}
	if r.p.o.RelistThreshold != DefaultRelistThreshold {
		t.Errorf("the threshold is %v", r.p.o.RelistThreshold)
	}
}

func TestEventedHealth(t *testing.T) {
	r := newEvented(t, time.Second, nil)
	if err := r.e.Healthy(); err != nil || r.e.Seen().IsZero() {
		t.Errorf("%v, seen at %v", err, r.e.Seen())
	}
	for range eventCapacity {
		r.p.send(PodLifecycleEvent{})
	}
	if err := r.e.Healthy(); err == nil || err.Error() != "EventedPLEG: pleg event channel capacity is full with 1000 events" {
		t.Errorf("with a full queue: %v", err)
	}
}
