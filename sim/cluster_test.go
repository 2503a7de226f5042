package sim_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// busyCluster runs nodes that are restarted, cut off and lose power while pods
// come, crash and go, and returns the hash of it all and the pods by phase.
func busyCluster(t *testing.T, seed uint64, workers, nodes int) (uint64, map[v1.PodPhase]int) {
	t.Helper()
	c, err := sim.New(sim.Options{Seed: seed, Workers: workers, APILatencyMin: 5 * time.Millisecond, APILatencyMax: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	second := fakecri.Range{Min: time.Second, Max: 20 * time.Second}
	for i := range nodes {
		_, err := c.AddNode(sim.NodeOptions{Name: fmt.Sprint("n", i), Runtime: fakecri.Options{Programs: []fakecri.Program{
			{Match: fakecri.Match{Pod: "crash*"}, Behaviour: fakecri.Behaviour{RunFor: second, ExitCode: 1}},
			{Match: fakecri.Match{Pod: "job*"}, Behaviour: fakecri.Behaviour{RunFor: second}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"web", "crash", "job"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "app:1"}}}}
		if name == "job" {
			pod.Spec.RestartPolicy = v1.RestartPolicyNever
		}
		tpl, err := c.API().NewTemplate(pod)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 * nodes {
			c.At(time.Second+time.Duration(i)*50*time.Millisecond, func() {
				if _, err := c.API().CreateFromTemplate(tpl, apiserver.Stamp{Name: fmt.Sprint(name, i)}); err != nil {
					panic(err)
				}
			})
		}
	}
	for i := 0; i < nodes; i += 5 {
		n, m := c.Nodes()[i], c.Nodes()[i+1]
		n.At(20*time.Second, func() { n.RestartKubelet(3 * time.Second) })
		m.At(25*time.Second, func() { m.PowerCut(10 * time.Second) })
		c.At(30*time.Second, func() {
			heal := c.API().Partition(n.Name())
			c.At(50*time.Second, heal)
		})
		c.At(40*time.Second, func() {
			if err := c.API().Delete(apiserver.KindPod, "default", fmt.Sprint("web", i), metav1.DeleteOptions{}); err != nil {
				panic(err)
			}
		})
	}
	if err := c.RunUntil(3 * time.Minute); err != nil {
		t.Fatal(err)
	}
	return c.Hash(), c.PodsByPhase()
}

func TestTheNumberOfWorkersChangesNothing(t *testing.T) {
	const nodes = 30
	for _, seed := range []uint64{0, 1} {
		want, phases := busyCluster(t, seed, 1, nodes)
		if got := phases[v1.PodRunning]; got < 3*nodes {
			t.Errorf("seed %d: only %d pods run: %v", seed, got, phases)
		}
		if got := phases[v1.PodSucceeded]; got < nodes {
			t.Errorf("seed %d: only %d pods have succeeded: %v", seed, got, phases)
		}
		for _, workers := range []int{2, 8} {
			if got, _ := busyCluster(t, seed, workers, nodes); got != want {
				t.Errorf("seed %d, %d workers: hash %016x, with one %016x", seed, workers, got, want)
			}
		}
	}
}
