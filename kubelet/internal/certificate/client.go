package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"
)

// Times of upstream's transport.go.
const (
	// checkPeriod is how often the certificate in use is compared with that of the
	// connections; while there is none, each firstPeriod.
	checkPeriod = 10 * time.Second
	firstPeriod = time.Second
	// patience is how long a kubelet goes on without any certificate.
	patience    = 5 * time.Minute
	dialTimeout = 30 * time.Second
	tlsTimeout  = 10 * time.Second
	idlePerHost = 25
)

// Client rotates the certificate that the kubelet shows to the API.
type Client struct {
	certificate.Manager
	dialer *connrotation.Dialer
	check  time.Duration
	first  time.Duration
	// patience is how long there may be no certificate.
	patience time.Duration
}

// NewClient returns the rotation of a node's certificate, and the configuration of connections that
// show it. Requests for certificates are made with the old certificate, or while there is none with
// what the files say. The connections have no certificate until Run has got one.
func NewClient(f *Files, node string, contentType string, m *Metrics) (*Client, *rest.Config, error) {
	issuing, using, err := f.Load()
	if err != nil {
		return nil, nil, err
	}
	issuing.ContentType = contentType
	using.ContentType = contentType
	store, err := f.newStore(clientPair, using.CertFile, using.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to initialize client certificate store: %w", err)
	}
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn: func(current *tls.Certificate) (kubernetes.Interface, error) {
			if current != nil {
				return kubernetes.NewForConfig(using)
			}
			return kubernetes.NewForConfig(issuing)
		},
		Template:   &x509.CertificateRequest{Subject: subjectOf(node)},
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, GetUsages: certificate.DefaultKubeletClientGetUsages,
		// A kubeconfig may hold a certificate of another right, which is changed at once.
		BootstrapCertificatePEM: using.CertData, BootstrapKeyPEM: using.KeyData,
		CertificateStore: store, CertificateRenewFailure: m.clientErrors,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to initialize client certificate manager: %w", err)
	}
	m.client.Store(&current{manager})
	c := &Client{Manager: manager, check: checkPeriod, first: firstPeriod, patience: patience,
		dialer: connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)}
	cfg, err := c.connections(using)
	return c, cfg, err
}

// connections returns a configuration like using whose connections show the manager's certificate,
// and can be closed.
func (c *Client) connections(using *rest.Config) (*rest.Config, error) {
	cfg := rest.AnonymousClientConfig(using)
	t, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("unable to configure TLS for the rest client: %w", err)
	}
	if t == nil {
		t = &tls.Config{}
	}
	t.Certificates = nil
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if cert := c.Current(); cert != nil {
			return cert, nil
		}
		return &tls.Certificate{}, nil
	}
	cfg.Transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: tlsTimeout, TLSClientConfig: t,
		MaxIdleConnsPerHost: idlePerHost, DialContext: c.dialer.DialContext,
	})
	cfg.TLSClientConfig = rest.TLSClientConfig{} // the transport's own now
	return cfg, nil
}

// Errors that end a kubelet, so that who starts it again, or the bootstrap's credentials, can give
// it a certificate. The texts are upstream's.
var (
	errNone    = errors.New("no valid client certificate is found and the server is responsive, exiting")
	errExpired = errors.New("the currently active client certificate has expired and the server is responsive, exiting")
)

// Run rotates the certificate until ctx ends, and closes the connections whenever it has changed. It
// returns early, with an error, when there has been no certificate for five minutes that is good,
// although the API answers (upstream addCertRotation, which exits).
func (c *Client) Run(ctx context.Context) error {
	c.Start()
	defer c.Stop()
	last, seen := c.Current(), time.Now()
	next := time.NewTimer(c.first)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			c.dialer.CloseAll()
			return nil
		case <-next.C:
		}
		now, cert := time.Now(), c.Current()
		if cert == nil {
			next.Reset(c.first)
		} else {
			next.Reset(c.check)
		}
		if err := c.judge(cert, now, seen); err != nil {
			return err
		}
		if cert == nil {
			continue
		}
		seen = now
		if cert != last {
			last = cert
			klog.InfoS("Certificate rotation detected, shutting down client connections to start using new credentials")
			c.dialer.CloseAll()
		}
	}
}

// judge says whether a kubelet has to end: seen is when there last was a certificate.
func (c *Client) judge(cert *tls.Certificate, now, seen time.Time) error {
	var err error
	switch {
	case cert == nil && now.After(seen.Add(c.patience)):
		err = errNone
	case cert != nil && now.After(cert.Leaf.NotAfter):
		err = errExpired
	default:
		return nil
	}
	if c.ServerHealthy() {
		return err
	}
	klog.ErrorS(nil, "There is no client certificate that is valid, but the server is not responsive. A restart may be necessary to retrieve new initial credentials.", "lastCertificateAvailabilityTime", seen)
	return nil
}
