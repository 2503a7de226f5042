package fakecri

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// Which calls a rule hits: a run of StartContainer calls, one a second, for
// the containers named; an upper-case X marks an expected hit.
func TestFaultMatching(t *testing.T) {
	boom := &FaultError{Code: "INTERNAL", Message: "boom"}
	for _, tc := range []struct {
		name  string
		fault Fault
		want  string // one letter per call
	}{
		{"method", Fault{Method: "StartContainer", Error: boom}, "XXXXXX"},
		{"any method", Fault{Method: "*", Error: boom}, "XXXXXX"},
		{"no method", Fault{Error: boom}, "XXXXXX"},
		{"pattern", Fault{Method: "*Container", Error: boom}, "XXXXXX"},
		{"another method", Fault{Method: "StopContainer", Error: boom}, "......"},
		{"pod", Fault{Pod: "default/b", Error: boom}, ".X.X.X"},
		{"pod pattern", Fault{Pod: "def*/b", Error: boom}, ".X.X.X"},
		{"another namespace", Fault{Pod: "other/b", Error: boom}, "......"},
		{"container", Fault{Container: "c2*", Error: boom}, "..X..."},
		{"image", Fault{Image: "app:1", Error: boom}, "......"},
		{"second on", Fault{Nth: 2, Error: boom}, ".XXXXX"},
		{"second and third", Fault{Nth: 2, Count: 2, Error: boom}, ".XX..."},
		{"first two", Fault{Count: 2, Error: boom}, "XX...."},
		{"first of b", Fault{Pod: "default/b", Count: 1, Error: boom}, ".X...."},
		{"window", Fault{From: 1500 * time.Millisecond, For: 2 * time.Second, Error: boom}, "..XX.."},
		{"from the third second", Fault{From: 2500 * time.Millisecond, Error: boom}, "...XXX"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.fault.Validate(); err != nil {
				t.Fatal(err)
			}
			e := run(t, Options{Images: []Image{appImage}, Latency: map[string]Range{"StartContainer": {}}}, func(e *env) {
				sbs := []string{e.sandbox("a", 0), e.sandbox("b", 0)}
				var ids []string
				for i := range 6 {
					ids = append(ids, e.create(sbs[i%2], string(rune('a'+i%2)), "c"+records.Itoa(uint32(i)), 0))
				}
				e.rt.calls.AddFault(tc.fault)
				got := ""
				for _, id := range ids {
					err := e.c.StartContainer(e.ctx, id)
					if err == nil {
						got += "."
					} else {
						e.code(err, codes.Internal)
						got += "X"
					}
					e.sleep(time.Second)
				}
				if got != tc.want {
					t.Errorf("hit %s, want %s", got, tc.want)
				}
			})
			if got, want := len(e.traced(trace.KindFault, "hit")), strings.Count(tc.want, "X"); got != want {
				t.Errorf("%d hits in the trace, want %d", got, want)
			}
		})
	}
}

func TestFaultLatencyAndHang(t *testing.T) {
	e := run(t, Options{Images: []Image{appImage}, Latency: map[string]Range{"StartContainer": {}}}, func(e *env) {
		sb := e.sandbox("a", 0)
		id := e.create(sb, "a", "main", 0)
		remove := e.rt.calls.AddFault(Fault{Method: "StartContainer", Latency: Exactly(time.Second)})
		e.rt.calls.AddFault(Fault{Latency: Range{Min: time.Second, Max: 2 * time.Second}, For: time.Minute})
		e.within(e.took(func() { e.ok(e.c.StartContainer(e.ctx, id)) }), 2*time.Second, 3*time.Second+time.Microsecond)
		remove()
		remove()
		e.sleep(time.Minute)

		e.rt.calls.AddFault(Fault{Method: "List*", Hang: true, For: 10 * time.Second})
		e.within(e.took(func() {
			_, err := e.c.ListContainers(e.ctx, nil)
			e.ok(err)
		}), 10*time.Second, 10*time.Second+time.Microsecond)
		end := e.rt.calls.AddFault(Fault{Hang: true})
		ctx, cancel := loop.WithTimeout(e.ctx, 3*time.Second)
		defer cancel()
		e.within(e.took(func() {
			_, err := e.c.ListContainers(ctx, nil)
			e.code(err, codes.DeadlineExceeded)
		}), 3*time.Second, 3*time.Second+time.Microsecond)
		e.l.Root().After(time.Second, func() { e.rt.StopDaemon() })
		_, err := e.c.ListContainers(e.ctx, nil)
		e.code(err, codes.Unavailable)
		e.rt.StartDaemon()
		e.l.Root().After(time.Second, end)
		e.within(e.took(func() { e.ok(e.c.StopContainer(e.ctx, id, 0)) }), time.Second, 2*time.Second)

		// A hanging call holds its name, and an error after it leaves nothing.
		e.rt.calls.AddFault(Fault{Method: "RunPodSandbox", Hang: true, For: 5 * time.Second, Error: &FaultError{}})
		e.g.Go("retry", func(c2 context.Context) {
			e.ok(e.l.Sleep(c2, time.Second))
			_, err := e.c.RunPodSandbox(c2, podConfig("b", 0), "")
			e.code(err, codes.AlreadyExists)
		})
		_, err = e.c.RunPodSandbox(e.ctx, podConfig("b", 0), "")
		e.code(err, codes.Unknown)
		e.sandbox("b", 0)
	})
	begins, ends := len(e.traced(trace.KindFault, "begin")), len(e.traced(trace.KindFault, "end"))
	if begins != 5 || ends != 5 {
		t.Errorf("%d faults begin and %d end in the trace, want 5", begins, ends)
	}
}

func TestFaultOnReads(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		a, b := e.sandbox("a", 0), e.sandbox("b", 0)
		e.rt.calls.AddFault(Fault{Pod: "default/a", Error: &FaultError{Code: "DeadlineExceeded", Message: "slow"}})
		_, err := e.c.PodSandboxStatus(e.ctx, a, false)
		e.code(err, codes.DeadlineExceeded)
		_, err = e.c.PodSandboxStatus(e.ctx, b, false)
		e.ok(err)
		_, err = e.c.ListPodSandbox(e.ctx, nil)
		e.ok(err)
		_, err = e.c.ListPodSandbox(e.ctx, &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{records.LabelPodUID: "uid-a"}})
		e.code(err, codes.DeadlineExceeded)
	})
}

func TestFaultValidate(t *testing.T) {
	boom := &FaultError{}
	for _, tc := range []struct {
		fault Fault
		want  string
	}{
		{Fault{Error: boom}, ""},
		{Fault{Hang: true, Method: "List*"}, ""},
		{Fault{}, "has no effect"},
		{Fault{Method: "StopContainers", Error: boom}, `method: no CRI method "StopContainers"`},
		{Fault{Error: &FaultError{Code: "Nope"}}, `error.code: no gRPC error code "Nope"`},
		{Fault{Error: &FaultError{Code: "OK"}}, "error.code"},
		{Fault{Error: boom, For: -1}, "for: negative"},
		{Fault{Error: boom, Count: -1}, "count: negative"},
	} {
		err := tc.fault.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.fault, err, tc.want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		p, s string
		want bool
	}{
		{"", "x", true}, {"*", "", true}, {"a*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"*b*", "abc", true}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"abc", "abc", true}, {"abc", "ab", false},
		{"*a*b", "aab", true}, {"web-*", "web", false}, {"a/b*", "a/b/c", true},
	} {
		if got := program.GlobMatch(tc.p, tc.s); got != tc.want {
			t.Errorf("globMatch(%q, %q) = %v", tc.p, tc.s, got)
		}
	}
}
