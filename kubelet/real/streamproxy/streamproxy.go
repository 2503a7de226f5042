// Package streamproxy connects a client's request for a stream with the URL at which a
// runtime serves it, as upstream's kubelet does (pkg/kubelet/server: proxyStream).
package streamproxy

import (
	"net/http"
	"net/url"

	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/drydock-sim/drydock/kubelet/server"
)

// Streams connects clients with a runtime's streaming server: SPDY as it is, and
// WebSockets of the newer protocols translated to it.
type Streams struct {
	// Transport reaches the streaming server; nil: as any other.
	Transport http.RoundTripper
}

var _ server.Streams = Streams{}

// ServeStream implements server.Streams.
func (t Streams) ServeStream(w http.ResponseWriter, r *http.Request, to *url.URL, s server.Stream) {
	var h http.Handler = apiproxy.NewUpgradeAwareHandler(to, t.Transport, false, true, responder{})
	switch {
	case s.Kind == server.PortForwardStream:
		if wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
			h = proxy.NewTunnelingHandler(h)
		}
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		h = proxy.NewStreamTranslatorHandler(to, t.Transport, 0, proxy.Options{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY})
	}
	h.ServeHTTP(w, r)
}

// responder tells a client why its stream could not be made.
type responder struct{}

// Error implements proxy.ErrorResponder.
func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	klog.ErrorS(err, "Error while proxying request")
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
