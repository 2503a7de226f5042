package certificates

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/internal/pki"
)

type podRequest = certificatesv1beta1.PodCertificateRequest

// Times of pods' certificates, as the signer of upstream's tests has them
// (test/utils/hermeticpodcertificatesigner).
const (
	podLifetime      = 24 * time.Hour
	podRefreshBefore = 30 * time.Minute
	podBackdate      = 2 * time.Minute
)

// PodSignerOptions configure a PodSigner.
type PodSignerOptions struct {
	controller.Options
	// Name is the signer's, of whose requests all are granted.
	Name string
	// Lifetime is that of certificates, or what is asked for if that is less. Zero means a
	// day. RefreshBefore is how long before their end the next may be asked for, at most half
	// of their life. Zero means half an hour.
	Lifetime, RefreshBefore time.Duration
	Faults                  *Faults
}

// PodSigner signs requests for pods' certificates, as a signer that is no part of
// Kubernetes: it has an authority of its own, and names a pod by its service account.
type PodSigner struct {
	o     PodSignerOptions
	l     *loop.Loop
	ca    *pki.CA // nil before the first request
	queue *controller.Queue
}

// NewPodSigner starts a signer. The API must serve the requests.
func NewPodSigner(o PodSignerOptions) *PodSigner {
	o.Lifetime, o.RefreshBefore = cmp.Or(o.Lifetime, podLifetime), cmp.Or(o.RefreshBefore, podRefreshBefore)
	s := &PodSigner{o: o, l: o.Group.Loop()}
	s.queue = controller.NewQueue(controller.QueueOptions{Group: o.Group, Name: "signing of pods' certificates", Workers: workers, BaseDelay: baseDelay, Delay: o.API.Delivery,
		Sync: func(ctx context.Context, key controller.Key) error {
			r, ok := controller.Lookup[*podRequest](o.API, apiserver.KindPodCertificateRequest, key)
			if !ok {
				return nil
			}
			return s.sync(ctx, r)
		}})
	o.API.Server().OnChange(func(c apiserver.Change) {
		if r, ok := c.New.(*podRequest); ok && c.Type == watch.Added && r.Spec.SignerName == o.Name {
			s.queue.Add(controller.KeyOf(r))
		}
	}, apiserver.KindPodCertificateRequest)
	o.Faults.onEnd = append(o.Faults.onEnd, s.lookAgain)
	return s
}

// lookAgain looks at all requests: some may have waited.
func (s *PodSigner) lookAgain() {
	for _, r := range apiserver.Objects[*podRequest](s.o.API.Server().Store(), apiserver.KindPodCertificateRequest) {
		if r.Spec.SignerName == s.o.Name {
			s.queue.Add(controller.KeyOf(r))
		}
	}
}

func (s *PodSigner) sync(ctx context.Context, r *podRequest) error {
	if len(r.Status.Conditions) > 0 {
		return nil
	}
	node := string(r.Spec.NodeName)
	if s.o.Faults.denies(s.o.Name, node) {
		return s.decide(ctx, r, certificatesv1beta1.PodCertificateRequestConditionTypeDenied, "RequestDenied", "The signer denied the request.", nil)
	}
	if left := s.o.Faults.delay(s.o.Name, node) - s.l.Since(r.CreationTimestamp.Time); left > 0 {
		s.queue.AddAfter(controller.KeyOf(r), left)
		return nil
	}
	chain, leaf, err := s.sign(r)
	if err != nil {
		return fmt.Errorf("signing %s/%s: %w", r.Namespace, r.Name, err)
	}
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return s.decide(ctx, r, certificatesv1beta1.PodCertificateRequestConditionTypeIssued, "Issued", "The certificate was issued.", func(st *certificatesv1beta1.PodCertificateRequestStatus) {
		at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
		st.CertificateChain, st.NotBefore, st.NotAfter = string(chain), at(leaf.NotBefore), at(leaf.NotAfter)
		st.BeginRefreshAt = at(leaf.NotAfter.Add(-min(s.o.RefreshBefore, life/2)))
	})
}

// decide writes what becomes of a request. One that is gone needs nothing.
func (s *PodSigner) decide(ctx context.Context, r *podRequest, condition, reason, message string, more func(*certificatesv1beta1.PodCertificateRequestStatus)) error {
	own := r.DeepCopy()
	own.Status.Conditions = append(own.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: controller.WireTime(s.l.Now())})
	if more != nil {
		more(&own.Status)
	}
	if _, err := controller.Update(ctx, s.o.API, own, "status"); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of pod certificate request %s/%s: %w", r.Namespace, r.Name, err)
	}
	return nil
}

// sign returns a certificate, as PEM and as it is.
func (s *PodSigner) sign(r *podRequest) ([]byte, *x509.Certificate, error) {
	if s.ca == nil {
		ca, err := pki.WithKey(pki.Key(s.l.Seed(), "pod signer "+s.o.Name), s.l.Seed(), loop.Epoch(), loop.Epoch().Add(10*maxTTL))
		if err != nil {
			return nil, nil, err
		}
		s.ca = ca
	}
	public, err := apiserver.PodCertificateKey(r)
	if err != nil {
		return nil, nil, err
	}
	from := s.l.Now().UTC().Truncate(time.Second).Add(-podBackdate)
	text, err := s.ca.Sign(&x509.Certificate{
		NotBefore: from, NotAfter: from.Add(min(s.o.Lifetime, time.Duration(*r.Spec.MaxExpirationSeconds)*time.Second)),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		URIs: []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/" + r.Namespace + "/sa/" + r.Spec.ServiceAccountName}},
	}, public, string(r.UID))
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	return text, leaf, err
}

// Times of the cleaner of requests for pods' certificates (cleaner/pcrcleaner.go): all are
// expected to be over long before.
const (
	podCleaningPeriod = 5 * time.Minute
	podRequestFor     = 15 * time.Minute
)

// PodCleaner deletes requests for pods' certificates that are old, whatever became of
// them. While there are none, it has no timer.
type PodCleaner struct {
	api     *apiserver.Component
	l       *loop.Loop
	started time.Time
	timer   *loop.Timer
	queue   *controller.Queue
}

// NewPodCleaner starts a cleaner. The API must serve the requests.
func NewPodCleaner(opts controller.Options) *PodCleaner {
	c := &PodCleaner{api: opts.API, l: opts.Group.Loop(), started: opts.Group.Loop().Now()}
	c.timer = opts.Group.NewTimer("pod certificate request cleaning", c.pass)
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "pod certificate request cleaning", Sync: c.sync})
	c.api.Server().OnChange(func(ch apiserver.Change) {
		if ch.Type == watch.Added {
			c.arm()
		}
	}, apiserver.KindPodCertificateRequest)
	return c
}

// arm sets the timer to the next multiple of the period since the start.
func (c *PodCleaner) arm() {
	if !c.timer.Set() {
		c.timer.Reset(podCleaningPeriod - c.l.Since(c.started)%podCleaningPeriod)
	}
}

func (c *PodCleaner) pass() {
	all := apiserver.Objects[*podRequest](c.api.Server().Store(), apiserver.KindPodCertificateRequest)
	for _, r := range all {
		if c.l.Since(r.CreationTimestamp.Time) >= podRequestFor {
			c.queue.Add(controller.KeyOf(r))
		}
	}
	if len(all) > 0 {
		c.arm()
	}
}

func (c *PodCleaner) sync(ctx context.Context, key controller.Key) error {
	r, ok := controller.Lookup[*podRequest](c.api, apiserver.KindPodCertificateRequest, key)
	if !ok || c.l.Since(r.CreationTimestamp.Time) < podRequestFor {
		return nil
	}
	if err := controller.Delete(ctx, c.api, r, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting pod certificate request %s/%s: %w", key.Namespace, key.Name, err)
	}
	return nil
}
