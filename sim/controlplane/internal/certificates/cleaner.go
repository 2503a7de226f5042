package certificates

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Times of the cleaner (cleaner/cleaner.go): requests are looked at every hour, those
// that are decided go an hour later, others after a day.
const (
	cleaningPeriod = time.Hour
	decidedFor     = time.Hour
	openFor        = 24 * time.Hour
)

// Cleaner deletes requests that are over. While there are none, it has no timer.
type Cleaner struct {
	api     *apiserver.Component
	l       *loop.Loop
	started time.Time
	timer   *loop.Timer
	queue   *controller.Queue
}

// NewCleaner starts a cleaner.
func NewCleaner(opts controller.Options) *Cleaner {
	c := &Cleaner{api: opts.API, l: opts.Group.Loop(), started: opts.Group.Loop().Now()}
	c.timer = opts.Group.NewTimer("certificate request cleaning", c.pass)
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "certificate request cleaning", Sync: c.sync})
	c.api.Server().OnChange(func(ch apiserver.Change) {
		if ch.Type == watch.Added {
			c.arm()
		}
	}, apiserver.KindCertificateSigningRequest)
	return c
}

// arm sets the timer to the next multiple of the period since the start.
func (c *Cleaner) arm() {
	if !c.timer.Set() {
		c.timer.Reset(cleaningPeriod - c.l.Since(c.started)%cleaningPeriod)
	}
}

func (c *Cleaner) pass() {
	all := apiserver.Objects[*csr](c.api.Server().Store(), apiserver.KindCertificateSigningRequest)
	for _, one := range all {
		if over(one, c.l.Now()) {
			c.queue.Add(controller.KeyOf(one))
		}
	}
	if len(all) > 0 {
		c.arm()
	}
}

func (c *Cleaner) sync(ctx context.Context, key controller.Key) error {
	one, ok := controller.Lookup[*csr](c.api, apiserver.KindCertificateSigningRequest, key)
	if !ok || !over(one, c.l.Now()) {
		return nil
	}
	if err := controller.Delete(ctx, c.api, one, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting certificate signing request %s: %w", key.Name, err)
	}
	return nil
}

// over reports whether a request is to be deleted.
func over(c *csr, now time.Time) bool {
	older := func(t metav1.Time, d time.Duration) bool { return !t.IsZero() && now.Sub(t.Time) > d }
	if len(c.Status.Conditions) == 0 {
		return older(c.CreationTimestamp, openFor)
	}
	issued := len(c.Status.Certificate) > 0
	for _, one := range c.Status.Conditions {
		switch one.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			if older(one.LastUpdateTime, decidedFor) {
				return true
			}
		case certificatesv1.CertificateApproved:
			if issued && (older(one.LastUpdateTime, decidedFor) || expired(c.Status.Certificate, now)) || !issued && older(one.LastUpdateTime, openFor) {
				return true
			}
		}
	}
	return false
}

// expired reports whether a certificate's time is over.
func expired(text []byte, now time.Time) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	certs, err := x509.ParseCertificates(block.Bytes)
	return err == nil && len(certs) > 0 && now.After(certs[0].NotAfter)
}
