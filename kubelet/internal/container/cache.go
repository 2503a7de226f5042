package container

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Cache holds the last inspected status of each pod in the runtime, as the
// PLEG found it. Readers can wait for a status that is newer than a time. It
// mirrors upstream's pkg/kubelet/container/cache.go; a reader that has
// nothing else to do waits by callback (Notify) and needs no task.
type Cache struct {
	global  int64 // every pod is known to be as cached at this time
	entries map[types.UID]cacheEntry
	waiters []*CacheWaiter // by arrival
	// version grows with every change of an entry's status or error.
	version loop.Version
	source  Source
}

// Source is who keeps the cache up to date, if it calls UpdateTime less often
// than it could while nobody looks.
type Source interface {
	// CatchUp makes the calls of UpdateTime that were put off.
	CatchUp()
	// Awaited tells that somebody waits for the next call.
	Awaited()
}

// SetSource makes the source known.
func (c *Cache) SetSource(s Source) { c.source = s }

func (c *Cache) catchUp() {
	if c.source != nil {
		c.source.CatchUp()
	}
}

type cacheEntry struct {
	status   *PodStatus
	err      error
	modified int64
	observed int64
}

// CacheWaiter is a callback that waits for a newer status.
type CacheWaiter struct {
	c     *Cache
	uid   types.UID
	after int64
	fn    func(*PodStatus, error)
}

// NewCache returns an empty cache whose global time is not set.
func NewCache() *Cache {
	return &Cache{global: math.MinInt64, entries: map[types.UID]cacheEntry{}}
}

// nanos is t in nanoseconds since the Unix epoch; the zero time comes first.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixNano()
}

// Version grows with every change of what Get returns for some pod.
func (c *Cache) Version() *loop.Version { return &c.version }

// SeenSince reports whether every pod is known to have been seen after t.
func (c *Cache) SeenSince(t time.Time) bool {
	if c.global > nanos(t) {
		return true
	}
	c.catchUp()
	return c.global > nanos(t)
}

// Len returns the number of pods in the cache.
func (c *Cache) Len() int { return len(c.entries) }

// Get returns the pod's status, or the error of its inspection. For a pod that
// is not in the cache the status holds nothing but the UID. The status is
// shared.
func (c *Cache) Get(uid types.UID) (*PodStatus, error) {
	e, ok := c.entries[uid]
	if !ok {
		return &PodStatus{ID: uid}, nil
	}
	return e.status, e.err
}

// TryGetNewerThan is Get for a status that is known to hold after t; ok tells
// whether there is one already.
func (c *Cache) TryGetNewerThan(uid types.UID, t time.Time) (status *PodStatus, err error, ok bool) { //nolint:revive // ok comes last, as in a map read
	if !c.newer(uid, nanos(t)) {
		return nil, nil, false
	}
	status, err = c.Get(uid)
	return status, err, true
}

func (c *Cache) newer(uid types.UID, t int64) bool {
	if c.global > t {
		return true
	}
	if c.catchUp(); c.global > t {
		return true
	}
	e, ok := c.entries[uid]
	return ok && (e.modified > t || e.observed > t)
}

// Notify has fn called once, with what Get returns then, as soon as a status
// is known that holds after t: at once, before Notify returns (the waiter is
// then nil), or from a write to the cache. fn must not wait.
func (c *Cache) Notify(uid types.UID, t time.Time, fn func(*PodStatus, error)) *CacheWaiter {
	after := nanos(t)
	if c.newer(uid, after) {
		fn(c.Get(uid))
		return nil
	}
	w := &CacheWaiter{c: c, uid: uid, after: after, fn: fn}
	c.waiters = append(c.waiters, w)
	if c.source != nil {
		c.source.Awaited()
	}
	return w
}

// Stop takes the callback back, if it was not called yet. A nil waiter is
// fine.
func (w *CacheWaiter) Stop() {
	if w == nil {
		return
	}
	for i, o := range w.c.waiters {
		if o == w {
			w.c.waiters = append(w.c.waiters[:i], w.c.waiters[i+1:]...)
			return
		}
	}
}

// Waiting reports whether somebody waits for a newer status.
func (c *Cache) Waiting() bool { return len(c.waiters) > 0 }

// Waiters returns how many do.
func (c *Cache) Waiters() int { return len(c.waiters) }

// GetNewerThan is Get, waiting until a status is known that holds after t. Its
// error is that of the inspection, or ctx's.
func (c *Cache) GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*PodStatus, error) {
	var (
		status *PodStatus
		err    error
		served loop.Event
	)
	w := c.Notify(uid, t, func(s *PodStatus, e error) {
		status, err = s, e
		served.Fire()
	})
	defer w.Stop()
	if werr := served.Wait(ctx); werr != nil {
		return nil, werr
	}
	return status, err
}

// Set replaces the pod's entry with what an inspection based on a listing of
// time ts gave, and serves who waits for that pod and a time up to ts. A nil
// status, as after an error, is kept as one that holds nothing but the UID.
func (c *Cache) Set(uid types.UID, status *PodStatus, err error, ts time.Time) {
	if status == nil {
		status = &PodStatus{ID: uid}
	}
	at := nanos(ts)
	c.version.Grow()
	c.entries[uid] = cacheEntry{status: status, err: err, modified: at, observed: at}
	c.serve(uid, false, at)
}

// SetIfNewer is Set unless the pod's entry is of a later time, which it reports. Two who write
// use it: what the slower one saw must not undo what the faster one knows.
func (c *Cache) SetIfNewer(uid types.UID, status *PodStatus, err error, ts time.Time) bool {
	if e, ok := c.entries[uid]; ok && e.modified > nanos(ts) {
		return false
	}
	c.Set(uid, status, err, ts)
	return true
}

// SetObservedTime says that the pod was seen unchanged at ts, and serves who
// waits for that pod and a time up to ts. A pod without an entry gets none.
func (c *Cache) SetObservedTime(uid types.UID, ts time.Time) {
	at := nanos(ts)
	if e, ok := c.entries[uid]; ok {
		e.observed = at
		c.entries[uid] = e
	}
	c.serve(uid, false, at)
}

// Delete removes the pod's entry; nobody is woken.
func (c *Cache) Delete(uid types.UID) {
	c.version.Grow()
	delete(c.entries, uid)
}

// UpdateTime says that all pods were seen at ts, or later if that was said before, and
// serves who waits for any pod and a time up to that.
func (c *Cache) UpdateTime(ts time.Time) {
	c.global = max(c.global, nanos(ts))
	if len(c.waiters) > 0 {
		c.serve("", true, c.global)
	}
}

func (c *Cache) serve(uid types.UID, all bool, at int64) {
	var ready []*CacheWaiter
	kept := c.waiters[:0]
	for _, w := range c.waiters {
		if (all || w.uid == uid) && w.after <= at {
			ready = append(ready, w)
		} else {
			kept = append(kept, w)
		}
	}
	clear(c.waiters[len(kept):])
	c.waiters = kept
	for _, w := range ready {
		w.fn(c.Get(w.uid))
	}
}
