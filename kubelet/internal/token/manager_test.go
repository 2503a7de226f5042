package token

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

type api struct {
	l    *loop.Loop
	n    int
	down bool
}

func (a *api) CreateToken(_ context.Context, _, _ string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if a.down {
		return nil, errors.New("down")
	}
	a.n++
	out := tr.DeepCopy()
	out.Status.Token = fmt.Sprint("token", a.n)
	out.Status.ExpirationTimestamp = metav1.Time{Time: a.l.Now().Add(time.Duration(*tr.Spec.ExpirationSeconds) * time.Second)}
	return out, nil
}

func request(seconds int64) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", Name: "p"}}}
}

func TestRenewal(t *testing.T) {
	const week = 7 * 24 * 3600
	for _, tc := range []struct {
		name    string
		seconds int64
		at      time.Duration // after the first token
		down    bool
		want    string // of the token, or of the error
	}{
		{"young", 3600, 47 * time.Minute, false, "token1"},
		{"with a fifth left", 3600, 48*time.Minute + time.Second, false, "token2"},
		{"a day old", week, 24*time.Hour + time.Second, false, "token2"},
		{"not a day old", week, 24*time.Hour - time.Minute, false, "token1"},
		{"no API, not expired", 3600, 50 * time.Minute, true, "token1"},
	} {
		l := loop.New(loop.Options{})
		a := &api{l: l}
		m := New(Options{Loop: l, Client: a, NodeName: "n"})
		get := func(ctx context.Context) string {
			tr, err := m.GetServiceAccountToken(ctx, "default", "sa", request(tc.seconds))
			if err != nil {
				return err.Error()
			}
			return tr.Status.Token
		}
		l.Root().Go("test", func(ctx context.Context) {
			if got := get(ctx); got != "token1" {
				t.Error(got)
			}
			_ = l.Sleep(ctx, tc.at)
			a.down = tc.down
			if got := get(ctx); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
			}
		})
		if err := l.RunUntil(loop.Epoch().Add(48 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

func TestErrors(t *testing.T) {
	l := loop.New(loop.Options{})
	defer l.Close()
	if _, err := New(Options{Loop: l}).GetServiceAccountToken(l.Root().Background(), "ns", "sa", request(3600)); err == nil ||
		err.Error() != "cannot use TokenManager when kubelet is in standalone mode" {
		t.Error(err)
	}
	if _, err := New(Options{Loop: l, Client: &api{l: l, down: true}}).GetServiceAccountToken(l.Root().Background(), "ns", "sa", request(3600)); err == nil ||
		err.Error() != "failed to fetch token: down" {
		t.Error(err)
	}
}

// Tokens differ by what is asked for, and go with their pod.
func TestKeys(t *testing.T) {
	l := loop.New(loop.Options{})
	defer l.Close()
	m := New(Options{Loop: l, Client: &api{l: l}})
	get := func(tr *authenticationv1.TokenRequest) string {
		out, err := m.GetServiceAccountToken(l.Root().Background(), "ns", "sa", tr)
		if err != nil {
			t.Fatal(err)
		}
		return out.Status.Token
	}
	a, b, c, anew := request(3600), request(3600), request(7200), request(3600)
	b.Spec.BoundObjectRef.UID = "other"
	anew.UID = "of an account that was made anew"
	if x, y, z, n := get(a), get(b), get(c), get(anew); x == y || y == z || x == z || n == x || get(a) != x || get(b) != y || get(anew) != n {
		t.Error(x, y, z, n)
	}
	m.DeleteServiceAccountToken("other")
	if len(m.cache) != 3 {
		t.Error(len(m.cache))
	}
}
