// Package manager keeps the configMaps and secrets that a node's pods refer to.
// It mirrors upstream's pkg/kubelet/util/manager, with its three ways to learn
// of changes: Watch (a list and watch of each object), Cache (a copy that is
// read again when its time is over) and Get (a read each time).
//
// [Store] (store.go) is the same for both kinds; what sets them apart, the
// requests of the API and the places of a pod's spec that refer to them, is in
// kinds.go. A pod's syncs register what it refers to, whoever needs an object
// calls Get, and the pod's end drops the references.
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

// Options say how a Store keeps its objects.
type Options struct {
	Group *loop.Group
	// Strategy is configMapAndSecretChangeDetectionStrategy.
	Strategy kubeletconfig.ResourceChangeDetectionStrategy
	// Resync is syncFrequency; a watch that is not read for five of these, at
	// least a minute, is stopped.
	Resync time.Duration
	// Node returns the node, whose annotation says how long a copy is good; may
	// be nil, and may return nil.
	Node func() *v1.Node
}

// source is the API as a Store sees it, and what it has to know of its kind.
type source[T Object] struct {
	kind Kind
	get  func(ctx context.Context, namespace, name string) (T, error)
	// watch lists and watches an object until stop is called; listed gets nil
	// when there is none.
	watch func(g *loop.Group, namespace, name string, listed func(T), event func(watch.EventType, T)) (stop func())
	// immutable reports whether an object can't change any more: it needs no
	// watch then.
	immutable func(T) bool
}

// Store keeps the objects that registered pods refer to. Objects are shared and
// never written to.
type Store[T Object] struct {
	o      Options
	source source[T]
	l      *loop.Loop
	// items and pods, those registered that refer to anything, are nil before the
	// first.
	items  map[types.NamespacedName]*item[T]
	pods   map[types.UID]*v1.Pod
	start  int64
	idle   *loop.Timer
	idleAt int64
	// add is made once, since every sync of a pod needs it: it adds references
	// to objects of namespace and notes in refers that there was one.
	namespace string
	refers    bool
	add       func(kind Kind, name string)
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

// newStore returns an empty Store.
func newStore[T Object](o Options, src source[T]) *Store[T] {
	l := o.Group.Loop()
	s := &Store[T]{o: o, source: src, l: l, start: l.UnixNano()}
	s.idle = o.Group.NewTimer("idle "+string(src.kind)+" watches", s.stopIdle)
	s.add = func(kind Kind, name string) {
		if kind != src.kind {
			return
		}
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
	visitReferences(pod, s.add)
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

// ReplacePod takes over the next version of a pod's object where only its status
// differs: it refers to the same, so nothing is visited.
func (s *Store[T]) ReplacePod(old, pod *v1.Pod) {
	if s.pods[pod.UID] == old {
		s.pods[pod.UID] = pod
	}
}

// UnregisterPod forgets what a pod refers to, by its UID.
func (s *Store[T]) UnregisterPod(pod *v1.Pod) {
	old := s.pods[pod.UID]
	delete(s.pods, pod.UID)
	s.release(old)
}

// release drops the references of a pod's object that is no longer registered.
// It follows the ones of the next object, so that what both refer to stays.
func (s *Store[T]) release(pod *v1.Pod) {
	if pod == nil {
		return
	}
	visitReferences(pod, func(kind Kind, name string) {
		if kind == s.source.kind {
			s.deleteReference(types.NamespacedName{Namespace: pod.Namespace, Name: name})
		}
	})
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

// Get returns an object, which is shared and must not be written to; it may
// wait. Errors: no registered pod refers to it; it could not be read in time;
// NotFound.
func (s *Store[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if s.o.Strategy == kubeletconfig.GetChangeDetectionStrategy {
		return s.source.get(ctx, namespace, name)
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
		return none, apierrors.NewNotFound(schema.GroupResource{Resource: string(s.source.kind)}, name)
	}
	if !it.immutable && s.source.immutable(it.object) {
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
		return fmt.Errorf("failed to sync %s cache: %w", s.source.kind, errTimedOut)
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
	it.stop = s.source.watch(s.o.Group, it.key.Namespace, it.key.Name, func(o T) {
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
	object, err := s.source.get(ctx, it.key.Namespace, it.key.Name)
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

// older reports whether a is an earlier version than b.
func older[T Object](a, b T) bool {
	va, err := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, err2 := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return err == nil && err2 == nil && va < vb
}
