package parity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/drydock-sim/drydock/up"
)

// Start serves the API of a cluster as the recorded one was, without nodes and controllers, until
// stop is called.
func Start(ctx context.Context) (s Server, stop func() error, err error) {
	c, err := up.Start(ctx, up.Options{NoControlPlane: true})
	if err != nil {
		return Server{}, nil, err
	}
	cfg := c.Config()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cfg.CAData) {
		return Server{}, nil, errors.Join(errors.New("the cluster's configuration has no authority"), c.Stop())
	}
	// A client asks for compressed answers only if a case does.
	transport := &http.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	stop = func() error {
		transport.CloseIdleConnections()
		return c.Stop()
	}
	return Server{URL: cfg.Host, Token: cfg.BearerToken, Client: &http.Client{Transport: transport}, Compact: c.Compact}, stop, nil
}
