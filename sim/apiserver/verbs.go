package apiserver

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/kubelet/qos"
)

// Create stores a copy of obj after defaulting, admission and validation, in
// the order of kube-apiserver. Errors: NotFound (namespace), Forbidden
// (admission), Invalid (with the fields' paths), AlreadyExists.
func (s *Store) Create(now time.Time, obj Object) (Object, error) {
	k, ok := KindOf(obj)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no kind is served for %T", obj))
	}
	return s.create(now, obj.DeepCopyObject().(Object), k.info(), false)
}

// create takes obj over: it is written to. System objects may have names that
// users' may not.
func (s *Store) create(now time.Time, obj Object, in kindInfo, system bool) (Object, error) {
	if err := s.prepareCreate(obj, in); err != nil {
		return nil, err
	}
	obj, err := s.admitNew(obj, in, system)
	if err != nil {
		return nil, err
	}
	if s.Lookup(in.kind, obj.GetNamespace(), obj.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(in.gr(), obj.GetName())
	}
	s.stampMeta(now, obj)
	s.commit(watch.Added, in.kind, nil, obj, "create", "")
	if in.kind == KindEvent {
		s.noteExpiry(now, obj.(*v1.Event))
	}
	return obj, nil
}

// prepareCreate settles the object's namespace and name.
func (s *Store) prepareCreate(obj Object, in kindInfo) error {
	obj.GetObjectKind().SetGroupVersionKind(in.gk().WithVersion(in.version))
	if in.namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	if !in.namespaced {
		obj.SetNamespace("")
	}
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(s.generateName(obj.GetGenerateName()))
	}
	if obj.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if !in.namespaced {
		return nil
	}
	return s.namespaceTakes(in, obj.GetNamespace(), admissionName(obj))
}

// namespaceTakes tells whether a namespace is there and not about to end
// (the plugin NamespaceLifecycle). It is asked of evictions and bindings too, which
// are created. Errors: NotFound; Forbidden with the cause NamespaceTerminating.
func (s *Store) namespaceTakes(in kindInfo, namespace, name string) error {
	ns, ok := s.namespaces.get("", namespace)
	if !ok {
		return apierrors.NewNotFound(KindNamespace.info().gr(), namespace)
	}
	if ns.Status.Phase == v1.NamespaceTerminating {
		err := apierrors.NewForbidden(in.gr(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: v1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace"})
		return err
	}
	return nil
}

// admitNew defaults, admits and validates.
func (s *Store) admitNew(obj Object, in kindInfo, system bool) (Object, error) {
	setDefaults(obj)
	if job, ok := obj.(*batchv1.Job); ok { // its selector is made of its UID
		job.UID = s.nextUID()
		generateJobSelector(job, job.UID)
	}
	if pod, ok := obj.(*v1.Pod); ok {
		if err := s.admitPod(pod); err != nil {
			return nil, err
		}
	}
	if node, ok := obj.(*v1.Node); ok {
		s.admitNode(node)
	}
	prepareStatus(obj)
	errs := validateMeta(obj, in)
	errs = append(errs, validateObject(obj, system)...)
	if len(errs) > 0 {
		name := obj.GetName()
		if name == "" {
			name = obj.GetGenerateName()
		}
		return nil, apierrors.NewInvalid(in.gk(), name, errs)
	}
	return obj, nil
}

// prepareStatus resets what only the server sets on a new object
// (PrepareForCreate of the registry's strategies).
func prepareStatus(obj Object) {
	switch o := obj.(type) {
	case *v1.Pod:
		o.Generation = 1
		o.Status = v1.PodStatus{Phase: v1.PodPending, QOSClass: qos.Compute(o)}
		mergeLabelKeys(o)
	case *v1.Namespace:
		o.Status = v1.NamespaceStatus{Phase: v1.NamespaceActive}
		if !slices.Contains(o.Spec.Finalizers, v1.FinalizerKubernetes) {
			o.Spec.Finalizers = append(o.Spec.Finalizers, v1.FinalizerKubernetes)
		}
	case *v1.Service:
		o.Status = v1.ServiceStatus{}
	case *v1.Node:
		for i := range o.Status.Conditions {
			o.Status.Conditions[i] = wireNodeCondition(o.Status.Conditions[i])
		}
	case *coordinationv1.Lease:
		o.Spec = wireLease(o.Spec)
	case *v1.Event:
		wireEvent(o)
	default:
		resetStatus(obj)
	}
}

// stampMeta sets what the server decides of a new object when it is stored: its
// metadata, and the condition of a gated pod.
func (s *Store) stampMeta(now time.Time, obj Object) {
	if _, ok := obj.(*batchv1.Job); !ok { // a job has it from admission
		obj.SetUID(s.nextUID())
	}
	obj.SetCreationTimestamp(wire(now))
	if pod, ok := obj.(*v1.Pod); ok && len(pod.Spec.SchedulingGates) > 0 { // applySchedulingGatedCondition
		pod.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, LastTransitionTime: wire(now),
			Reason: v1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetManagedFields(nil)
	obj.SetSelfLink("")
	obj.SetGeneration(0)
	if hasGeneration(obj) {
		obj.SetGeneration(1)
	}
}

// Update replaces an object, or what sub ("status", "resize",
// "ephemeralcontainers") selects of it. Errors: NotFound, Conflict (another
// resource version or UID than stored), Invalid, BadRequest. An update that
// changes nothing makes no new version.
func (s *Store) Update(now time.Time, obj Object, sub string) (Object, error) {
	return s.update(now, obj.DeepCopyObject().(Object), sub, "update")
}

// update takes obj over.
func (s *Store) update(now time.Time, obj Object, sub, verb string) (Object, error) {
	k, ok := KindOf(obj)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no kind is served for %T", obj))
	}
	in := k.info()
	if in.namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	old, err := s.Get(k, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkVersion(in, old, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(in.gk().WithVersion(in.version))
	keepServerMeta(obj, old)
	if err := keepBySubresource(obj, old, sub); err != nil {
		return nil, err
	}
	switch pod, _ := obj.(*v1.Pod); {
	case sub == "":
		setDefaults(obj)
	case sub == "resize" && pod != nil:
		setResizeDefaults(&pod.Spec)
	}
	if pod, ok := obj.(*v1.Pod); ok && !equality.Semantic.DeepEqual(pod.Spec, old.(*v1.Pod).Spec) {
		pod.Generation++
	}
	if sub == "" {
		countGeneration(obj, old)
	}
	if sub == "resize" {
		if err := s.admitResize(obj.(*v1.Pod)); err != nil {
			return nil, err
		}
	}
	errs := validateMeta(obj, in)
	errs = append(errs, validateMetaUpdate(obj, old)...)
	errs = append(errs, validateUpdate(obj, old, sub)...)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(in.gk(), obj.GetName(), errs)
	}
	if equality.Semantic.DeepEqual(obj, old) {
		return old, nil
	}
	if goneByUpdate(obj, old) {
		s.remove(k, obj, verb)
		return obj, nil
	}
	s.commit(watch.Modified, k, old, obj, verb, sub)
	if k == KindEvent {
		s.noteExpiry(now, obj.(*v1.Event))
	}
	return obj, nil
}

// goneByUpdate tells whether an update took away the last of what holds an object
// that is being deleted (ShouldDeleteDuringUpdate, ShouldDeleteNamespaceDuringUpdate).
func goneByUpdate(obj, old Object) bool {
	if len(obj.GetFinalizers()) > 0 {
		return false
	}
	if ns, ok := obj.(*v1.Namespace); ok { // deleted without a grace period
		return old.GetDeletionTimestamp() != nil && len(ns.Spec.Finalizers) == 0
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}

// checkVersion refuses an update of another version or object than the stored.
func checkVersion(in kindInfo, old, obj Object) error {
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(in.gr(), obj.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	rv := obj.GetResourceVersion()
	if rv == "" && in.kind == KindLease {
		return apierrors.NewInvalid(in.gk(), obj.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	if rv != "" && rv != old.GetResourceVersion() {
		return errModified(in, obj.GetName())
	}
	return nil
}

func errModified(in kindInfo, name string) error {
	return apierrors.NewConflict(in.gr(), name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}

// keepServerMeta puts back the metadata that no update changes.
func keepServerMeta(obj, old Object) {
	obj.SetResourceVersion(old.GetResourceVersion())
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if t := obj.GetCreationTimestamp(); t.IsZero() {
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(old.GetGeneration())
	obj.SetGenerateName(old.GetGenerateName())
	obj.SetManagedFields(nil)
	obj.SetSelfLink("")
}

// keepBySubresource puts back what an update through sub does not reach
// (PrepareForUpdate of the registry's strategies).
func keepBySubresource(obj, old Object, sub string) error {
	switch o := obj.(type) {
	case *v1.Pod:
		p := old.(*v1.Pod)
		switch sub {
		case "":
			o.Status = p.Status
			o.Spec.EphemeralContainers = p.Spec.EphemeralContainers
		case "status":
			o.Spec = p.Spec
			o.OwnerReferences = p.OwnerReferences
			if o.Status.QOSClass == "" {
				o.Status.QOSClass = p.Status.QOSClass
			}
		case "resize", "ephemeralcontainers":
			spec := o.Spec
			*o = *p
			if sub == "resize" {
				o.Spec = resized(&p.Spec, &spec)
			} else {
				o.Spec.EphemeralContainers = spec.EphemeralContainers
				setEphemeralDefaults(&o.Spec)
			}
		default:
			return errNoSubresource(KindPod, sub)
		}
	case *v1.Node:
		switch sub {
		case "":
			o.Status = old.(*v1.Node).Status
		case "status":
			o.Spec = old.(*v1.Node).Spec
		default:
			return errNoSubresource(KindNode, sub)
		}
	case *v1.Namespace:
		o.Spec.Finalizers = old.(*v1.Namespace).Spec.Finalizers // only finalize changes them
		if sub == "" {
			o.Status = old.(*v1.Namespace).Status
		}
	case *v1.Service:
		if sub == "" {
			o.Status = old.(*v1.Service).Status
		}
	default:
		if !keepWorkloadPart(obj, old, sub) {
			k, _ := KindOf(obj)
			return errNoSubresource(k, sub)
		}
	}
	return nil
}

func errNoSubresource(k Kind, sub string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s have no subresource %q", k.info().resource, sub))
}

// Bind sets an unscheduled pod's node, as the binding subresource does. uid may
// be "". Errors: NotFound, Forbidden (the namespace is terminating), Conflict
// (already bound, being deleted, another UID).
func (s *Store) Bind(now time.Time, namespace, name string, uid types.UID, node string) (*v1.Pod, error) {
	in := KindPod.info()
	if err := s.namespaceTakes(in, namespace, name); err != nil {
		return nil, err
	}
	pod, ok := s.pods.get(namespace, name)
	if !ok {
		return nil, apierrors.NewNotFound(in.gr(), name)
	}
	gr, why := in.gr(), ""
	gr.Resource = "pods/binding"
	switch {
	case uid != "" && pod.UID != uid:
		gr, why = in.gr(), fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, pod.UID)
	case pod.DeletionTimestamp != nil:
		why = fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", name)
	case pod.Spec.NodeName != "":
		why = fmt.Sprintf("pod %s is already assigned to node %q", name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		why = fmt.Sprintf("pod %s has non-empty .spec.schedulingGates", name)
	}
	if why != "" {
		return nil, apierrors.NewConflict(gr, name, fmt.Errorf("%s", why))
	}
	c := *pod
	c.Spec.NodeName = node
	c.Status.NominatedNodeName = "" // ClearingNominatedNodeNameAfterBinding
	c.Status.Conditions = withCondition(c.Status.Conditions, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation, LastTransitionTime: wire(now)})
	s.commit(watch.Modified, KindPod, pod, &c, "bind", "binding")
	return &c, nil
}

// withCondition returns the conditions with c set; a transition time moves
// only with the status.
func withCondition(list []v1.PodCondition, c v1.PodCondition) []v1.PodCondition {
	out := append(make([]v1.PodCondition, 0, len(list)+1), list...)
	for i := range out {
		if out[i].Type != c.Type {
			continue
		}
		if out[i].Status == c.Status {
			c.LastTransitionTime = out[i].LastTransitionTime
		}
		out[i] = c
		return out
	}
	return append(out, c)
}

// UpdateLease replaces a lease's spec. The lease must carry the stored
// resource version (else Conflict).
func (s *Store) UpdateLease(now time.Time, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	in := KindLease.info()
	old, ok := s.leases.get(lease.Namespace, lease.Name)
	if !ok {
		return nil, apierrors.NewNotFound(in.gr(), lease.Name)
	}
	if err := checkVersion(in, old, lease); err != nil {
		return nil, err
	}
	c := *old
	c.Spec = wireLease(lease.Spec)
	c.Labels, c.Annotations, c.OwnerReferences = lease.Labels, lease.Annotations, lease.OwnerReferences
	s.commit(watch.Modified, KindLease, old, &c, "update", "")
	return &c, nil
}

// wireLease cuts a lease's times to microseconds.
func wireLease(spec coordinationv1.LeaseSpec) coordinationv1.LeaseSpec {
	cut := func(t *metav1.MicroTime) *metav1.MicroTime {
		if t == nil || t.Nanosecond()%1000 == 0 {
			return t
		}
		return &metav1.MicroTime{Time: t.UTC().Truncate(time.Microsecond)}
	}
	spec.RenewTime, spec.AcquireTime = cut(spec.RenewTime), cut(spec.AcquireTime)
	return spec
}
