package kuberuntime

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
)

// minimumGrace is the least timeout in seconds that a container is stopped
// with.
const minimumGrace = 2

// gracePeriod is how many seconds a container gets to end: the deletion's,
// else the spec's or that of the probe that failed, else 2 (upstream
// setTerminationGracePeriod).
// A failed probe's own period doesn't count once the pod is being deleted: the
// user's wish is newer.
func gracePeriod(pod *v1.Pod, c *v1.Container, reason actions.Reason) int64 {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds == nil:
		return minimumGrace
	case reason == actions.ReasonStartupProbe && c.StartupProbe != nil && c.StartupProbe.TerminationGracePeriodSeconds != nil:
		return *c.StartupProbe.TerminationGracePeriodSeconds
	case reason == actions.ReasonLivenessProbe && c.LivenessProbe != nil && c.LivenessProbe.TerminationGracePeriodSeconds != nil:
		return *c.LivenessProbe.TerminationGracePeriodSeconds
	}
	return *pod.Spec.TerminationGracePeriodSeconds
}

// kill is what the kill of one container has to know.
type kill struct {
	pod      *v1.Pod
	id, name string
	message  string
	reason   actions.Reason
	override *int64 // of the grace period, in seconds
	order    *terminationOrder
}

// killContainer stops a container within its grace period, which its preStop
// hook and its turn among the sidecars are part of.
// A container gets at least minimumGrace, even if the hook took all of its
// time: SIGTERM has to reach it before SIGKILL.
func (m *Manager) killContainer(ctx context.Context, k kill) error {
	c, _ := kubecontainer.FindContainer(k.pod, k.name)
	if c == nil {
		return fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q", k.name, k.id, kubecontainer.PodDesc(k.pod), k.message)
	}
	grace := gracePeriod(k.pod, c, k.reason)
	message := k.message
	if message == "" {
		message = "Stopping container " + c.Name
	}
	m.event(kubecontainer.ContainerRef(k.pod, c), v1.EventTypeNormal, "Killing", message)
	if k.override != nil {
		grace = *k.override
	}
	if grace > 0 && c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		grace -= m.preStop(ctx, k.pod, k.id, c, grace)
	}
	if k.order != nil && grace > 0 {
		grace -= k.order.wait(ctx, m.o.Loop, k.name, grace)
	}
	if err := m.rt.StopContainer(ctx, k.id, max(grace, minimumGrace)); err != nil && !isNotFound(err) {
		m.o.Log("container %s of pod %s: termination failed: %v", c.Name, kubecontainer.PodDesc(k.pod), err)
		return err
	}
	if k.order != nil {
		k.order.terminated(k.name)
	}
	return nil
}

// KillPod stops the running containers and then every sandbox of a pod.
// override, if not nil, takes the place of the grace period, in seconds. The
// calls go on even if ctx ends: only the end of the kubelet stops them. pod may
// be nil if nobody knows it any more. The containers stay for the garbage
// collection.
// A pod that nobody knows is made of what is annotated on its containers.
func (m *Manager) KillPod(_ context.Context, pod *v1.Pod, running *kubecontainer.Pod, override *int64) error {
	if pod == nil {
		pod = running.ToAPIPod()
	}
	result := m.killPod(m.o.Group.Background(), pod, running, override)
	return result.Error()
}

// killPod is KillPod with a result for each step. A sandbox is stopped even if
// a container could not be, since that ends the container's network at least.
func (m *Manager) killPod(ctx context.Context, pod *v1.Pod, running *kubecontainer.Pod, override *int64) (result kubecontainer.PodSyncResult) {
	result.Add(m.killContainers(ctx, pod, running, override)...)
	stop := &kubecontainer.SyncResult{Action: kubecontainer.KillPodSandbox, Target: string(running.ID)}
	result.Add(stop)
	for _, s := range running.Sandboxes {
		if err := m.rt.StopPodSandbox(ctx, s.ID); err != nil && !isNotFound(err) {
			stop.Fail(kubecontainer.ErrKillPodSandbox, err.Error())
			m.o.Log("failed to stop sandbox %s of pod %s: %v", s.ID, kubecontainer.PodDesc(pod), err)
		}
	}
	return result
}

// killContainers stops all of them side by side, begun in the order of the
// spec, and waits for all.
// A pod with one container needs no task of its own for it.
func (m *Manager) killContainers(ctx context.Context, pod *v1.Pod, running *kubecontainer.Pod, override *int64) []*kubecontainer.SyncResult {
	list := inSpecOrder(pod, running.Containers)
	if len(list) == 0 {
		return nil
	}
	results := make([]*kubecontainer.SyncResult, len(list))
	order := newTerminationOrder(pod, list)
	one := func(ctx context.Context, i int) {
		c := list[i]
		results[i] = &kubecontainer.SyncResult{Action: kubecontainer.KillContainer, Target: c.Name}
		err := m.killContainer(ctx, kill{pod: pod, id: c.ID, name: c.Name, reason: actions.ReasonUnknown, override: override, order: order})
		if err != nil {
			results[i].Fail(kubecontainer.ErrKillContainer, err.Error())
		}
	}
	if len(list) == 1 {
		one(ctx, 0)
		return results
	}
	var all loop.WaitGroup
	all.Add(len(list))
	for i := range list {
		m.o.Group.Go("kill container", func(context.Context) {
			defer all.Done()
			one(ctx, i)
		})
	}
	// The kills themselves end with ctx, so this wait needs no end of its own.
	if err := all.Wait(m.o.Group.Background()); err != nil && !errors.Is(err, context.Canceled) {
		m.o.Log("waiting for the containers of pod %s: %v", kubecontainer.PodDesc(pod), err)
	}
	return results
}

// inSpecOrder sorts containers as the spec lists them: init, regular,
// ephemeral ones, and those that it doesn't know last.
// The order of calls at one instant is part of the trace, so it must not be the
// runtime's.
func inSpecOrder(pod *v1.Pod, list []*kubecontainer.Container) []*kubecontainer.Container {
	if len(list) < 2 {
		return list
	}
	out := make([]*kubecontainer.Container, 0, len(list))
	for spec := range kubecontainer.Containers(&pod.Spec) {
		for _, c := range list {
			if c.Name == spec.Name {
				out = append(out, c)
			}
		}
	}
	for _, c := range list {
		if known, _ := kubecontainer.FindContainer(pod, c.Name); known == nil {
			out = append(out, c)
		}
	}
	return out
}
