package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim"
)

// Real has a scenario run in real time, its node being a machine outside. Only
// a scenario with Spec.Conformance can run so.
type Real struct {
	// Loop, one of loop.NewReal, is the run's alone; the run closes it.
	Loop *loop.Loop
	// Host is the scenario's node.
	Host *sim.Host
}

// lapReal is how often a run in real time looks whether everything is decided.
const lapReal = 100 * time.Millisecond

// driveReal is drive on the wall clock. It ends as soon as the timeline is done
// and every expectation is decided: nobody waits for what cannot matter.
func (r *run) driveReal(ctx context.Context) error {
	r.engine.Begin()
	for {
		at := r.cluster.Now()
		if err := r.agenda.runDue(at); err != nil {
			return err
		}
		r.engine.Advance(at)
		r.noteSteady(at)
		if at >= r.end || len(r.agenda.items) == 0 && r.engine.Decided() && len(r.s.Spec.Expect) > 0 {
			return nil
		}
		if ctx.Err() != nil {
			r.result.Interrupted = true
			return nil
		}
		if err := r.cluster.RunReal(ctx, min(r.agenda.next(), at+lapReal, r.end)); err != nil {
			return err
		}
	}
}

// outsideReal does what outside does, by calls of the CRI. They are made in a
// task; what they fail with is noted like any action's error.
func (r *run) outsideReal(a *Action) error {
	rt := r.opts.Real.Host.RuntimeService
	act := func(verb, pod, container string, do func(ctx context.Context) error) error {
		pod = podKey(pod)
		object := pod
		if container != "" {
			object += "/" + container
		}
		return r.onNodes(verb+" of "+object, r.s.NodeNames(), func(n *sim.Node) error {
			n.Loop().Root().Go(verb, func(ctx context.Context) {
				if err := do(ctx); err != nil {
					r.result.Errors = append(r.result.Errors, fmt.Sprintf("%s: %s of %s: %v", a.Pos, verb, object, err))
				}
			})
			return nil
		})
	}
	onContainer := func(verb string, x *OnContainer, do func(ctx context.Context, id string) error) error {
		return act(verb, x.Pod, x.Container, func(ctx context.Context) error {
			id, err := findContainer(ctx, rt, podKey(x.Pod), x.Container)
			if err != nil {
				return err
			}
			return do(ctx, id)
		})
	}
	switch {
	case a.StopContainer != nil:
		return onContainer("stop", a.StopContainer, func(ctx context.Context, id string) error { return rt.StopContainer(ctx, id, 30) })
	case a.KillContainer != nil:
		return onContainer("kill", a.KillContainer, func(ctx context.Context, id string) error { return rt.StopContainer(ctx, id, 0) })
	case a.RemoveContainer != nil:
		return onContainer("removal", a.RemoveContainer, func(ctx context.Context, id string) error { return rt.RemoveContainer(ctx, id) })
	case a.StopSandbox != nil:
		x := a.StopSandbox
		return act("stop of the sandbox", x.Pod, "", func(ctx context.Context) error {
			list, err := rt.ListPodSandbox(ctx, nil)
			if err != nil {
				return err
			}
			for _, s := range list {
				if s.GetMetadata().GetNamespace()+"/"+s.GetMetadata().GetName() == podKey(x.Pod) && s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
					return rt.StopPodSandbox(ctx, s.Id)
				}
			}
			return errors.New("there is no such sandbox")
		})
	}
	return fmt.Errorf("the action does nothing")
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
