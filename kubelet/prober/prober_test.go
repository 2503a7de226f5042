package prober

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

func epochPlus(d time.Duration) time.Time { return loop.Epoch().Add(d) }

func rpcCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	return err
}

type exitError struct{ code int }

func (e exitError) Error() string   { return "command exited" }
func (e exitError) ExitStatus() int { return e.code }

// What the probes of each kind say, answered quickly and by a task.
func TestMessages(t *testing.T) {
	svc := "db"
	tcp := func(p intstr.IntOrString) v1.ProbeHandler {
		return v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: p}}
	}
	grpc := v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: 50051, Service: &svc}}
	for _, tc := range []struct {
		name    string
		handler v1.ProbeHandler
		setup   func(*rig)
		want    any // of liveness with failureThreshold 1; nil: stays as it was
		event   string
		at      string // of the event
	}{
		{name: "http ok", handler: httpGet(), want: results.Success},
		{name: "http 399", handler: httpGet(), setup: func(r *rig) { r.code = 399 }, event: "ProbeWarning | Liveness probe warning: Probe terminated redirects, Response body: "},
		{name: "http 404", handler: httpGet(), setup: func(r *rig) { r.code = 404 }, want: results.Failure, event: "Unhealthy | Liveness probe failed: HTTP probe failed with statuscode: 404"},
		{name: "http refused", handler: httpGet(), setup: func(r *rig) { r.err = errRefused }, want: results.Failure,
			event: `Unhealthy | Liveness probe failed: Get "http://10.1.2.3:80/": dial tcp 10.1.2.3:80: connect: connection refused`},
		{name: "http slow", handler: httpGet(), setup: func(r *rig) { r.took = 5 * time.Second }, want: results.Failure, at: "1s",
			event: `Unhealthy | Liveness probe failed: Get "http://10.1.2.3:80/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`},
		{name: "http bad port", handler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromString("web")}},
			event: `Unhealthy | Liveness probe errored and resulted in unknown state: strconv.Atoi: parsing "web": invalid syntax`},
		{name: "tcp ok", handler: tcp(intstr.FromInt32(8081)), want: results.Success},
		{name: "tcp refused", handler: tcp(intstr.FromInt32(80)), setup: func(r *rig) { r.err = errRefused }, want: results.Failure,
			event: "Unhealthy | Liveness probe failed: dial tcp 10.1.2.3:80: connect: connection refused"},
		{name: "tcp slow", handler: tcp(intstr.FromInt32(80)), setup: func(r *rig) { r.took = 3 * time.Second }, want: results.Failure, at: "1s",
			event: "Unhealthy | Liveness probe failed: dial tcp 10.1.2.3:80: i/o timeout"},
		{name: "tcp port 0", handler: tcp(intstr.FromInt32(0)), event: "Unhealthy | Liveness probe errored and resulted in unknown state: invalid port number: 0"},
		{name: "grpc ok", handler: grpc, want: results.Success},
		{name: "grpc not serving", handler: grpc, setup: func(r *rig) { r.health = "NOT_SERVING" }, want: results.Failure,
			event: `Unhealthy | Liveness probe failed: service unhealthy (responded with "NOT_SERVING")`},
		{name: "grpc refused", handler: grpc, setup: func(r *rig) { r.err = errRefused }, want: results.Failure, at: "1s",
			event: `Unhealthy | Liveness probe failed: timeout: failed to connect service "10.1.2.3:50051" within 1s: context deadline exceeded`},
		{name: "grpc slow", handler: grpc, setup: func(r *rig) { r.took = 2 * time.Second }, want: results.Failure, at: "1s",
			event: "Unhealthy | Liveness probe failed: timeout: health rpc did not complete within 1s"},
		{name: "grpc unimplemented", handler: grpc, setup: func(r *rig) { r.err = status.Error(codes.Unimplemented, "unknown service grpc.health.v1.Health") }, want: results.Failure,
			event: "Unhealthy | Liveness probe failed: error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health"},
		{name: "grpc unknown service", handler: grpc, setup: func(r *rig) { r.err = status.Error(codes.NotFound, "unknown service") }, want: results.Failure,
			event: "Unhealthy | Liveness probe failed: error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"},
		{name: "exec ok", handler: command(), want: results.Success},
		{name: "exec exits", handler: command(), setup: func(r *rig) {
			r.exec = func(context.Context, time.Duration) ([]byte, error) { return []byte("no\n"), exitError{3} }
		}, want: results.Failure, event: "Unhealthy | Liveness probe failed: no\n"},
		{name: "no handler", event: "Unhealthy | Liveness probe errored and resulted in unknown state: missing probe handler for p_default(u):c"},
	} {
		for _, quick := range []bool{true, false} {
			r := newRig(t)
			r.quick = quick
			if tc.setup != nil {
				tc.setup(r)
			}
			r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(tc.handler, func(p *v1.Probe) { p.FailureThreshold = 1 })}}
			r.running("1", true)
			r.m.AddPod(r.pod)
			r.to(9 * time.Second)
			want := tc.want
			if want == nil {
				want = results.Success
			}
			r.wantResult(r.m.Liveness, "1", want)
			at := tc.at
			if at == "" {
				at = "0s"
			}
			events, _ := r.take()
			wantEvents := at + " | spec.containers{c} | Warning | " + tc.event
			if tc.event == "" {
				wantEvents = ""
			}
			if events != wantEvents {
				t.Errorf("%s (quick %v): events\n%s\nwant\n%s", tc.name, quick, events, wantEvents)
			}
		}
	}
}

// The request is made once, and again when the pod's address changes.
func TestRequestFollowsPodIP(t *testing.T) {
	r := newRig(t)
	r.quick = false
	r.pod.Spec.Containers = []v1.Container{{Name: "c", Ports: []v1.ContainerPort{{Name: "web", ContainerPort: 8080}},
		LivenessProbe: probeSpec(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "healthz?full=1", Port: intstr.FromString("web"), Scheme: v1.URISchemeHTTPS}})}}
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(5 * time.Second)
	r.running("1", true)
	r.status[uid].PodIP = "fd00::7"
	r.to(15 * time.Second)
	r.wantRuns("0s 1 https://10.1.2.3:8080/healthz?full=1", "10s 1 https://[fd00::7]:8080/healthz?full=1")
}

// Probes without headers of their own share one set; those that have some keep theirs, whichever
// is made first.
func TestRequestHeaders(t *testing.T) {
	with := func(value string) *v1.Probe {
		h := httpGet()
		if value != "" {
			h.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "X-Who", Value: value}}
		}
		return probeSpec(h)
	}
	for _, tc := range []struct{ readiness, liveness string }{{"", "a"}, {"a", ""}, {"a", "b"}, {"", ""}} {
		r := newRig(t)
		r.quick = false
		r.pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: with(tc.readiness), LivenessProbe: with(tc.liveness)}}
		r.running("1", true)
		r.m.AddPod(r.pod)
		r.to(11 * time.Second) // two of each
		got := map[string]int{}
		for _, h := range r.seen {
			got[h.Get("X-Who")]++
			if h.Get("User-Agent") != "kube-probe/1.36" {
				t.Errorf("%v: User-Agent %q", tc, h.Get("User-Agent"))
			}
		}
		want := map[string]int{}
		want[tc.readiness] += 2
		want[tc.liveness] += 2
		if !maps.Equal(got, want) {
			t.Errorf("%v: headers %v, want %v", tc, got, want)
		}
	}
}

// A kubelet that dies leaves nothing of its probes.
func TestKilledKubelet(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(command(), every(1))}}
	r.exec = func(ctx context.Context, _ time.Duration) ([]byte, error) { return nil, r.l.Sleep(ctx, time.Hour) }
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(time.Second)
	r.g.Kill()
	r.to(time.Minute)
	if len(r.runs) != 1 || len(r.l.Waiting()) != 0 {
		t.Errorf("probes %v, waiting %v", r.runs, r.l.Waiting())
	}
}

// An idle HTTP probe of a stated program, a tick and its answer.
func BenchmarkTick(b *testing.B) {
	r := newRig(b)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(httpGet(), every(1))}}
	r.took = time.Millisecond
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(time.Second / 2)
	before := r.m.Probes()
	b.ReportAllocs()
	b.ResetTimer()
	r.to(time.Second/2 + time.Duration(b.N)*time.Second)
	b.StopTimer()
	if n := r.m.Probes() - before; n != uint64(b.N) {
		b.Errorf("%d probes, want %d", n, b.N)
	}
}
