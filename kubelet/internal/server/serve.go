package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emicklei/go-restful/v3"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	clientcert "k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/keyutil"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // metrics of requests to the API
	_ "k8s.io/component-base/metrics/prometheus/version"    // and of the build
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/internal/certificate"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/real/streamproxy"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// Options are what the kubelet's servers are made of.
type Options struct {
	// Config gets the names of the certificate's files if it has none.
	Config *kubeletconfig.KubeletConfiguration
	// NodeName is what rights are asked for; Hostname stands in a certificate that is
	// made here, in CertDir.
	NodeName, Hostname, CertDir string
	// Client asks the API who a client is and what it may do; nil in standalone mode.
	Client kubernetes.Interface
	// Flags are what /flagz shows.
	Flags cliflag.NamedFlagSets
	// Certificates are told of at /metrics; nil: there are none to tell of.
	Certificates *certificate.Metrics
}

// Servers are the kubelet's servers, made and not yet listening.
type Servers struct {
	o    Options
	auth *auth
	tls  *tls.Config
	// certs follow the files of the serving certificate; nil: rotating asks the API for it.
	certs    *dynamiccertificates.DynamicCertKeyPairContent
	dyn      *dynamiccertificates.DynamicServingCertificateController
	rotating clientcert.Manager
	handle   atomic.Pointer[Handle]
}

// How long the connections of clients may take, and how much, as upstream's.
const (
	idleTimeout    = 90 * time.Second
	streamTimeout  = 4 * time.Hour
	headerTimeout  = 30 * time.Second
	maxHeaderBytes = 1 << 20
)

// New reads, makes or asks for the serving certificate and says who may ask. Its errors are
// upstream's, for the start of the kubelet.
func New(o Options) (*Servers, error) {
	if o.Certificates == nil {
		o.Certificates = certificate.NewMetrics()
	}
	s := &Servers{o: o}
	var err error
	if s.auth, err = newAuth(o.NodeName, o.Config, o.Client); err != nil {
		return nil, err
	}
	gates, err := features.Resolve(o.Config.FeatureGates)
	if err != nil {
		return nil, err
	}
	if o.Config.ServerTLSBootstrap && gates.Enabled(features.RotateKubeletServerCertificate) {
		s.rotating, err = certificate.NewServing(certificate.Serving{
			Client: o.Client, Node: o.NodeName, Dir: o.CertDir, CertFile: o.Config.TLSCertFile, KeyFile: o.Config.TLSPrivateKeyFile,
			Addresses: s.addresses, Metrics: o.Certificates,
		})
		if err != nil {
			return nil, err
		}
		return s, s.makeTLS()
	}
	certFile, keyFile, err := ownPair(&o)
	if err != nil {
		return nil, err
	}
	if s.certs, err = dynamiccertificates.NewDynamicServingContentFromFiles("kubelet-server-cert-files", certFile, keyFile); err != nil {
		return nil, fmt.Errorf("failed to initialize TLS: %w", err)
	}
	return s, s.makeTLS()
}

// addresses are those that the kubelet told the API of last; none before it serves.
func (s *Servers) addresses() []v1.NodeAddress {
	h := s.handle.Load()
	if h == nil {
		return nil
	}
	var out []v1.NodeAddress
	err := (*h).Run(context.Background(), func(_ context.Context, k *kubelet.Kubelet) error {
		out = k.NodeAddresses()
		return nil
	})
	if err != nil {
		return nil // the task may still be about to write
	}
	return out
}

// ownPair returns the files of the serving certificate. Without any in the
// configuration they are in CertDir, and made there if they are not.
func ownPair(o *Options) (cert, key string, err error) {
	cert, key = o.Config.TLSCertFile, o.Config.TLSPrivateKeyFile
	if cert != "" || key != "" {
		return cert, key, nil
	}
	cert, key = filepath.Join(o.CertDir, "kubelet.crt"), filepath.Join(o.CertDir, "kubelet.key")
	o.Config.TLSCertFile, o.Config.TLSPrivateKeyFile = cert, key // as /configz shows them
	if ok, err := certutil.CanReadCertAndKey(cert, key); ok || err != nil {
		return cert, key, err
	}
	c, k, err := certutil.GenerateSelfSignedCertKey(o.Hostname, nil, nil)
	if err != nil {
		return "", "", fmt.Errorf("unable to generate self signed cert: %w", err)
	}
	if err := certutil.WriteCert(cert, c); err != nil {
		return "", "", err
	}
	return cert, key, keyutil.WriteKey(key, k)
}

// makeTLS makes what connections are served with, which follows its files.
func (s *Servers) makeTLS() error {
	c := s.o.Config
	suites, err := cliflag.TLSCipherSuites(c.TLSCipherSuites)
	if err != nil {
		return err
	}
	version, err := cliflag.TLSVersion(c.TLSMinVersion)
	if err != nil {
		return err
	}
	curves, err := cliflag.TLSCurvePreferences(c.TLSCurvePreferences)
	if err != nil {
		return err
	}
	base := &tls.Config{MinVersion: version, CipherSuites: suites, CurvePreferences: curves, NextProtos: []string{"h2", "http/1.1"}}
	var ca dynamiccertificates.CAContentProvider
	if s.auth.clientCA != nil {
		// A client may show a certificate; who shows none may still have a token.
		base.ClientAuth = tls.RequestClientCert
		ca = s.auth.clientCA
	}
	var own dynamiccertificates.CertKeyContentProvider
	if s.rotating != nil {
		base.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := s.rotating.Current(); c != nil {
				return c, nil
			}
			return nil, errors.New("no serving certificate available for the kubelet")
		}
	} else {
		own = s.certs
	}
	s.dyn = dynamiccertificates.NewDynamicServingCertificateController(base, ca, own, nil, nil)
	if ca != nil {
		s.auth.clientCA.AddListener(s.dyn)
	}
	if s.certs != nil {
		s.certs.AddListener(s.dyn)
	}
	if err := s.dyn.RunOnce(); err != nil {
		return fmt.Errorf("failed to initialize TLS: %w", err)
	}
	s.tls = base.Clone()
	s.tls.GetConfigForClient = s.dyn.GetConfigForClient
	return nil
}

// Serve serves a kubelet on the ports of the configuration until ctx ends; checks are
// those of /healthz. It returns the first error of a listener: upstream's kubelet exits
// with it.
func (s *Servers) Serve(ctx context.Context, h Handle, checks []server.Check) error {
	c := s.o.Config
	s.auth.run(ctx)
	if s.rotating != nil {
		s.handle.Store(&h)
		s.rotating.Start()
		defer s.rotating.Stop()
	} else {
		go s.certs.Run(ctx, 1)
	}
	go s.dyn.Run(1, ctx.Done())
	shared := server.Options{
		Host: host{h}, Checks: checks, Logs: logReader{h}, Process: prometheus.Gatherers{legacyregistry.DefaultGatherer, s.o.Certificates.Gatherer()},
	}
	full := shared
	full.Config, full.Filter, full.Streams = c, s.auth.filter, streamproxy.Streams{}
	full.SystemLogs = newNodeLogs("/var/log/", ptr.Deref(c.EnableSystemLogQuery, false))
	full.Install = s.install
	ended, ports := make(chan error, 2), 1
	go func() { ended <- listen(ctx, c.Address, c.Port, server.New(full), s.tls) }()
	if c.ReadOnlyPort > 0 {
		ports++
		go func() { ended <- listen(ctx, c.Address, c.ReadOnlyPort, server.New(shared), nil) }()
	}
	for range ports {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// listen serves on one port.
func listen(ctx context.Context, address string, port int32, h http.Handler, t *tls.Config) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	klog.InfoS("Starting to listen", "address", address, "port", port, "readOnly", t == nil)
	s := &http.Server{
		Handler: h, TLSConfig: t, IdleTimeout: idleTimeout, ReadTimeout: streamTimeout, WriteTimeout: streamTimeout,
		ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: log.New(connLog{}, "", 0),
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if t != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// connLog takes what is said of connections that fail: a client's matter.
type connLog struct{}

// Write implements io.Writer.
func (connLog) Write(b []byte) (int, error) {
	klog.V(4).InfoS("Connection failed", "err", strings.TrimSpace(string(b)))
	return len(b), nil
}

// install adds what is told of the process: profiles, log levels, flags, at last
// /statusz, which lists the paths.
func (s *Servers) install(c *restful.Container, paths []string) {
	cfg := s.o.Config
	m := &recorded{c: c, paths: paths}
	if cfg.EnableProfilingHandler == nil || *cfg.EnableProfilingHandler {
		ws := new(restful.WebService).Path(pprofPath)
		ws.Route(ws.GET("/{subpath:*}").To(serveProfile))
		c.Add(ws)
		if cfg.EnableContentionProfiling {
			goruntime.SetBlockProfileRate(1)
		}
	} else {
		m.Handle(pprofPath, refuse("profiling endpoint is disabled."))
	}
	if cfg.EnableDebugFlagsHandler == nil || *cfg.EnableDebugFlagsHandler {
		m.Handle(debugFlagPath, routes.StringFlagPutHandler(logs.GlogSetter))
	} else {
		m.Handle(debugFlagPath, refuse("flags endpoint is disabled."))
	}
	flagz.Install(m, component, flagz.NamedFlagSetsReader{FlagSets: s.o.Flags})
	statusz.Install(m, component, statusz.NewRegistry(
		compatibility.NewEffectiveVersionFromString(release, "", ""), statusz.WithListedPaths(m.paths)))
}

const (
	pprofPath     = "/debug/pprof/"
	debugFlagPath = "/debug/flags/v"
	component     = "kubelet"
	// release is the version of Kubernetes that the kubelet mirrors.
	release = "1.36"
)

// recorded notes the paths that are installed, as upstream's filtering container.
type recorded struct {
	c     *restful.Container
	paths []string
}

// Handle installs a handler behind the filters.
func (m *recorded) Handle(path string, h http.Handler) {
	m.c.HandleWithFilter(path, h)
	m.paths = append(m.paths, path)
}

func refuse(message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, message, http.StatusMethodNotAllowed) })
}

// serveProfile serves net/http/pprof.
func serveProfile(req *restful.Request, resp *restful.Response) {
	switch strings.TrimPrefix(req.Request.URL.Path, pprofPath) {
	case "profile":
		pprof.Profile(resp, req.Request)
	case "symbol":
		pprof.Symbol(resp, req.Request)
	case "cmdline":
		pprof.Cmdline(resp, req.Request)
	case "trace":
		pprof.Trace(resp, req.Request)
	default:
		pprof.Index(resp, req.Request)
	}
}
