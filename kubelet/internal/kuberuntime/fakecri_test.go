package kuberuntime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a runtime, a manager, a PLEG and one pod's worker: it syncs on every
// event, and again when an error says so or after ten seconds.
type node struct {
	t     *testing.T
	l     *loop.Loop
	g     *loop.Group
	rt    *fakecri.Runtime
	m     *kuberuntime.Manager
	p     *pleg.Elided
	cache *kubecontainer.Cache
	b     *kubecontainer.Backoff
	pod   *v1.Pod
	last  time.Time
	calls []string
	event []string
}

func (n *node) Wants(k trace.Kind, _ string, _ []trace.Field) bool { return k == trace.KindCRI }

func (n *node) Take(r *trace.Record) {
	if r.Kind != trace.KindCRI {
		return
	}
	at := time.Duration(r.At - loop.Epoch().UnixNano())
	text := fmt.Sprintf("%.1f %s", at.Seconds(), r.Verb)
	for _, f := range r.Fields {
		if f.Key == "attempt" || f.Key == "timeout" || f.Key == "error" {
			text += " " + f.Key + "=" + f.Value
		}
	}
	n.calls = append(n.calls, text)
}

func (n *node) Event(ref *v1.ObjectReference, _, reason, message string) {
	n.event = append(n.event, ref.FieldPath+" "+reason+" "+message)
}

func newNode(t *testing.T, pod *v1.Pod, programs ...fakecri.Program) *node {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	n := &node{t: t, l: l, g: l.NewGroup("kubelet"), pod: pod, b: kubecontainer.NewBackoff(kubecontainer.BackoffBase, kubecontainer.BackoffMax), cache: kubecontainer.NewCache()}
	n.rt = fakecri.New(fakecri.Options{Loop: l, Recorder: trace.NewRecorder(l, "n", n), Programs: programs})
	n.rt.StartDaemon()
	client := n.rt.Client(n.g)
	var err error
	n.m, err = kuberuntime.New(kuberuntime.Options{Loop: l, Group: n.g, RuntimeService: client, ImageService: client, Recorder: n, Images: images.Options{QPS: 5, Burst: 10}})
	if err != nil {
		t.Fatal(err)
	}
	var version loop.Version
	client.OnChange(version.Grow)
	n.p = pleg.Elide(pleg.New(pleg.Options{Loop: l, Runtime: n.m, Cache: n.cache}), client, &version)
	n.p.Start(n.g)
	n.g.Go("worker", n.work)
	return n
}

func (n *node) work(ctx context.Context) {
	for n.pod.DeletionTimestamp == nil {
		status, err := n.cache.GetNewerThan(ctx, n.pod.UID, n.last)
		if err != nil {
			n.t.Error(err)
		}
		res := n.m.SyncPod(ctx, n.pod, status, nil, n.b, false)
		n.last = n.l.Now()
		wait := time.Minute
		if err := res.Error(); err != nil {
			wait = 10 * time.Second
			var b *kubecontainer.BackoffError
			if errors.As(err, &b) {
				wait = b.Expiry.Sub(n.last)
			}
		} else if len(res.SyncResults) > 0 {
			n.p.RequestRelist(n.pod.UID)
		}
		n.waitForEvent(ctx, wait)
	}
}

func (n *node) waitForEvent(ctx context.Context, d time.Duration) {
	ctx, cancel := loop.WithTimeout(ctx, d)
	defer cancel()
	if _, err := n.p.Events().Get(ctx); err != nil {
		return
	}
	for _, ok := n.p.Events().TryGet(); ok; {
		_, ok = n.p.Events().TryGet()
	}
}

func (n *node) run(until time.Duration) {
	n.t.Helper()
	if err := n.l.RunUntil(loop.Epoch().Add(until)); err != nil {
		n.t.Fatal(err)
	}
}

// seconds lists when a method was called, in whole seconds.
func (n *node) seconds(verb string) string {
	var out []string
	for _, c := range n.calls {
		f := strings.Fields(c)
		if f[1] == verb {
			out = append(out, strings.SplitN(f[0], ".", 2)[0])
		}
	}
	return strings.Join(out, " ")
}

func simplePod(policy v1.RestartPolicy, grace int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "uid-1"},
		Spec: v1.PodSpec{
			RestartPolicy: policy, TerminationGracePeriodSeconds: &grace, SecurityContext: &v1.PodSecurityContext{},
			Containers: []v1.Container{{Name: "main", Image: "registry.local/app:1", ImagePullPolicy: v1.PullIfNotPresent}},
		},
	}
}

// The recorded minimum series of crashloop-always: restarts at once, then
// after 10, 20, 40, 80 and 160 s of back-off.
func TestCrashLoopOverFakeCRI(t *testing.T) {
	n := newNode(t, simplePod(v1.RestartPolicyAlways, 30), fakecri.Program{Behaviour: fakecri.Behaviour{RunFor: fakecri.Exactly(50 * time.Millisecond), ExitCode: 1}})
	n.run(400 * time.Second)
	starts := strings.Fields(n.seconds("StartContainer"))
	if len(starts) != 7 {
		t.Fatalf("starts at %v\n%s", starts, strings.Join(n.calls, "\n"))
	}
	var prev float64
	for i, least := range []float64{0, 0, 10, 20, 40, 80, 160} {
		var at float64
		_, _ = fmt.Sscan(starts[i], &at)
		if gap := at - prev; gap < least || i > 0 && gap > least+3 {
			t.Errorf("start %d comes %v s after the one before", i, gap)
		}
		prev = at
	}
	backOffs := 0
	for _, e := range n.event {
		if e == "spec.containers{main} BackOff Back-off restarting failed container main in pod p_default(uid-1)" {
			backOffs++
		}
	}
	if backOffs < 5 {
		t.Errorf("%d BackOff events", backOffs)
	}
}

func TestRunToCompletionOverFakeCRI(t *testing.T) {
	n := newNode(t, simplePod(v1.RestartPolicyNever, 30), fakecri.Program{Behaviour: fakecri.Behaviour{RunFor: fakecri.Exactly(time.Second)}})
	n.run(30 * time.Second)
	var verbs []string
	for _, c := range n.calls {
		verbs = append(verbs, strings.Fields(c)[1])
	}
	if got, want := strings.Join(verbs, " "), "RunPodSandbox PullImage CreateContainer StartContainer StopPodSandbox"; !strings.HasPrefix(got, want) {
		t.Errorf("%s", strings.Join(n.calls, "\n"))
	}
	s, err := n.cache.Get("uid-1")
	if err != nil || len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State != kubecontainer.StateExited || s.ContainerStatuses[0].Reason != "Completed" || s.ContainerStatuses[0].Name != "main" {
		t.Errorf("%v %+v", err, s)
	}
	if n.p.Healthy() != nil || n.p.Stats().Elided == 0 {
		t.Errorf("%v %+v", n.p.Healthy(), n.p.Stats())
	}
}

// As recorded in ignores-term and delete-grace-1: the kill takes the grace
// period, at least 2 s.
func TestIgnoredTermOverFakeCRI(t *testing.T) {
	for _, tc := range []struct {
		override *int64
		want     time.Duration
	}{{nil, 5 * time.Second}, {new(int64), 2 * time.Second}} {
		n := newNode(t, simplePod(v1.RestartPolicyAlways, 5), fakecri.Program{Behaviour: fakecri.Behaviour{OnTerm: fakecri.OnTerm{Ignore: true}}})
		n.run(10 * time.Second)
		gone := *n.pod
		gone.DeletionTimestamp = &metav1.Time{Time: n.l.Now()}
		n.pod = &gone
		var took time.Duration
		n.g.Go("kill", func(ctx context.Context) {
			s, err := n.cache.Get("uid-1")
			if err != nil {
				t.Error(err)
			}
			start := n.l.Now()
			if err := n.m.KillPod(ctx, n.pod, kubecontainer.RunningPod(s), tc.override); err != nil {
				t.Error(err)
			}
			took = n.l.Since(start)
		})
		n.run(40 * time.Second)
		if took < tc.want || took > tc.want+time.Second {
			t.Errorf("took %v, not %v", took, tc.want)
		}
		s, _ := n.cache.Get("uid-1")
		if c := s.ContainerStatuses[0]; c.State != kubecontainer.StateExited || c.ExitCode != 137 {
			t.Errorf("%+v", c)
		}
	}
}

func TestContainerStoppedOutsideOverFakeCRI(t *testing.T) {
	n := newNode(t, simplePod(v1.RestartPolicyAlways, 30))
	n.run(15 * time.Second)
	if err := n.rt.ExitContainerOutside("default/p", "main", 137); err != nil {
		t.Fatal(err)
	}
	n.run(30 * time.Second)
	if got := len(strings.Fields(n.seconds("StartContainer"))); got != 2 {
		t.Errorf("%s", strings.Join(n.calls, "\n"))
	}
	n.g.Go("gc", func(ctx context.Context) {
		if err := n.m.GarbageCollect(ctx, kuberuntime.GCPolicy{MaxPerPodContainer: 0, MaxContainers: -1}, true, false); err != nil {
			t.Error(err)
		}
	})
	n.run(40 * time.Second)
	s, _ := n.cache.Get("uid-1")
	if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("%+v", s.ContainerStatuses)
	}
}

// A daemon that is down: relists fail, the PLEG is unhealthy after three
// minutes, and well again after the daemon is back.
func TestDaemonDownOverFakeCRI(t *testing.T) {
	n := newNode(t, simplePod(v1.RestartPolicyAlways, 30))
	n.run(10 * time.Second)
	n.rt.StopDaemon()
	n.run(3 * time.Minute)
	if err := n.p.Healthy(); err != nil {
		t.Error(err)
	}
	n.run(4 * time.Minute)
	if err := n.p.Healthy(); err == nil {
		t.Error("healthy without a daemon")
	}
	n.rt.StartDaemon()
	n.run(4*time.Minute + 10*time.Second)
	if err := n.p.Healthy(); err != nil {
		t.Error(err)
	}
}

// What it takes to start a pod on a node with 30 of them, the runtime's share
// included.
func BenchmarkStart30Pods(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		l := loop.New(loop.Options{Name: "n"})
		g := l.NewGroup("kubelet")
		rt := fakecri.New(fakecri.Options{Loop: l, Images: []fakecri.Image{{Name: "registry.local/app:1", Present: true}}})
		rt.StartDaemon()
		client := rt.Client(g)
		m, err := kuberuntime.New(kuberuntime.Options{Loop: l, Group: g, RuntimeService: client, ImageService: client})
		if err != nil {
			b.Fatal(err)
		}
		p := pleg.New(pleg.Options{Loop: l, Runtime: m, Cache: kubecontainer.NewCache()})
		var version loop.Version
		client.OnChange(version.Grow)
		pleg.Elide(p, client, &version).Start(g)
		for i := range 30 {
			pod := simplePod(v1.RestartPolicyAlways, 30)
			pod.Name = fmt.Sprintf("p%d", i)
			pod.UID = types.UID(pod.Name)
			g.Go("start", func(ctx context.Context) {
				res := m.SyncPod(ctx, pod, &kubecontainer.PodStatus{ID: pod.UID}, nil, nil, false)
				if err := res.Error(); err != nil {
					b.Error(err)
				}
				p.RequestRelist(pod.UID)
			})
		}
		if err := l.RunUntil(loop.Epoch().Add(10 * time.Second)); err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
