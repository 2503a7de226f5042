package scenarios

import (
	"fmt"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// APILoad says what requests cost the API server, whose seats API priority and fairness shares out with upstream's
// default configuration. What does not fit waits in a queue of its priority level, or is answered with 429.
type APILoad struct {
	// kube-apiserver's flag --max-requests-inflight. 400 unless said. Together with the next it is how many seats there are.
	MaxRequestsInflight int `json:"maxRequestsInflight,omitempty"`
	// kube-apiserver's flag --max-mutating-requests-inflight. 200 unless said.
	MaxMutatingRequestsInflight int `json:"maxMutatingRequestsInflight,omitempty"`
	// How long it takes on average to answer a get. 1ms unless said.
	Get time.Duration `json:"get,omitempty"`
	// How long it takes on average to answer a list, besides its objects. 2ms unless said.
	List time.Duration `json:"list,omitempty"`
	// How long it takes on average to answer a create, update, patch or delete. 4ms unless said.
	Write time.Duration `json:"write,omitempty"`
	// How long it takes on average to begin a watch, besides its objects. 2ms unless said.
	Watch time.Duration `json:"watch,omitempty"`
	// How many requests can be answered at full speed at a time; more take longer. No limit unless said.
	Cores int `json:"cores,omitempty"`
}

func (l *APILoad) options() *apiserver.Load {
	if l == nil {
		return nil
	}
	return &apiserver.Load{
		MaxRequestsInflight: l.MaxRequestsInflight, MaxMutatingRequestsInflight: l.MaxMutatingRequestsInflight,
		Get: l.Get, List: l.List, Write: l.Write, Watch: l.Watch, Cores: l.Cores,
	}
}

// EventRateLimit is the configuration of the admission plugin of that name, with upstream's fields. An event that one of the
// limits refuses is lost: who recorded it does not try again.
type EventRateLimit struct {
	// The limits, at least one.
	Limits []EventLimit `json:"limits" required:""`
}

// EventLimit is a limit on how often events are created and changed.
type EventLimit struct {
	// What has a token bucket of its own: the Server (one bucket for all), each Namespace, each User that writes events, each
	// SourceAndObject (an event's source and involved object).
	Type string `json:"type" required:"" enum:"Server,Namespace,User,SourceAndObject"`
	// How many events a second a bucket allows.
	QPS int32 `json:"qps" required:""`
	// How many events a bucket allows at once.
	Burst int32 `json:"burst" required:""`
	// How many buckets are kept, those used last; one that is made anew is full. 4096 unless said. Without meaning for Server.
	CacheSize int32 `json:"cacheSize,omitempty"`
}

func (l *EventRateLimit) options() []apiserver.EventLimit {
	if l == nil {
		return nil
	}
	out := make([]apiserver.EventLimit, len(l.Limits))
	for i, x := range l.Limits {
		out[i] = apiserver.EventLimit{Type: apiserver.EventLimitType(x.Type), QPS: x.QPS, Burst: x.Burst, CacheSize: x.CacheSize}
	}
	return out
}

func (v *validator) eventRateLimit(at string, l *EventRateLimit) {
	if l == nil {
		return
	}
	if len(l.Limits) == 0 {
		v.errorf(at+".limits", "must not be empty")
	}
	for i := range l.Limits {
		x, at := &l.Limits[i], fmt.Sprintf("%s.limits[%d]", at, i)
		if x.Burst <= 0 {
			v.errorf(at+".burst", "must be positive, not %d", x.Burst)
		}
		if x.QPS <= 0 {
			v.errorf(at+".qps", "must be positive, not %d", x.QPS)
		}
		if x.CacheSize < 0 {
			v.errorf(at+".cacheSize", "must not be negative, but is %d", x.CacheSize)
		}
	}
}
