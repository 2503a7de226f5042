package store

import (
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

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
