package sim_test

import (
	"flag"
	"fmt"
	"github.com/drydock-sim/drydock/ground/loop"
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

var (
	admissionSeeds = flag.Int("admission.seeds", 30, "how many seeds TestRandomAdmission runs")
	admissionFirst = flag.Int("admission.first", 0, "the first seed of TestRandomAdmission")
)

// admissions are what a run showed of each pod, by name: whether it was let in, and
// the words with which it was not.
type admissions struct {
	ran     map[string]bool
	refused map[string]string
	resized int
}

// admissionPod draws a pod that wants a good part of a node with 2 CPUs and 4 GiB.
func admissionPod(m *maker, name string) *v1.Pod {
	amount := func(milli, mebi int) v1.ResourceRequirements {
		r := v1.ResourceList{}
		if m.chance(80) {
			r[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(m.between(1, milli)), resource.DecimalSI)
		}
		if m.chance(60) {
			r[v1.ResourceMemory] = *resource.NewQuantity(int64(m.between(1, mebi))<<20, resource.BinarySI)
		}
		return v1.ResourceRequirements{Requests: r}
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	s := &pod.Spec
	s.NodeName, s.RestartPolicy, s.TerminationGracePeriodSeconds = "n0", v1.RestartPolicyNever, ptr.To(int64(m.IntN(8)))
	for i := range m.between(1, 2) {
		s.Containers = append(s.Containers, v1.Container{Name: fmt.Sprint([]string{"stays", "ends"}[m.IntN(2)], i), Image: "app:1", Resources: amount(800, 1500)})
	}
	if m.chance(30) {
		s.InitContainers = append(s.InitContainers, v1.Container{Name: "init", Image: "app:1", Resources: amount(1500, 3000)})
	}
	if m.chance(20) {
		s.InitContainers = append(s.InitContainers, v1.Container{Name: "sidecar", Image: "app:1", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways), Resources: amount(400, 500)})
	}
	switch m.IntN(12) {
	case 0:
		s.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: int32(80 + m.IntN(2))}}
	case 1, 2: // more than there is of anything, and two of them more than a number can tell
		s.Containers[0].Resources.Requests[v1.ResourceMemory] = resource.MustParse("5Ei")
	case 3:
		if r := amount(300, 500); len(r.Requests) == 2 {
			for i := range s.Containers {
				s.Containers[i].Resources = v1.ResourceRequirements{}
			}
			s.InitContainers, s.Resources = nil, &r
		}
	}
	return pod
}

// runAdmission has pods come, be resized, end and go on a node that is nearly
// always full.
func runAdmission(t *testing.T, seed uint64, noElide bool) admissions {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 3))}
	c, err := sim.New(sim.Options{Seed: seed, Workers: 1, Elision: map[bool]loop.ElisionMode{true: loop.NoElide}[noElide]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	times := func(min, max time.Duration) fakecri.Behaviour {
		return fakecri.Behaviour{RunFor: fakecri.Range{Min: min, Max: max}}
	}
	n, err := c.AddNode(sim.NodeOptions{
		Name:     "n0",
		Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourcePods: resource.MustParse("7")},
		Runtime: fakecri.Options{Programs: []fakecri.Program{
			{Match: fakecri.Match{Container: "ends*"}, Behaviour: times(3*time.Second, 60*time.Second)},
			{Match: fakecri.Match{Container: "init"}, Behaviour: times(time.Second, 3*time.Second)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := admissions{ran: map[string]bool{}, refused: map[string]string{}}
	c.Records(func(r *trace.Record) {
		if r.Kind == trace.KindProcess && r.Verb == "start" {
			seen.ran[r.Object] = true
		}
	})
	pods := m.between(10, 60)
	resizes := m.IntN(4) // at most of each
	for i := range pods {
		admissionPodLives(t, c, m, fmt.Sprint("p", i), m.IntN(resizes+1), &seen)
	}
	admissionNodeLives(t, n, m)
	for now := time.Duration(0); now < 420*time.Second; now += time.Second {
		if err := c.RunUntil(now); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, p := range c.Store().Pods() {
			if p.Status.Reason != "" {
				seen.refused[p.Name] = p.Status.Reason + ": " + p.Status.Message
			}
		}
	}
	return seen
}

// admissionPodLives has a pod come, be resized so many times, and go perhaps.
func admissionPodLives(t *testing.T, c *sim.Cluster, m *maker, name string, resizes int, seen *admissions) {
	pod := admissionPod(m, name)
	at := 2*time.Second + m.seconds(400)
	c.At(at, func() {
		if _, err := c.API().Create(pod); err != nil {
			t.Error(err)
		}
	})
	change := func(after time.Duration, fn func(api *apiserver.Server)) {
		c.At(at+after, func() { fn(c.API()) })
	}
	for range resizes {
		patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":"%dm"}}}]}}`, pod.Spec.Containers[0].Name, m.between(1, 900))
		change(m.seconds(60), func(api *apiserver.Server) {
			if _, err := api.Patch(apiserver.KindPod, "default", pod.Name, types.StrategicMergePatchType, []byte(patch), "resize"); err == nil {
				seen.resized++
			}
		})
	}
	if m.chance(70) && pod.Spec.Containers[0].Resources.Requests.Memory().Value() < 1<<40 {
		change(m.seconds(60), func(api *apiserver.Server) {
			_ = api.Delete(apiserver.KindPod, "default", pod.Name, metav1.DeleteOptions{})
		})
	}
}

// admissionNodeLives has static pods come, and the kubelet start again.
func admissionNodeLives(t *testing.T, n *sim.Node, m *maker) {
	for i := range m.between(0, 2) {
		file := fmt.Sprint("static", i, ".yaml")
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: static%d}\nspec: {containers: [{name: stays, image: \"app:1\", resources: {requests: {cpu: %dm}}}]}\n", i, m.between(1, 500))
		n.At(m.seconds(300), func() {
			if err := n.WriteStaticPod(file, []byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
	for range m.IntN(4) {
		n.At(m.seconds(350), func() { n.RestartKubelet(3 * time.Second) })
	}
	if m.chance(30) {
		n.At(m.seconds(350), func() { n.PowerCut(10 * time.Second) })
	}
}

// TestRandomAdmission holds what a kubelet lets in by an upper bound of what is used
// to what one lets in that looks at every pod.
func TestRandomAdmission(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test of what one loop does: nothing for the race detector")
	}
	ran, refused, resized := 0, 0, 0
	for i := range *admissionSeeds {
		seed := uint64(*admissionFirst + i)
		bound, looks := runAdmission(t, seed, false), runAdmission(t, seed, true)
		for name, why := range looks.refused {
			if bound.refused[name] != why {
				t.Errorf("seed %d: %s: %q; if nothing is left out: %q", seed, name, bound.refused[name], why)
			}
		}
		for name, why := range bound.refused {
			if looks.refused[name] == "" {
				t.Errorf("seed %d: %s: %q; not if nothing is left out", seed, name, why)
			}
		}
		for name := range bound.ran {
			if !looks.ran[name] {
				t.Errorf("seed %d: %s runs; not if nothing is left out", seed, name)
			}
		}
		ran, refused, resized = ran+len(bound.ran), refused+len(bound.refused), resized+bound.resized
	}
	t.Logf("%d containers ran, %d pods were refused, %d were resized", ran, refused, resized)
	if n := *admissionSeeds; n >= 30 && (ran < 10*n || refused < 10*n || resized < 5*n) {
		t.Errorf("the runs show too little: %d containers, %d pods refused, %d resized", ran, refused, resized)
	}
}
