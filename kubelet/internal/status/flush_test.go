package status

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

func TestFlush(t *testing.T) {
	m, w, l := newManager(t)
	w.mayRun = false
	p := w.add(testPod(v1.RestartPolicyAlways, "a"))
	set(m, p, "a running")
	w.run(t, time.Second)
	start, took, result := l.Now(), time.Duration(0), error(nil)
	flush := func(limit time.Duration, pods ...types.UID) {
		took, start = 0, l.Now()
		l.NewGroup("shutdown").Go("flush", func(ctx context.Context) {
			ctx, cancel := loop.WithTimeout(ctx, limit)
			defer cancel()
			result = m.Flush(ctx, pods)
			took = l.Since(start).Round(10 * time.Millisecond)
		})
	}
	want := func(what string, d time.Duration, err error) {
		t.Helper()
		if took != d || !errors.Is(result, err) {
			t.Errorf("%s: took %v, %v; want %v, %v", what, took, result, d, err)
		}
	}
	flush(3*time.Second, p.UID)
	w.run(t, time.Minute)
	want("a pod that has not ended", 3*time.Second, context.DeadlineExceeded)

	flush(time.Minute, p.UID, "unknown")
	w.fail["patch"] = errors.New("too many requests")
	w.run(t, 500*time.Millisecond)
	m.TerminatePod(p)
	w.run(t, time.Second)
	delete(w.fail, "patch")
	w.run(t, 10*time.Second)
	want("a patch that fails, and goes through a second later", 2020*time.Millisecond, nil)
	if s := w.api["p"].Status; s.Phase != v1.PodFailed {
		t.Errorf("the API has %s", s.Phase)
	}
	flush(time.Minute, p.UID)
	w.run(t, time.Second)
	want("a pod whose end is known", 0, nil)
}

// TestNewerEndCounts has a pod's containers stop while the status from before is
// on its way: Failed, as a shutdown has it, is not what the pod ends with.
func TestNewerEndCounts(t *testing.T) {
	m, w, l := newManager(t)
	p := w.add(testPod(v1.RestartPolicyAlways, "a"))
	set(m, p, "a running")
	w.run(t, time.Second)
	phase := func(phase v1.PodPhase) {
		s, _ := m.GetPodStatus(p.UID)
		next := *s
		next.Phase = phase
		m.SetPodStatus(p, next)
	}
	w.take()
	phase(v1.PodFailed)
	w.run(t, 5*time.Millisecond) // its pod is being read
	w.mayRun = false
	phase(v1.PodSucceeded)
	for l.Now().Before(t0.Add(2 * time.Second)) {
		w.run(t, 5*time.Millisecond)
		if w.api["p"].Status.Phase == v1.PodFailed {
			t.Fatal("the API has seen the phase Failed")
		}
	}
	if got := w.api["p"].Status.Phase; got != v1.PodSucceeded {
		t.Errorf("the pod is %s", got)
	}
}
