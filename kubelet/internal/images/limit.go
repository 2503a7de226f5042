package images

import (
	"errors"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// errQPS is what a pull fails with that finds no token.
var errQPS = errors.New("pull QPS exceeded")

// bucket is a token bucket that is full at first, kept as the time at which it
// will be full again.
type bucket struct {
	interval int64 // ns per token
	depth    int64 // ns of a full bucket
	full     int64
}

// newBucket returns a full bucket of burst pulls, into which qps come back each
// second.
func newBucket(qps, burst int32) *bucket {
	interval := int64(time.Second) / int64(qps)
	return &bucket{interval: interval, depth: interval * int64(burst)}
}

// take takes a token if there is one.
func (b *bucket) take(now int64) bool {
	full := max(b.full, now) + b.interval
	if full-now > b.depth {
		return false
	}
	b.full = full
	return true
}

// joined is the error of several tries: the only one itself, or an aggregate.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}
