package apiserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// What a request needs is used again, but not while the server still has to do
// with it: answers of requests that were given up, or refused, meet nobody else's.
func TestExchangesAreUsedAgain(t *testing.T) {
	r := newRig(t, 2, Options{})
	for i := range 6 {
		pod := testPod(fmt.Sprint("p", i))
		if _, err := r.srv.Create(pod); err != nil {
			t.Fatal(err)
		}
	}
	r.srv.AddFault(wire.Fault{Verb: "patch", Latency: time.Minute})                      // answered too late
	r.srv.AddFault(wire.Fault{Verb: "get", Name: "p5", Latency: 3 * time.Second})        // given up before
	r.srv.AddFault(wire.Fault{Verb: "get", Name: "p4", Code: 500, Latency: time.Second}) // refused
	status := &v1.PodStatus{Phase: v1.PodRunning}
	for i := range 4 {
		r.g.Go(fmt.Sprint("task ", i), func(ctx context.Context) {
			for n := range 40 {
				name := fmt.Sprint("p", (i+n)%6)
				switch {
				case n == 3:
					if _, err := r.c.PatchPodStatus(ctx, "default", fmt.Sprint("p", i), "", &v1.PodStatus{}, status, nil); err == nil {
						t.Errorf("a patch was answered")
					}
					continue
				case name == "p5":
					ctx, cancel := loop.WithTimeout(ctx, time.Second)
					if _, err := r.c.GetPod(ctx, "default", name); err == nil {
						t.Errorf("p5 was answered")
					}
					cancel()
					continue
				}
				pod, err := r.c.GetPod(ctx, "default", name)
				if name == "p4" != (err != nil) || err == nil && pod.Name != name {
					t.Errorf("asked for %s: %v, %v", name, pod, err)
				}
			}
			r.note("done")
		})
	}
	if err := r.e.RunUntil(r.node.Now().Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if len(r.log) != 4 || r.c.idles > maxIdle {
		t.Errorf("%d tasks ended, %d exchanges idle", len(r.log), r.c.idles)
	}
	for i := range 4 {
		if got := r.srv.Pod("default", fmt.Sprint("p", i)); got.Status.Phase != v1.PodRunning {
			t.Errorf("p%d is %s: a patch that was given up was not handled", i, got.Status.Phase)
		}
	}
	for x := r.c.idle; x != nil; x = x.next {
		if x.v != nil || x.run != nil || x.args != (args{}) || x.req != (wire.Request{}) {
			t.Errorf("an idle exchange keeps %+v", x)
		}
	}
}
