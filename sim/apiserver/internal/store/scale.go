package store

import (
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// GetScale returns the scale of a Deployment, a ReplicaSet or a StatefulSet.
// Errors: NotFound, BadRequest (the kind has none).
func (s *Store) GetScale(k kind.Kind, namespace, name string) (*autoscalingv1.Scale, error) {
	obj, err := s.Get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	in := s.info(k)
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
// one), Invalid (a negative number).
func (s *Store) UpdateScale(now time.Time, k kind.Kind, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	old, err := s.Get(k, scale.Namespace, scale.Name)
	if err != nil {
		return nil, err
	}
	in := s.info(k)
	if _, ok := in.Scale(old); !ok {
		return nil, errNoSubresource(in, "scale")
	}
	if err := checkVersion(in, old, scale); err != nil {
		return nil, err
	}
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), scale.Name, fields.NonNegative(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")))
	}
	obj := in.Copy(old)
	// The copy's fields are its own now, so that a new number is written to it
	// alone.
	sc, _ := in.Scale(obj)
	if *sc.Replicas != nil && **sc.Replicas == scale.Spec.Replicas {
		return s.GetScale(k, scale.Namespace, scale.Name)
	}
	*sc.Replicas = new(scale.Spec.Replicas)
	obj.SetGeneration(old.GetGeneration() + 1)
	s.commit(watch.Modified, k, old, obj, "update", "scale")
	return s.GetScale(k, scale.Namespace, scale.Name)
}
