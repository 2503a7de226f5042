package up

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/facade"
)

// limits bound what clients may hold of the server. How large a body may be is the
// facade's.
type limits struct {
	// header and body are how long a request's may take, answer how long the writing of
	// an answer may; of a watch, that of one event.
	header, body, answer time.Duration
	// requests may be served at once, besides watches; more are refused with 429.
	requests int
	// connections may be open; more wait.
	connections int
}

func defaultLimits() limits {
	// requests: upstream's --max-requests-inflight and --max-mutating-requests-inflight.
	return limits{header: 10 * time.Second, body: 30 * time.Second, answer: time.Minute, requests: 600, connections: 4096}
}

// newServer returns a server of h. Its requests end with ctx.
func newServer(ctx context.Context, h http.Handler, certificate tls.Certificate, l limits) *http.Server {
	return &http.Server{
		Handler: &gate{h: h, limits: l, free: make(chan struct{}, l.requests)},
		// A client's certificate is the facade's to judge, by the cluster's time.
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert},
		// The gate takes ReadTimeout and WriteTimeout off what lasts longer.
		ReadHeaderTimeout: l.header, ReadTimeout: l.body, WriteTimeout: l.answer, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		// What clients do wrong, such as distrusting the certificate, is theirs to tell.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// shut ends a server whose requests' context has ended.
func shut(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return http.ErrServerClosed
}

// gate lets requests in.
type gate struct {
	h      http.Handler
	limits limits
	free   chan struct{} // holds those that are being served
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case !ownHost(req):
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "this server is not called "+req.Host)
		return
	case !ownOrigin(req):
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "requests of web pages are refused")
		return
	}
	deadline := http.NewResponseController(w)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &body{req.Body}
	} else {
		// Nothing is read any more but whether the client is still there.
		_ = deadline.SetReadDeadline(time.Time{})
	}
	if isUpgrade(req) {
		g.h.ServeHTTP(w, req) // whoever takes the connection over takes the deadlines off
		return
	}
	if long(req) {
		w = &patient{w, deadline, g.limits.answer}
		_ = deadline.SetWriteDeadline(time.Time{})
		g.h.ServeHTTP(w, req)
		return
	}
	select {
	case g.free <- struct{}{}:
		defer func() { <-g.free }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later")
		return
	}
	g.h.ServeHTTP(w, req)
}

// long reports whether a request may last: a watch, or a step of the cluster's time.
func long(req *http.Request) bool {
	if strings.HasPrefix(req.URL.Path, facade.ControlPath) || slices.Contains(strings.Split(req.URL.Path, "/"), "watch") {
		return true
	}
	watch := req.URL.Query().Get("watch")
	return watch != "" && watch != "0" && watch != "false"
}

// ownHost reports whether a request is for a name of this server. A web page whose name
// has come to mean the loopback sends its own.
func ownHost(req *http.Request) bool {
	host := req.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if slices.Contains(serverNames[:], strings.ToLower(host)) {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return ip.IsLoopback()
	}
	at, _, err := net.SplitHostPort(local.String())
	return ip.IsLoopback() || err == nil && ip.Equal(net.ParseIP(at))
}

// ownOrigin reports whether a request is not one of somebody else's web page.
func ownOrigin(req *http.Request) bool {
	for _, origin := range req.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "https" || u.Host != req.Host {
			return false
		}
	}
	return true
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message)) // or the client is gone
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

// body is a request's. That it is slow, or breaks off, is the client's fault, as the
// errors say: the facade's handlers take an error without a status for their own.
type body struct{ io.ReadCloser }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, &apierrors.StatusError{ErrStatus: status(http.StatusRequestTimeout, metav1.StatusReasonTimeout, "the request's body took too long")}
	}
	return n, apierrors.NewBadRequest("the request's body: " + err.Error())
}

// patient is the answer to a request that lasts: each of its writes, up to when it is
// flushed, has a time of its own. Between them there is none: HTTP/2 would end the stream.
type patient struct {
	http.ResponseWriter
	deadline *http.ResponseController
	each     time.Duration
}

// Write implements io.Writer.
func (p *patient) Write(data []byte) (int, error) {
	_ = p.deadline.SetWriteDeadline(time.Now().Add(p.each))
	return p.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (p *patient) Flush() {
	_ = p.deadline.SetWriteDeadline(time.Now().Add(p.each))
	_ = p.deadline.Flush() // who writes next is told
	_ = p.deadline.SetWriteDeadline(time.Time{})
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
