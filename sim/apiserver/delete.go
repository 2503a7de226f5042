package apiserver

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// deletion is what a delete request does to an object.
type deletion struct {
	// mark: a new version with this deletion time and grace period is written.
	mark   bool
	at     metav1.Time
	period int64
	// bump: that version has a new generation.
	bump bool
	// remove: the object goes, after the marked version if there is one.
	remove bool
}

// decideDelete applies the rules of graceful deletion and of finalizers
// (staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go and
// generic/registry/store.go; pkg/registry/core/pod/strategy.go
// CheckGracefulDelete).
func decideDelete(now time.Time, obj Object, requested *int64) deletion {
	pinned := len(obj.GetFinalizers()) > 0
	if requested != nil && *requested < 0 {
		one := int64(1)
		requested = &one
	}
	pod, isPod := obj.(*v1.Pod)
	if !isPod {
		if !pinned {
			return deletion{remove: true}
		}
		if obj.GetDeletionTimestamp() != nil {
			return deletion{}
		}
		return deletion{mark: true, at: wire(now), bump: obj.GetGeneration() > 0}
	}
	if pod.DeletionTimestamp != nil {
		return decideRedelete(now, pod, requested, pinned)
	}
	period := podGrace(pod, requested)
	return deletion{
		mark:   true,
		at:     wire(now.Add(time.Duration(period) * time.Second)),
		period: period,
		bump:   pod.Generation > 0,
		remove: period == 0 && !pinned,
	}
}

// decideRedelete is for a pod that is being deleted: its grace period may only
// get shorter.
func decideRedelete(now time.Time, pod *v1.Pod, requested *int64, pinned bool) deletion {
	if pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds == 0 {
		return deletion{remove: !pinned}
	}
	current := *pod.DeletionGracePeriodSeconds
	if requested == nil || *requested >= current {
		return deletion{}
	}
	shorter := time.Duration(*requested-current) * time.Second
	return deletion{
		mark:   true,
		at:     wire(pod.DeletionTimestamp.Add(shorter)),
		period: *requested,
		remove: *requested == 0 && !pinned,
	}
}

// podGrace is the grace period in seconds that a first delete gives a pod.
func podGrace(pod *v1.Pod, requested *int64) int64 {
	var period int64
	switch {
	case requested != nil:
		period = *requested
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return 0
	}
	if period < 0 {
		return 1
	}
	return period
}

// Delete deletes an object as the API server does: at once, or by setting its
// deletion timestamp where a grace period or finalizers hold it. It returns
// the object's last state. Errors: NotFound; Conflict when a precondition does
// not hold.
func (s *Store) Delete(now time.Time, k Kind, namespace, name string, opts metav1.DeleteOptions) (Object, error) {
	if k.Namespaced() && namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	obj, err := s.Get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	in := k.info()
	if p := opts.Preconditions; p != nil {
		if p.UID != nil && *p.UID != obj.GetUID() {
			return nil, apierrors.NewConflict(in.gr(), name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, obj.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
			return nil, apierrors.NewConflict(in.gr(), name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion()))
		}
	}
	if ns, ok := obj.(*v1.Namespace); ok {
		return s.deleteNamespace(now, ns)
	}
	d := decideDelete(now, obj, opts.GracePeriodSeconds)
	if d.mark {
		c := shallow(obj)
		at := d.at
		period := d.period
		c.SetDeletionTimestamp(&at)
		c.SetDeletionGracePeriodSeconds(&period)
		if d.bump {
			c.SetGeneration(c.GetGeneration() + 1)
		}
		s.commit(watch.Modified, k, obj, c, "delete", "")
		obj = c
	}
	if d.remove {
		obj = s.remove(k, obj, "delete")
	}
	return obj, nil
}

// remove takes an object out of the store, and with the last object of a
// namespace that is being deleted the namespace. It returns what watchers see.
func (s *Store) remove(k Kind, obj Object, verb string) Object {
	old := s.Lookup(k, obj.GetNamespace(), obj.GetName())
	c := shallow(obj)
	delete(s.applied, objectKey{k, obj.GetNamespace(), obj.GetName()})
	s.commit(watch.Deleted, k, old, c, verb, "")
	if ns, ok := s.namespaces.get("", obj.GetNamespace()); ok && ns.Status.Phase == v1.NamespaceTerminating {
		s.finishNamespace(ns)
	}
	return c
}

// deleteNamespace marks a namespace as terminating and deletes what is in it
// (upstream: the namespace controller).
func (s *Store) deleteNamespace(now time.Time, ns *v1.Namespace) (Object, error) {
	switch ns.Name {
	case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
		return nil, apierrors.NewForbidden(KindNamespace.info().gr(), ns.Name, fmt.Errorf("this namespace may not be deleted"))
	}
	if ns.DeletionTimestamp != nil {
		return ns, nil
	}
	c := *ns
	at := wire(now)
	c.DeletionTimestamp = &at
	c.Status.Phase = v1.NamespaceTerminating
	s.commit(watch.Modified, KindNamespace, ns, &c, "delete", "")
	for _, in := range infos() {
		if !in.namespaced {
			continue
		}
		list, err := s.List(in.kind, ns.Name)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if _, err := s.Delete(now, in.kind, ns.Name, o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
	}
	if cur, ok := s.namespaces.get("", ns.Name); ok {
		return s.finishNamespace(cur), nil
	}
	return &c, nil
}

// finishNamespace removes a terminating namespace that holds nothing more.
func (s *Store) finishNamespace(ns *v1.Namespace) *v1.Namespace {
	for _, in := range infos() {
		if !in.namespaced {
			continue
		}
		empty := true
		s.table(in.kind).each(func(o Object) bool {
			empty = o.GetNamespace() != ns.Name
			return empty
		})
		if !empty {
			return ns
		}
	}
	c := *ns
	s.commit(watch.Deleted, KindNamespace, ns, &c, "delete", "")
	return &c
}
