package disruption

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// expectedPods returns how many pods a budget is about and how many of them
// must be healthy (getExpectedPodCount). minAvailable as a number needs no scale: it counts what
// is there. Everything else does, since a controller with three replicas of which one is missing
// still means three.
func (c *Controller) expectedPods(pdb *policyv1.PodDisruptionBudget, b *budget) (expected, desired int32, unmanaged bool, err error) {
	limit, minimum := pdb.Spec.MaxUnavailable, pdb.Spec.MinAvailable
	switch {
	case limit == nil && minimum == nil:
		return 0, 0, false, nil
	case limit == nil && minimum.Type == intstr.Int:
		return int32(len(b.pods)), minimum.IntVal, false, nil
	}
	if expected, unmanaged, err = c.expectedScale(b); err != nil {
		return 0, 0, false, err
	}
	v := limit
	if v == nil {
		v = minimum
	}
	// Rounding up: of minAvailable towards more pods, of maxUnavailable towards more disruptions,
	// as documented in policy/v1.
	n, err := intstr.GetScaledValueFromIntOrPercent(v, int(expected), true)
	if err != nil {
		return 0, 0, false, err
	}
	if limit != nil {
		return expected, max(expected-int32(n), 0), unmanaged, nil
	}
	return expected, int32(n), unmanaged, nil
}

// expectedScale adds up the scales of the controllers that the pods have. Pods
// without one don't count; a controller without a scale is an error
// (getExpectedScale). Each controller counts once, however many of its pods are selected.
func (c *Controller) expectedScale(b *budget) (sum int32, unmanaged bool, err error) {
	scales := map[types.UID]int32{}
	var failed []string             // whichever pod is looked at first upstream: here the first by name
	for name, pod := range b.pods { //drydock:unordered adds up, and sorts the failures
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			unmanaged = true
			continue
		}
		if _, ok := scales[ref.UID]; ok {
			continue
		}
		uid, n, err := c.scaleOf(pod, ref)
		if err != nil {
			failed = append(failed, name)
			continue
		}
		// A ReplicaSet of a Deployment counts as the Deployment, once.
		scales[uid] = n
	}
	if len(failed) > 0 {
		// The error message depends on which pod is first, and it lands in the budget's
		// condition; hence by name.
		slices.Sort(failed)
		pod := b.pods[failed[0]]
		_, _, err := c.scaleOf(pod, metav1.GetControllerOfNoCopy(pod))
		return 0, false, err
	}
	for _, n := range scales { //drydock:unordered adds up
		sum += n
	}
	return sum, unmanaged, nil
}

// scaleOf returns the UID and the scale of what controls a pod, or of the
// Deployment that controls that (finders). Upstream's finders know ReplicaSet, Deployment,
// StatefulSet and ReplicationController, and ask anything else for its scale subresource. Jobs
// and DaemonSets have none.
func (c *Controller) scaleOf(pod *v1.Pod, ref *metav1.OwnerReference) (types.UID, int32, error) {
	s := c.api.Server().Store()
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", 0, err
	}
	// A nil field stands for 1, its default.
	replicas := func(p *int32) int32 {
		if p == nil {
			return 1
		}
		return *p
	}
	notFound := fmt.Errorf("found no controllers for pod %q", pod.Name)
	switch gk := gv.WithKind(ref.Kind).GroupKind(); gk {
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind():
		rs, _ := s.Lookup(apiserver.KindReplicaSet, pod.Namespace, ref.Name).(*appsv1.ReplicaSet)
		// Another object of the same name is not the pod's.
		if rs == nil || rs.UID != ref.UID {
			return "", 0, notFound
		}
		owner := metav1.GetControllerOfNoCopy(rs)
		if owner == nil || owner.Kind != "Deployment" {
			return rs.UID, replicas(rs.Spec.Replicas), nil
		}
		d, _ := s.Lookup(apiserver.KindDeployment, pod.Namespace, owner.Name).(*appsv1.Deployment)
		if d == nil || d.UID != owner.UID {
			return "", 0, notFound
		}
		return d.UID, replicas(d.Spec.Replicas), nil
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind():
		ss, _ := s.Lookup(apiserver.KindStatefulSet, pod.Namespace, ref.Name).(*appsv1.StatefulSet)
		if ss == nil || ss.UID != ref.UID {
			return "", 0, notFound
		}
		return ss.UID, replicas(ss.Spec.Replicas), nil
	case v1.SchemeGroupVersion.WithKind("ReplicationController").GroupKind():
		rc, _ := s.Lookup(apiserver.KindReplicationController, pod.Namespace, ref.Name).(*v1.ReplicationController)
		if rc == nil || rc.UID != ref.UID {
			return "", 0, notFound
		}
		return rc.UID, replicas(rc.Spec.Replicas), nil
	default:
		if k := s.Kinds().Find(apiserver.Kind(ref.Kind)); k != nil && k.APIVersion() == ref.APIVersion {
			return "", 0, fmt.Errorf("%v does not implement the scale subresource", schema.GroupResource{Group: gk.Group, Resource: k.Resource})
		}
		return "", 0, fmt.Errorf("no matches for kind %q in version %q", ref.Kind, ref.APIVersion)
	}
}
