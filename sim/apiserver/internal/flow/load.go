package flow

import (
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Load is a model of what requests cost the API server, and of API priority and
// fairness, which shares its seats out (k8s.io/apiserver/pkg/util/flowcontrol with
// the configuration of pkg/apis/flowcontrol/bootstrap/default.go).
//
// A request that gets a seat keeps it for its service time; one that gets none
// waits in a queue of its priority level, and is refused with code 429 when the
// queue is full or the wait too long. A request is executed when it gets its
// Seats: its service time delays the answer, not the write.
//
// The zero value of each field means its default. The service times are of the
// order that a control plane with etcd on a fast disk shows; to calibrate them,
// take the mean of apiserver_request_sli_duration_seconds by verb of a cluster that
// is not overloaded.
type Load struct {
	// MaxRequestsInflight and MaxMutatingRequestsInflight are kube-apiserver's
	// flags. Their sum is how many seats there are: by default 400 and 200.
	MaxRequestsInflight, MaxMutatingRequestsInflight int
	// Get, List, Write and Watch are mean service times: of one object, of a list
	// of none, of create, update, patch and delete, and of what begins a watch. By
	// default 1 ms, 2 ms, 4 ms and 2 ms. Each request's is drawn evenly from half
	// of it to one and a half.
	Get, List, Write, Watch time.Duration
	// Object is what each object in a list, or at the beginning of a watch, adds:
	// 20 µs.
	Object time.Duration
	// WatchEvent is how long the dispatch of an event to one watch keeps those of
	// the same kind waiting: 5 µs.
	WatchEvent time.Duration
	// Cores is how many requests can be executed at full speed at a time; more
	// share it, so that their service times grow. 0 is no limit.
	Cores int
	// QueueWait is the longest wait in a queue: 15 s, a quarter of
	// --request-timeout.
	QueueWait time.Duration
}

// withDefaults returns the model with its defaults filled in.
func (d Load) withDefaults() Load {
	fields.Default(&d.MaxRequestsInflight, 400)
	fields.Default(&d.MaxMutatingRequestsInflight, 200)
	fields.Default(&d.Get, time.Millisecond)
	fields.Default(&d.List, 2*time.Millisecond)
	fields.Default(&d.Write, 4*time.Millisecond)
	fields.Default(&d.Watch, 2*time.Millisecond)
	fields.Default(&d.Object, 20*time.Microsecond)
	fields.Default(&d.WatchEvent, 5*time.Microsecond)
	fields.Default(&d.QueueWait, 15*time.Second)
	return d
}

// What a request weighs (k8s.io/apiserver/pkg/util/flowcontrol/request). A list is
// served from the watch cache: of what is stored of its resource, in the whole
// cluster, no more than cacheMemory is taken to be in use at once, and each
// bytesPerSeat is a seat (the feature SizeBasedListCostEstimate), up to the most that
// the priority level lets one request have. The seats that a write takes for its watch
// events are left out: upstream adds them from 10 watches of an object on, which here
// only services have.
const (
	bytesPerSeat = 100_000
	cacheMemory  = 1_000_000
	// podSize and serviceSize are what upstream estimates from what is stored: here
	// they are what such objects commonly take in etcd, in bytes. Kubelets list
	// nothing else that is not few or one.
	podSize     = 4096
	serviceSize = 1024
	// maxSeatsShare is the share of a level's nominal seats that one request may
	// have (priorityLevelMaxSeatsPercent).
	maxSeatsShare = 0.15
)

// service returns a request's mean service time. objects is how many it lists.
func (d *Load) service(verb string, objects int) time.Duration {
	switch verb {
	case "get":
		return d.Get
	case "list":
		return d.List + time.Duration(objects)*d.Object
	case "watch":
		return d.Watch + time.Duration(objects)*d.Object
	}
	return d.Write
}

// Seats returns how many seats of a level a request takes.
func (f *Control) Seats(lv *level, r *wire.Request) int {
	if r.Verb != "list" && r.Verb != "watch" {
		return 1
	}
	bytes := 0
	switch r.Resource {
	case "pods":
		bytes = f.stored.Pods() * podSize
	case "services":
		bytes = f.stored.Services() * serviceSize
	}
	n := (min(bytes, cacheMemory) + bytesPerSeat - 1) / bytesPerSeat
	return min(max(n, 1), lv.maxSeats)
}

// objects estimates how many objects a request lists.
func (f *Control) objects(node string, r *wire.Request) int {
	if r.Verb != "list" && r.Verb != "watch" {
		return 0
	}
	switch r.Resource {
	case "pods":
		return f.stored.PodsOn(node)
	case "services":
		return f.stored.Services()
	}
	return 1
}

// FanOut returns how long a watch event of a resource waits for the dispatch of
// those before it. Without a load model there is no wait.
func (f *Control) FanOut(resource string) time.Duration {
	if f == nil {
		return 0
	}
	now := f.l.UnixNano()
	busy := max(f.dispatching[resource], now) + int64(f.load.WatchEvent)
	f.dispatching[resource] = busy
	return time.Duration(busy - now)
}
