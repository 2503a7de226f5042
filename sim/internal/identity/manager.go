package identity

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/internal/pki"
)

// Times of client-go's util/certificate/certificate_manager.go.
const (
	// waitTimeout is how long a request is waited for; then there is another.
	waitTimeout = 15 * time.Minute
	// A request that came to nothing is made again after firstRetry, then after twice as long each
	// time, for retries times in all, and from then on each laterRetry.
	firstRetry  = 2 * time.Second
	retries     = 5
	laterRetry  = 32 * time.Second
	retryJitter = 0.1
	// pause is between a rotation and when the next is worked out.
	pause = time.Second
)

// manager rotates one certificate while a kubelet's process lives.
type manager struct {
	p      *process
	signer string
	cert   *certificate
	timer  *loop.Timer
	// token tells that the process has a bootstrap token to ask with while it has no certificate.
	token bool
	// healthy tells that the API has last answered in a way that speaks of it being there.
	healthy bool
	// got is told of a new certificate; nil: nobody is.
	got func()
	// failures and lived are what metrics tell: requests that came to nothing, and for how long
	// certificates were used.
	failures int
	lived    []time.Duration
}

func (p *process) newManager(signer string, cert *certificate) *manager {
	m := &manager{p: p, signer: signer, cert: cert}
	m.timer = p.g.NewTimer("certificate rotation", func() { p.g.Go("certificate rotation", m.rotate) })
	return m
}

// schedule sets the next rotation (nextRotationDeadline): at 70 to 90% of the certificate's life,
// or now.
func (m *manager) schedule() {
	l := m.p.i.opts.Loop
	if !m.cert.good(l.Now()) {
		m.timer.Reset(0)
		return
	}
	life := m.cert.until.Sub(m.cert.from)
	at := l.Jitter(life, 0.2, "certificate rotation", m.signer, m.draw()) - life*3/10
	m.timer.Reset(max(0, m.cert.from.Add(at).Sub(l.Now())))
}

// draw counts the draws of a machine.
func (m *manager) draw() uint64 {
	m.p.i.draws++
	return m.p.i.draws
}

// rotate asks for a certificate until there is one.
func (m *manager) rotate(ctx context.Context) {
	l := m.p.i.opts.Loop
	for try := 1; !m.ask(ctx); try++ {
		d := laterRetry
		if try < retries {
			d = l.Jitter(firstRetry<<(try-1), retryJitter, "certificate retry", m.signer, m.draw())
		}
		if l.Sleep(ctx, d) != nil {
			return
		}
	}
	m.p.g.After(pause, m.schedule)
}

// ask makes a request and waits for what comes of it (rotateCerts).
func (m *manager) ask(ctx context.Context) bool {
	i := m.p.i
	csr, err := m.request()
	if err != nil {
		panic(err) // what goes in is of the right form whatever the seed
	}
	token := m.token && !m.cert.good(i.opts.Loop.Now())
	made, err := i.opts.API.CreateCertificateSigningRequest(ctx, csr, token)
	if err != nil {
		m.failures++
		m.p.log("Failed while requesting a signed certificate from the control plane: cannot create certificate signing request: %v", err)
		m.healthy = apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
		return false
	}
	next, err := m.await(ctx, made, token)
	if err != nil {
		m.failures++
		m.p.log("Certificate request was not signed: %v", err)
		return false
	}
	if !m.cert.until.IsZero() {
		m.lived = append(m.lived, i.opts.Loop.Since(m.cert.from))
	}
	*m.cert, m.healthy = next, true
	if m.got != nil {
		m.got()
	}
	return true
}

// request is what is asked for, with a key of its own.
func (m *manager) request() (*certificatesv1.CertificateSigningRequest, error) {
	o := &m.p.i.opts
	tmpl := &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + o.Node}}
	usage := certificatesv1.UsageClientAuth
	if m.signer == certificatesv1.KubeletServingSignerName {
		usage = certificatesv1.UsageServerAuth
		tmpl.DNSNames, tmpl.IPAddresses = []string{o.Node}, []net.IP{net.ParseIP(o.Address)}
	}
	key := pki.ECKey(o.Loop.Seed(), o.Node+" "+m.signer+" "+strconv.FormatUint(m.draw(), 10))
	der, err := x509.CreateCertificateRequest(nil, tmpl, key)
	if err != nil {
		return nil, fmt.Errorf("certificate request of node %s: %w", o.Node, err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: m.signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}, nil
}

// Why a request came to nothing (client-go's util/certificate/csr).
var (
	errGone    = errors.New("the certificate signing request was deleted")
	errRefused = errors.New("the certificate signing request was denied, or has failed")
)

// await waits until a request is decided, and returns the certificate.
func (m *manager) await(ctx context.Context, made *certificatesv1.CertificateSigningRequest, token bool) (certificate, error) {
	return loop.Within(ctx, waitTimeout, func(ctx context.Context) (out certificate, err error) {
		var decided loop.Event
		stop := m.p.i.opts.API.WatchCertificateSigningRequest(m.p.g, made.Name, token, func(csr *certificatesv1.CertificateSigningRequest) {
			if decided.Fired() {
				return
			}
			over := true
			switch {
			case csr == nil || csr.UID != made.UID:
				err = errGone
			default:
				out, over, err = judge(csr)
			}
			if over {
				decided.Fire()
			}
		})
		defer stop()
		if e := decided.Wait(ctx); e != nil {
			return certificate{}, fmt.Errorf("certificate signing request %s: %w", made.Name, e)
		}
		return out, err
	})
}

// judge says whether a request is decided, and how.
func judge(csr *certificatesv1.CertificateSigningRequest) (out certificate, over bool, err error) {
	approved := false
	for _, c := range csr.Status.Conditions {
		switch {
		case c.Status != v1.ConditionTrue:
		case c.Type == certificatesv1.CertificateDenied, c.Type == certificatesv1.CertificateFailed:
			return certificate{}, true, errRefused
		case c.Type == certificatesv1.CertificateApproved:
			approved = true
		}
	}
	if !approved || len(csr.Status.Certificate) == 0 {
		return certificate{}, false, nil
	}
	block, _ := pem.Decode(csr.Status.Certificate)
	if block == nil {
		return certificate{}, true, errRefused
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return certificate{}, true, fmt.Errorf("certificate of %s: %w", csr.Name, err)
	}
	return certificate{cert.NotBefore, cert.NotAfter}, true, nil
}
