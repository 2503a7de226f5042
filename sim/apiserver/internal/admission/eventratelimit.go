package admission

import (
	"cmp"
	"container/list"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// EventLimitType is what an EventLimit has one token bucket for each of.
type EventLimitType string

// The types of limits. Of SourceAndObject it is the component and the host of an
// event's source together with its involved object.
const (
	EventLimitServer          EventLimitType = "Server"
	EventLimitNamespace       EventLimitType = "Namespace"
	EventLimitUser            EventLimitType = "User"
	EventLimitSourceAndObject EventLimitType = "SourceAndObject"
)

// EventLimit is a limit of the admission plugin EventRateLimit, which refuses
// writes of events with code 429
// (plugin/pkg/admission/eventratelimit/apis/eventratelimit/v1alpha1).
type EventLimit struct {
	Type EventLimitType
	// QPS is how many writes per second a bucket allows; Burst how many at once.
	QPS, Burst int32
	// CacheSize is how many buckets are kept, those used last; one that comes back
	// is full. 0 means 4096. Server has one bucket.
	CacheSize int32
}

// defaultEventCacheSize is upstream's (lru cache of the plugin's limits).
const defaultEventCacheSize = 4096

// EventLimits is the plugin EventRateLimit.
type EventLimits []*eventLimiter

// NewEventLimits returns the plugin with these limits.
func NewEventLimits(limits []EventLimit) EventLimits {
	return lists.Map(limits, newEventLimiter)
}

// Admit is the plugin's Validate. Each limit takes its token, also when another
// one refuses the event.
func (l EventLimits) Admit(now time.Time, user string, ev *v1.Event) error {
	var errs []error
	for _, e := range l {
		if err := e.accept(now, user, ev); err != nil {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return apierrors.NewTooManyRequestsError(err.Error())
	}
	return nil
}

// eventLimiter enforces a limit.
type eventLimiter struct {
	limit   EventLimit
	size    int
	buckets map[string]*list.Element
	recent  *list.List // of *eventBucket, the one used last first
}

// eventBucket is one token bucket with its key.
type eventBucket struct {
	key    string
	tokens *rate.Limiter
}

// newEventLimiter returns a limiter whose buckets are full when they are first
// used.
func newEventLimiter(limit EventLimit) *eventLimiter {
	e := &eventLimiter{limit: limit, size: int(limit.CacheSize), buckets: map[string]*list.Element{}, recent: list.New()}
	e.size = cmp.Or(e.size, defaultEventCacheSize)
	return e
}

// accept takes a token for an event.
func (e *eventLimiter) accept(now time.Time, user string, ev *v1.Event) error {
	key := ""
	switch e.limit.Type {
	case EventLimitNamespace:
		key = ev.Namespace
	case EventLimitUser:
		key = user
	case EventLimitSourceAndObject:
		o := &ev.InvolvedObject
		key = strings.Join([]string{ev.Source.Component, ev.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion}, "")
	}
	if !e.bucket(key).AllowN(now, 1) {
		return fmt.Errorf("limit reached on type %v for key %v", e.limit.Type, key)
	}
	return nil
}

// bucket returns a key's bucket and drops the one that has not been used for
// longest when there are too many: a limit on memory, which lets who comes back
// begin with a full bucket.
func (e *eventLimiter) bucket(key string) *rate.Limiter {
	if x := e.buckets[key]; x != nil {
		e.recent.MoveToFront(x)
		return x.Value.(*eventBucket).tokens
	}
	if len(e.buckets) >= e.size {
		delete(e.buckets, e.recent.Remove(e.recent.Back()).(*eventBucket).key)
	}
	b := &eventBucket{key, rate.NewLimiter(rate.Limit(e.limit.QPS), int(e.limit.Burst))}
	e.buckets[key] = e.recent.PushFront(b)
	return b.tokens
}
