package nodestatus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/loop"
)

var nodes = schema.GroupResource{Resource: "nodes"}

// world is a fake API with an informer, and the sources of one node.
type world struct {
	l        *loop.Loop
	api      *v1.Node
	informed *v1.Node
	calls    []string
	patches  []*v1.Node
	events   []string
	fail     map[string]error
	opts     Options

	runtimeErr, networkErr error
	memory                 bool
	machine                *Machine
	resources              *Resources
	versions               int
	elide                  bool
}

func (w *world) call(ctx context.Context, verb string) error {
	w.calls = append(w.calls, verb)
	if err := w.l.Sleep(ctx, time.Millisecond); err != nil {
		return err
	}
	return w.fail[verb]
}

func (w *world) inform(n *v1.Node) {
	w.api = n
	w.l.Root().After(5*time.Millisecond, func() { w.informed = n })
}

func (w *world) CreateNode(ctx context.Context, n *v1.Node) (*v1.Node, error) {
	if err := w.call(ctx, "create"); err != nil {
		return nil, err
	}
	if w.api != nil {
		return nil, apierrors.NewAlreadyExists(nodes, n.Name)
	}
	w.inform(n)
	return n, nil
}

func (w *world) GetNode(ctx context.Context, name string) (*v1.Node, error) {
	if err := w.call(ctx, "get"); err != nil {
		return nil, err
	}
	if w.api == nil {
		return nil, apierrors.NewNotFound(nodes, name)
	}
	return w.api, nil
}

func (w *world) PatchNode(ctx context.Context, name string, base, n *v1.Node) (*v1.Node, error) {
	if err := w.call(ctx, "patch"); err != nil {
		return nil, err
	}
	next := *n
	next.Spec = w.api.Spec
	w.patches = append(w.patches, &next)
	w.inform(&next)
	return &next, nil
}

func (w *world) Event(ref *v1.ObjectReference, typ, reason, message string) {
	if ref.Kind != "Node" || ref.UID != "" || ref.Name != "n" {
		panic("wrong object")
	}
	w.events = append(w.events, reason)
	if strings.HasPrefix(reason, "Node") && message != "Node n status is now: "+reason {
		panic(message)
	}
}

func (w *world) take() (calls, events string) {
	calls, events = strings.Join(w.calls, " "), strings.Join(w.events, " ")
	w.calls, w.events = nil, nil
	return calls, events
}

func (w *world) run(t testing.TB, d time.Duration) {
	t.Helper()
	if err := w.l.RunUntil(w.l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

func newWorld(t testing.TB) *world {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	w := &world{l: l, fail: map[string]error{}, elide: true}
	w.machine = &Machine{MachineID: "m", SystemUUID: "s", BootID: "boot-1", KernelVersion: "6.1", OSImage: "Linux"}
	list := v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("100Gi")}
	less := v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("7Gi"), "pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("90Gi")}
	w.resources = &Resources{Capacity: list, Allocatable: less}
	w.opts = Options{
		Loop: l, Client: w, Recorder: w, NodeName: "n", Register: true, Annotations: Annotations(true), Port: 10250,
		RuntimeName: "containerd", KubeletVersion: "v1.36.3", Labels: map[string]string{"zone": "a"}, DeclaredFeatures: []string{"F"},
		Sources: Sources{
			Addresses:      (&Addresses{Hostname: "n", Address: "10.0.0.9"}).Of,
			Machine:        func() *Machine { return w.machine },
			Resources:      func() *Resources { return w.resources },
			RuntimeVersion: func(context.Context) (string, error) { w.versions++; return "v2.4.2", nil },
			Images:         func() []Image { return nil },
			MemoryPressure: func() bool { return w.memory },
			RuntimeErrors:  func() error { return w.runtimeErr },
			NetworkErrors:  func() error { return w.networkErr },
			Node:           func() *v1.Node { return w.informed },
		},
	}
	return w
}

func (w *world) start() *Elided {
	m := Elide(New(w.opts), ElideOptions{
		KnownRuntimeVersion: func() (string, bool) { return "v2.4.2", w.elide && w.versions > 0 },
		AllTold:             func() bool { return false },
	})
	m.Start(w.l.NewGroup("kubelet"))
	return m
}

func condition(n *v1.Node, t v1.NodeConditionType) string {
	c := findCondition(n.Status.Conditions, t)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

func TestRegisterAndReport(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.run(t, time.Second)
	calls, events := w.take()
	if calls != "create get patch" {
		t.Errorf("calls %s", calls)
	}
	if events != "NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID" {
		t.Errorf("events %s", events)
	}
	n := w.api
	if n.Labels["kubernetes.io/hostname"] != "n" || n.Labels["kubernetes.io/os"] != "linux" || n.Labels["beta.kubernetes.io/arch"] != "amd64" || n.Labels["zone"] != "a" ||
		n.Annotations[attachDetachAnnotation] != "true" {
		t.Errorf("labels %v annotations %v", n.Labels, n.Annotations)
	}
	info := n.Status.NodeInfo
	if info.ContainerRuntimeVersion != "containerd://2.4.2" || info.KubeletVersion != "v1.36.3" || info.BootID != "boot-1" || n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Errorf("info %+v", info)
	}
	if a := n.Status.Allocatable[v1.ResourceMemory]; a.String() != "7Gi" {
		t.Errorf("allocatable %v", n.Status.Allocatable)
	}
	var order []string
	for _, c := range n.Status.Conditions {
		order = append(order, string(c.Type))
	}
	if strings.Join(order, " ") != "MemoryPressure DiskPressure PIDPressure Ready" || condition(n, v1.NodeReady) != "True KubeletReady kubelet is posting ready status" {
		t.Errorf("conditions %v", n.Status.Conditions)
	}
	// one report 2.5 to 7.5 minutes after the last change, then each 5 minutes
	var times []time.Time
	for range 40 * 60 {
		before := len(w.patches)
		w.run(t, time.Second)
		if len(w.patches) > before {
			times = append(times, w.l.Now())
		}
	}
	if len(times) < 7 || len(times) > 8 {
		t.Fatalf("%d reports in 40 minutes", len(times))
	}
	if d := times[0].Sub(loop.Epoch()); d < 150*time.Second || d > 462*time.Second {
		t.Errorf("first report after %s", d)
	}
	for i := 1; i < len(times); i++ {
		if d := times[i].Sub(times[i-1]); d < 299*time.Second || d > 312*time.Second {
			t.Errorf("report %d after %s", i, d)
		}
	}
	if calls, events := w.take(); strings.Contains(calls, "get") || events != "" {
		t.Errorf("steady state: %s, %s", calls, events)
	}
}

func TestElidedUpdatesAreTheSame(t *testing.T) {
	trace := func(elide bool) (string, int) {
		w := newWorld(t)
		w.elide = elide
		w.start()
		w.run(t, 3*time.Minute)
		w.memory = true
		w.run(t, 20*time.Minute)
		c, e := w.take()
		return c + " / " + e + " / " + w.patches[len(w.patches)-1].Status.Conditions[0].LastHeartbeatTime.String(), w.versions
	}
	a, few := trace(true)
	b, many := trace(false)
	if a != b {
		t.Errorf("elided:\n%s\nevery update:\n%s", a, b)
	}
	if few > 20 || many < 130 {
		t.Errorf("versions asked %d and %d times", few, many)
	}
}

func TestConditionChanges(t *testing.T) {
	w := newWorld(t)
	w.networkErr = errors.New("container runtime network not ready: x")
	w.runtimeErr = errors.New("PLEG is not healthy: y")
	w.start()
	w.run(t, time.Second)
	if got := condition(w.api, v1.NodeReady); got != "False KubeletNotReady [PLEG is not healthy: y, container runtime network not ready: x]" {
		t.Error(got)
	}
	w.take()
	w.networkErr, w.runtimeErr = nil, nil
	w.run(t, 200*time.Millisecond) // the fast update
	if _, events := w.take(); events != "NodeReady" || condition(w.api, v1.NodeReady) != "True KubeletReady kubelet is posting ready status" {
		t.Errorf("fast: %s, %s", events, condition(w.api, v1.NodeReady))
	}
	was := findCondition(w.api.Status.Conditions, v1.NodeReady).LastTransitionTime
	w.run(t, 20*time.Second)
	w.take()
	w.runtimeErr = errors.New("container runtime is down")
	w.memory = true
	w.run(t, 10500*time.Millisecond)
	_, events := w.take()
	if events != "NodeHasInsufficientMemory NodeNotReady" || condition(w.api, v1.NodeReady) != "False KubeletNotReady container runtime is down" ||
		condition(w.api, v1.NodeMemoryPressure) != "True KubeletHasInsufficientMemory kubelet has insufficient memory available" {
		t.Errorf("%s, %s, %s", events, condition(w.api, v1.NodeReady), condition(w.api, v1.NodeMemoryPressure))
	}
	if now := findCondition(w.api.Status.Conditions, v1.NodeReady).LastTransitionTime; !was.Before(&now) {
		t.Error("transition time unchanged")
	}
	w.resources = &Resources{Capacity: v1.ResourceList{}, Allocatable: v1.ResourceList{}}
	w.informed, w.runtimeErr = &v1.Node{}, nil
	w.api = w.informed
	w.run(t, 10500*time.Millisecond)
	if got := condition(w.api, v1.NodeReady); got != "False KubeletNotReady missing node capacity for resources: cpu, memory, pods, ephemeral-storage" {
		t.Error(got)
	}
}

func TestRebootAndUnschedulable(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.run(t, 30*time.Second)
	w.take()
	next := *w.machine
	next.BootID = "boot-2"
	w.machine = &next
	w.run(t, 11*time.Second)
	if _, events := w.take(); events != "Rebooted" || w.api.Status.NodeInfo.BootID != "boot-2" {
		t.Errorf("reboot: %s", events)
	}
	for _, want := range []string{"NodeNotSchedulable", "NodeSchedulable"} {
		n := *w.api
		n.Spec.Unschedulable = !n.Spec.Unschedulable
		w.inform(&n)
		w.run(t, 11*time.Second)
		if _, events := w.take(); events != want {
			t.Errorf("%q, want %s", events, want)
		}
	}
}

func TestRegistrationRetriesAndExistingNode(t *testing.T) {
	w := newWorld(t)
	existing := &v1.Node{}
	existing.Name = "n"
	existing.Labels = map[string]string{"mine": "1", "kubernetes.io/os": "windows"}
	existing.Spec.Taints = []v1.Taint{{Key: "k"}}
	existing.Status.Capacity = v1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("2"), "hugepages-2Mi": resource.MustParse("4Mi")}
	existing.Status.Allocatable = existing.Status.Capacity
	w.api = existing
	w.fail["create"] = errors.New("no route")
	w.start()
	w.run(t, 1500*time.Millisecond) // 100ms, 200ms, 400ms
	if calls, _ := w.take(); calls != "create create create" {
		t.Errorf("retries: %s", calls)
	}
	delete(w.fail, "create")
	w.run(t, time.Second)
	if calls, _ := w.take(); !strings.HasPrefix(calls, "create get patch") {
		t.Errorf("existing: %s", calls)
	}
	p := w.patches[0]
	if p.Labels["mine"] != "1" || p.Labels["kubernetes.io/os"] != "linux" || p.Labels["kubernetes.io/hostname"] != "n" || p.Labels["zone"] != "" ||
		p.Annotations[attachDetachAnnotation] != "true" {
		t.Errorf("labels %v annotations %v", p.Labels, p.Annotations)
	}
	gpu := p.Status.Capacity["example.com/gpu"]
	if _, huge := p.Status.Capacity["hugepages-2Mi"]; huge || !gpu.IsZero() {
		t.Errorf("capacity %v", p.Status.Capacity)
	}
	if existing.Labels["kubernetes.io/os"] != "windows" || len(existing.Status.Capacity) != 3 {
		t.Error("a shared node was written to")
	}
	last := w.patches[len(w.patches)-1]
	if cpu := last.Status.Capacity[v1.ResourceCPU]; cpu.String() != "4" || condition(last, v1.NodeReady)[:4] != "True" {
		t.Errorf("status after registration: %v, %s", last.Status.Capacity, condition(last, v1.NodeReady))
	}
}

func TestUpdateFails(t *testing.T) {
	w := newWorld(t)
	closed := 0
	w.opts.RepeatedFailure = func() { closed++ }
	w.start()
	w.run(t, 30*time.Second)
	w.take()
	w.fail["patch"], w.fail["get"] = errors.New("no"), errors.New("no")
	w.memory = true
	w.run(t, 10500*time.Millisecond)
	if calls, _ := w.take(); calls != "patch get get get get" || closed != 4 {
		t.Errorf("%s, closed %d", calls, closed)
	}
	clear(w.fail)
	w.run(t, 10500*time.Millisecond)
	if !strings.HasPrefix(condition(w.api, v1.NodeMemoryPressure), "True") {
		t.Error("not sent after the failure")
	}
}

func TestImages(t *testing.T) {
	list := []Image{{ID: "a", Size: 1, RepoTags: []string{"a:1"}}, {ID: "b", Size: 3, RepoDigests: []string{"d1", "d2", "d3"}, RepoTags: []string{"t1", "t2", "t3"}}, {ID: "c", Size: 1}}
	var c imageCache
	out := c.status(func() []Image { return list }, 2)
	if len(out) != 2 || strings.Join(out[0].Names, " ") != "d1 d2 d3 t1 t2" || out[0].SizeBytes != 3 || len(out[1].Names) != 0 {
		t.Errorf("%v", out)
	}
}

func BenchmarkSteadyCheck(b *testing.B) {
	w := newWorld(b)
	m := w.start()
	w.run(b, time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		if !m.nothingToDo() {
			b.Fatal("something to do")
		}
	}
}

// TestPodCIDR: a range is handed over with each update, and one that is new or was
// refused has the status sent.
func TestPodCIDR(t *testing.T) {
	w := newWorld(t)
	var told []string
	var known string
	var refuse error
	w.opts.Sources.UpdatePodCIDR = func(_ context.Context, cidr string) (bool, error) {
		told = append(told, cidr)
		if cidr == known {
			return false, nil
		}
		if refuse == nil {
			known = cidr
		}
		return true, refuse
	}
	w.start()
	w.run(t, time.Minute)
	if told != nil {
		t.Errorf("told %q of a node that has none", told)
	}
	set := func(err error, cidrs ...string) {
		refuse = err
		w.take()
		next := *w.api
		next.Spec.PodCIDRs = cidrs
		w.inform(&next)
		w.run(t, 25*time.Second) // two updates
	}
	if set(nil, "10.0.0.0/24", "fd00::/64"); !slices.Equal(told, []string{"10.0.0.0/24,fd00::/64", "10.0.0.0/24,fd00::/64"}) {
		t.Errorf("told %q", told)
	}
	if calls, _ := w.take(); calls != "patch" {
		t.Errorf("a new range: %s", calls)
	}
	set(errors.New("no network"), "10.0.1.0/24")
	if calls, _ := w.take(); calls != "patch patch" {
		t.Errorf("a range that is refused: %s", calls)
	}
}
