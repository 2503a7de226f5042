// Package http makes the requests of probes and lifecycle hooks and judges what
// came back (upstream pkg/probe/http, and what the two use of net/http's
// client).
package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/tcp"
)

// maxBody bounds what is read of an answer, in bytes; maxRedirects how many
// requests one probe makes.
const (
	maxBody      = 10 << 10
	maxRedirects = 10
)

// The ends of net/http's messages.
const (
	errPlain       = "server gave HTTP response to HTTPS client"
	timeoutText    = " (Client.Timeout exceeded while awaiting headers)"
	tooManyText    = "stopped after 10 redirects"
	plainToTLSText = "http: " + errPlain
)

// Transport carries one request and its answer; it follows no redirect.
// containerID is the container on whose behalf that is done. Errors read like
// those of Go's net package on Linux. The request must not be written to.
type Transport interface {
	HTTP(ctx context.Context, containerID string, req *http.Request) (status int, header http.Header, body []byte, err error)
}

// Response is what a request was answered.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes the request, following redirects to the same host, and returns the
// last answer. A timeout of 0 means none. Errors are those of net/http's client:
// `Get "http://10.1.2.3:80/": dial tcp 10.1.2.3:80: connect: connection
// refused`.
func Do(ctx context.Context, t Transport, containerID string, req *http.Request, timeout time.Duration) (Response, error) {
	tctx := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		tctx, cancel = loop.WithTimeout(ctx, timeout)
		defer cancel()
	}
	first := req.URL.Hostname()
	for n := 1; ; n++ {
		var r Response
		var err error
		r.Status, r.Header, r.Body, err = t.HTTP(tctx, containerID, req)
		if err != nil {
			late := timeout > 0 && ctx.Err() == nil && (tctx.Err() != nil || errors.Is(err, context.DeadlineExceeded))
			return r, RequestError(req, err, late)
		}
		to := Location(req, &r)
		if to == nil || to.Hostname() != first {
			return r, nil
		}
		next := *req
		next.URL, next.Host = to, to.Host
		if n == maxRedirects {
			return r, &url.Error{Op: "Get", URL: to.String(), Err: errors.New(tooManyText)}
		}
		req = &next
	}
}

// Location is where an answer sends the client, or nil.
func Location(req *http.Request, r *Response) *url.URL {
	switch r.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	loc := r.Header.Get("Location")
	if loc == "" {
		return nil
	}
	u, err := req.URL.Parse(loc)
	if err != nil {
		return nil
	}
	return u
}

// RequestError is the error of a request as the client tells it. late says that
// its time was over.
func RequestError(req *http.Request, err error, late bool) error {
	switch {
	case !late:
	case tcp.IsDialError(err):
		err = errors.New(tcp.TimeoutText(req.URL.Host) + timeoutText)
	default:
		err = errors.New(context.DeadlineExceeded.Error() + timeoutText)
	}
	return &url.Error{Op: "Get", URL: req.URL.Redacted(), Err: err}
}

// ErrPlainHTTP is what a client of HTTPS says of a server of HTTP.
var ErrPlainHTTP = errors.New(plainToTLSText)

// IsPlainHTTP reports whether an error says that a server of HTTP was spoken to
// as one of HTTPS.
func IsPlainHTTP(err error) bool {
	var u *url.Error
	return errors.As(err, &u) && strings.Contains(u.Err.Error(), errPlain)
}

// Probe makes the request of a probe and judges it. The result is never
// unknown: what goes wrong is a failure.
func Probe(ctx context.Context, t Transport, containerID string, req *http.Request, timeout time.Duration) (probe.Result, string) {
	r, err := Do(ctx, t, containerID, req, timeout)
	if err != nil {
		return probe.Failure, err.Error()
	}
	return Judge(&r)
}

// Judge is the result that an answer means. A redirect that is left over
// points to another host.
func Judge(r *Response) (probe.Result, string) {
	switch {
	case r.Status >= http.StatusOK && r.Status < http.StatusMultipleChoices:
		return probe.Success, ""
	case r.Status >= http.StatusMultipleChoices && r.Status < http.StatusBadRequest:
		body := r.Body
		if len(body) > maxBody {
			body = body[:maxBody]
		}
		return probe.Warning, "Probe terminated redirects, Response body: " + string(body)
	}
	return probe.Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", r.Status)
}
