package apiserver

import (
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/token"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// CreateToken asks for a token of a service account (TokenRequest), as
// [Tokens.Create] answers.
func (c *Client) CreateToken(ctx context.Context, namespace, account string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	srv := c.srv
	return call(ctx, c, wire.Request{Verb: "create", Resource: "serviceaccounts/token", Namespace: namespace, Name: account}, func(*store.Store, time.Time) (*authenticationv1.TokenRequest, error) {
		return srv.Tokens().Create(namespace, account, tr)
	})
}

// GetServiceAccount returns a service account. Where every account is taken to exist
// (see [Tokens.Create]) one that is not there has a name only. Errors: NotFound.
func (c *Client) GetServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	r := wire.Request{Verb: "get", Resource: "serviceaccounts", Namespace: namespace, Name: name}
	return call(ctx, c, r, func(s *store.Store, _ time.Time) (*v1.ServiceAccount, error) {
		return as[*v1.ServiceAccount](store.ServiceAccount(s, namespace, name))
	})
}

// Tokens are the tokens of service accounts: they are made and known here.
type Tokens struct {
	srv    *Server
	made   uint64        // so far
	signer *token.Signer // nil before it is asked for
	// Observe, if not nil, is told of each request for a token, and how it was answered.
	Observe func(namespace, account string, asked, answer *authenticationv1.TokenRequest, err error)
}

// Tokens returns the tokens of the server's service accounts.
func (s *Server) Tokens() *Tokens { return &s.tokens }

// Create makes a token of a service account. Where clients come in (OpenDoor) the
// account must be there, and the token is one that Authenticate knows. Without, every
// account is taken to exist, and the token is a text that the seed and the number of
// tokens made so far decide. Errors: NotFound, Conflict, Invalid, BadRequest.
func (t *Tokens) Create(namespace, account string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	out, err := t.create(namespace, account, tr)
	if t.Observe != nil {
		t.Observe(namespace, account, tr, out, err)
	}
	return out, err
}

func (t *Tokens) create(namespace, account string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	out, claims, err := t.srv.store.TokenRequest(t.srv.now(), namespace, account, tr)
	if err != nil {
		return nil, err
	}
	t.made++
	if !t.srv.open {
		out.Status.Token = tokenText(t.srv.l.Seed(), namespace, account, t.made)
	} else {
		signer, err := t.keyring()
		if err != nil {
			return nil, err
		}
		claims.ID = string(t.srv.store.NewUID())
		if out.Status.Token, err = signer.Sign(claims); err != nil {
			return nil, err
		}
	}
	if t.srv.rec != nil {
		t.srv.rec.Record(trace.KindAPI, "serviceaccount "+namespace+"/"+account, "create",
			trace.Str("subresource", "token"), trace.Str("by", t.srv.by), trace.Int("expirationSeconds", *out.Spec.ExpirationSeconds))
	}
	return out, nil
}

// keyring returns the signer of tokens, which is made when it is first asked for.
func (t *Tokens) keyring() (*token.Signer, error) {
	if t.signer == nil {
		signer, err := token.NewSigner(t.srv.l.Seed())
		if err != nil {
			return nil, err
		}
		t.signer = signer
	}
	return t.signer, nil
}

// SignWith has the tokens of service accounts signed with a key in the place of the
// seed's, which anybody can make who knows the seed. The key is one of P-256.
func (t *Tokens) SignWith(key *ecdsa.PrivateKey) (err error) {
	t.signer, err = token.SignerOf(key)
	return err
}

// Keys returns the document of the keys by which others check tokens.
func (t *Tokens) Keys() ([]byte, error) {
	signer, err := t.keyring()
	if err != nil {
		return nil, err
	}
	return signer.Keys()
}

// TokenConfiguration returns the document that says where that one is.
func TokenConfiguration(keysURL string) ([]byte, error) { return token.Configuration(keysURL) }

// Authenticate returns who a service account's token is of, and which of the audiences
// it is meant for; none are those of the API. The error says why a token is not, or no
// longer, good.
func (t *Tokens) Authenticate(text string, audiences []string) (authenticationv1.UserInfo, []string, error) {
	var nobody authenticationv1.UserInfo
	signer, err := t.keyring()
	if err != nil {
		return nobody, nil, err
	}
	c, err := signer.Read(text)
	if err != nil {
		return nobody, nil, err
	}
	if len(audiences) == 0 {
		audiences = []string{token.Issuer}
	}
	var meant []string
	for _, a := range audiences {
		if slices.Contains(c.Audience, a) {
			meant = append(meant, a)
		}
	}
	if len(meant) == 0 {
		return nobody, nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", c.Audience, audiences)
	}
	// A clock may be a minute off.
	switch now := t.srv.now().Unix(); {
	case now > c.Expiry+60:
		return nobody, nil, errors.New("service account token has expired")
	case now < c.NotBefore-60:
		return nobody, nil, errors.New("service account token is not valid yet")
	}
	if err := t.stillThere(c); err != nil {
		return nobody, nil, err
	}
	return userOf(c), meant, nil
}

// stillThere looks for what a token is bound to: its account, and a pod, a secret or a
// node.
func (t *Tokens) stillThere(c *token.Claims) error {
	k := c.Kubernetes
	account, err := t.srv.store.Get(KindServiceAccount, k.Namespace, k.ServiceAccount.Name)
	if err != nil {
		return err
	}
	if uid := string(account.GetUID()); uid != k.ServiceAccount.UID {
		return fmt.Errorf("service account UID (%s) does not match claim (%s)", uid, k.ServiceAccount.UID)
	}
	node := k.Node
	if k.Pod != nil {
		node = nil // says where the pod is, no more
	}
	for _, bound := range []struct {
		kind Kind
		ref  *token.Ref
		what string
	}{{KindSecret, k.Secret, "secret"}, {KindPod, k.Pod, "pod"}, {KindNode, node, "node"}} {
		if bound.ref == nil {
			continue
		}
		obj := t.srv.store.Lookup(bound.kind, k.Namespace, bound.ref.Name)
		if obj == nil || obj.GetDeletionTimestamp() != nil && obj.GetDeletionTimestamp().Time.Before(t.srv.now().Add(-time.Minute)) {
			return errors.New("service account token has been invalidated")
		}
		if uid := string(obj.GetUID()); uid != bound.ref.UID {
			return fmt.Errorf("%s UID (%s) does not match service account %s ref claim (%s)", bound.what, uid, bound.what, bound.ref.UID)
		}
	}
	return nil
}

// userOf is the user of a token (k8s.io/apiserver, pkg/authentication/serviceaccount).
func userOf(c *token.Claims) authenticationv1.UserInfo {
	const group, extra = "system:serviceaccounts", "authentication.kubernetes.io/"
	k := c.Kubernetes
	u := authenticationv1.UserInfo{
		Username: c.Subject, UID: k.ServiceAccount.UID, Groups: []string{group, group + ":" + k.Namespace, "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{extra + "credential-id": {"JTI=" + c.ID}},
	}
	for _, r := range []struct {
		what string
		ref  *token.Ref
	}{{"pod", k.Pod}, {"node", k.Node}} {
		if r.ref != nil {
			u.Extra[extra+r.what+"-name"] = authenticationv1.ExtraValue{r.ref.Name}
			if r.ref.UID != "" {
				u.Extra[extra+r.what+"-uid"] = authenticationv1.ExtraValue{r.ref.UID}
			}
		}
	}
	return u
}

// tokenText is an opaque token.
func tokenText(seed uint64, namespace, account string, n uint64) string {
	var b []byte
	for i := range uint64(4) {
		b = binary.BigEndian.AppendUint64(b, loop.Hash(seed, []string{"token", namespace, account}, n, i))
	}
	return "drydock." + base64.RawURLEncoding.EncodeToString(b)
}

// SetTokenDefaults is store.SetTokenDefaults.
func SetTokenDefaults(tr *authenticationv1.TokenRequest) { store.SetTokenDefaults(tr) }
