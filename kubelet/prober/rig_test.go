package prober

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/ground/loop"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
)

// rig is a Manager with a pod "p" whose status, network and commands are the
// test's.
type rig struct {
	t      testing.TB
	l      *loop.Loop
	g      *loop.Group
	m      *Manager
	pod    *v1.Pod
	status map[types.UID]*v1.PodStatus
	events []string
	runs   []string
	// answers
	quick  bool
	code   int
	err    error // of connections
	health string
	took   time.Duration
	exec   func(ctx context.Context, timeout time.Duration) ([]byte, error)
	seen   []http.Header // of requests
}

const uid = types.UID("u")

// newRig makes a rig whose kubelet starts an hour before the test.
func newRig(t testing.TB) *rig {
	r := &rig{t: t, l: loop.New(loop.Options{}), status: map[types.UID]*v1.PodStatus{}, quick: true, code: 200, health: "SERVING"}
	r.g = r.l.NewGroup("kubelet")
	r.newManager()
	t.Cleanup(r.l.Close)
	r.at(time.Hour)
	r.pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: uid}}
	r.pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	return r
}

func (r *rig) newManager() {
	r.m = New(Options{Loop: r.l, Group: r.g, Statuses: r, Runner: r, Network: r, Recorder: r})
}

func (r *rig) GetPodStatus(uid types.UID) (*v1.PodStatus, bool) { s, ok := r.status[uid]; return s, ok }

func (r *rig) Event(ref *v1.ObjectReference, eventtype, reason, message string) {
	r.events = append(r.events, strings.Join([]string{r.now(), ref.FieldPath, eventtype, reason, message}, " | "))
}

// now is the time since the start of the test.
func (r *rig) now() string {
	return r.l.Since(loop.Epoch().Add(time.Hour)).Round(time.Millisecond).String()
}

func (r *rig) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	r.runs = append(r.runs, r.now()+" "+id+" "+strings.Join(command, " "))
	if r.exec == nil {
		return nil, nil
	}
	return r.exec(ctx, timeout)
}

func (r *rig) HTTP(ctx context.Context, id string, req *http.Request) (int, http.Header, []byte, error) {
	r.runs = append(r.runs, r.now()+" "+id+" "+req.URL.String())
	r.seen = append(r.seen, req.Header)
	if err := r.l.Sleep(ctx, r.took); err != nil {
		return 0, nil, nil, err
	}
	return r.code, nil, nil, r.err
}

func (r *rig) DialTCP(ctx context.Context, id, host string, port int) error {
	r.runs = append(r.runs, fmt.Sprint(r.now(), " ", id, " ", host, ":", port))
	if err := r.l.Sleep(ctx, r.took); err != nil {
		return err
	}
	return r.err
}

func (r *rig) GRPCHealth(ctx context.Context, id, host string, port int, service string) (string, error) {
	r.runs = append(r.runs, fmt.Sprint(r.now(), " ", id, " ", host, ":", port, "/", service))
	if err := r.l.Sleep(ctx, r.took); err != nil {
		return "", err
	}
	return r.health, r.err
}

func (r *rig) QuickHTTP(id string, req *http.Request) (a HTTPAnswer, ok bool) {
	if !r.quick {
		return a, false
	}
	r.note("http")
	return HTTPAnswer{Response: httpprobe.Response{Status: r.code}, Err: r.err, Took: r.took}, true
}

func (r *rig) QuickTCP(id, host string, port int) (a TCPAnswer, ok bool) {
	if !r.quick {
		return a, false
	}
	r.note("tcp")
	return TCPAnswer{Err: r.err, Took: r.took}, true
}

func (r *rig) QuickGRPC(id, host string, port int, service string) (a GRPCAnswer, ok bool) {
	if !r.quick {
		return a, false
	}
	r.note("grpc")
	return GRPCAnswer{Status: r.health, Err: r.err, Took: r.took}, true
}

func (r *rig) note(what string) {
	if _, bench := r.t.(*testing.B); !bench {
		r.runs = append(r.runs, r.now()+" "+what)
	}
}

// at runs to a time after the epoch.
func (r *rig) at(d time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

// to runs to a time after the start of the test.
func (r *rig) to(d time.Duration) {
	r.t.Helper()
	r.at(time.Hour + d)
}

// running gives the pod a status in which container c runs, with that ID, since
// now.
func (r *rig) running(id string, started bool) {
	r.set(v1.ContainerStatus{Name: "c", ContainerID: "containerd://" + id, Started: &started,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: r.l.Now().Truncate(time.Second)}}}})
}

func (r *rig) exited(id string, code int32) {
	no := false
	r.set(v1.ContainerStatus{Name: "c", ContainerID: "containerd://" + id, Started: &no,
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}})
}

func (r *rig) set(c v1.ContainerStatus) {
	s := &v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.1.2.3"}
	s.ContainerStatuses = []v1.ContainerStatus{c}
	for i := range r.pod.Spec.InitContainers {
		if r.pod.Spec.InitContainers[i].Name == c.Name {
			s.ContainerStatuses, s.InitContainerStatuses = nil, s.ContainerStatuses
		}
	}
	r.status[uid] = s
}

func (r *rig) take() (events, runs string) {
	events, runs = strings.Join(r.events, "\n"), strings.Join(r.runs, "\n")
	r.events, r.runs = nil, nil
	return events, runs
}

func (r *rig) wantRuns(want ...string) {
	r.t.Helper()
	if _, got := r.take(); got != strings.Join(want, "\n") {
		r.t.Errorf("probes\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// probeSpec is a probe with the API's defaults.
func probeSpec(h v1.ProbeHandler, change ...func(*v1.Probe)) *v1.Probe {
	p := &v1.Probe{ProbeHandler: h, TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3}
	for _, fn := range change {
		fn(p)
	}
	return p
}

func httpGet() v1.ProbeHandler {
	return v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}
}

func command() v1.ProbeHandler {
	return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"check"}}}
}

func every(seconds int32) func(*v1.Probe) { return func(p *v1.Probe) { p.PeriodSeconds = seconds } }

var errRefused = errors.New("dial tcp 10.1.2.3:80: connect: connection refused")
