package apiserver

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/ground/loop"
)

// TestShowCertificate: a node is refused from the end of its certificate on, its watches end within
// ten minutes, and with a new one all is well. Who shows none is known by the name.
func TestShowCertificate(t *testing.T) {
	r := newRig(t, 1, Options{})
	ask := func() error {
		var got error
		r.c.l.Root().Go("ask", func(ctx context.Context) { _, got = r.c.GetNode(ctx, "n1") })
		r.run(r.c.l.Since(loop.Epoch()) + time.Second)
		return got
	}
	if err := ask(); !apierrors.IsNotFound(err) {
		t.Errorf("without a certificate: %v", err)
	}
	r.watchPods()
	r.c.ShowCertificate(loop.Epoch().Add(time.Minute))
	if err := ask(); !apierrors.IsNotFound(err) {
		t.Errorf("with one that is good: %v", err)
	}
	r.run(time.Minute)
	if err := ask(); !apierrors.IsUnauthorized(err) {
		t.Errorf("with one that has expired: %v", err)
	}
	if n := len(r.c.peer.subs); n != 1 {
		t.Errorf("%d watches at once", n)
	}
	r.run(12 * time.Minute)
	if n := len(r.c.peer.subs); n != 0 {
		t.Errorf("%d watches after ten minutes", n)
	}
	r.c.ShowCertificate(loop.Epoch().Add(time.Hour))
	r.run(12*time.Minute + 2*time.Second)
	if err := ask(); !apierrors.IsNotFound(err) {
		t.Errorf("with a new one: %v", err)
	}
	r.run(13 * time.Minute)
	if n := len(r.c.peer.subs); n != 1 {
		t.Errorf("%d watches with a new one", n)
	}
}
