// Package token makes and reads the tokens of service accounts: JSON web tokens, signed
// with ES256 by a key that a cluster's seed decides. Whoever knows the seed can make
// them: they keep clients of a simulation apart, not attackers out.
package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Issuer is who issues tokens, and the audience that stands for the API
// (--service-account-issuer).
const Issuer = "https://kubernetes.default.svc"

// Claims are what a token says (pkg/serviceaccount/claims.go). Times are seconds since
// 1970.
type Claims struct {
	Audience   []string   `json:"aud"`
	Expiry     int64      `json:"exp"`
	IssuedAt   int64      `json:"iat"`
	Issuer     string     `json:"iss"`
	ID         string     `json:"jti"`
	Kubernetes Kubernetes `json:"kubernetes.io"`
	NotBefore  int64      `json:"nbf"`
	Subject    string     `json:"sub"`
}

// Kubernetes are the claims beyond the standard.
type Kubernetes struct {
	Namespace      string `json:"namespace"`
	Node           *Ref   `json:"node,omitempty"`
	Pod            *Ref   `json:"pod,omitempty"`
	Secret         *Ref   `json:"secret,omitempty"`
	ServiceAccount Ref    `json:"serviceaccount"`
	WarnAfter      int64  `json:"warnafter,omitempty"`
}

// Ref names an object.
type Ref struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Signer signs tokens and knows them again.
type Signer struct {
	key        *ecdsa.PrivateKey
	id, header string
}

// NewSigner returns the signer of a seed. It costs a tenth of a millisecond.
func NewSigner(seed uint64) (*Signer, error) {
	for try := uint64(0); ; try++ {
		var raw []byte
		for i := range uint64(4) {
			raw = binary.BigEndian.AppendUint64(raw, loop.Hash(seed, []string{"service account key"}, try, i))
		}
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
		if err != nil { // not a number of the curve: one in four billion is none
			continue
		}
		return SignerOf(key)
	}
}

// SignerOf returns the signer of a key, which is one of P-256.
func SignerOf(key *ecdsa.PrivateKey) (*Signer, error) {
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("key of service accounts: %w", err)
	}
	sum := sha256.Sum256(public)
	id := base64.RawURLEncoding.EncodeToString(sum[:])
	header, err := json.Marshal(map[string]string{"alg": algorithm, "kid": id})
	if err != nil {
		return nil, fmt.Errorf("header of tokens: %w", err)
	}
	return &Signer{key, id, base64.RawURLEncoding.EncodeToString(header)}, nil
}

// Key returns the signer's key.
func (s *Signer) Key() *ecdsa.PrivateKey { return s.key }

// algorithm is how tokens are signed.
const algorithm = "ES256"

// Keys is the document of the keys by which others check tokens (RFC 7517).
func (s *Signer) Keys() ([]byte, error) {
	public, err := s.key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("key of service accounts: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString
	x, y := public[1:33], public[33:] // behind the sign of a point in full
	return json.Marshal(map[string]any{"keys": []any{map[string]string{
		"use": "sig", "kty": "EC", "kid": s.id, "crv": "P-256", "alg": algorithm, "x": text(x), "y": text(y),
	}}})
}

// Configuration is the document that says where the keys are (OpenID Connect Discovery).
func Configuration(keysURL string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"issuer": Issuer, "jwks_uri": keysURL, "response_types_supported": []string{"id_token"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{algorithm},
	})
}

// signature is the pair that ECDSA makes.
type signature struct{ R, S *big.Int }

// Sign makes a token. The same claims make the same token (RFC 6979).
func (s *Signer) Sign(c *Claims) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("claims of %s: %w", c.Subject, err)
	}
	text := s.header + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	der, err := s.key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("sign token of %s: %w", c.Subject, err)
	}
	var sig signature
	if _, err := asn1.Unmarshal(der, &sig); err != nil {
		return "", fmt.Errorf("sign token of %s: %w", c.Subject, err)
	}
	var out [64]byte
	sig.R.FillBytes(out[:32])
	sig.S.FillBytes(out[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(out[:]), nil
}

// errForeign is of a token that is none of the signer's.
var errForeign = errors.New("invalid bearer token")

// maxToken bounds the length of what is read.
const maxToken = 64 << 10

// Read returns what a token of the signer's says. Whether that still holds is not looked
// at.
func (s *Signer) Read(token string) (*Claims, error) {
	if len(token) > maxToken {
		return nil, errForeign
	}
	header, rest, _ := strings.Cut(token, ".")
	body, sig, ok := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if !ok || header != s.header || err != nil || len(raw) != 64 {
		return nil, errForeign
	}
	digest := sha256.Sum256([]byte(header + "." + body))
	if !ecdsa.Verify(&s.key.PublicKey, digest[:], new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])) {
		return nil, errForeign
	}
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, errForeign
	}
	c := &Claims{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, errForeign
	}
	return c, nil
}
