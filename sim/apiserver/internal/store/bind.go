package store

import (
	"errors"
	"fmt"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// Bind sets an unscheduled pod's node, as the binding subresource does
// (pkg/registry/core/pod/storage, BindingREST). The binding's labels and annotations
// are the pod's from then on, and so are its node's zone and region; its UID and
// resourceVersion, if it has them, must be the pod's. Errors: NotFound, Forbidden (the
// namespace is terminating, or admission refuses the binding), Conflict (already bound, being deleted, another UID or
// version).
func (s *Store) Bind(now time.Time, namespace, name, node string, binding metav1.ObjectMeta) (*v1.Pod, error) {
	in := s.info(kinds.Pod)
	if err := s.plugins.Namespace(in, namespace, name); err != nil {
		return nil, err
	}
	if chain := s.plugins.Chain(admissionv1.Create, kinds.Binding, "binding"); !chain.Idle() {
		b := &v1.Binding{ObjectMeta: binding, Target: v1.ObjectReference{Kind: string(kinds.Node), Name: node}}
		b.Namespace, b.Name = namespace, name
		if err := admitTaken(chain, s.request(now, admissionv1.Create, kinds.TakenBinding(in), b, nil, "binding")); err != nil {
			return nil, err
		}
		binding, node = b.ObjectMeta, b.Target.Name
	}
	pod := s.Pod(namespace, name)
	if pod == nil {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	gr, why := in.GroupResource(), ""
	switch {
	case binding.UID != "" && pod.UID != binding.UID:
		why = fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID)
	case binding.ResourceVersion != "" && pod.ResourceVersion != binding.ResourceVersion:
		why = fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", binding.ResourceVersion, pod.ResourceVersion)
	default:
		gr.Resource = "pods/binding"
		why = unbindable(pod)
	}
	if why != "" {
		return nil, apierrors.NewConflict(gr, name, errors.New(why))
	}
	c := *pod
	c.Spec.NodeName = node
	c.Labels = s.plugins.WithTopology(with(c.Labels, binding.Labels), node)
	c.Annotations = with(c.Annotations, binding.Annotations)
	// The pod has its node: what preemption held for it is free.
	c.Status.NominatedNodeName = "" // ClearingNominatedNodeNameAfterBinding
	c.Status.Conditions = withCondition(c.Status.Conditions, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: asjson.Time(now)})
	s.commit(watch.Modified, kinds.Pod, pod, &c, "bind", "binding")
	return &c, nil
}

// unbindable says why a pod can't be given a node; "": it can.
func unbindable(pod *v1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Sprintf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return fmt.Sprintf("pod %s has non-empty .spec.schedulingGates", pod.Name)
	}
	return ""
}

// with returns a pod's labels or annotations with others that win; those that came in,
// which are shared, where there are no others.
func with(own, others map[string]string) map[string]string {
	if len(others) == 0 {
		return own
	}
	out := make(map[string]string, len(own)+len(others))
	maps.Copy(out, own)
	maps.Copy(out, others)
	return out
}
