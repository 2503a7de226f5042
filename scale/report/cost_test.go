package report

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

func collector(t testing.TB) *Collector {
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return Attach(c, Options{})
}

func pod(name string, phase v1.PodPhase, node string) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "app"}}}, Status: v1.PodStatus{Phase: phase}}
	p.Namespace, p.Name = "default", name
	if phase == v1.PodRunning {
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", ContainerID: "x", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	}
	return p
}

// TestChangesCostNothing: what happens to pods that run and to nodes that stay as they
// are allocates nothing.
func TestChangesCostNothing(t *testing.T) {
	k := collector(t)
	running, node := pod("a", v1.PodRunning, "n"), &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	k.change(apiserver.Change{Type: watch.Added, Kind: apiserver.KindNode, New: node})
	k.change(apiserver.Change{Type: watch.Added, Kind: apiserver.KindPod, New: pod("b", v1.PodPending, "")}) // one that waits
	for name, c := range map[string]apiserver.Change{
		"pod":  {Type: watch.Modified, Kind: apiserver.KindPod, Old: running, New: running},
		"node": {Type: watch.Modified, Kind: apiserver.KindNode, Old: node, New: node},
	} {
		if n := testing.AllocsPerRun(100, func() { k.change(c) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestNothingLeft starts many pods: none of them is kept but for its 32 bytes, and
// pods that are deleted before they run leave nothing.
func TestNothingLeft(t *testing.T) {
	k := collector(t)
	const n = 5000
	for i := range n {
		name := fmt.Sprint("p", i)
		waiting, bound := pod(name, v1.PodPending, ""), pod(name, v1.PodPending, "n")
		k.pod(nil, waiting, false, time.Second)
		k.pod(waiting, bound, false, 2*time.Second)
		if i%10 == 0 {
			k.pod(bound, bound, true, 3*time.Second)
			continue
		}
		k.pod(bound, pod(name, v1.PodRunning, "n"), false, 3*time.Second)
	}
	k.settled(3*time.Second + settle/2)
	if len(k.pending) != n*9/10 {
		t.Errorf("%d are kept until their records have come", len(k.pending))
	}
	if err := k.c.RunUntil(4*time.Second + settle); err != nil {
		t.Fatal(err)
	}
	// The next change of a pod or a node is the occasion; of others nobody is told.
	create := func(o apiserver.Object) {
		t.Helper()
		if _, err := k.c.API().Create(o); err != nil {
			t.Fatal(err)
		}
	}
	create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n"}})
	create(&v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: v1.ObjectReference{Namespace: "default"}})
	if len(k.pending) != n*9/10 {
		t.Errorf("%d pending after a change of a lease and an event", len(k.pending))
	}
	create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	if len(k.pending) != 0 || k.running != nil || k.peak >= 1024 || k.starts.seen != n*9/10 {
		t.Errorf("%d pending (once %d), %d running, %d started", len(k.pending), k.peak, len(k.running), k.starts.seen)
	}
}
