package store

import (
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
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

// TokenRequest checks a request and answers it, but for the token.
func (s *Store) TokenRequest(now time.Time, namespace string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	out := tr.DeepCopy()
	out.Namespace = namespace
	fields.DefaultPtr(&out.Spec.ExpirationSeconds, int64(defaultTokenSeconds))
	seconds := *out.Spec.ExpirationSeconds
	if seconds < minTokenSeconds || seconds > maxTokenSeconds {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.expirationSeconds: Invalid value: %d: may not specify a duration less than 10 minutes or larger than 2^32 seconds", seconds))
	}
	if len(out.Spec.Audiences) == 0 {
		out.Spec.Audiences = []string{"https://kubernetes.default.svc.cluster.local"}
	}
	if ref := out.Spec.BoundObjectRef; ref != nil && ref.Kind == "Pod" {
		pods := schema.GroupResource{Resource: "pods"}
		pod := s.Pod(namespace, ref.Name)
		switch {
		case pod == nil:
			return nil, apierrors.NewNotFound(pods, ref.Name)
		case ref.UID != "" && ref.UID != pod.UID:
			return nil, apierrors.NewConflict(pods, ref.Name,
				fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
		}
	}
	out.Status.ExpirationTimestamp = asjson.Time(now.Add(time.Duration(seconds) * time.Second))
	return out, nil
}

// The bounds of a token's life in seconds, and its default
// (pkg/apis/authentication/v1/defaults.go, validation.go).
const (
	defaultTokenSeconds = 60 * 60
	minTokenSeconds     = 10 * 60
	maxTokenSeconds     = 1 << 32
)
