package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// CreateToken asks for a token of a service account (TokenRequest). The token
// means nothing: it is a text that the seed and the number of tokens made so
// far decide. There are no ServiceAccount objects, so every account is taken to
// exist. A token bound to a pod needs the pod, with the UID that the reference
// names. Errors: NotFound, Conflict, Invalid.
func (c *Client) CreateToken(ctx context.Context, namespace, account string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	srv := c.srv
	return call(ctx, c, wire.Request{Verb: "create", Resource: "serviceaccounts/token", Namespace: namespace, Name: account}, func(s *store.Store, now time.Time) (*authenticationv1.TokenRequest, error) {
		out, err := s.TokenRequest(now, namespace, tr)
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

// tokenText is an opaque token.
func tokenText(seed uint64, namespace, account string, n uint64) string {
	var b []byte
	for i := range uint64(4) {
		b = binary.BigEndian.AppendUint64(b, loop.Hash(seed, []string{"token", namespace, account}, n, i))
	}
	return "drydock." + base64.RawURLEncoding.EncodeToString(b)
}
