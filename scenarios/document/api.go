package document

import (
	"time"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// API is how the Kubernetes API behaves.
type API struct {
	// What requests cost the API server. Unless said, each is answered at once.
	Load *APILoad `json:"load,omitempty"`
	// The admission plugin EventRateLimit, which refuses events with code 429. Off unless said.
	EventRateLimit *EventRateLimit `json:"eventRateLimit,omitempty"`
	// How long a message takes one way, between a node and the API: a time or a range. 5ms unless said; less than 1ms is refused.
	Latency *value.Range `json:"latency,omitempty"`
	// Feature gates of the API server by name, as its flag --feature-gates has them: ClusterTrustBundle, ClusterTrustBundleProjection and PodCertificateRequest, which are off unless said. Kubelets have gates of their own.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Faults that are there from the start.
	Faults []action.APIFault `json:"faults,omitempty"`
}

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

// Options is the load as the API takes it.
func (l *APILoad) Options() *apiserver.Load {
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

// Options are the limits as the API takes them.
func (l *EventRateLimit) Options() []apiserver.EventLimit {
	if l == nil {
		return nil
	}
	out := make([]apiserver.EventLimit, len(l.Limits))
	for i, x := range l.Limits {
		out[i] = apiserver.EventLimit{Type: apiserver.EventLimitType(x.Type), QPS: x.QPS, Burst: x.Burst, CacheSize: x.CacheSize}
	}
	return out
}

// Check wants a limit.
func (l *EventRateLimit) Check(at decode.Place) {
	if len(l.Limits) == 0 {
		at.Field("limits").Errorf("must not be empty")
	}
}

// Check wants a bucket that lets something through.
func (l *EventLimit) Check(at decode.Place) {
	if l.Burst <= 0 {
		at.Field("burst").Errorf("must be positive, not %d", l.Burst)
	}
	if l.QPS <= 0 {
		at.Field("qps").Errorf("must be positive, not %d", l.QPS)
	}
	if l.CacheSize < 0 {
		at.Field("cacheSize").Errorf("must not be negative, but is %d", l.CacheSize)
	}
}

// Gates are the feature gates as the API takes them.
func (a *API) Gates() apiserver.Gates {
	on, _ := apiserver.ResolveGates(a.FeatureGates) // Check tells of errors
	return on
}

// Check wants a latency that the engine's windows can have, and gates that can be set.
func (a *API) Check(at decode.Place) {
	if _, err := apiserver.ResolveGates(a.FeatureGates); err != nil {
		at.Field("featureGates").Field(apiserver.GateOf(err)).Errorf("%v", err)
	}
	if a.Latency != nil && a.Latency.Min < time.Millisecond {
		at.Field("latency").Errorf("%v is less than 1ms", a.Latency.Min)
	}
}
