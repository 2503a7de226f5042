package store

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// GetScale returns the scale of a workload or a custom resource, whose number may be
// kind.UnsetReplicas. Errors: NotFound, BadRequest (the kind has none).
func (s *Store) GetScale(k kind.Kind, namespace, name string) (*autoscalingv1.Scale, error) {
	obj, err := s.Get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	in := s.info(k)
	if in.Custom != nil {
		return customScale(obj, in)
	}
	sc, ok := in.Scale(obj)
	if !ok {
		return nil, errNoSubresource(in, "scale")
	}
	out := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp()},
		Status:     autoscalingv1.ScaleStatus{Replicas: sc.Status},
	}
	if *sc.Replicas != nil {
		out.Spec.Replicas = **sc.Replicas
	}
	if sel, err := metav1.LabelSelectorAsSelector(sc.Selector); err == nil {
		out.Status.Selector = sel.String()
	}
	return out, nil
}

// UpdateScale sets spec.replicas through the scale subresource. Errors:
// NotFound, BadRequest, Conflict (a resource version that is not the stored
// one), Invalid (a negative number). The scale's managed fields, where they are kept,
// are those of the object from then on.
func (s *Store) UpdateScale(now time.Time, k kind.Kind, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	old, err := s.Get(k, scale.Namespace, scale.Name)
	if err != nil {
		return nil, err
	}
	in := s.info(k)
	if in.Custom != nil {
		return updateCustomScale(s, now, old, in, scale)
	}
	if _, ok := in.Scale(old); !ok {
		return nil, errNoSubresource(in, "scale")
	}
	if err := checkVersion(in, old, scale); err != nil {
		return nil, err
	}
	if scale, err = admitScale(s, now, in, scale); err != nil {
		return nil, err
	}
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), scale.Name, fields.NonNegative(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")))
	}
	obj := in.Copy(old)
	// The copy's fields are its own now, so that a new number is written to it
	// alone.
	sc, _ := in.Scale(obj)
	if s.managedFields {
		obj.SetManagedFields(scale.ManagedFields)
	}
	if *sc.Replicas == nil || **sc.Replicas != scale.Spec.Replicas {
		*sc.Replicas = new(scale.Spec.Replicas)
		obj.SetGeneration(old.GetGeneration() + 1)
	} else if equality.Semantic.DeepEqual(obj.GetManagedFields(), old.GetManagedFields()) {
		return s.GetScale(k, scale.Namespace, scale.Name)
	}
	s.commit(watch.Modified, k, old, obj, "update", "scale")
	return s.GetScale(k, scale.Namespace, scale.Name)
}

// admitScale has admission decide on a scale that is to take the stored one's place, and
// returns what becomes of it.
func admitScale(s *Store, now time.Time, in *kind.Info, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	chain := s.plugins.Chain(admissionv1.Update, kinds.Scale, "scale")
	if chain.Idle() {
		return scale, nil
	}
	old, err := s.GetScale(in.Kind, scale.Namespace, scale.Name)
	if err != nil {
		return nil, err
	}
	row, scale := kinds.TakenScale(in), scale.DeepCopy()
	old.SetGroupVersionKind(row.GroupVersionKind())
	return scale, admitTaken(chain, s.request(now, admissionv1.Update, row, scale, old, "scale"))
}

// customScale is GetScale of a custom resource.
func customScale(obj kind.Object, in *kind.Info) (*autoscalingv1.Scale, error) {
	if in.Custom.Scale == nil {
		return nil, errNoSubresource(in, "scale")
	}
	scale, err := in.Custom.Scale.Of(obj)
	if err != nil {
		return nil, ErrInternal(err)
	}
	return scale, nil
}

// updateCustomScale is UpdateScale of a custom resource, which is an update of the
// object like others.
func updateCustomScale(s *Store, now time.Time, old kind.Object, in *kind.Info, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	if in.Custom.Scale == nil {
		return nil, errNoSubresource(in, "scale")
	}
	scale, err := admitScale(s, now, in, scale)
	if err != nil {
		return nil, err
	}
	if scale.Spec.Replicas == kind.UnsetReplicas {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", in.Custom.Scale.Path()))
	}
	obj := old.DeepCopyObject().(kind.Object)
	if err := in.Custom.Scale.Set(obj, scale.Spec.Replicas); err != nil {
		return nil, ErrInternal(err)
	}
	if s.managedFields {
		obj.SetManagedFields(scale.ManagedFields)
	}
	if scale.ResourceVersion != "" {
		obj.SetResourceVersion(scale.ResourceVersion)
	}
	made, err := s.update(now, obj, "", "update", true)
	if err != nil {
		return nil, err
	}
	return customScale(made, in)
}
