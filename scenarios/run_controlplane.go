package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// options are the control plane's as sim takes them.
func (c *ControlPlane) options() controlplane.Options {
	if c == nil {
		return controlplane.Options{}
	}
	return controlplane.Options{Disable: c.Disable, Scheduler: c.Scheduler.client(), ControllerManager: c.ControllerManager.client()}
}

func (c *ControlPlaneComponent) client() controlplane.Client {
	if c == nil || c.ClientConnection == nil {
		return controlplane.Client{}
	}
	return controlplane.Client{QPS: c.ClientConnection.QPS, Burst: c.ClientConnection.Burst}
}

// podsOf is how many pods come of an applied object, at least 1 for whatever it
// is.
func (s *Scenario) podsOf(o runtime.Object) int {
	n := int32(1)
	switch o := o.(type) {
	case *appsv1.Deployment:
		n = ptr.Deref(o.Spec.Replicas, 1)
	case *appsv1.ReplicaSet:
		n = ptr.Deref(o.Spec.Replicas, 1)
	case *appsv1.StatefulSet:
		n = ptr.Deref(o.Spec.Replicas, 1)
	case *batchv1.Job:
		n = ptr.Deref(o.Spec.Parallelism, 1)
	case *appsv1.DaemonSet:
		return max(len(s.NodeNames()), 1)
	}
	return int(max(n, 1))
}

// controlPlaneAction does what a user asks of the control plane, as kubectl
// does; false for other actions.
func (r *run) controlPlaneAction(a *Action) (bool, error) {
	switch {
	case a.Scale != nil:
		return true, r.scale(a.Scale)
	case a.Rollout != nil:
		return true, r.rollout(a.Rollout)
	case a.Evict != nil:
		return true, r.evict(a.Evict)
	case a.Drain != nil:
		return true, r.drain(a.Drain, a.Pos)
	case a.Cordon != nil:
		return true, r.cordon(r.s.SelectNodes(a.Cordon.Node), true)
	case a.Uncordon != nil:
		return true, r.cordon(r.s.SelectNodes(a.Uncordon.Node), false)
	case a.StopComponent != nil:
		r.stopComponent(a.StopComponent)
		return true, nil
	case a.StartComponent != nil:
		r.startComponent(a.StartComponent.Component)
		return true, nil
	}
	return false, nil
}

func (r *run) scale(s *Scale) error {
	r.note(objectName(s.Kind, s.Namespace, s.Name), "scale", trace.Int("replicas", int64(*s.Replicas)))
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, *s.Replicas)
	_, err := r.cluster.API().Patch(apiserver.Kind(s.Kind), s.Namespace, s.Name, types.MergePatchType, []byte(patch), "")
	return err
}

// cordon marks nodes as unschedulable, or as schedulable again.
func (r *run) cordon(nodes []string, on bool) error {
	verb := map[bool]string{true: "cordon", false: "uncordon"}[on]
	for _, name := range nodes {
		r.note("node "+name, verb)
		n := r.cluster.API().Node(name)
		if n == nil {
			return fmt.Errorf("%s: the API has no node %s", verb, name)
		}
		if n.Spec.Unschedulable == on {
			continue // kubectl: already cordoned
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": map[bool]any{true: true}[on]}})
		if err != nil {
			return fmt.Errorf("%s of node %s: %w", verb, name, err)
		}
		if _, err := r.cluster.API().Patch(apiserver.KindNode, "", name, types.MergePatchType, patch, ""); err != nil {
			return fmt.Errorf("%s of node %s: %w", verb, name, err)
		}
	}
	return nil
}

func (r *run) stopComponent(s *StopComponent) {
	r.note("component "+s.Component, "stop")
	r.cluster.ControlPlane().Stop(s.Component)
	if s.For > 0 {
		r.agenda.add(r.cluster.Now()+s.For, false, func() error {
			r.startComponent(s.Component)
			return nil
		})
	}
}

func (r *run) startComponent(name string) {
	r.note("component "+name, "start")
	r.cluster.ControlPlane().Start(name)
}

// evict asks for the eviction of each pod that is meant.
func (r *run) evict(e *Evict) error {
	names := []string{e.Name}
	if strings.ContainsAny(e.Name, "*?") {
		names = nil
		for _, p := range r.cluster.Store().PodsInNamespace(e.Namespace) {
			if fakecri.MatchPattern(e.Name, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	for _, name := range names {
		r.note(objectName("Pod", e.Namespace, name), "evict")
		err := r.evictPod(&v1.Pod{ObjectMeta: podMeta(e.Namespace, name)}, e.GracePeriodSeconds)
		switch {
		case e.Refused && err == nil:
			return fmt.Errorf("the eviction of pod %s/%s was not refused", e.Namespace, name)
		case err != nil && !(e.Refused && refusedByBudget(err)):
			return withBudget(err)
		}
	}
	return nil
}

// errorLater notes the error of something that an action began.
func (r *run) errorLater(pos Position, err error) {
	r.result.Errors = append(r.result.Errors, fmt.Sprintf("%s: %v", pos, err))
	r.note("scenario", "error", trace.Str("message", err.Error()))
}

// timeNow is the virtual time, also while the API's loop runs.
func (r *run) timeNow() time.Time { return r.cluster.API().Loop().Now() }
