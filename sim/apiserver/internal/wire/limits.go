package wire

import (
	"cmp"
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

// NewLimiter returns a full bucket, as a new process has; nil is no limit.
func NewLimiter(qps float64, burst int) *rate.Limiter {
	if qps < 0 {
		return nil
	}
	qps = cmp.Or(qps, defaultClientQPS)
	burst = cmp.Or(burst, defaultClientBurst)
	return rate.NewLimiter(rate.Limit(qps), burst)
}

// Throttle waits for a token of the client's bucket and notes how long that
// took. As client-go's, it fails at once if ctx would end before.
func Throttle(ctx context.Context, l *loop.Loop, limiter *rate.Limiter, r *Request) error {
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
	r.Throttled += d
	return nil
}

// errWouldExceed is what golang.org/x/time/rate says.
var errWouldExceed = errors.New("rate: Wait(n=1) would exceed context deadline")

// Limited reports whether a request of a kubelet takes a token of its client.
func Limited(r *Request) bool {
	return !r.Heartbeat && r.Verb != "watch" && r.Resource != "events"
}

// maxRetries is how often client-go repeats a request (rest/request.go).
const maxRetries = 10

// Retry reports whether client-go repeats a request, and after how long: the answer
// has to be 429 or an error of the server's, with a header Retry-After.
func Retry(err error, try int) (time.Duration, bool) {
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
