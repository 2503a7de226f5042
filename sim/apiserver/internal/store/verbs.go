package store

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// Create stores a copy of obj after defaulting, admission and validation, in
// the order of kube-apiserver. Errors: NotFound (namespace), Forbidden
// (admission), Invalid (with the fields' paths), AlreadyExists.
func (s *Store) Create(now time.Time, obj kind.Object) (kind.Object, error) {
	in := s.kinds.Of(obj)
	if in == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no kind is served for %T", obj))
	}
	return s.create(now, obj.DeepCopyObject().(kind.Object), in, false)
}

// CreateNode is Create of a node that the store shares with the kubelet: neither
// writes to what it says of the machine.
func (s *Store) CreateNode(now time.Time, node *v1.Node) (kind.Object, error) {
	return s.create(now, new(*node), s.info(kinds.Node), false)
}

// create takes obj over: it is written to. System objects may have names that
// users' may not.
func (s *Store) create(now time.Time, obj kind.Object, in *kind.Info, system bool) (kind.Object, error) {
	if err := s.prepareCreate(obj, in); err != nil {
		return nil, err
	}
	if err := s.admitNew(now, obj, in, s.plugins.Chain(admissionv1.Create, in.Kind, ""), system); err != nil {
		return nil, err
	}
	// Upstream finds the clash when it writes, so it comes after all other errors.
	if s.Lookup(in.Kind, obj.GetNamespace(), obj.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(in.GroupResource(), obj.GetName())
	}
	s.stampMeta(now, obj, in)
	s.commit(watch.Added, in.Kind, nil, obj, "create", "")
	if in.Kind == kinds.Event && !s.dry {
		s.noteExpiry(now, obj.(*v1.Event))
	}
	return obj, nil
}

// prepareCreate decides the object's namespace and name, and asks whether the
// namespace takes it.
func (s *Store) prepareCreate(obj kind.Object, in *kind.Info) error {
	obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind())
	if in.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	if !in.Namespaced {
		obj.SetNamespace("")
	}
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(s.GenerateName(obj.GetGenerateName()))
	}
	if obj.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if !in.Namespaced {
		return nil
	}
	return s.plugins.Namespace(in, obj.GetNamespace(), admission.Name(obj))
}

// admitNew defaults, admits and validates.
func (s *Store) admitNew(now time.Time, obj kind.Object, in *kind.Info, chain admission.Chain, system bool) error {
	in.SetDefaults(obj)
	// The UID comes before validation, so a manifest that is refused has used one
	// up.
	if in.UsesUID() {
		obj.SetUID(s.nextUID())
		in.UseUID(obj, obj.GetUID())
	}
	if len(chain) == 0 {
		return s.checkNew(obj, in, system)
	}
	r := s.request(now, admissionv1.Create, in, obj, nil, "")
	if err := chain.Mutate(r); err != nil {
		return err
	}
	if err := s.checkNew(obj, in, system); err != nil {
		return err
	}
	return chain.Validate(r)
}

// request is a write as admission sees it; obj or old is nil.
func (s *Store) request(now time.Time, op admissionv1.Operation, in *kind.Info, obj, old kind.Object, sub string) *admission.Request {
	of := obj
	if of == nil {
		of = old
	}
	return &admission.Request{
		Operation: op, Kind: in, Subresource: sub, Namespace: of.GetNamespace(), Name: of.GetName(),
		Object: obj, Old: old, DryRun: s.dry, Now: now, Caller: s.caller,
	}
}

// checkNew is validation, and what comes between admission and it.
func (s *Store) checkNew(obj kind.Object, in *kind.Info, system bool) error {
	if err := s.giveAddresses(obj, nil); err != nil {
		return err
	}
	in.PrepareCreate(obj)
	errs := in.ValidateMeta(obj)
	errs = append(errs, s.validate(in, obj, system)...)
	if len(errs) > 0 {
		name := obj.GetName()
		if name == "" {
			name = obj.GetGenerateName()
		}
		return apierrors.NewInvalid(in.GroupKind(), name, errs)
	}
	return nil
}

// stampMeta sets what the server decides of a new object when it is stored.
func (s *Store) stampMeta(now time.Time, obj kind.Object, in *kind.Info) {
	if !in.UsesUID() { // else it has it from admission
		obj.SetUID(s.nextUID())
	}
	obj.SetCreationTimestamp(asjson.Time(now))
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	if !s.managedFields {
		obj.SetManagedFields(nil)
	}
	obj.SetSelfLink("")
	obj.SetGeneration(0)
	if in.HasGeneration() {
		obj.SetGeneration(1)
	}
	in.Stamp(now, obj)
}

// Update replaces an object, or what sub ("status", "resize",
// "ephemeralcontainers") selects of it. Errors: NotFound, Conflict (another
// resource version or UID than stored), Invalid, BadRequest. An update that
// changes nothing makes no new version.
func (s *Store) Update(now time.Time, obj kind.Object, sub string) (kind.Object, error) {
	return s.update(now, obj.DeepCopyObject().(kind.Object), sub, "update")
}

// update takes obj over.
func (s *Store) update(now time.Time, obj kind.Object, sub, verb string) (kind.Object, error) {
	in := s.kinds.Of(obj)
	if in == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no kind is served for %T", obj))
	}
	if in.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	old, err := s.Get(in.Kind, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkVersion(in, old, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind())
	keepServerMeta(obj, old)
	if !s.managedFields {
		obj.SetManagedFields(nil)
	}
	if sub == "" {
		in.SetDefaults(obj)
		if err := s.giveAddresses(obj, old); err != nil {
			return nil, err
		}
	}
	if !in.PrepareUpdate(obj, old, sub) {
		return nil, errNoSubresource(in, sub)
	}
	in.StampUpdate(now, obj, old, sub)
	var r *admission.Request
	chain := s.plugins.Chain(admissionv1.Update, in.Kind, sub)
	if len(chain) > 0 {
		r = s.request(now, admissionv1.Update, in, obj, old, sub)
		if err := chain.Mutate(r); err != nil {
			return nil, err
		}
	}
	if in.NewGeneration(obj, old, sub) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
	errs := append(in.ValidateMetaUpdate(obj, old), s.validateUpdate(in, obj, old, sub)...)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(in.GroupKind(), obj.GetName(), errs)
	}
	if err := chain.Validate(r); err != nil {
		return nil, err
	}
	// An update that changes nothing is no write: no version, no event for
	// watchers.
	if equality.Semantic.DeepEqual(obj, old) {
		return old, nil
	}
	if goneByUpdate(obj, old) {
		s.remove(in, obj, verb)
		return obj, nil
	}
	s.commit(watch.Modified, in.Kind, old, obj, verb, sub)
	if in.Kind == kinds.Event && !s.dry {
		s.noteExpiry(now, obj.(*v1.Event))
	}
	return obj, nil
}

// goneByUpdate reports whether an update took away the last of what holds an object
// that is being deleted (ShouldDeleteDuringUpdate, ShouldDeleteNamespaceDuringUpdate).
func goneByUpdate(obj, old kind.Object) bool {
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
func checkVersion(in *kind.Info, old, obj kind.Object) error {
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(in.GroupResource(), obj.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	rv := obj.GetResourceVersion()
	if rv == "" && in.NeedsVersion {
		gk := schema.GroupKind{Group: in.Group, Kind: in.Resource} // upstream has no kind where it finds that
		return apierrors.NewInvalid(gk, obj.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	if rv != "" && rv != old.GetResourceVersion() {
		return errModified(in, obj.GetName())
	}
	return nil
}

// errModified is the Conflict of a version that is not the stored one.
func errModified(in *kind.Info, name string) error {
	return apierrors.NewConflict(in.GroupResource(), name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}

// keepServerMeta puts back the metadata that no update changes. What else may not change,
// validation refuses.
func keepServerMeta(obj, old kind.Object) {
	obj.SetResourceVersion(old.GetResourceVersion())
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if t := old.GetDeletionTimestamp(); t != nil {
		obj.SetDeletionTimestamp(t)
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	obj.SetGeneration(old.GetGeneration())
	obj.SetSelfLink("")
}

// errNoSubresource is the answer about a subresource that the kind does not have.
func errNoSubresource(in *kind.Info, sub string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s have no subresource %q", in.Resource, sub))
}

// Bind sets an unscheduled pod's node, as the binding subresource does. uid may
// be "". Errors: NotFound, Forbidden (the namespace is terminating), Conflict
// (already bound, being deleted, another UID).
func (s *Store) Bind(now time.Time, namespace, name string, uid types.UID, node string) (*v1.Pod, error) {
	in := s.info(kinds.Pod)
	if err := s.plugins.Namespace(in, namespace, name); err != nil {
		return nil, err
	}
	pod := s.Pod(namespace, name)
	if pod == nil {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	gr, why := in.GroupResource(), ""
	gr.Resource = "pods/binding"
	switch {
	case uid != "" && pod.UID != uid:
		gr, why = in.GroupResource(), fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, pod.UID)
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
	// The pod has its node: what preemption held for it is free.
	c.Status.NominatedNodeName = "" // ClearingNominatedNodeNameAfterBinding
	c.Status.Conditions = withCondition(c.Status.Conditions, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation, LastTransitionTime: asjson.Time(now)})
	s.commit(watch.Modified, kinds.Pod, pod, &c, "bind", "binding")
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
	in := s.info(kinds.Lease)
	old, ok := s.leases.get(lease.Namespace, lease.Name)
	if !ok {
		return nil, apierrors.NewNotFound(in.GroupResource(), lease.Name)
	}
	if err := checkVersion(in, old, lease); err != nil {
		return nil, err
	}
	c := *old
	c.Spec = asjson.Lease(lease.Spec)
	c.Labels, c.Annotations, c.OwnerReferences = lease.Labels, lease.Annotations, lease.OwnerReferences
	s.commit(watch.Modified, kinds.Lease, old, &c, "update", "")
	return &c, nil
}
