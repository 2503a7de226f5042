// Package certificates approves, signs and deletes CertificateSigningRequests. It
// mirrors upstream's pkg/controller/certificates: the approver of kubelets' client
// certificates, the four signers of kubernetes.io, and the cleaner. Upstream's signers
// are four controllers that see all requests; here one looks at the signer's name.
//
//   - certificates.go: approver and signer
//   - requests.go: what a signer asks of a request
//   - faults.go: signers that are late, or deny
//   - cleaner.go: when requests are deleted
//   - podsigner.go: a signer of pods' certificates, which is none of Kubernetes' own, and
//     when their requests are deleted
package certificates

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/internal/pki"
)

// workers is what upstream's controllers of certificates run with, baseDelay where
// their back-off begins (certificate_controller.go).
const (
	workers   = 5
	baseDelay = 200 * time.Millisecond
)

type csr = certificatesv1.CertificateSigningRequest

// has reports whether a request has a true condition of a type.
func has(c *csr, t certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(one certificatesv1.CertificateSigningRequestCondition) bool {
		return one.Type == t && one.Status == v1.ConditionTrue
	})
}

// newQueue starts a queue of the requests that change.
func newQueue(opts controller.Options, name string, sync func(ctx context.Context, c *csr) error) *controller.Queue {
	queue := controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: name, Workers: workers, BaseDelay: baseDelay, Delay: opts.API.Delivery,
		Sync: func(ctx context.Context, key controller.Key) error {
			c, ok := controller.Lookup[*csr](opts.API, apiserver.KindCertificateSigningRequest, key)
			if !ok {
				return nil
			}
			return sync(ctx, c)
		}})
	opts.API.Server().OnChange(func(ch apiserver.Change) {
		if ch.Type != watch.Deleted {
			queue.Add(controller.KeyOf(ch.New))
		}
	}, apiserver.KindCertificateSigningRequest)
	return queue
}

// ApproverOptions configure an Approver.
type ApproverOptions struct {
	controller.Options
	// Serving has kubelets' serving certificates approved as well, which nobody does upstream.
	Serving bool
	Faults  *Faults
}

// Approver approves kubelets' requests for client certificates (approver/sarapprove.go).
// Everybody may have one, as with upstream's authorization mode AlwaysAllow.
type Approver struct {
	api     *apiserver.Component
	serving bool
	faults  *Faults
}

// NewApprover starts an approver.
func NewApprover(opts ApproverOptions) *Approver {
	a := &Approver{api: opts.API, serving: opts.Serving, faults: opts.Faults}
	newQueue(opts.Options, "certificate approval", a.sync)
	return a
}

func (a *Approver) sync(ctx context.Context, c *csr) error {
	serving := c.Spec.SignerName == certificatesv1.KubeletServingSignerName
	if len(c.Status.Certificate) > 0 || has(c, certificatesv1.CertificateApproved) || has(c, certificatesv1.CertificateDenied) ||
		!serving && c.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	request, err := apiserver.ParseCertificateRequest(c.Spec.Request)
	if err != nil {
		return fmt.Errorf("request of %s: %w", c.Name, err)
	}
	if a.faults.denies(c.Spec.SignerName, nodeOf(request)) {
		return a.decide(ctx, c, certificatesv1.CertificateDenied, "KubectlDeny", "This CSR was denied by kubectl certificate deny.")
	}
	if serving {
		if !a.serving || kubeletServing(request, c.Spec.Usages) != nil {
			return nil
		}
		return a.decide(ctx, c, certificatesv1.CertificateApproved, "AutoApproved", "Auto approving kubelet serving certificate.")
	}
	if kubeletClient(request, c.Spec.Usages) != nil {
		return nil
	}
	text := "Auto approving kubelet client certificate after SubjectAccessReview."
	if c.Spec.Username == request.Subject.CommonName {
		text = "Auto approving self kubelet client certificate after SubjectAccessReview."
	}
	return a.decide(ctx, c, certificatesv1.CertificateApproved, "AutoApproved", text)
}

// decide approves or denies a request.
func (a *Approver) decide(ctx context.Context, c *csr, t certificatesv1.RequestConditionType, reason, text string) error {
	return update(ctx, a.api, c, "approval", func(c *csr) {
		c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: t, Status: v1.ConditionTrue, Reason: reason, Message: text})
	})
}

// update writes a changed copy of a request. One that is gone needs none.
func update(ctx context.Context, api *apiserver.Component, c *csr, sub string, change func(c *csr)) error {
	own := c.DeepCopy()
	change(own)
	if _, err := controller.Update(ctx, api, own, sub); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s of certificate signing request %s: %w", sub, c.Name, err)
	}
	return nil
}

// SignerOptions configure a Signer.
type SignerOptions struct {
	controller.Options
	// CA returns who signs. It is asked when that is first needed.
	CA func() *pki.CA
	// Duration is --cluster-signing-duration. Zero means a year.
	Duration time.Duration
	Faults   *Faults
}

// Signer signs requests that are approved (signer/signer.go).
type Signer struct {
	api    *apiserver.Component
	l      *loop.Loop
	ca     func() *pki.CA
	maxTTL time.Duration
	faults *Faults
	queue  *controller.Queue
}

// NewSigner starts a signer.
func NewSigner(opts SignerOptions) *Signer {
	s := &Signer{api: opts.API, l: opts.Group.Loop(), ca: opts.CA, maxTTL: cmp.Or(opts.Duration, maxTTL), faults: opts.Faults}
	s.queue = newQueue(opts.Options, "certificate signing", s.sync)
	s.faults.ended = s.lookAgain
	return s
}

// lookAgain looks at all requests: some may have waited.
func (s *Signer) lookAgain() {
	for _, c := range apiserver.Objects[*csr](s.api.Server().Store(), apiserver.KindCertificateSigningRequest) {
		s.queue.Add(controller.KeyOf(c))
	}
}

func (s *Signer) sync(ctx context.Context, c *csr) error {
	check := checkOf(c.Spec.SignerName)
	if check == nil || len(c.Status.Certificate) > 0 || !has(c, certificatesv1.CertificateApproved) || has(c, certificatesv1.CertificateDenied) || has(c, certificatesv1.CertificateFailed) {
		return nil
	}
	request, err := apiserver.ParseCertificateRequest(c.Spec.Request)
	if err != nil {
		return fmt.Errorf("request of %s: %w", c.Name, err)
	}
	if err := check(request, c.Spec.Usages); err != nil {
		return update(ctx, s.api, c, "status", func(c *csr) {
			c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateFailed, Status: v1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(), LastUpdateTime: controller.WireTime(s.l.Now())})
		})
	}
	if left := s.faults.delay(c.Spec.SignerName, nodeOf(request)) - s.l.Since(c.CreationTimestamp.Time); left > 0 {
		s.queue.AddAfter(controller.KeyOf(c), left)
		return nil
	}
	signed, err := s.sign(request, c)
	if err != nil {
		return fmt.Errorf("signing %s: %w", c.Name, err)
	}
	return update(ctx, s.api, c, "status", func(c *csr) { c.Status.Certificate = signed })
}

// Times of certificates (signer.go and authority/policies.go).
const (
	// maxTTL is --cluster-signing-duration unless said, minTTL the least that is granted for who
	// asks for less.
	maxTTL = 365 * 24 * time.Hour
	minTTL = 10 * time.Minute
	// backdate is for clocks that are late. A certificate of less than short is not
	// cut by it.
	backdate = 5 * time.Minute
	short    = 8 * time.Hour
)

// sign returns the certificate that is asked for, for as long as is granted.
func (s *Signer) sign(request *x509.CertificateRequest, c *csr) ([]byte, error) {
	ca := s.ca()
	ttl, now := s.maxTTL, s.l.Now().UTC().Truncate(time.Second)
	if e := c.Spec.ExpirationSeconds; e != nil {
		ttl = min(max(time.Duration(*e)*time.Second, minTTL), s.maxTTL)
	}
	tmpl := &x509.Certificate{
		Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses, EmailAddresses: request.EmailAddresses, URIs: request.URIs,
		BasicConstraintsValid: true, NotBefore: now.Add(-backdate), NotAfter: now.Add(ttl),
	}
	if ttl >= short {
		tmpl.NotAfter = tmpl.NotAfter.Add(-backdate)
	}
	last := ca.Certificate.NotAfter
	if !now.Before(last) {
		return nil, fmt.Errorf("refusing to sign a certificate that expired in the past: NotAfter=%v", last)
	}
	if tmpl.NotAfter.After(last) {
		tmpl.NotAfter = last
	}
	for _, u := range c.Spec.Usages {
		tmpl.KeyUsage |= keyUsage(u)
		if e, ok := extendedUsage(u); ok && !slices.Contains(tmpl.ExtKeyUsage, e) {
			tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, e)
		}
	}
	slices.Sort(tmpl.ExtKeyUsage)
	return ca.Sign(tmpl, request.PublicKey, string(c.UID))
}
