package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// streams connects clients with the runtime's streaming server: SPDY as it is, and
// WebSockets of the newer protocols translated to it.
type streams struct{}

// ServeStream implements server.Streams.
func (streams) ServeStream(w http.ResponseWriter, r *http.Request, to *url.URL, s server.Stream) {
	var h http.Handler = apiproxy.NewUpgradeAwareHandler(to, nil, false, true, responder{})
	switch {
	case s.Kind == server.PortForwardStream:
		if wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
			h = proxy.NewTunnelingHandler(h)
		}
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		h = proxy.NewStreamTranslatorHandler(to, nil, 0, proxy.Options{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY})
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

// logReader reads log files as the runtime writes them (k8s.io/cri-client's logs).
type logReader struct{ h Handle }

// ReadLog implements server.LogReader.
func (r logReader) ReadLog(ctx context.Context, log server.Log, o *v1.PodLogOptions, stdout, stderr io.Writer) error {
	return logs.ReadLogs(ctx, log.Path, log.ContainerID, logOptions(o, time.Now()), &statusAsker{h: r.h}, stdout, stderr)
}

// logOptions are those of the API, whose seconds count back from now.
func logOptions(o *v1.PodLogOptions, now time.Time) *logs.LogOptions {
	out := &logs.LogOptions{TailLines: o.TailLines, LimitBytes: o.LimitBytes, Follow: o.Follow, Timestamp: o.Timestamps}
	if o.SinceSeconds != nil {
		out.Since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	if o.SinceTime != nil && out.Since.Before(o.SinceTime.Time) {
		out.Since = o.SinceTime.Time
	}
	return out
}

// statusAsker is as much of a runtime as following a log takes: whether the
// container runs.
type statusAsker struct {
	internalapi.RuntimeService
	h Handle
}

// ContainerStatus implements the CRI's, by the kubelet's connection.
func (a *statusAsker) ContainerStatus(ctx context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	return ask(ctx, a.h, func(ctx context.Context, k kubelet.Host) (*runtimeapi.ContainerStatusResponse, error) {
		resp, err := k.ContainerStatus(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", id, err)
		}
		return resp, nil
	})
}
