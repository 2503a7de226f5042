package nodelifecycle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

func TestZoneStates(t *testing.T) {
	for _, tc := range []struct {
		ready, notReady int
		state           zoneState
		rate            float64
	}{
		{0, 0, stateNormal, 0.1},
		{0, 1, stateFullDisruption, 0.1},
		{1, 2, stateNormal, 0.1}, // at least three must be lost
		{2, 3, statePartialDisruption, 0},
		{46, 54, stateNormal, 0.1},
		{45, 55, statePartialDisruption, 0.01},
		{22, 28, statePartialDisruption, 0},    // 50 nodes are not a large cluster
		{22, 29, statePartialDisruption, 0.01}, // 51 are
		{4500, 500, stateNormal, 0.1},
	} {
		state := computeZoneState(tc.ready, tc.notReady)
		if rate := rateOf(state, tc.ready+tc.notReady); state != tc.state || rate != tc.rate {
			t.Errorf("%d ready, %d not: %s %v, want %s %v", tc.ready, tc.notReady, state, rate, tc.state, tc.rate)
		}
	}
}

func TestConditionTaints(t *testing.T) {
	node := func(unschedulable bool, taints []string, conds ...v1.NodeCondition) *v1.Node {
		n := &v1.Node{Spec: v1.NodeSpec{Unschedulable: unschedulable}, Status: v1.NodeStatus{Conditions: conds}}
		for _, k := range taints {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: k, Effect: v1.TaintEffectNoSchedule})
		}
		return n
	}
	cond := func(t v1.NodeConditionType, s v1.ConditionStatus) v1.NodeCondition {
		return v1.NodeCondition{Type: t, Status: s}
	}
	for _, tc := range []struct {
		name        string
		node        *v1.Node
		add, remove string
	}{
		{"ready", node(false, nil, cond(v1.NodeReady, "True")), "[]", "[]"},
		{"new, no status", node(false, []string{v1.TaintNodeNotReady}), "[]", "[node.kubernetes.io/not-ready]"},
		{"not ready", node(false, nil, cond(v1.NodeReady, "False")), "[node.kubernetes.io/not-ready]", "[]"},
		{"lost", node(false, []string{v1.TaintNodeNotReady}, cond(v1.NodeReady, "Unknown"), cond(v1.NodeMemoryPressure, "Unknown")),
			"[node.kubernetes.io/unreachable]", "[node.kubernetes.io/not-ready]"},
		{"pressure", node(false, []string{"own"}, cond(v1.NodeReady, "True"), cond(v1.NodeMemoryPressure, "True"), cond(v1.NodeDiskPressure, "True"), cond(v1.NodePIDPressure, "True")),
			"[node.kubernetes.io/memory-pressure node.kubernetes.io/disk-pressure node.kubernetes.io/pid-pressure]", "[]"},
		{"cordoned", node(true, nil, cond(v1.NodeReady, "True")), "[node.kubernetes.io/unschedulable]", "[]"},
		{"uncordoned", node(false, []string{v1.TaintNodeUnschedulable}, cond(v1.NodeReady, "True")), "[]", "[node.kubernetes.io/unschedulable]"},
	} {
		add, remove := diffConditionTaints(tc.node)
		if fmt.Sprint(add) != tc.add || fmt.Sprint(remove) != tc.remove {
			t.Errorf("%s: add %v remove %v, want %s %s", tc.name, add, remove, tc.add, tc.remove)
		}
	}
}

// rig is an API with nodes whose kubelets are the test.
type rig struct {
	t   *testing.T
	l   *loop.Loop
	srv *apiserver.Server
	c   *Controller
}

func newRig(t *testing.T, seed uint64) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: seed})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	return &rig{t: t, l: l, srv: srv, c: New(controller.Options{Group: l.NewGroup("manager"), API: srv.Component("node-lifecycle-controller", -1, 0)})}
}

func must[T any](r *rig) func(v T, err error) T {
	return func(v T, err error) T {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
		return v
	}
}

func (r *rig) until(d time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) node(name string, labels map[string]string) {
	r.t.Helper()
	at := metav1.Time{Time: r.l.Now()}
	must[apiserver.Object](r)(r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: at, LastTransitionTime: at}}}}))
	must[apiserver.Object](r)(r.srv.Create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: name},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: r.l.Now()}}}))
}

func (r *rig) renew(name string) {
	r.t.Helper()
	lease := *must[apiserver.Object](r)(r.srv.Get(apiserver.KindLease, v1.NamespaceNodeLease, name)).(*coordinationv1.Lease)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: r.l.Now()}
	must[*coordinationv1.Lease](r)(r.srv.Store().UpdateLease(r.l.Now(), &lease))
}

// renewEach renews nodes' leases every ten seconds up to a time.
func (r *rig) renewEach(until time.Duration, names ...string) {
	for at := 10 * time.Second; at < until; at += 10 * time.Second {
		for _, n := range names {
			r.l.Root().At(loop.Epoch().Add(at+time.Second), func() { r.renew(n) })
		}
	}
}

// setReady is what a kubelet that is back writes.
func (r *rig) setReady(name string) {
	n := r.srv.Node(name).DeepCopy()
	at := metav1.Time{Time: r.l.Now()}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		c.LastHeartbeatTime, c.LastTransitionTime = at, at
		if c.Status = v1.ConditionFalse; c.Type == v1.NodeReady {
			c.Status = v1.ConditionTrue
		}
	}
	must[apiserver.Object](r)(r.srv.Update(n, "status"))
}

func (r *rig) count(key string, effect v1.TaintEffect) (n int) {
	for _, node := range r.srv.Nodes() {
		if hasTaint(node, key, effect) {
			n++
		}
	}
	return n
}

// TestSameAsPolling renews leases at random and holds when each node is found
// lost to what upstream's passes every five seconds would see.
func TestSameAsPolling(t *testing.T) {
	lostOnes := 0
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		r := newRig(t, seed)
		lost := map[string]time.Duration{}
		r.srv.OnChange(func(ch apiserver.Change) {
			if n, ok := ch.New.(*v1.Node); ok && readyStatus(n) == v1.ConditionUnknown && lost[n.Name] == 0 {
				lost[n.Name] = r.l.Since(loop.Epoch())
			}
		})
		r.node("steady", nil)
		r.renewEach(10*time.Minute, "steady")
		name := "shaky"
		r.node(name, nil)
		beats := []time.Duration{0}
		for at := time.Duration(0); at < 8*time.Minute; {
			at += time.Duration(1+rnd.Int64N(int64(58*time.Second))) + time.Millisecond
			beats = append(beats, at)
			r.l.Root().At(loop.Epoch().Add(at), func() { r.renew(name) })
		}
		r.until(10 * time.Minute)

		var want, probe time.Duration
		seen := 0
		for pass := time.Duration(0); want == 0; pass += DefaultNodeMonitorPeriod {
			for seen < len(beats) && beats[seen] <= pass {
				probe, seen = pass, seen+1
			}
			if pass-probe >= DefaultNodeMonitorGracePeriod {
				want = pass
			}
		}
		if got := lost[name]; got < want || got > want+20*time.Millisecond {
			t.Errorf("seed %d: lost at %v, upstream at %v", seed, got, want)
		}
		if want < 8*time.Minute {
			lostOnes++
		}
		if lost["steady"] != 0 {
			t.Errorf("seed %d: a node that renews its lease was lost at %v", seed, lost["steady"])
		}
	}
	if lostOnes < 5 {
		t.Errorf("only %d nodes were lost between two renewals", lostOnes)
	}
}

// TestNothingChangedIsNoPass holds that a cluster at rest costs no steps but
// the scans for the next expiry.
func TestNothingChangedIsNoPass(t *testing.T) {
	r := newRig(t, 1)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("n", i))
		r.node(names[i], nil)
	}
	r.until(time.Minute)
	before := r.l.Steps()
	r.until(time.Minute + 30*time.Second)
	if n := r.l.Steps() - before; n > 1000 {
		t.Fatalf("the rig itself takes %d steps", n)
	}
	r.renewEach(20*time.Minute, names...)
	renewals := uint64(20 * 60)
	before = r.l.Steps()
	r.until(10 * time.Minute)
	if n := r.l.Steps() - before; n > renewals+30 {
		t.Errorf("%d steps in 10 minutes with %d renewals", n, renewals)
	}
}

func TestEvictionRates(t *testing.T) {
	for _, tc := range []struct {
		name            string
		lost, well      int
		second, tainted int // tainted after that second, one more or less
	}{
		{"normal", 10, 40, 100, 5},
		{"all", 10, 0, 300, 0},
		{"half of a small zone", 30, 20, 300, 0},
		{"half of a large zone", 40, 30, 260, 3},
	} {
		r := newRig(t, 3)
		var names []string
		for i := range tc.well {
			names = append(names, fmt.Sprint("well-", i))
			r.node(names[i], nil)
		}
		for i := range tc.lost {
			r.node(fmt.Sprint("lost-", i), nil)
		}
		r.renewEach(10*time.Minute, names...)
		r.until(60 * time.Second)
		if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoSchedule); n != tc.lost {
			t.Errorf("%s: %d nodes are tainted NoSchedule after 60 s, want %d", tc.name, n, tc.lost)
		}
		r.until(time.Duration(tc.second) * time.Second)
		if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute); n < tc.tainted-1 || n > tc.tainted+1 || tc.tainted == 0 && n != 0 {
			t.Errorf("%s: %d nodes are tainted NoExecute after %d s, want %d", tc.name, n, tc.second, tc.tainted)
		}
	}
}

// TestMasterDisruption: when no node of any zone is ready any more, the taints
// are taken back, and nothing is tainted until one is.
func TestMasterDisruption(t *testing.T) {
	r := newRig(t, 4)
	for i := range 4 {
		r.node(fmt.Sprint("early-", i), map[string]string{v1.LabelTopologyZone: "a"})
		r.node(fmt.Sprint("late-", i), map[string]string{v1.LabelTopologyZone: "b"})
	}
	r.renewEach(2*time.Minute, "late-0", "late-1", "late-2", "late-3")
	r.until(100 * time.Second)
	if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute); n != 4 {
		t.Fatalf("%d of 4 nodes of a zone that is lost are tainted", n)
	}
	r.until(200 * time.Second) // the last of the others are lost at about 165 s
	if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoSchedule); n != 8 {
		t.Fatalf("%d of 8 nodes are lost", n)
	}
	if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute); n != 0 {
		t.Errorf("%d nodes are tainted although all zones are lost", n)
	}
	r.setReady("late-0")
	r.until(220 * time.Second) // the zones' new limiters begin empty
	if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute); n < 1 || n > 4 {
		t.Errorf("%d nodes are tainted after a node is back", n)
	}
	if n := r.srv.Node("late-0"); len(n.Spec.Taints) != 0 {
		t.Errorf("the node that is back has taints %v", n.Spec.Taints)
	}
}

// TestTaintedInTheSamePass: the pass that finds a node lost queues it for the
// NoExecute taint, for which a zone at rest has a token.
func TestTaintedInTheSamePass(t *testing.T) {
	r := newRig(t, 5)
	var lost, tainted time.Duration
	r.srv.OnChange(func(ch apiserver.Change) {
		n, ok := ch.New.(*v1.Node)
		if !ok || n.Name != "lost" {
			return
		}
		if lost == 0 && readyStatus(n) == v1.ConditionUnknown {
			lost = r.l.Since(loop.Epoch())
		}
		if tainted == 0 && hasTaint(n, v1.TaintNodeUnreachable, v1.TaintEffectNoExecute) {
			tainted = r.l.Since(loop.Epoch())
		}
	})
	r.node("well", nil)
	r.node("lost", nil)
	r.renewEach(2*time.Minute, "well")
	r.until(2 * time.Minute)
	if lost == 0 || tainted < lost || tainted > lost+evictionPeriod+50*time.Millisecond {
		t.Errorf("lost at %v, tainted NoExecute at %v", lost, tainted)
	}
}

// TestNewProcess: a new process takes the NoExecute taints of the nodes that it
// finds, and gives them anew at the zone's rate.
func TestNewProcess(t *testing.T) {
	r := newRig(t, 6)
	for i := range 4 {
		r.node(fmt.Sprint("well-", i), nil)
		r.node(fmt.Sprint("lost-", i), nil)
	}
	r.renewEach(5*time.Minute, "well-0", "well-1", "well-2", "well-3")
	r.until(2 * time.Minute)
	if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute); n != 4 {
		t.Fatalf("%d of 4 lost nodes are tainted", n)
	}
	r.c.g.Kill()
	r.c = New(controller.Options{Group: r.l.NewGroup("next manager"), API: r.srv.Component("node-lifecycle-controller", -1, 0)})
	for _, n := range r.srv.Nodes() {
		r.c.onChange(apiserver.Change{Type: watch.Added, Kind: apiserver.KindNode, New: n, Verb: "list"})
	}
	for _, step := range []struct {
		after   time.Duration
		tainted int
	}{{time.Second, 1}, {9 * time.Second, 1}, {11 * time.Second, 2}, {32 * time.Second, 4}} {
		r.until(2*time.Minute + step.after)
		if n := r.count(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute); n != step.tainted {
			t.Errorf("%v after the start %d nodes are tainted, want %d", step.after, n, step.tainted)
		}
	}
}

// TestOldLabels holds which labels follow others to upstream's reconcileNodeLabels.
func TestOldLabels(t *testing.T) {
	const os, arch = "beta.kubernetes.io/os", "beta.kubernetes.io/arch"
	for i, tc := range []struct{ labels, want map[string]string }{
		{map[string]string{v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}, map[string]string{v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64", os: "linux", arch: "amd64"}},
		{map[string]string{v1.LabelOSStable: "linux", os: "windows"}, map[string]string{v1.LabelOSStable: "linux", os: "linux"}},
		{map[string]string{arch: "arm64", "own": "x"}, map[string]string{arch: "arm64", "own": "x"}},
		{nil, nil},
	} {
		r := newRig(t, 5)
		r.node("n", tc.labels)
		r.until(time.Second)
		if is := r.srv.Node("n").Labels; !maps.Equal(is, tc.want) {
			t.Errorf("%d: %v, want %v", i, is, tc.want)
		}
		if tc.labels == nil {
			continue
		}
		n := *r.srv.Node("n")
		n.Labels = tc.labels
		must[apiserver.Object](r)(r.srv.Update(&n, ""))
		r.until(2 * time.Second)
		if is := r.srv.Node("n").Labels; !maps.Equal(is, tc.want) {
			t.Errorf("%d: %v after a user has taken them away, want %v", i, is, tc.want)
		}
	}
}
