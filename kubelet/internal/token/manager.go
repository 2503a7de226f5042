// Package token gets service account tokens for the kubelet's pods and keeps
// them until they are due for renewal. It mirrors upstream's
// pkg/kubelet/token. Expired tokens are dropped when a token is asked for, not
// every minute.
package token

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// When a token is renewed (token_manager.go): after maxTTL, or once less than
// a fifth of its life is left, in both cases up to maxJitter earlier.
const (
	maxTTL    = 24 * time.Hour
	maxJitter = 10 * time.Second
	gcPeriod  = time.Minute
)

// Client is what a Manager needs of the API.
type Client interface {
	CreateToken(ctx context.Context, namespace, serviceAccount string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// Options are what a Manager is made of.
type Options struct {
	Loop *loop.Loop
	// Client is nil in standalone mode.
	Client Client
	// NodeName tells this node's draws from others'.
	NodeName string
	Log      func(format string, args ...any)
}

// Manager keeps tokens in memory.
type Manager struct {
	o      Options
	cache  map[string]*authenticationv1.TokenRequest
	draws  uint64
	lastGC int64
}

// New returns a Manager without tokens.
func New(o Options) *Manager {
	return &Manager{o: o, cache: map[string]*authenticationv1.TokenRequest{}}
}

// GetServiceAccountToken returns a token that is good for the request: one kept,
// or else a new one from the API. If there is no new one, one that is due for
// renewal but has not expired serves on.
func (m *Manager) GetServiceAccountToken(ctx context.Context, namespace, name string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if m.o.Client == nil {
		return nil, fmt.Errorf("cannot use TokenManager when kubelet is in standalone mode")
	}
	m.gc()
	k := key(namespace, name, tr)
	kept := m.cache[k]
	if kept != nil && !m.requiresRefresh(kept) {
		return kept, nil
	}
	fresh, err := m.o.Client.CreateToken(ctx, namespace, name, tr)
	if err != nil {
		switch {
		case kept == nil:
			return nil, fmt.Errorf("failed to fetch token: %w", err)
		case m.expired(kept):
			return nil, fmt.Errorf("token %s expired and refresh failed: %w", k, err)
		}
		if m.o.Log != nil {
			m.o.Log("Couldn't update token cacheKey=%s: %v", k, err)
		}
		return kept, nil
	}
	m.cache[k] = fresh
	return fresh, nil
}

// DeleteServiceAccountToken drops the tokens that are bound to a pod.
func (m *Manager) DeleteServiceAccountToken(podUID types.UID) {
	for k, tr := range m.cache { //drydock:unordered deletes what matches
		if tr.Spec.BoundObjectRef != nil && tr.Spec.BoundObjectRef.UID == podUID {
			delete(m.cache, k)
		}
	}
}

// NextRefresh is the earliest time, on the loop's clock, at which
// GetServiceAccountToken could ask for a new token; zero if there is none kept.
func (m *Manager) NextRefresh(namespace, name string, tr *authenticationv1.TokenRequest) time.Time {
	kept := m.cache[key(namespace, name, tr)]
	if kept == nil {
		return time.Time{}
	}
	return refreshAt(kept).Add(-maxJitter)
}

// refreshAt is when a token is renewed without jitter.
func refreshAt(tr *authenticationv1.TokenRequest) time.Time {
	life := time.Duration(*tr.Spec.ExpirationSeconds) * time.Second
	expiry := tr.Status.ExpirationTimestamp.Time
	at := expiry.Add(-life / 5)
	if old := expiry.Add(-life).Add(maxTTL); old.Before(at) {
		at = old
	}
	return at
}

func (m *Manager) requiresRefresh(tr *authenticationv1.TokenRequest) bool {
	if tr.Spec.ExpirationSeconds == nil {
		return false
	}
	m.draws++
	jitter := time.Duration(m.o.Loop.Float64("token/jitter", m.o.NodeName, m.draws)*maxJitter.Seconds()) * time.Second
	return m.o.Loop.Now().After(refreshAt(tr).Add(-jitter))
}

func (m *Manager) expired(tr *authenticationv1.TokenRequest) bool {
	return m.o.Loop.Now().After(tr.Status.ExpirationTimestamp.Time)
}

// gc drops expired tokens, at most once a minute.
func (m *Manager) gc() {
	now := m.o.Loop.UnixNano()
	if now-m.lastGC < int64(gcPeriod) {
		return
	}
	m.lastGC = now
	for k, tr := range m.cache { //drydock:unordered deletes what matches
		if m.expired(tr) {
			delete(m.cache, k)
		}
	}
}

// key tells requests apart.
func key(namespace, name string, tr *authenticationv1.TokenRequest) string {
	var seconds int64
	if tr.Spec.ExpirationSeconds != nil {
		seconds = *tr.Spec.ExpirationSeconds
	}
	var ref authenticationv1.BoundObjectReference
	if tr.Spec.BoundObjectRef != nil {
		ref = *tr.Spec.BoundObjectRef
	}
	// The account's UID, if it is asked for: one that was made anew has other tokens.
	return fmt.Sprintf("%q/%q/%q/%d/%q/%q/%q/%q", name, namespace, strings.Join(tr.Spec.Audiences, ","), seconds, ref.Kind, ref.Name, ref.UID, tr.UID)
}
