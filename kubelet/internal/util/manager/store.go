// Package manager keeps the configMaps and secrets that a node's pods refer to.
// It answers to upstream's pkg/kubelet/util/manager, with its three ways to
// learn of changes: Watch (a list and watch of each object), Cache (a copy that
// is read again when its time is over) and Get (a read each time).
//
// It differs in what it does while nothing happens: upstream looks every minute
// for watches that nobody reads, here one timer is set for the minute in which
// the first can be found.
package manager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Times of upstream's watch_based_manager.go and cache_based_manager.go.
const (
	syncPoll       = 10 * time.Millisecond
	syncTimeout    = time.Second
	idleCheck      = time.Minute
	defaultTTL     = time.Minute
	minIdle        = time.Minute
	idleSyncFactor = 5
)

// errTimedOut has the text of apimachinery's wait.ErrWaitTimeout.
var errTimedOut = errors.New("timed out waiting for the condition")

// Object is a kind of object that a Store can keep: a pointer.
type Object interface {
	comparable
	metav1.Object
}

// Options say what a Store keeps, and how.
type Options[T Object] struct {
	Group *loop.Group
	// Kind is the kind in lower case, as error texts have it.
	Kind string
	// Get reads an object from the API.
	Get func(ctx context.Context, namespace, name string) (T, error)
	// Watch lists and watches an object until stop is called; listed gets nil
	// when there is none.
	Watch func(g *loop.Group, namespace, name string, listed func(T), event func(watch.EventType, T)) (stop func())
	// References calls visit with the name of each object that a pod refers
	// to, some perhaps more than once.
	References func(pod *v1.Pod, visit func(name string))
	// Immutable tells whether an object can't change any more.
	Immutable func(T) bool
	// Strategy is configMapAndSecretChangeDetectionStrategy.
	Strategy kubeletconfig.ResourceChangeDetectionStrategy
	// Resync is syncFrequency.
	Resync time.Duration
	// Node returns the node, whose annotation says how long a copy is good; may
	// be nil, and may return nil.
	Node func() *v1.Node
}

// Store keeps the objects that registered pods refer to. Objects are shared and
// never written to.
type Store[T Object] struct {
	o Options[T]
	l *loop.Loop
	// items and pods, those registered that refer to anything, are nil before the
	// first.
	items  map[types.NamespacedName]*item[T]
	pods   map[types.UID]*v1.Pod
	start  int64
	idle   *loop.Timer
	idleAt int64
	// What add, made once, adds references for, and whether it added any.
	namespace string
	refers    bool
	add       func(name string)
}

// item is one object that pods refer to.
type item[T Object] struct {
	key    types.NamespacedName
	refs   int
	object T // nil: there is none

	// With Watch:
	stop      func() // nil while not watched
	conn      uint64
	synced    *loop.Event
	immutable bool
	lastRead  int64

	// With Cache:
	err     error
	updated int64 // 0: never
}

// New returns an empty Store.
func New[T Object](o Options[T]) *Store[T] {
	l := o.Group.Loop()
	s := &Store[T]{o: o, l: l, start: l.UnixNano()}
	s.idle = o.Group.NewTimer("idle "+o.Kind+" watches", s.stopIdle)
	s.add = func(name string) {
		s.refers = true
		s.addReference(types.NamespacedName{Namespace: s.namespace, Name: name})
	}
	return s
}

func (s *Store[T]) maxIdle() int64 {
	return int64(max(minIdle, idleSyncFactor*s.o.Resync))
}

// RegisterPod notes what a pod refers to now. It is called by each sync of the
// pod.
func (s *Store[T]) RegisterPod(pod *v1.Pod) {
	if s.o.Strategy == kubeletconfig.GetChangeDetectionStrategy {
		return
	}
	old := s.pods[pod.UID]
	if old == pod && s.o.Strategy != kubeletconfig.TTLCacheChangeDetectionStrategy {
		return
	}
	s.namespace, s.refers = pod.Namespace, false
	s.o.References(pod, s.add)
	if s.refers {
		if s.pods == nil {
			s.pods = map[types.UID]*v1.Pod{}
		}
		s.pods[pod.UID] = pod
	} else {
		delete(s.pods, pod.UID)
	}
	s.release(old)
}

// ReplacePod takes over the next version of a pod's object, which refers to the
// same.
func (s *Store[T]) ReplacePod(old, pod *v1.Pod) {
	if s.pods[pod.UID] == old {
		s.pods[pod.UID] = pod
	}
}

// UnregisterPod forgets what a pod refers to.
func (s *Store[T]) UnregisterPod(uid types.UID) {
	old := s.pods[uid]
	delete(s.pods, uid)
	s.release(old)
}

func (s *Store[T]) release(pod *v1.Pod) {
	if pod != nil {
		s.o.References(pod, func(name string) {
			s.deleteReference(types.NamespacedName{Namespace: pod.Namespace, Name: name})
		})
	}
}

func (s *Store[T]) addReference(key types.NamespacedName) {
	it := s.items[key]
	if it == nil {
		it = &item[T]{key: key}
		if s.items == nil {
			s.items = map[types.NamespacedName]*item[T]{}
		}
		s.items[key] = it
		if s.o.Strategy == kubeletconfig.WatchChangeDetectionStrategy {
			it.lastRead = s.l.UnixNano()
			s.watch(it)
		}
	}
	it.refs++
	if s.o.Strategy == kubeletconfig.TTLCacheChangeDetectionStrategy {
		var none T // the next read asks the API
		it.object, it.err, it.updated = none, nil, 0
	}
}

func (s *Store[T]) deleteReference(key types.NamespacedName) {
	it := s.items[key]
	if it == nil {
		return
	}
	if it.refs--; it.refs == 0 {
		it.unwatch()
		delete(s.items, key)
	}
}

// Get returns an object. Errors: that it is not registered; that it could not
// be read in time; NotFound.
func (s *Store[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if s.o.Strategy == kubeletconfig.GetChangeDetectionStrategy {
		return s.o.Get(ctx, namespace, name)
	}
	it := s.items[types.NamespacedName{Namespace: namespace, Name: name}]
	if it == nil {
		return none, fmt.Errorf("object %q/%q not registered", namespace, name)
	}
	if s.o.Strategy == kubeletconfig.TTLCacheChangeDetectionStrategy {
		return s.getCached(ctx, it)
	}
	if err := s.read(ctx, it); err != nil {
		return none, err
	}
	if it.object == none {
		return none, apierrors.NewNotFound(schema.GroupResource{Resource: s.o.Kind}, name)
	}
	if !it.immutable && s.o.Immutable(it.object) {
		it.immutable = true
		it.unwatch()
	}
	return it.object, nil
}

// Peek returns what Get would return now, if it would return at once: an
// object, or nil for none. It counts as a read.
func (s *Store[T]) Peek(namespace, name string) (object T, ok bool) {
	it := s.items[types.NamespacedName{Namespace: namespace, Name: name}]
	if it == nil || s.o.Strategy != kubeletconfig.WatchChangeDetectionStrategy {
		return object, false
	}
	it.lastRead = s.l.UnixNano()
	if !it.immutable && (it.stop == nil || !it.synced.Fired()) {
		return object, false
	}
	return it.object, true
}

// read has an object watched and waits until its list is there. Upstream polls
// for that.
func (s *Store[T]) read(ctx context.Context, it *item[T]) error {
	start := s.l.UnixNano()
	it.lastRead = start
	if it.immutable {
		return nil
	}
	if it.stop == nil {
		s.watch(it)
	}
	if it.synced.Fired() {
		return nil
	}
	wctx, cancel := loop.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := it.synced.Wait(wctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("failed to sync %s cache: %w", s.o.Kind, errTimedOut)
	}
	late := time.Duration(s.l.UnixNano()-start) % syncPoll
	return s.l.Sleep(ctx, syncPoll-late)
}

// watch begins to watch an object.
func (s *Store[T]) watch(it *item[T]) {
	it.conn++
	conn := it.conn
	synced := &loop.Event{}
	it.synced = synced
	current := func() bool { return conn == it.conn && it.stop != nil }
	it.stop = func() {} // until Watch returns, what it calls is current
	it.stop = s.o.Watch(s.o.Group, it.key.Namespace, it.key.Name, func(o T) {
		if !current() {
			return
		}
		it.object = o
		if !synced.Fired() {
			synced.Fire()
		}
	}, func(t watch.EventType, o T) {
		if !current() {
			return
		}
		if t == watch.Deleted {
			var none T
			o = none
		}
		it.object = o
	})
	s.planIdle(it)
}

func (it *item[T]) unwatch() {
	if it.stop != nil {
		it.stop()
		it.stop = nil
	}
}

// planIdle sets the timer for the first check that can find the watch idle.
func (s *Store[T]) planIdle(it *item[T]) {
	checks := (it.lastRead+s.maxIdle()-s.start)/int64(idleCheck) + 1
	at := s.start + checks*int64(idleCheck)
	if !s.idle.Set() || at < s.idleAt {
		s.idleAt = at
		s.idle.ResetAt(time.Unix(0, at))
	}
}

// stopIdle stops the watches that nobody has read for long. The next read
// starts them again.
func (s *Store[T]) stopIdle() {
	now := s.l.UnixNano()
	for _, it := range s.items { //drydock:unordered stopping has no order, the timer takes the least
		switch {
		case it.stop == nil:
		case now-it.lastRead > s.maxIdle():
			it.unwatch()
		default:
			s.planIdle(it)
		}
	}
}

// getCached is a read with the strategy Cache.
func (s *Store[T]) getCached(ctx context.Context, it *item[T]) (T, error) {
	var none T
	now := s.l.UnixNano()
	if it.err == nil && it.updated != 0 && now < it.updated+int64(s.ttl()) {
		return it.object, nil
	}
	object, err := s.o.Get(ctx, it.key.Namespace, it.key.Name)
	switch {
	case apierrors.IsNotFound(err):
		it.object, it.err, it.updated = none, err, s.l.UnixNano()
	case err != nil && it.object == none && it.err == nil:
		return none, err
	case err == nil && (it.object == none || !older(object, it.object)):
		it.object, it.err, it.updated = object, nil, s.l.UnixNano()
	}
	return it.object, it.err
}

// ttl is how long a copy is good.
func (s *Store[T]) ttl() time.Duration {
	if s.o.Node != nil {
		if node := s.o.Node(); node != nil {
			if n, err := strconv.Atoi(node.Annotations[v1.ObjectTTLAnnotationKey]); err == nil {
				return time.Duration(n) * time.Second
			}
		}
	}
	return defaultTTL
}

// older tells whether a is an earlier version than b.
func older[T Object](a, b T) bool {
	va, err := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, err2 := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return err == nil && err2 == nil && va < vb
}
