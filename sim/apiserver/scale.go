package apiserver

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// scaled is what the scale subresource reaches of an object.
type scaled struct {
	replicas **int32
	status   int32
	selector *metav1.LabelSelector
}

func scaleOf(obj Object) (scaled, bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector}, true
	case *appsv1.ReplicaSet:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector}, true
	case *appsv1.StatefulSet:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector}, true
	}
	return scaled{}, false
}

// GetScale returns the scale of a Deployment, a ReplicaSet or a StatefulSet.
// Errors: NotFound, BadRequest (the kind has none).
func (s *Store) GetScale(k Kind, namespace, name string) (*autoscalingv1.Scale, error) {
	obj, err := s.Get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	sc, ok := scaleOf(obj)
	if !ok {
		return nil, errNoSubresource(k, "scale")
	}
	out := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp()},
		Status:     autoscalingv1.ScaleStatus{Replicas: sc.status},
	}
	if *sc.replicas != nil {
		out.Spec.Replicas = **sc.replicas
	}
	if sel, err := metav1.LabelSelectorAsSelector(sc.selector); err == nil {
		out.Status.Selector = sel.String()
	}
	return out, nil
}

// UpdateScale sets spec.replicas through the scale subresource. Errors:
// NotFound, BadRequest, Conflict (a resource version that is not the stored
// one), Invalid (a negative number).
func (s *Store) UpdateScale(now time.Time, k Kind, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	old, err := s.Get(k, scale.Namespace, scale.Name)
	if err != nil {
		return nil, err
	}
	if _, ok := scaleOf(old); !ok {
		return nil, errNoSubresource(k, "scale")
	}
	if err := checkVersion(k.info(), old, scale); err != nil {
		return nil, err
	}
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), scale.Name, nonNegative(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")))
	}
	obj := shallow(old)
	sc, _ := scaleOf(obj)
	if *sc.replicas != nil && **sc.replicas == scale.Spec.Replicas {
		return s.GetScale(k, scale.Namespace, scale.Name)
	}
	n := scale.Spec.Replicas
	*sc.replicas = &n
	obj.SetGeneration(old.GetGeneration() + 1)
	s.commit(watch.Modified, k, old, obj, "update", "scale")
	return s.GetScale(k, scale.Namespace, scale.Name)
}

// GetScale is Store.GetScale.
func (s *Server) GetScale(k Kind, namespace, name string) (*autoscalingv1.Scale, error) {
	return s.store.GetScale(k, namespace, name)
}

// UpdateScale is Store.UpdateScale now.
func (s *Server) UpdateScale(k Kind, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	return s.store.UpdateScale(s.now(), k, scale)
}
