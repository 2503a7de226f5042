package action

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Template creates many pods that are alike. It has exactly one of replicas and perNode.
//
// In the timeline: creates many pods that are alike, with the names name-0,
// name-1 and so on.
type Template struct {
	// How many there are.
	Replicas *int `json:"replicas,omitempty"`
	// How many there are for each node; their spec.nodeName is set, so that nobody needs to bind them. They are numbered through, node after node.
	PerNode *int `json:"perNode,omitempty"`
	// Only for these nodes, with perNode. All nodes unless said.
	Node value.Nodes `json:"node,omitempty"`
	// How long each pod lives: a time or a range from which each draws. Then it is deleted, and once it is gone another takes its place, with the next number. For ever unless said.
	Lifetime *value.Range `json:"lifetime,omitempty"`
	// When that ends, after the scenario's start: pods that are there then stay. The scenario's end unless said.
	Until time.Duration `json:"until,omitempty"`
	// The pod. Its name gets -0, -1 and so on behind it.
	Manifest value.Manifest `json:"manifest" required:""`
}

// Check wants one count, of a size that fits into memory, and one pod.
func (a *Template) Check(at Place) {
	if (a.Replicas == nil) == (a.PerNode == nil) {
		at.Errorf("needs exactly one of replicas and perNode")
	} else {
		checkCount(at.Field("replicas"), &a.Replicas)
		checkCount(at.Field("perNode"), &a.PerNode)
	}
	if len(a.Node) > 0 && a.PerNode == nil {
		at.Field("node").Errorf("goes with perNode only")
	}
	a.Node.Check(at.Field("node"), at.Scope, false)
	until := at.Field("until")
	switch {
	case a.Lifetime != nil && a.Lifetime.Min < time.Second:
		at.Field("lifetime").Errorf("%v is less than 1s", a.Lifetime.Min)
	case a.Lifetime == nil && a.Until != 0:
		until.Errorf("goes with lifetime only")
	}
	if a.Until > 0 && a.Until <= at.Begin {
		until.Errorf("%v is not after the action's time, %v", a.Until, at.Begin)
	}
	manifest := at.Field("manifest")
	if n := len(a.Manifest.Objects); n > 1 {
		manifest.Errorf("a template is one pod, not %d objects", n)
	} else if n == 0 {
		checkManifest(manifest)
	}
	for _, o := range a.Manifest.Objects {
		if _, ok := o.Object.(*v1.Pod); !ok {
			manifest.Field("kind").Errorf("a template is a Pod, not a %s", o.GetObjectKind().GroupVersionKind().Kind)
		}
	}
}

// checkCount refuses a number of pods that can't be made, and forgets one that is
// too large, so that nobody adds to it.
func checkCount(at decode.Place, n **int) {
	switch {
	case *n == nil:
	case **n < 1:
		at.Errorf("%d is less than 1", **n)
	case **n > value.MaxPods:
		at.Errorf("%d is more than %d", **n, value.MaxPods)
		*n = nil
	}
}

// Pods counts those that are there at a time.
func (a *Template) Pods(nodes int) int {
	switch {
	case a.Replicas != nil:
		return *a.Replicas
	case a.PerNode != nil:
		return *a.PerNode * nodes
	}
	return 0
}

// Do stamps the pods from one template, so that they share what is equal.
func (a *Template) Do(s Stage) error {
	pod, ok := a.Manifest.Objects[0].Object.(*v1.Pod)
	if !ok {
		return fmt.Errorf("a template must be a pod")
	}
	warnUnsupported(s, pod)
	api := s.Cluster().API()
	tpl, err := api.NewTemplate(pod)
	if err != nil {
		return err
	}
	object := objectName("Pod", pod.Namespace, pod.Name)
	var nodes []string // of each pod
	if a.Replicas != nil {
		note(s, object, "template", trace.Int("replicas", int64(*a.Replicas)))
		nodes = make([]string, *a.Replicas)
	} else {
		on := s.Nodes()
		if len(a.Node) > 0 {
			on = a.Node.Select(on)
		}
		note(s, object, "template", trace.Int("perNode", int64(*a.PerNode)), trace.Int("nodes", int64(len(on))))
		for _, n := range on {
			for range *a.PerNode {
				nodes = append(nodes, n)
			}
		}
	}
	stamp := func(i int, node string) (string, error) {
		name := fmt.Sprintf("%s-%d", pod.Name, i)
		_, err := api.CreateFromTemplate(tpl, apiserver.Stamp{Name: name, NodeName: node})
		return name, err
	}
	if a.Lifetime != nil {
		return (&churn{s: s, t: a, namespace: pod.Namespace, stamp: stamp}).begin(nodes)
	}
	for i, n := range nodes {
		if _, err := stamp(i, n); err != nil {
			return err
		}
	}
	return nil
}
