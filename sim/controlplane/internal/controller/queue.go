package controller

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Key names the object that a sync is about.
type Key = types.NamespacedName

// KeyOf returns an object's key.
func KeyOf(obj apiserver.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Back-off of a key whose sync failed (client-go
// util/workqueue/default_rate_limiters.go).
const (
	DefaultBaseDelay = 5 * time.Millisecond
	DefaultMaxDelay  = 1000 * time.Second
	// RetryQPS and RetryBurst bound the retries of all keys of a queue together.
	RetryQPS   = 10 // per second
	RetryBurst = 100
)

// QueueOptions configure a Queue.
type QueueOptions struct {
	// Group is what workers and timers die with.
	Group *loop.Group
	// Name is what tasks are called.
	Name string
	// Workers is how many keys are synced at once. Zero means 1.
	Workers int
	// Delay draws how long after Add a key can be synced: the watch's latency.
	// Nil means none.
	Delay func() time.Duration
	// Sync brings an object to where it should be. An error has it tried again
	// after a back-off.
	Sync func(ctx context.Context, key Key) error
	// BaseDelay and MaxDelay bound the back-off. Zero means the defaults.
	BaseDelay, MaxDelay time.Duration
	// MaxRetries is after how many failures in a row a key is left until it is added again. Zero is
	// never.
	MaxRetries int
	// PerKeyOnly has no bound on the retries of all keys together.
	PerKeyOnly bool
}

// Queue holds the keys that wait for a sync: each once, in the order of adding,
// and never two syncs of one key at a time (client-go util/workqueue). Upstream
// keeps a goroutine for each worker. Here a worker is a task that exists while
// there are keys that are ready: an idle controller costs its maps.
type Queue struct {
	opts     QueueOptions
	l        *loop.Loop
	ready    []Key
	state    map[Key]keyState
	waiting  map[Key]*loop.Timer
	failures map[Key]int
	retries  *rate.Limiter // nil: PerKeyOnly
	running  int
}

// keyState says where a key is, in bits: it can be syncing and queued again at
// once. A key that is in no state has no entry.
type keyState uint8

const (
	queued keyState = 1 << iota
	syncing
	delayed // between Add and the end of Delay
)

// NewQueue returns an empty queue.
func NewQueue(opts QueueOptions) *Queue {
	opts.Workers = max(opts.Workers, 1)
	opts.BaseDelay = cmp.Or(opts.BaseDelay, DefaultBaseDelay)
	opts.MaxDelay = cmp.Or(opts.MaxDelay, DefaultMaxDelay)
	q := &Queue{opts: opts, l: opts.Group.Loop(), state: map[Key]keyState{}, waiting: map[Key]*loop.Timer{}, failures: map[Key]int{}}
	if !opts.PerKeyOnly {
		q.retries = rate.NewLimiter(RetryQPS, RetryBurst)
	}
	return q
}

// Len returns how many keys wait or are being synced.
func (q *Queue) Len() int { return len(q.state) }

// Add has key synced once the change that it is about has been heard of.
func (q *Queue) Add(key Key) {
	st := q.state[key]
	// It is going to be synced anyway, with what is true then.
	if st&(queued|delayed) != 0 || q.opts.Group.Dead() {
		return
	}
	var d time.Duration
	if q.opts.Delay != nil {
		d = q.opts.Delay()
	}
	if d <= 0 {
		q.enqueue(key)
		return
	}
	q.state[key] = st | delayed
	q.opts.Group.After(d, func() {
		q.state[key] &^= delayed
		q.enqueue(key)
	})
}

// AddAfter has key synced after d, or when an earlier AddAfter said so.
func (q *Queue) AddAfter(key Key, d time.Duration) {
	if q.opts.Group.Dead() {
		return
	}
	if d <= 0 {
		q.enqueue(key)
		return
	}
	// The earlier of two waits wins, as in client-go's delaying queue.
	if t := q.waiting[key]; t != nil {
		if t.Set() && !t.When().After(q.l.Now().Add(d)) {
			return
		}
		t.Reset(d)
		return
	}
	t := q.opts.Group.NewTimer(q.opts.Name, func() {
		delete(q.waiting, key)
		q.enqueue(key)
	})
	t.Reset(d)
	q.waiting[key] = t
}

// AddRateLimited has key synced after the back-off of its failures so far, and
// no sooner than the bound on all retries lets it.
func (q *Queue) AddRateLimited(key Key) {
	n := q.failures[key]
	q.failures[key] = n + 1
	d := q.opts.MaxDelay
	if n < 30 { // beyond, the shift could overflow
		d = min(q.opts.BaseDelay<<n, q.opts.MaxDelay)
	}
	if q.retries != nil {
		now := q.l.Now()
		d = max(d, q.retries.ReserveN(now, 1).DelayFrom(now))
	}
	q.AddAfter(key, d)
}

// Forget ends a key's back-off.
func (q *Queue) Forget(key Key) { delete(q.failures, key) }

// enqueue makes a key ready, and starts a worker for it if one is left. A key
// whose sync goes on comes after that sync.
func (q *Queue) enqueue(key Key) {
	st := q.state[key]
	if st&queued != 0 {
		return
	}
	q.state[key] = st | queued
	if st&syncing != 0 {
		return // after that sync
	}
	q.ready = append(q.ready, key)
	if q.running < q.opts.Workers {
		q.running++
		q.opts.Group.Start(q.opts.Name, q.work)
	}
}

// work syncs keys until none is ready. A key that was added during its sync goes
// to the end, so that one busy object can't hold up the others.
func (q *Queue) work(ctx context.Context) {
	defer func() { q.running-- }()
	for len(q.ready) > 0 {
		key := q.ready[0]
		q.ready = q.ready[1:]
		q.state[key] = q.state[key]&^queued | syncing
		err := q.opts.Sync(ctx, key)
		st := q.state[key] &^ syncing
		if st == 0 {
			delete(q.state, key)
		} else {
			q.state[key] = st
		}
		if st&queued != 0 {
			q.ready = append(q.ready, key)
		}
		if err == nil || q.opts.MaxRetries > 0 && q.failures[key] >= q.opts.MaxRetries {
			q.Forget(key)
		} else {
			q.AddRateLimited(key)
		}
	}
	// The slice's array held every key since the last time it was empty.
	q.ready = nil
}
