package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/ground/loop"
)

// What client-go takes for a QPS or a burst of 0 (rest/config.go).
const (
	defaultClientQPS   = 5
	defaultClientBurst = 10
)

// SetLimits gives the client a full token bucket, as a new process has: at most
// qps requests per second and burst at once, 0 for client-go's default, a qps
// under 0 for no limit. Calls on nodes and leases (the kubelet's heartbeat
// client, whose QPS is -1), watches and events are left out; events have a client
// of their own, whose limits kubelet/record keeps. A new client has no limit.
func (c *Client) SetLimits(qps float64, burst int) {
	c.limiter = newLimiter(qps, burst)
}

func newLimiter(qps float64, burst int) *rate.Limiter {
	if qps < 0 {
		return nil
	}
	if qps == 0 {
		qps = defaultClientQPS
	}
	if burst == 0 {
		burst = defaultClientBurst
	}
	return rate.NewLimiter(rate.Limit(qps), burst)
}

// throttle waits for a token of the client's bucket and notes how long that
// took. As client-go's, it fails at once if ctx would end before.
func throttle(ctx context.Context, l *loop.Loop, limiter *rate.Limiter, r *request) error {
	now := l.Now()
	res := limiter.ReserveN(now, 1)
	d := res.DelayFrom(now)
	if d <= 0 {
		return nil
	}
	if end, ok := ctx.Deadline(); ok && now.Add(d).After(end) {
		res.CancelAt(now)
		return fmt.Errorf("client rate limiter Wait returned an error: %w", errWouldExceed)
	}
	if err := l.Sleep(ctx, d); err != nil {
		res.CancelAt(l.Now())
		return fmt.Errorf("client rate limiter Wait returned an error: %w", err)
	}
	r.throttled += d
	return nil
}

// errWouldExceed is what golang.org/x/time/rate says.
var errWouldExceed = errors.New("rate: Wait(n=1) would exceed context deadline")

// limited tells whether a request of a kubelet takes a token of its client.
func limited(r *request) bool {
	return !r.heartbeat && r.verb != "watch" && r.resource != "events"
}

// maxRetries is how often client-go repeats a request (rest/request.go).
const maxRetries = 10

// retry tells whether client-go repeats a request, and after how long: the answer
// has to be 429 or an error of the server's, with a header Retry-After.
func retry(err error, try int) (time.Duration, bool) {
	if err == nil || try >= maxRetries {
		return 0, false
	}
	st := apierrors.APIStatus(nil)
	if !errors.As(err, &st) {
		return 0, false
	}
	s := st.Status()
	if s.Details == nil || s.Details.RetryAfterSeconds <= 0 || s.Code != http.StatusTooManyRequests && s.Code < http.StatusInternalServerError {
		return 0, false
	}
	return time.Duration(s.Details.RetryAfterSeconds) * time.Second, true
}
