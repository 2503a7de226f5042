package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// The bounds of a token's life in seconds, and its default
// (pkg/apis/authentication/v1/defaults.go, validation.go).
const (
	defaultTokenSeconds = 60 * 60
	minTokenSeconds     = 10 * 60
	maxTokenSeconds     = 1 << 32
)

// CreateToken asks for a token of a service account (TokenRequest). The token
// means nothing: it is a text that the seed and the number of tokens made so
// far decide. There are no ServiceAccount objects, so every account is taken to
// exist. A token bound to a pod needs the pod, with the UID that the reference
// names. Errors: NotFound, Conflict, Invalid.
func (c *Client) CreateToken(ctx context.Context, namespace, account string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	srv := c.srv
	return call(ctx, c, request{verb: "create", resource: "serviceaccounts/token", namespace: namespace, name: account}, func(s *Store, now time.Time) (*authenticationv1.TokenRequest, error) {
		out, err := s.tokenRequest(now, namespace, tr)
		if err != nil {
			return nil, err
		}
		srv.tokens++
		out.Status.Token = tokenText(srv.l.Seed(), namespace, account, srv.tokens)
		if srv.rec != nil {
			srv.rec.Record(trace.KindAPI, "serviceaccount "+namespace+"/"+account, "create",
				trace.Str("subresource", "token"), trace.Str("by", srv.by), trace.Int("expirationSeconds", *out.Spec.ExpirationSeconds))
		}
		return out, nil
	})
}

// tokenRequest checks a request and answers it, but for the token.
func (s *Store) tokenRequest(now time.Time, namespace string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
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
		pod, ok := s.pods.Get(namespace, ref.Name)
		switch {
		case !ok:
			return nil, apierrors.NewNotFound(pods, ref.Name)
		case ref.UID != "" && ref.UID != pod.UID:
			return nil, apierrors.NewConflict(pods, ref.Name,
				fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
		}
	}
	out.Status.ExpirationTimestamp = asjson.Time(now.Add(time.Duration(seconds) * time.Second))
	return out, nil
}

// tokenText is an opaque token.
func tokenText(seed uint64, namespace, account string, n uint64) string {
	var b []byte
	for i := range uint64(4) {
		b = binary.BigEndian.AppendUint64(b, loop.Hash(seed, []string{"token", namespace, account}, n, i))
	}
	return "drydock." + base64.RawURLEncoding.EncodeToString(b)
}
