package store

import (
	"fmt"
	"net/http"
	"strconv"
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
	in := s.rowOf(obj)
	if in == nil {
		return nil, errNotServed(obj)
	}
	return s.create(now, obj.DeepCopyObject().(kind.Object), in, false)
}

// rowOf returns the row of an object's kind, and of custom resources the one of their
// version; nil: that isn't served.
func (s *State) rowOf(obj kind.Object) *kind.Info {
	in := s.kinds.Of(obj)
	if in == nil || in.Custom == nil {
		return in
	}
	return in.Served(obj.GetObjectKind().GroupVersionKind().Version)
}

// errNotServed is the answer about an object of no kind that is served.
func errNotServed(obj kind.Object) error {
	return apierrors.NewBadRequest(fmt.Sprintf("no kind is served for %T %s", obj, obj.GetObjectKind().GroupVersionKind()))
}

// stored returns an object as it is stored: in the version in which its kind is, and what
// a client wrote as upstream's storage gives it back.
func (s *Store) stored(obj kind.Object, in *kind.Info) (kind.Object, error) {
	if in.Custom != nil {
		return s.InVersion(obj, s.info(in.Kind))
	}
	if s.caller != nil {
		return throughProtobuf(obj, in), nil
	}
	return obj, nil
}

// throughProtobuf returns an object as protobuf keeps it, which built-in kinds are stored
// as: a list without elements is none. What is read from there is defaulted, too.
func throughProtobuf(obj kind.Object, in *kind.Info) kind.Object {
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal(data []byte) error
	}
	out := in.New()
	from, ok1 := obj.(message)
	to, ok2 := out.(message)
	if !ok1 || !ok2 {
		return obj
	}
	data, err := from.Marshal()
	if err != nil || to.Unmarshal(data) != nil {
		return obj
	}
	out.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	in.SetDefaults(out)
	return out
}

// Wanting reports whether what was done for the caller lacks answers of webhooks.
func (s *Store) Wanting() bool { return s.caller != nil && s.caller.Calls.Wanting() }

// InVersion returns an object in the version of a row. What a webhook is to convert takes
// an answer to who asks: admission.ErrCalls.
func (s *Store) InVersion(obj kind.Object, in *kind.Info) (kind.Object, error) {
	if in.Custom == nil || obj.GetObjectKind().GroupVersionKind().Version == in.Version {
		return obj, nil
	}
	var calls *admission.Calls
	if s.caller != nil {
		calls = s.caller.Calls
	}
	return calls.Convert(obj, in) //nolint:wrapcheck // says what it is about
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
		if obj.GetGenerateName() != "" {
			return nil, apierrors.NewGenerateNameConflict(in.GroupResource(), obj.GetName(), 1)
		}
		return nil, apierrors.NewAlreadyExists(in.GroupResource(), obj.GetName())
	}
	s.stampMeta(now, obj, in)
	obj, err := s.stored(obj, in)
	if err != nil {
		return nil, err
	}
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
		s.giveName(obj, in)
	}
	if obj.GetResourceVersion() != "" && !s.dry { // who stores finds it
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if !in.Namespaced {
		return nil
	}
	return s.plugins.Namespace(in, obj.GetNamespace(), admission.Name(obj))
}

// nameAttempts is how many generated names are tried (maxNameGenerationCreateAttempts).
const nameAttempts = 8

// giveName makes a name of the object's generateName, one that is free if luck has it.
func (s *Store) giveName(obj kind.Object, in *kind.Info) {
	for range nameAttempts {
		obj.SetName(s.GenerateName(obj.GetGenerateName()))
		if s.Lookup(in.Kind, obj.GetNamespace(), obj.GetName()) == nil {
			return
		}
	}
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
	if err := giveAddresses(s, obj, nil); err != nil {
		return err
	}
	in.PrepareCreate(obj)
	if in.HasGeneration() {
		obj.SetGeneration(1)
	}
	errs := in.WithMeta(obj, s.validate(in, obj, system))
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
	in.Stamp(now, obj)
}

// Update replaces an object, or what sub ("status", "resize",
// "ephemeralcontainers") selects of it. Errors: NotFound, Conflict (another
// resource version or UID than stored), Invalid, BadRequest. An update that
// changes nothing makes no new version.
func (s *Store) Update(now time.Time, obj kind.Object, sub string) (kind.Object, error) {
	if in := s.kinds.Of(obj); in != nil {
		if old := s.Lookup(in.Kind, obj.GetNamespace(), obj.GetName()); old != nil {
			if err := CheckUID(in, old, obj.GetUID(), s.dry); err != nil {
				return nil, err
			}
		}
	}
	return s.update(now, obj.DeepCopyObject().(kind.Object), sub, "update", false)
}

// Replace is Update of an object that was computed from the stored one, as a patch's
// is: another UID is a change like others, which is Invalid. It takes obj over.
func (s *Store) Replace(now time.Time, obj kind.Object, sub, verb string) (kind.Object, error) {
	return s.update(now, obj, sub, verb, false)
}

// admitTaken has plugins change and judge what a subresource takes.
func admitTaken(chain admission.Chain, r *admission.Request) error {
	r.Object.GetObjectKind().SetGroupVersionKind(r.Kind.GroupVersionKind())
	if err := chain.Mutate(r); err != nil {
		return err
	}
	return chain.Validate(r)
}

// update takes obj over. Custom resources are checked in the version in which they came.
// admitted says that admission has decided, on obj in another form.
func (s *Store) update(now time.Time, obj kind.Object, sub, verb string, admitted bool) (kind.Object, error) {
	in := s.rowOf(obj)
	if in == nil {
		return nil, errNotServed(obj)
	}
	if in.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	stored, err := s.Get(in.Kind, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkVersion(in, stored, obj); err != nil {
		return nil, err
	}
	old, err := s.InVersion(stored, in)
	if err != nil {
		return nil, err
	}
	if err := decideUpdate(s, now, obj, old, in, sub, admitted); err != nil {
		return nil, err
	}
	if obj, err = s.stored(obj, in); err != nil {
		return nil, err
	}
	// An update that changes nothing is no write: no version, no event for
	// watchers.
	if equality.Semantic.DeepEqual(obj, stored) {
		return stored, nil
	}
	if goneByUpdate(obj, stored) {
		s.remove(in, stored, verb)
		return obj, nil
	}
	s.commit(watch.Modified, in.Kind, stored, obj, verb, sub)
	if in.Kind == kinds.Event && !s.dry {
		s.noteExpiry(now, obj.(*v1.Event))
	}
	return obj, nil
}

// decideUpdate makes obj what is to take old's place, and checks it (BeforeUpdate).
func decideUpdate(s *Store, now time.Time, obj, old kind.Object, in *kind.Info, sub string, admitted bool) error {
	obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind())
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetGeneration(old.GetGeneration())
	if !s.managedFields {
		obj.SetManagedFields(nil)
	}
	if sub == "" {
		in.SetDefaults(obj)
		if err := giveAddresses(s, obj, old); err != nil {
			return err
		}
	}
	if !in.ResetUpdate(obj, old, sub) {
		return errNoSubresource(in, sub)
	}
	in.StampUpdate(now, obj, old, sub)
	keepServerMeta(obj, old)
	var r *admission.Request
	var chain admission.Chain
	if !admitted {
		chain = s.plugins.Chain(admissionv1.Update, in.Kind, sub)
		r = s.request(now, admissionv1.Update, in, obj, old, sub)
		if err := chain.Mutate(r); err != nil {
			return err
		}
	}
	if in.NewGeneration(obj, old, sub) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
	errs := append(in.ValidateMetaUpdate(obj, old, sub), s.validateUpdate(in, obj, old, sub)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(in.GroupKind(), obj.GetName(), errs)
	}
	if admitted {
		return nil
	}
	return chain.Validate(r)
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
	return old.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0)
}

// CheckUID refuses an update of another object than the stored one: an update's UID is
// a precondition. "" is any. A dry run names another key (DryRunnableStorage).
func CheckUID(in *kind.Info, old kind.Object, uid types.UID, dry bool) error {
	if uid == "" || uid == old.GetUID() {
		return nil
	}
	key := in.StorageKey(old.GetNamespace(), old.GetName())
	if !dry {
		key = "/registry" + key
	}
	return apierrors.NewConflict(in.GroupResource(), old.GetName(), fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
		key, uid, old.GetUID()))
}

// checkVersion refuses an update of another version than the stored one. No version,
// or "0", is any, where the kind allows it.
func checkVersion(in *kind.Info, old, obj kind.Object) error {
	rv := obj.GetResourceVersion()
	if rv == old.GetResourceVersion() {
		return nil
	}
	var version uint64
	if rv != "" {
		var err error
		if version, err = strconv.ParseUint(rv, 10, 64); err != nil {
			return ErrInternal(err)
		}
	}
	if version == 0 && in.NeedsVersion {
		group := schema.GroupKind{Group: in.Group, Kind: in.Resource}
		return apierrors.NewInvalid(group, obj.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), version, "must be specified for an update")})
	}
	if version != 0 {
		return errModified(in, obj.GetName())
	}
	return nil
}

// ErrInternal is how the API answers with an error that says no more than its text
// (ErrorToAPIStatus).
func ErrInternal(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// errModified is the Conflict of a version that is not the stored one.
func errModified(in *kind.Info, name string) error {
	return apierrors.NewConflict(in.GroupResource(), name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}

// keepServerMeta puts back the metadata that no update changes, where it isn't refused
// for changing it (BeforeUpdate of k8s.io/apiserver, pkg/registry/rest).
func keepServerMeta(obj, old kind.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if t := old.GetDeletionTimestamp(); t != nil {
		obj.SetDeletionTimestamp(t)
	}
	if p := old.GetDeletionGracePeriodSeconds(); p != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(p)
	}
	obj.SetSelfLink("")
}

// errNoSubresource is the answer about a subresource that the kind does not have.
func errNoSubresource(in *kind.Info, sub string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s have no subresource %q", in.Resource, sub))
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
