package allocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checkpointtest"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
)

type files = checkpointtest.Files

// node has room for a number of millicores.
type node struct {
	l      *loop.Loop
	g      *loop.Group
	m      *Manager
	files  files
	room   int64
	pods   []*v1.Pod
	ready  bool
	synced []string
	events []string
	status *status.Manager
}

type noPods struct{}

func (noPods) GetPodByUID(types.UID) (*v1.Pod, bool)          { return nil, false }
func (noPods) GetMirrorPodByPod(*v1.Pod) (*v1.Pod, bool)      { return nil, false }
func (noPods) TranslatePodUID(uid types.UID) types.UID        { return uid }
func (noPods) MirrorUID(types.UID) (types.UID, bool)          { return "", false }
func (noPods) PodCouldHaveRunningContainers(pod *v1.Pod) bool { return false }

func (n *node) Admit(_ context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	sum := milli(attrs.Pod)
	for _, o := range attrs.OtherPods() {
		sum += milli(o)
	}
	if sum > n.room {
		return lifecycle.PodAdmitResult{Reason: "OutOfcpu", Message: fmt.Sprintf("%d of %d", sum, n.room)}
	}
	return lifecycle.PodAdmitResult{Admit: true}
}

func milli(p *v1.Pod) (sum int64) {
	for i := range p.Spec.Containers {
		sum += p.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
	}
	return sum
}

func newNode(t *testing.T, room int64, on files) *node {
	t.Helper()
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	n := &node{l: l, g: l.NewGroup("kubelet"), files: on, room: room, ready: true}
	n.status = status.New(status.Options{Loop: l, PodManager: noPods{}, DeletionSafety: noPods{}})
	m, err := New(Options{
		Loop: l, Group: n.g, FS: n.files, Dir: "/k", Handlers: lifecycle.PodAdmitHandlers{n}, Status: n.status,
		ActivePods: func() []*v1.Pod { return slices.Clone(n.pods) },
		PodByUID: func(uid types.UID) (*v1.Pod, bool) {
			i := slices.IndexFunc(n.pods, func(p *v1.Pod) bool { return p.UID == uid })
			if i < 0 {
				return nil, false
			}
			return n.pods[i], true
		},
		Admitted:     func() []*v1.Pod { return n.pods },
		SourcesReady: func() bool { return n.ready },
		Sync:         func(p *v1.Pod) { n.synced = append(n.synced, p.Name) },
		Event:        func(_ *v1.Pod, _, reason, message string) { n.events = append(n.events, reason+" "+message) },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.m = m
	m.Run()
	return n
}

func web(name, cpu string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	p.Spec.Containers = []v1.Container{{Name: "app", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func priority(v int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &v } }

func (n *node) add(t *testing.T, p *v1.Pod) lifecycle.PodAdmitResult {
	t.Helper()
	r := n.m.AddPod(context.Background(), func() []*v1.Pod { return n.m.AllocatedPods(slices.Clone(n.pods)) }, p)
	if r.Admit {
		n.pods = append(n.pods, p)
	}
	return r
}

// update replaces a pod's spec, as the sync loop does.
func (n *node) update(p *v1.Pod) {
	i := slices.IndexFunc(n.pods, func(o *v1.Pod) bool { return o.UID == p.UID })
	old := n.pods[i]
	n.pods[i] = p
	p.Generation = old.Generation + 1
	if !n.m.SpecUpdated(old, p) {
		return
	}
	if _, differs := n.m.UpdatePodFromAllocation(p); differs {
		n.m.PushPendingResize(p.UID)
		n.m.RetryPendingResizes(context.Background(), "pod_updated")
	} else {
		n.m.ClearPendingResize(p)
	}
}

func (n *node) allocated(t *testing.T, name string) int64 {
	t.Helper()
	for _, p := range n.pods {
		if p.Name == name {
			a, _ := n.m.UpdatePodFromAllocation(p)
			return milli(a)
		}
	}
	t.Fatalf("no pod %s", name)
	return 0
}

func (n *node) remove(name string) {
	n.pods = slices.DeleteFunc(n.pods, func(p *v1.Pod) bool { return p.Name == name })
	n.m.RemovePod(types.UID(name))
	n.m.RetryPendingResizes(context.Background(), "pods_removed")
}

func TestResize(t *testing.T) {
	n := newNode(t, 1000, files{})
	if r := n.add(t, web("a", "300m")); !r.Admit {
		t.Fatalf("%+v", r)
	}
	n.add(t, web("b", "300m"))
	if n.m.State().Len() != 0 {
		t.Error("pods with what they ask for have entries")
	}
	n.update(web("a", "600m"))
	if got := n.allocated(t, "a"); got != 600 {
		t.Errorf("a has %d", got)
	}
	if _, p := n.status.PodResizeConditions("a"); p == nil || p.Reason != "" || p.ObservedGeneration != 2 {
		t.Errorf("in progress: %+v", p)
	}
	n.update(web("b", "500m"))
	if got := n.allocated(t, "b"); got != 300 {
		t.Errorf("b has %d", got)
	}
	if p, _ := n.status.PodResizeConditions("b"); p == nil || p.Reason != v1.PodReasonDeferred || p.Message != "1100 of 1000" {
		t.Errorf("pending: %+v", p)
	}
	n.m.RetryPendingResizes(context.Background(), "again")
	want := []string{
		`ResizeStarted Pod resize started: {"containers":[{"name":"app","resources":{"requests":{"cpu":"600m"}}}],"generation":2}`,
		`ResizeDeferred Pod resize Deferred: {"containers":[{"name":"app","resources":{"requests":{"cpu":"500m"}}}],"generation":2,"error":"1100 of 1000"}`,
	}
	if !slices.Equal(n.events, want) {
		t.Errorf("events\n%s", strings.Join(n.events, "\n"))
	}
	if !slices.Equal(n.synced, []string{"a", "b"}) {
		t.Errorf("synced %v", n.synced)
	}
	n.remove("a")
	if got := n.allocated(t, "b"); got != 500 {
		t.Errorf("b has %d after a is gone", got)
	}
	if n.m.HasPendingResizes() {
		t.Error("still pending")
	}
	p := n.pods[0]
	n.m.Actuated(p, "app", p.Spec.Containers[0].Resources)
	if n.m.State().Len() != 0 {
		t.Error("the entry of a pod that has all it asks for stays")
	}
}

func TestWithdrawnResize(t *testing.T) {
	n := newNode(t, 1000, files{})
	n.add(t, web("a", "300m"))
	n.update(web("a", "3"))
	n.update(web("a", "300m"))
	if p, _ := n.status.PodResizeConditions("a"); p != nil {
		t.Errorf("pending: %+v", p)
	}
	n.m.RetryPendingResizes(context.Background(), "again")
	if n.m.State().Len() != 0 || n.m.HasPendingResizes() {
		t.Error("something is left")
	}
}

func TestInfeasible(t *testing.T) {
	n := newNode(t, 10000, files{})
	n.m.o.Limits.StaticCPUs = true
	guaranteed := func(p *v1.Pod) {
		r := &p.Spec.Containers[0].Resources
		r.Requests[v1.ResourceMemory] = resource.MustParse("1Gi")
		r.Limits = r.Requests.DeepCopy()
	}
	n.add(t, web("a", "1", guaranteed))
	n.update(web("a", "2", guaranteed))
	p, _ := n.status.PodResizeConditions("a")
	if p == nil || p.Reason != v1.PodReasonInfeasible || p.Message != `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"` {
		t.Errorf("pending: %+v", p)
	}
	if n.m.HasPendingResizes() || len(n.events) != 1 || !strings.HasPrefix(n.events[0], "ResizeInfeasible Pod resize Infeasible: {") {
		t.Errorf("pending %v, events %v", n.m.pending, n.events)
	}
}

// TestOrder: what shrinks goes first, then the higher priority.
func TestOrder(t *testing.T) {
	n := newNode(t, 1000, files{})
	n.add(t, web("low", "200m", priority(1)))
	n.add(t, web("high", "200m", priority(9)))
	n.add(t, web("big", "500m", priority(0)))
	n.room = 0 // nothing fits
	n.update(web("low", "500m", priority(1)))
	n.update(web("high", "500m", priority(9)))
	n.update(web("big", "400m", priority(0)))
	if want := []types.UID{"big", "high", "low"}; !slices.Equal(n.m.pending, want) {
		t.Errorf("order %v", n.m.pending)
	}
	n.room = 1100
	n.synced = nil
	n.m.RetryPendingResizes(context.Background(), "again")
	if n.allocated(t, "big") != 400 || n.allocated(t, "high") != 500 || n.allocated(t, "low") != 200 {
		t.Errorf("big %d, high %d, low %d", n.allocated(t, "big"), n.allocated(t, "high"), n.allocated(t, "low"))
	}
}

// TestClock: pending resizes are tried again every 3 minutes after the last
// try, and every 30 seconds while the sources are not ready.
func TestClock(t *testing.T) {
	n := newNode(t, 1000, files{})
	n.add(t, web("a", "300m"))
	n.l.RunUntil(n.l.Now().Add(time.Minute))
	n.update(web("a", "2"))
	start := n.l.Now()
	n.room = 5000
	n.l.RunUntil(start.Add(3*time.Minute - time.Second))
	if n.allocated(t, "a") != 300 {
		t.Error("tried too early")
	}
	n.l.RunUntil(start.Add(3*time.Minute + time.Second))
	if n.allocated(t, "a") != 2000 {
		t.Error("not tried")
	}
	n.ready = false
	n.update(web("a", "3"))
	start = n.l.Now()
	n.l.RunUntil(start.Add(20 * time.Second))
	n.ready = true
	n.l.RunUntil(start.Add(31 * time.Second))
	if n.allocated(t, "a") != 3000 {
		t.Error("not tried when the sources were ready")
	}
}

// TestRestart: another kubelet on the same files goes on with what was
// allocated, whatever the spec says by then.
func TestRestart(t *testing.T) {
	disk := files{}
	n := newNode(t, 1000, disk)
	n.add(t, web("a", "300m"))
	n.add(t, web("b", "300m"))
	n.g.Kill()
	again := newNode(t, 1000, disk)
	again.add(t, web("b", "300m"))
	a := web("a", "900m") // resized while no kubelet ran
	if r := again.add(t, a); !r.Admit {
		t.Fatalf("%+v", r)
	}
	if got := again.allocated(t, "a"); got != 300 {
		t.Errorf("a has %d", got)
	}
	again.m.RetryPendingResizes(context.Background(), "pods_added")
	if p, _ := again.status.PodResizeConditions("a"); p == nil || p.Reason != v1.PodReasonDeferred {
		t.Errorf("pending: %+v", p)
	}
	again.g.Kill()
	disk["/k/"+state.AllocatedFile] = []byte(`{"data":"{}","checksum":1}`)
	if _, err := New(Options{Loop: n.l, FS: disk, Dir: "/k"}); err == nil || !strings.Contains(err.Error(), "please drain this node and delete the allocation checkpoint file \"/k/allocated_pods_state\"") {
		t.Errorf("a corrupt file: %v", err)
	}
}
