package matchers_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios"
	. "github.com/drydock-sim/drydock/scenarios/matchers"
)

const web = `
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: web}
spec:
  duration: 30s
  nodes: [{name: worker, count: 2}]
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: app, image: "nginx:1"}]}
  expect:
  - {by: 10s, that: 'pod("default/web").status.phase == "Running"'}
`

// A scenario in somebody's own suite: load, run, match.
func Example() {
	list, err := scenarios.Parse("web.yaml", []byte(web), scenarios.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := scenarios.Run(context.Background(), list[0], scenarios.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("passed:", result.Passed)
	for _, p := range result.Final.Pods {
		fmt.Println(p.Name, p.Status.Phase)
	}
	// Output:
	// passed: true
	// web Running
}

func TestMatchers(t *testing.T) {
	g := NewWithT(t)
	list, err := scenarios.Parse("web.yaml", []byte(web), scenarios.LoadOptions{Set: []string{"spec.nodes[0].count=1"}})
	g.Expect(err).NotTo(HaveOccurred())
	result, err := scenarios.Run(context.Background(), list[0], scenarios.RunOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(Pass())
	g.Expect(result).To(HavePodInPhase("default/web", v1.PodRunning))
	g.Expect(result).To(HaveEvent("default/web", "Started"))
	g.Expect(result).To(HaveEvent("worker-0", "Starting"))

	g.Expect(result).To(HoldAtEnd(`ready(pod("web")) && nodes().size() == 1`))
	g.Expect(result).NotTo(HoldAtEnd(`pod("web").status.phase == "Failed"`))
	g.Expect(result).NotTo(HoldAtEnd(`pod("web"`))
	g.Expect(result).NotTo(HaveReadyReplicas("deployment/default/web", 0))
	failed := HoldAtEnd(`pod("web").status.phase == "Failed"`)
	if ok, _ := failed.Match(result); ok || failed.FailureMessage(result) != "expected scenario web to end with pod(\"web\").status.phase == \"Failed\", but\nwas false at 30s\npod(\"web\").status.phase = \"Running\"" {
		t.Errorf("%q", failed.FailureMessage(result))
	}
	g.Expect(result).NotTo(HavePodInPhase("default/web", v1.PodFailed))
	g.Expect(result).NotTo(HavePodInPhase("default/other", v1.PodRunning))
	g.Expect(result).NotTo(HaveEvent("default/web", "Evicted"))

	list, err = scenarios.Parse("web.yaml", []byte(web), scenarios.LoadOptions{Set: []string{"spec.expect[0].by=1s"}})
	g.Expect(err).NotTo(HaveOccurred())
	result, err = scenarios.Run(context.Background(), list[0], scenarios.RunOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).NotTo(Pass())
	m := Pass()
	if ok, _ := m.Match(result); ok {
		t.Fatal("passes")
	}
	g.Expect(m.FailureMessage(result)).To(And(ContainSubstring("did not become true by 1s"), ContainSubstring("repeat it: drydock run web.yaml")))
}

// TestReadyReplicas: of each kind of workload, how many are ready or have completed.
func TestReadyReplicas(t *testing.T) {
	g := NewWithT(t)
	list, err := scenarios.Parse("w.yaml", []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: workloads}
spec:
  duration: 1m
  nodes: [{name: n}]
  timeline:
  - at: 1s
    apply:
      manifest:
      - {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {a: d}}, template: {metadata: {labels: {a: d}}, spec: {containers: [{name: c, image: pause}]}}}}
      - {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {a: e}}, template: {metadata: {labels: {a: e}}, spec: {containers: [{name: c, image: pause}]}}}}
      - {apiVersion: batch/v1, kind: Job, metadata: {name: sums}, spec: {completions: 3, parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "sums:1"}]}}}}
`), scenarios.LoadOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	result, err := scenarios.Run(context.Background(), list[0], scenarios.RunOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(And(HaveReadyReplicas("deployment/default/web", 2), HaveReadyReplicas("daemonSet/default/agent", 1), HaveReadyReplicas("job/default/sums", 3)))
	g.Expect(result).NotTo(HaveReadyReplicas("deployment/default/web", 3))
	g.Expect(result).NotTo(HaveReadyReplicas("pod/default/web", 1))
}
