package store

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/token"
)

// ServiceAccount returns a service account. Where each is taken to exist, as by
// TokenRequest, one that is not there has a name only. Errors: NotFound.
func ServiceAccount(s *Store, namespace, name string) (kind.Object, error) {
	if s.Lookup(kinds.ServiceAccount, namespace, name) == nil && !s.plugins.ServiceAccounts() {
		return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, nil
	}
	return s.Get(kinds.ServiceAccount, namespace, name)
}

// TokenRequest checks a request for a token of an account and completes it, but for the
// token, whose claims it returns beside (TokenREST of
// pkg/registry/core/serviceaccount/storage). Where accounts are not asked for
// (UseServiceAccounts) each is taken to exist. Errors: NotFound (the account, or the
// object that the token is bound to), Conflict (it has another UID), Invalid, BadRequest.
func (s *Store) TokenRequest(now time.Time, namespace, name string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, *token.Claims, error) {
	out := tr.DeepCopy()
	SetTokenDefaults(out)
	gk := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind()
	for _, m := range []struct{ child, is, want string }{{"name", out.Name, name}, {"namespace", out.Namespace, namespace}} {
		if m.is != "" && m.is != m.want {
			return nil, nil, apierrors.NewInvalid(gk, name, field.ErrorList{field.Invalid(field.NewPath("metadata", m.child), m.is, "must match the service account "+m.child+" if specified")})
		}
	}
	account := s.Lookup(kinds.ServiceAccount, namespace, name)
	if account == nil && s.plugins.ServiceAccounts() {
		return nil, nil, apierrors.NewNotFound(s.info(kinds.ServiceAccount).GroupResource(), name)
	}
	var uid types.UID
	if account != nil {
		uid = account.GetUID()
	}
	if out.UID != "" && out.UID != uid {
		return nil, nil, apierrors.NewConflict(schema.GroupResource{Group: gk.Group, Resource: gk.Kind}, name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", out.UID, uid))
	}
	if len(out.Spec.Audiences) == 0 {
		out.Spec.Audiences = []string{token.Issuer}
	}
	out.Name, out.Namespace, out.UID = name, namespace, uid
	out.CreationTimestamp, out.Status = asjson.Time(now), authenticationv1.TokenRequestStatus{}
	if errs := validateTokenRequest(out); len(errs) > 0 {
		return nil, nil, apierrors.NewInvalid(gk, "", errs)
	}
	if chain := s.plugins.Chain(admissionv1.Create, kinds.TokenRequest, "token"); !chain.Idle() {
		if err := admitTaken(chain, s.request(now, admissionv1.Create, kinds.TakenTokenRequest(s.info(kinds.ServiceAccount)), out, nil, "token")); err != nil {
			return nil, nil, err
		}
		if errs := validateTokenRequest(out); len(errs) > 0 {
			return nil, nil, apierrors.NewInvalid(gk, "", errs)
		}
	}
	c := &token.Claims{
		Audience: out.Spec.Audiences, Issuer: token.Issuer, IssuedAt: now.Unix(), NotBefore: now.Unix(), Subject: "system:serviceaccount:" + namespace + ":" + name,
		Kubernetes: token.Kubernetes{Namespace: namespace, ServiceAccount: token.Ref{Name: name, UID: string(uid)}},
	}
	if ref := out.Spec.BoundObjectRef; ref != nil {
		if err := bindToken(s, c, name, ref); err != nil {
			return nil, nil, err
		}
	}
	seconds := *out.Spec.ExpirationSeconds
	out.Status.ExpirationTimestamp = asjson.Time(now.Add(time.Duration(seconds) * time.Second))
	// Old clients don't read their token anew: it lasts longer, and who uses it is noted.
	if c.Kubernetes.Pod != nil && seconds == mountedTokenSeconds && len(out.Spec.Audiences) == 1 && out.Spec.Audiences[0] == token.Issuer {
		c.Kubernetes.WarnAfter = now.Unix() + seconds
		seconds = extendedTokenSeconds
	}
	c.Expiry = now.Unix() + seconds
	return out, c, nil
}

// bindToken has a token be good for as long as an object lives.
func bindToken(s *Store, c *token.Claims, account string, ref *authenticationv1.BoundObjectReference) error {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	k, namespace := kind.Kind(ref.Kind), c.Kubernetes.Namespace
	if gvk.Group != "" || k != kinds.Pod && k != kinds.Secret && k != kinds.Node {
		return apierrors.NewBadRequest("cannot bind token to object of type " + gvk.String())
	}
	obj, err := s.Get(k, namespace, ref.Name)
	if err != nil {
		return err
	}
	to := &token.Ref{Name: obj.GetName(), UID: string(obj.GetUID())}
	switch o := obj.(type) {
	case *v1.Pod:
		if o.Spec.ServiceAccountName != account {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account))
		}
		c.Kubernetes.Pod = to
		if name := o.Spec.NodeName; name != "" {
			c.Kubernetes.Node = &token.Ref{Name: name}
			if n := s.Node(name); n != nil {
				c.Kubernetes.Node.UID = string(n.UID)
			}
		}
	case *v1.Node:
		c.Kubernetes.Node = to
	default:
		c.Kubernetes.Secret = to
	}
	if ref.UID != "" && ref.UID != obj.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: gvk.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return nil
}

// SetTokenDefaults fills in what a request left out
// (pkg/apis/authentication/v1/defaults.go).
func SetTokenDefaults(tr *authenticationv1.TokenRequest) {
	fields.DefaultPtr(&tr.Spec.ExpirationSeconds, int64(defaultTokenSeconds))
}

// validateTokenRequest is ValidateTokenRequest (pkg/apis/authentication/validation).
func validateTokenRequest(tr *authenticationv1.TokenRequest) field.ErrorList {
	path, seconds := field.NewPath("spec", "expirationSeconds"), *tr.Spec.ExpirationSeconds
	switch {
	case seconds < minTokenSeconds:
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration less than 10 minutes")}
	case seconds > maxTokenSeconds:
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// The bounds of a token's life in seconds, and its default.
const (
	defaultTokenSeconds = 60 * 60
	minTokenSeconds     = 10 * 60
	maxTokenSeconds     = 1 << 32

	// mountedTokenSeconds is what pods ask for that did not ask for a token
	// (WarnOnlyBoundTokenExpirationSeconds); it is good for a year
	// (ExpirationExtensionSeconds).
	mountedTokenSeconds  = 60*60 + 7
	extendedTokenSeconds = 24 * 365 * 60 * 60
)
