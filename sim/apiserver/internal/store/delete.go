package store

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
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
func decideDelete(now time.Time, obj kind.Object, requested *int64) deletion {
	pinned := len(obj.GetFinalizers()) > 0
	// A negative period counts as one second, as upstream has it.
	if requested != nil && *requested < 0 {
		requested = new(int64(1))
	}
	pod, isPod := obj.(*v1.Pod)
	if !isPod {
		if !pinned {
			return deletion{remove: true}
		}
		if obj.GetDeletionTimestamp() != nil {
			return deletion{}
		}
		return deletion{mark: true, at: asjson.Time(now), bump: obj.GetGeneration() > 0}
	}
	if pod.DeletionTimestamp != nil {
		return decideRedelete(now, pod, requested, pinned)
	}
	period := podGrace(pod, requested)
	return deletion{
		mark:   true,
		at:     asjson.Time(now.Add(time.Duration(period) * time.Second)),
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
	// The end moves by as much as the period: it began with the first request. One
	// that would be over leaves a second to who ends the pod.
	d := deletion{
		mark:   true,
		at:     asjson.Time(pod.DeletionTimestamp.Add(time.Duration(*requested-current) * time.Second)),
		period: *requested,
		remove: *requested == 0 && !pinned,
	}
	if d.at.Time.Before(now) {
		d.at = asjson.Time(now)
		if d.period != 0 {
			d.period = 1
		}
	}
	return d
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
	// No kubelet has anything to end.
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
func (s *Store) Delete(now time.Time, k kind.Kind, namespace, name string, opts metav1.DeleteOptions) (kind.Object, error) {
	in := s.kinds.Find(k)
	if in == nil {
		return nil, errNoKind(k)
	}
	if in.Namespaced && namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	obj, err := s.Get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	ns, isNamespace := obj.(*v1.Namespace)
	check := checkPreconditions
	if isNamespace {
		check = checkNamespacePreconditions
	}
	if err := check(in, obj, opts.Preconditions); err != nil {
		return nil, err
	}
	if chain := s.plugins.Chain(admissionv1.Delete, k, ""); len(chain) > 0 {
		r := s.request(now, admissionv1.Delete, in, nil, obj, "")
		r.Options = &opts
		if err := chain.Mutate(r); err != nil {
			return nil, err
		}
		if err := chain.Validate(r); err != nil {
			return nil, err
		}
	}
	if isNamespace {
		return deleteNamespace(s, now, ns, opts)
	}
	if def, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok && def.DeletionTimestamp == nil {
		return markDefinition(s, now, def), nil
	}
	old := obj
	if k != kinds.Event {
		obj = withPropagation(obj, in, &opts)
	}
	d := decideDelete(now, obj, opts.GracePeriodSeconds)
	if d.mark {
		c := in.Copy(obj)
		at := d.at
		period := d.period
		c.SetDeletionTimestamp(&at)
		c.SetDeletionGracePeriodSeconds(&period)
		if d.bump {
			c.SetGeneration(c.GetGeneration() + 1)
		}
		s.commit(watch.Modified, k, old, c, "delete", "")
		obj = c
	} else if obj != old && !d.remove { // its finalizers are others
		s.commit(watch.Modified, k, old, obj, "delete", "")
	}
	if d.remove {
		obj = s.remove(in, obj, "delete")
	}
	return obj, nil
}

// withPropagation returns the object with the finalizers that have the garbage
// collector orphan its dependents, or delete them first
// (deletionFinalizersForGarbageCollection). Without a policy, dependents are
// deleted in the background, but for those of kinds whose dependents are orphaned
// (DefaultGarbageCollectionPolicy).
func withPropagation(obj kind.Object, in *kind.Info, opts *metav1.DeleteOptions) kind.Object {
	had := obj.GetFinalizers()
	orphan, foreground := slices.Contains(had, metav1.FinalizerOrphanDependents), slices.Contains(had, metav1.FinalizerDeleteDependents)
	switch policy := opts.PropagationPolicy; {
	case opts.OrphanDependents != nil:
		orphan, foreground = *opts.OrphanDependents, false
	case policy != nil:
		orphan, foreground = *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	case in.OrphansByDefault:
		orphan = orphan || !foreground
	}
	return withGCFinalizers(obj, in, orphan, foreground)
}

// withGCFinalizers returns the object with those of the garbage collector's finalizers
// that it is to have.
func withGCFinalizers(obj kind.Object, in *kind.Info, orphan, foreground bool) kind.Object {
	had := obj.GetFinalizers()
	if slices.Contains(had, metav1.FinalizerOrphanDependents) == orphan && slices.Contains(had, metav1.FinalizerDeleteDependents) == foreground {
		return obj
	}
	list := lists.Filter(had, func(f string) bool {
		return f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents
	})
	if orphan {
		list = append(list, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		list = append(list, metav1.FinalizerDeleteDependents)
	}
	c := in.Copy(obj)
	c.SetFinalizers(list)
	return c
}

// checkPreconditions returns a Conflict when a deletion is meant for another
// object, or another version of it, than the stored one.
func checkPreconditions(in *kind.Info, obj kind.Object, p *metav1.Preconditions) error {
	gr := schema.GroupResource{Group: in.Group, Resource: in.Written()} // upstream names the kind
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != obj.GetUID():
		return apierrors.NewConflict(gr, obj.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, obj.GetUID()))
	case p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion():
		return apierrors.NewConflict(gr, obj.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion()))
	}
	return nil
}

// checkNamespacePreconditions is checkPreconditions for namespaces, which has another
// text.
func checkNamespacePreconditions(in *kind.Info, ns kind.Object, p *metav1.Preconditions) error {
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != ns.GetUID():
		return apierrors.NewConflict(in.GroupResource(), ns.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, ns.GetUID()))
	case p.ResourceVersion != nil && *p.ResourceVersion != ns.GetResourceVersion():
		return apierrors.NewConflict(in.GroupResource(), ns.GetName(), fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, ns.GetResourceVersion()))
	}
	return nil
}

// remove takes an object out of the store. It returns what watchers see. An update by
// which an object goes, since it took the last finalizer, isn't written: watchers see
// the object as it was before (deleteWithoutFinalizers of
// k8s.io/apiserver/pkg/registry/generic/registry).
func (s *Store) remove(in *kind.Info, obj kind.Object, verb string) kind.Object {
	old := s.Lookup(in.Kind, obj.GetNamespace(), obj.GetName())
	c := in.Copy(obj)
	if !s.dry {
		delete(s.applied, objectKey{in.Kind, obj.GetNamespace(), obj.GetName()})
	}
	s.commit(watch.Deleted, in.Kind, old, c, verb, "")
	// A service takes its endpoints with it (pkg/registry/core/service/storage
	// afterDelete), so that they don't become those of another one of its name.
	if in.Kind == kinds.Service {
		if ep := s.Lookup(kinds.Endpoints, obj.GetNamespace(), obj.GetName()); ep != nil && len(ep.GetFinalizers()) == 0 {
			s.remove(s.info(kinds.Endpoints), ep, verb)
		}
	}
	return c
}

// deleteNamespace marks a namespace as terminating, and removes one without
// finalizers (pkg/registry/core/namespace/storage/storage.go). Its content is the
// namespace controller's.
func deleteNamespace(s *Store, now time.Time, ns *v1.Namespace, opts metav1.DeleteOptions) (kind.Object, error) {
	in := s.info(kinds.Namespace)
	switch ns.Name {
	case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
		return nil, apierrors.NewForbidden(in.GroupResource(), ns.Name, fmt.Errorf("this namespace may not be deleted"))
	}
	// The first request marks it; others only look whether it can go.
	if ns.DeletionTimestamp == nil {
		c := *ns
		c.DeletionTimestamp = new(asjson.Time(now))
		c.Status.Phase = v1.NamespaceTerminating
		marked := withNamespaceFinalizers(&c, in, &opts)
		s.commit(watch.Modified, kinds.Namespace, ns, marked, "delete", "")
		return marked, nil
	}
	if !free(ns) {
		return ns, nil
	}
	return s.remove(in, ns, "delete"), nil
}

// withNamespaceFinalizers is withPropagation for namespaces, where not to orphan is to
// delete in the foreground.
func withNamespaceFinalizers(ns *v1.Namespace, in *kind.Info, opts *metav1.DeleteOptions) *v1.Namespace {
	orphan, foreground := slices.Contains(ns.Finalizers, metav1.FinalizerOrphanDependents), slices.Contains(ns.Finalizers, metav1.FinalizerDeleteDependents)
	switch policy := opts.PropagationPolicy; {
	case opts.OrphanDependents != nil:
		orphan, foreground = *opts.OrphanDependents, !*opts.OrphanDependents
	case policy != nil:
		orphan, foreground = *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	}
	return withGCFinalizers(ns, in, orphan, foreground).(*v1.Namespace)
}

// markDefinition has a definition wait for its resources to be deleted
// (k8s.io/apiextensions-apiserver, pkg/registry/customresourcedefinition/etcd.go). They are
// up to who establishes definitions.
func markDefinition(s *Store, now time.Time, def *apiextensionsv1.CustomResourceDefinition) kind.Object {
	c := def.DeepCopy()
	c.DeletionTimestamp = new(asjson.Time(now))
	if !slices.Contains(c.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		c.Finalizers = append(c.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	c.Status.Conditions = append(c.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: asjson.Time(now), Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
	s.commit(watch.Modified, kinds.CustomResourceDefinition, def, c, "delete", "")
	return c
}

// FinalizeNamespace takes the finalizer kubernetes off a namespace, as an update
// of its subresource finalize does: one that is being deleted goes if that was
// the last. Errors: NotFound.
func (s *Store) FinalizeNamespace(name string) error {
	ns := s.Namespace(name)
	if ns == nil {
		return apierrors.NewNotFound(s.info(kinds.Namespace).GroupResource(), name)
	}
	c := *ns
	c.Spec.Finalizers = slices.DeleteFunc(slices.Clone(ns.Spec.Finalizers), func(f v1.FinalizerName) bool { return f == v1.FinalizerKubernetes })
	if free(&c) {
		s.remove(s.info(kinds.Namespace), ns, "delete")
	} else {
		s.commit(watch.Modified, kinds.Namespace, ns, &c, "update", "finalize")
	}
	return nil
}

// free reports whether a namespace is being deleted and nothing holds it.
func free(ns *v1.Namespace) bool {
	return ns.DeletionTimestamp != nil && len(ns.Spec.Finalizers)+len(ns.Finalizers) == 0
}

// DropAll takes out all objects of a kind, whatever holds them.
func (s *Store) DropAll(k kind.Kind) {
	in := s.info(k)
	list, _ := s.List(k, "") // the kind is served
	for _, obj := range list {
		s.remove(in, in.Copy(obj), "delete")
	}
}
