package kuberuntime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// terminationOrder lets sidecars end after the regular containers, the later
// ones of the spec first (upstream kuberuntime_termination_order.go).
// KEP-753: a sidecar serves the others to their end. It is asked to end when
// its turn has come or the grace period is over, whichever is first.
type terminationOrder struct {
	done  map[string]*loop.Event
	after map[string][]string // what a sidecar waits for
}

// newTerminationOrder returns nil for a pod without sidecars. running is what
// runs at the start: nothing else is waited for.
// A container that has ended already is done: nobody waits for it.
func newTerminationOrder(pod *v1.Pod, running []*kubecontainer.Container) *terminationOrder {
	if !kubecontainer.HasSidecar(pod) {
		return nil
	}
	o := &terminationOrder{done: map[string]*loop.Event{}, after: map[string][]string{}}
	for _, c := range running {
		o.done[c.Name] = &loop.Event{}
	}
	var regular []string
	for i := range pod.Spec.Containers {
		if name := pod.Spec.Containers[i].Name; o.done[name] != nil {
			regular = append(regular, name)
		}
	}
	later := ""
	for i := len(pod.Spec.InitContainers) - 1; i >= 0; i-- {
		c := &pod.Spec.InitContainers[i]
		if !kubecontainer.IsRestartableInit(c) {
			continue
		}
		o.after[c.Name] = regular
		if later != "" {
			o.after[c.Name] = append(regular[:len(regular):len(regular)], later)
		}
		later = c.Name
	}
	return o
}

// wait waits for the container's turn, at most grace seconds, and returns the
// whole seconds that took.
func (o *terminationOrder) wait(ctx context.Context, l *loop.Loop, name string, grace int64) int64 {
	start := l.Now()
	ctx, cancel := loop.WithTimeout(ctx, time.Duration(grace)*time.Second)
	defer cancel()
	for _, other := range o.after[name] {
		if e := o.done[other]; e != nil && e.Wait(ctx) != nil {
			break
		}
	}
	return int64(l.Since(start) / time.Second)
}

// terminated lets those go that wait for a container.
func (o *terminationOrder) terminated(name string) {
	if e := o.done[name]; e != nil {
		e.Fire()
	}
}
