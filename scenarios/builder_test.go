package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/result"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// deployment is one of a single container.
func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: scenarios.Pod(name, "nginx").Spec},
		},
	}
}

// A scenario that is put together in Go: a node loses its power, and its pods move.
func ExampleNew() {
	s, err := scenarios.New("node-dies").Lasting(10*time.Minute).
		Nodes(document.NodeGroup{Name: "worker", Count: new(2)}).
		Apply(time.Second, deployment("web", 4)).
		Do(time.Minute, &action.PowerCut{OnNodes: action.OnNodes{Node: value.Nodes{"worker-1"}}}).
		By(30*time.Second, `deployment("web").status.availableReplicas == 4`).
		AtEnd(`pods().filter(p, ready(p)).all(p, p.spec.nodeName == "worker-0")`).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := scenarios.Run(context.Background(), s, scenarios.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("passed:", res.Passed)
	for _, d := range result.Objects[*appsv1.Deployment](&res.Final) {
		fmt.Println(d.Name, d.Status.ReadyReplicas)
	}
	v, err := res.Final.Judge(`endpointSlices().size() == 0 && replicaSets().size() == 1`)
	fmt.Println(v.Outcome, err)
	// Output:
	// passed: true
	// web 4
	// held <nil>
}

// What is written of a scenario is a file that loads.
func ExampleScenario_yAML() {
	s := scenarios.New("written").Lasting(36*time.Hour).Node("n", nil).
		Apply(1500*time.Millisecond, scenarios.Pod("web", "nginx")).
		By(time.Minute, `ready(pod("web"))`).Scenario()
	data, err := s.YAML()
	fmt.Println(string(data), err)
	// Output:
	// apiVersion: drydock.dev/v1alpha1
	// kind: Scenario
	// metadata:
	//   name: written
	// spec:
	//   duration: 36h0m0s
	//   nodes:
	//     - name: "n"
	//   timeline:
	//     - at: 1.5s
	//       apply:
	//         manifest:
	//           kind: Pod
	//           apiVersion: v1
	//           metadata:
	//             name: web
	//           spec:
	//             containers:
	//               - name: main
	//                 image: nginx
	//                 resources: {}
	//           status: {}
	//   expect:
	//     - by: 1m0s
	//       that: ready(pod("web"))
	//  <nil>
}

// TestScenarioInGo runs a scenario that nobody loaded, and tells what is wrong with one.
func TestScenarioInGo(t *testing.T) {
	s := &scenarios.Scenario{Metadata: scenarios.Metadata{Name: "in-go"}, Spec: document.Spec{
		Duration: time.Minute, Nodes: []document.NodeGroup{{Name: "n"}},
		Programs: []document.Program{{Match: document.Match{Pod: "web"}, Behaviour: document.Behaviour{RunFor: &value.Range{Min: time.Second, Max: 2 * time.Second}, Exit: 3}}},
		Timeline: []document.Action{{At: time.Second, Does: &action.Apply{Objects: []value.Object{{Object: scenarios.Pod("web", "app:1")}}}}},
		Expect:   []document.Expectation{{By: &value.Time{End: true}, That: `restarts("web") >= 1`}, {For: new(10 * time.Second), That: `exists(pod("web"))`}},
	}}
	res, err := scenarios.Run(t.Context(), s, scenarios.RunOptions{})
	if err != nil || !res.Passed || len(res.Verdicts) != 2 || res.Verdicts[0].Outcome != expect.Held {
		t.Fatalf("%v: %+v", err, res)
	}
	for _, expr := range []string{`pod("web"`, `phases("web").size() > 0`, `usage("n").memory > 0`} {
		if _, err := res.Final.Judge(expr); err == nil {
			t.Errorf("%s is judged", expr)
		}
	}
	if v, err := res.Final.Judge(`pod("web").status.phase == "Failed"`); err != nil || v.Outcome != expect.Failed || len(v.Values) == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = scenarios.New("wrong").Node("n", nil).By(time.Hour, `pod("web").status.phas == ""`).Build()
	var wrong scenarios.LoadErrors
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "wrong.yaml:") || !strings.Contains(err.Error(), `(did you mean "phase"?)`) || !strings.Contains(err.Error(), "after the scenario's end") {
		t.Errorf("%v", err)
	}
}
