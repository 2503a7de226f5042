package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// OnContainer names a container.
type OnContainer struct {
	// The node. Wherever the pod is, unless said.
	Node value.Nodes `json:"node,omitempty"`
	// The pod: namespace/name, or a name in the namespace default.
	Pod string `json:"pod" required:""`
	// The container's name.
	Container string `json:"container" required:""`
}

// Check completes the pod's name.
func (o *OnContainer) Check(at Place) {
	o.Node.Check(at.Field("node"), at.Scope, false)
	o.Pod = value.PodRef(at.Field("pod"), o.Pod)
}

// act does something to the container behind the kubelet's back: in a simulation
// to what the runtime has of it, on a machine outside by a call of the CRI.
func (o *OnContainer) act(s Stage, verb string, simulated func(rt *fakecri.Runtime, pod, container string) error, real func(ctx context.Context, rt internalapi.RuntimeService, id string) error) error {
	return behind(s, verb, o.Node, o.Pod, o.Container,
		func(rt *fakecri.Runtime) error { return simulated(rt, o.Pod, o.Container) },
		func(ctx context.Context, rt internalapi.RuntimeService) error {
			id, err := findContainer(ctx, rt, o.Pod, o.Container)
			if err != nil {
				return err
			}
			return real(ctx, rt, id)
		})
}

// behind does something to a pod, or to a container of it, behind the kubelet's
// back, on the nodes or else wherever the pod is. Calls of a real runtime are made
// in a task, since they wait.
func behind(s Stage, verb string, nodes value.Nodes, pod, container string, simulated func(*fakecri.Runtime) error, real func(context.Context, internalapi.RuntimeService) error) error {
	object := strings.TrimSuffix(pod+"/"+container, "/")
	what := verb + " of " + object
	if host := s.Host(); host != nil {
		return onNodes(s, what, s.Nodes(), func(n *sim.Node) error {
			n.Loop().Root().Go(verb, func(ctx context.Context) {
				if err := real(ctx, host.RuntimeService); err != nil {
					s.Fail("", fmt.Errorf("%s: %w", what, err))
				}
			})
			return nil
		})
	}
	if len(nodes) == 0 {
		ns, name, _ := strings.Cut(pod, "/")
		p := s.Cluster().Store().Pod(ns, name)
		if p == nil {
			return fmt.Errorf("%s: there is no pod %s", verb, pod)
		}
		nodes = value.Nodes{p.Spec.NodeName}
	}
	return onNodes(s, what, nodes, func(n *sim.Node) error { return simulated(n.Runtime()) })
}

// findContainer returns the ID of a running container, by the labels that the
// kubelet gave it.
func findContainer(ctx context.Context, rt internalapi.RuntimeService, pod, container string) (string, error) {
	list, err := rt.ListContainers(ctx, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	if err != nil {
		return "", err
	}
	for _, c := range list {
		if c.Labels["io.kubernetes.pod.namespace"]+"/"+c.Labels["io.kubernetes.pod.name"] == pod && c.Labels["io.kubernetes.container.name"] == container {
			return c.Id, nil
		}
	}
	return "", errors.New("it does not run")
}
