package scenarios

import (
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
