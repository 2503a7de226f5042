package endpointslice

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func testService() *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "service", Labels: map[string]string{"team": "a"}},
		Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Name: "http", Port: 80, Protocol: v1.ProtocolTCP, TargetPort: intstr.FromString("http")}}},
	}
}

func testPod(i int, port int32, ready bool) *v1.Pod {
	status := v1.ConditionFalse
	if ready {
		status = v1.ConditionTrue
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%03d", i), Namespace: "default", UID: types.UID(fmt.Sprint(i))},
		Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: v1.ProtocolTCP}}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: fmt.Sprintf("10.0.%d.%d", i/256, i%256),
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: status}}},
	}
}

// world applies plans as the API would.
type world struct {
	slices []*discoveryv1.EndpointSlice
	n      int
}

func (w *world) apply(p plan) {
	for _, es := range p.create {
		w.n++
		c := *es
		c.Name = fmt.Sprintf("%s%d", es.GenerateName, w.n)
		w.slices = append(w.slices, &c)
	}
	for _, up := range p.update {
		for i, es := range w.slices {
			if es.Name == up.Name {
				w.slices[i] = up
			}
		}
	}
	for _, gone := range p.remove {
		for i, es := range w.slices {
			if es.Name == gone.Name {
				w.slices = append(w.slices[:i:i], w.slices[i+1:]...)
				break
			}
		}
	}
}

func (w *world) sync(svc *v1.Service, pods []*v1.Pod, max int) plan {
	p := (&planner{svc: svc, max: max, node: func(string) *v1.Node { return &v1.Node{} }}).reconcile(pods, w.slices)
	w.apply(p)
	return p
}

// TestPlanKeepsSlicesRight plays random changes of pods: after each sync every pod
// is in exactly one slice, in its state and with its port, no slice is too full, and
// another sync finds nothing to do.
func TestPlanKeepsSlicesRight(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		svc, w, most := testService(), &world{}, 1+rnd.IntN(10)
		pods := map[int]*v1.Pod{}
		for step := range 40 {
			for range 1 + rnd.IntN(15) {
				i := rnd.IntN(60)
				switch rnd.IntN(3) {
				case 0:
					delete(pods, i)
				default:
					pods[i] = testPod(i, int32(8080+rnd.IntN(2)), rnd.IntN(2) == 0)
				}
			}
			var list []*v1.Pod
			for i := range 60 {
				if pods[i] != nil {
					list = append(list, pods[i])
				}
			}
			w.sync(svc, list, most)
			w.check(t, list, most)
			if again := w.sync(svc, list, most); len(again.create)+len(again.update)+len(again.remove) > 0 {
				t.Fatalf("seed %d step %d: a second sync wants %d, %d, %d", seed, step, len(again.create), len(again.update), len(again.remove))
			}
			if t.Failed() {
				t.Fatalf("seed %d step %d", seed, step)
			}
		}
	}
}

func (w *world) check(t *testing.T, pods []*v1.Pod, most int) {
	t.Helper()
	seen := map[string]int{}
	for _, es := range w.slices {
		if len(es.Endpoints) > most {
			t.Errorf("%s has %d endpoints", es.Name, len(es.Endpoints))
		}
		for _, ep := range es.Endpoints {
			seen[ep.TargetRef.Name]++
			for _, pod := range pods {
				if pod.Name == ep.TargetRef.Name && (*ep.Conditions.Ready != (pod.Status.Conditions[0].Status == v1.ConditionTrue) || *es.Ports[0].Port != pod.Spec.Containers[0].Ports[0].ContainerPort) {
					t.Errorf("%s: ready %v, port %d", pod.Name, *ep.Conditions.Ready, *es.Ports[0].Port)
				}
			}
		}
	}
	for _, pod := range pods {
		if seen[pod.Name] != 1 {
			t.Errorf("%s is in %d slices", pod.Name, seen[pod.Name])
		}
		delete(seen, pod.Name)
	}
	if len(seen) > 0 {
		t.Errorf("endpoints of pods that are gone: %v", seen)
	}
	if len(pods) == 0 && (len(w.slices) != 1 || len(w.slices[0].Ports) > 0) {
		t.Errorf("%d slices without pods", len(w.slices))
	}
}

// TestFewWrites holds a change of one pod to one write: what has room is filled,
// what changes anyway takes more.
func TestFewWrites(t *testing.T) {
	svc, w := testService(), &world{}
	var pods []*v1.Pod
	for i := range 25 {
		pods = append(pods, testPod(i, 80, true))
	}
	if p := w.sync(svc, pods, 10); len(p.create) != 3 {
		t.Fatalf("%d slices for 25 endpoints", len(p.create))
	}
	pods = append(pods, testPod(25, 80, true))
	if p := w.sync(svc, pods, 10); len(p.update) != 1 || len(p.create) != 0 || len(p.update[0].Endpoints) != 6 {
		t.Errorf("one more pod: %d updates, %d new", len(p.update), len(p.create))
	}
	pods[3] = testPod(3, 80, false)
	if p := w.sync(svc, pods, 10); len(p.update) != 1 || len(p.create)+len(p.remove) != 0 {
		t.Errorf("one unready pod: %d updates", len(p.update))
	}
	svc.Labels = map[string]string{"team": "b"}
	if p := w.sync(svc, pods, 10); len(p.update) != 3 || p.update[0].Labels["team"] != "b" {
		t.Errorf("a label of the service: %d updates", len(p.update))
	}
	if p := w.sync(svc, nil, 10); len(p.create) != 0 || len(p.update) != 1 || len(p.remove) != 2 || len(p.update[0].Endpoints) != 0 {
		t.Errorf("no pods: %d new, %d updates, %d gone", len(p.create), len(p.update), len(p.remove))
	}
}

func TestEndpoint(t *testing.T) {
	svc := testService()
	now := metav1.Now()
	for _, c := range []struct {
		name                        string
		change                      func(svc *v1.Service, pod *v1.Pod)
		ready, serving, terminating bool
	}{
		{"ready", func(*v1.Service, *v1.Pod) {}, true, true, false},
		{"not ready", func(_ *v1.Service, p *v1.Pod) { p.Status.Conditions = nil }, false, false, false},
		{"terminating", func(_ *v1.Service, p *v1.Pod) { p.DeletionTimestamp = &now }, false, true, true},
		{"published", func(s *v1.Service, p *v1.Pod) { s.Spec.PublishNotReadyAddresses = true; p.Status.Conditions = nil }, true, false, false},
	} {
		s, pod := *svc, testPod(1, 80, true)
		c.change(&s, pod)
		ep := endpointOf(&s, pod, &v1.Node{}, "10.0.0.1")
		if *ep.Conditions.Ready != c.ready || *ep.Conditions.Serving != c.serving || *ep.Conditions.Terminating != c.terminating {
			t.Errorf("%s: ready %v serving %v terminating %v", c.name, *ep.Conditions.Ready, *ep.Conditions.Serving, *ep.Conditions.Terminating)
		}
	}
	for _, phase := range []v1.PodPhase{v1.PodFailed, v1.PodSucceeded} {
		pod := testPod(1, 80, false)
		pod.Status.Phase = phase
		if belongs(pod) {
			t.Errorf("a pod that is %s is an endpoint", phase)
		}
	}
}
