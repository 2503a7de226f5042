package record

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

type fakeAPI struct {
	l      *loop.Loop
	calls  []string
	times  []time.Duration
	stored map[string]*v1.Event
	err    error
}

func (f *fakeAPI) call(ctx context.Context, what string, e *v1.Event) error {
	if err := f.l.Sleep(ctx, time.Millisecond); err != nil {
		return err
	}
	f.calls = append(f.calls, fmt.Sprintf("%s %s x%d", what, e.Reason, e.Count))
	f.times = append(f.times, f.l.Now().Sub(loop.Epoch()))
	return f.err
}

func (f *fakeAPI) CreateEvent(ctx context.Context, e *v1.Event) (*v1.Event, error) {
	if err := f.call(ctx, "create", e); err != nil {
		return nil, err
	}
	if f.stored[e.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name)
	}
	kept := *e // the event is the recorder's
	f.stored[e.Name] = &kept
	return e, nil
}

func (f *fakeAPI) PatchEvent(ctx context.Context, base, e *v1.Event) (*v1.Event, error) {
	if err := f.call(ctx, "patch", e); err != nil {
		return nil, err
	}
	if f.stored[e.Name] == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, e.Name)
	}
	kept := *e // the event is the recorder's
	f.stored[e.Name] = &kept
	return e, nil
}

func newRecorder(t testing.TB, opts Options) (*Recorder, *fakeAPI, *loop.Group) {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	api := &fakeAPI{l: l, stored: map[string]*v1.Event{}}
	opts.Loop, opts.Client, opts.Host = l, api, "n"
	r := New(opts)
	g := l.NewGroup("kubelet")
	r.Start(g)
	return r, api, g
}

func run(t testing.TB, l *loop.Loop, d time.Duration) {
	t.Helper()
	if err := l.RunUntil(l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

var podRef = &v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "default", Name: "p", UID: "u"}

func TestCreateAndCount(t *testing.T) {
	r, api, _ := newRecorder(t, Options{})
	node := &v1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "n"}
	r.Event(node, v1.EventTypeNormal, "A", "a")
	r.Event(node, v1.EventTypeNormal, "B", "b") // in the same step: another name
	r.Event(node, v1.EventTypeNormal, "A", "a")
	r.Event(node, "Odd", "A", "a")
	run(t, api.l, time.Second)
	if got := strings.Join(api.calls, ", "); got != "create A x1, create B x1, patch A x2" || len(api.stored) != 2 {
		t.Fatalf("%s; %d stored", got, len(api.stored))
	}
	for name, e := range api.stored {
		if e.Namespace != "default" || e.Source.Component != "kubelet" || e.Source.Host != "n" || e.ReportingController != "kubelet" || name[:2] != "n." {
			t.Errorf("%+v", e)
		}
	}
	if w := api.l.Waiting(); len(w) != 0 {
		t.Errorf("an idle recorder has tasks: %v", w)
	}
	// the object is gone (events expire): counted, but created anew
	clear(api.stored)
	api.calls = nil
	r.Event(node, v1.EventTypeNormal, "A", "a")
	run(t, api.l, time.Second)
	if got := strings.Join(api.calls, ", "); got != "patch A x3, create A x3" {
		t.Error(got)
	}
}

func TestRetries(t *testing.T) {
	r, api, _ := newRecorder(t, Options{})
	api.err = errors.New("connection refused")
	r.Event(podRef, v1.EventTypeNormal, "A", "a")
	r.Event(podRef, v1.EventTypeNormal, "B", "b")
	run(t, api.l, 115*time.Second)
	var times []time.Duration
	for i, c := range api.calls {
		if c == "create A x1" {
			times = append(times, api.times[i])
		}
	}
	if len(times) != 12 {
		t.Errorf("%d tries, want 12: %v", len(times), api.calls)
	}
	for i := 2; i < len(times); i++ {
		if d := (times[i] - times[i-1]).Round(10 * time.Millisecond); d != 10*time.Second {
			t.Errorf("try %d came after %s", i, d)
		}
	}
	api.err = apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("no"))
	api.calls = nil
	r.Event(podRef, v1.EventTypeNormal, "C", "c")
	run(t, api.l, 5*time.Minute)
	if got := strings.Join(api.calls, ", "); got != "create B x1, create C x1" {
		t.Errorf("refused events are tried once: %s", got)
	}
}

func TestQueueAndRate(t *testing.T) {
	r, api, _ := newRecorder(t, Options{QPS: 50, Burst: 100})
	for i := range 1100 {
		ref := *podRef
		ref.Name = fmt.Sprintf("p%d", i)
		r.Event(&ref, v1.EventTypeNormal, "A", "a")
	}
	if r.Dropped() != 100 {
		t.Errorf("dropped %d", r.Dropped())
	}
	run(t, api.l, 2*time.Second)
	if n := len(api.calls); n < 195 || n > 202 {
		t.Errorf("%d events in 2 s, want about 100 + 2*50", n)
	}
	run(t, api.l, 60*time.Second)
	if len(api.calls) != 1000 {
		t.Errorf("%d events", len(api.calls))
	}
}

func TestSpamFilter(t *testing.T) {
	r, api, _ := newRecorder(t, Options{})
	for range 40 {
		r.Event(podRef, v1.EventTypeWarning, "BackOff", "again")
	}
	run(t, api.l, time.Second)
	if len(api.calls) != 25 {
		t.Errorf("%d writes, want a burst of 25", len(api.calls))
	}
	run(t, api.l, 301*time.Second)
	r.Event(podRef, v1.EventTypeWarning, "BackOff", "again")
	run(t, api.l, time.Second)
	if last := api.calls[len(api.calls)-1]; last != "patch BackOff x41" {
		t.Error(last)
	}
}

// TestMemory holds three events each of 30 pods to well under 1 KB per pod.
func TestMemory(t *testing.T) {
	const nodes, pods = 50, 30
	corr := make([]correlator, nodes)
	at := loop.Epoch()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range corr {
		corr[n] = newCorrelator()
		for p := range pods {
			for _, reason := range []string{"Pulled", "Created", "Started"} {
				at = at.Add(time.Millisecond)
				e := testEvent(fmt.Sprintf("pod-%d", p), string(types.UID(fmt.Sprint(n))), "spec.containers{a}", v1.EventTypeNormal, reason, "m", at)
				corr[n].correlate(e, at.UnixNano(), at.UnixNano())
				corr[n].update(e)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / (nodes * pods)
	t.Logf("%.0f bytes per pod", per)
	if per > 600 {
		t.Errorf("%.0f bytes per pod", per)
	}
	runtime.KeepAlive(corr)
}

func BenchmarkEvent(b *testing.B) {
	r, api, _ := newRecorder(b, Options{})
	refs := make([]*v1.ObjectReference, 1000)
	for i := range refs {
		ref := *podRef
		ref.Name = fmt.Sprintf("p%d", i)
		refs[i] = &ref
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		api.calls, api.times = api.calls[:0], api.times[:0]
		r.Event(refs[i%1000], v1.EventTypeNormal, "A", "a")
		i++
		run(b, api.l, 100*time.Millisecond)
	}
}
