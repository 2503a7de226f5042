package facade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	corestorage "k8s.io/apiserver/pkg/storage"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// selection is what a list or a watch selects.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

func selectionOf(o *metainternalversion.ListOptions) selection {
	s := selection{labels.Everything(), fields.Everything()}
	if o != nil && o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o != nil && o.FieldSelector != nil {
		s.fields = o.FieldSelector
	}
	return s
}

// empty reports whether everything is selected.
func (s selection) empty() bool { return s.labels.Empty() && s.fields.Empty() }

// matches reports whether an object of a kind is selected.
func (s selection) matches(row *apiserver.KindInfo, obj apiserver.Object) bool {
	if !s.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	set := row.SelectableFields(obj)
	if set == nil {
		set = fields.Set{}
	}
	set["metadata.name"], set["metadata.namespace"] = obj.GetName(), obj.GetNamespace()
	return s.fields.Matches(set)
}

// fieldLabels says which fields of a kind can be selected by.
type fieldLabels struct {
	runtime.ObjectConvertor
	row  *apiserver.KindInfo
	view *apiserver.KindView
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (f fieldLabels) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	set := f.row.SelectableFields(f.row.New())
	if f.view != nil && f.view.Labels != nil && label != "metadata.name" && label != "metadata.namespace" {
		is, ok := f.view.Labels[label]
		if !ok {
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
		return is, value, nil
	}
	switch {
	case label == "metadata.name" || label == "metadata.namespace" || set.Has(label):
		return label, value, nil
	case f.row.Custom != nil:
		return "", "", fmt.Errorf("field label not supported: %s", label)
	case set == nil:
		return "", "", fmt.Errorf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, label)
	}
	switch f.row.Group { // each has its own words (pkg/apis/GROUP/VERSION/conversion.go)
	case "batch":
		return "", "", fmt.Errorf("field label %q not supported for %s", label, f.row.Kind)
	case "resource.k8s.io":
		return "", "", fmt.Errorf("field label not supported for %s: %s", f.row.GroupVersionKind(), label)
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// watches tell clients of changes, and remember them for who begins behind. But for a
// watcher's channel, all of it is on the API's loop.
type watches struct {
	o     Options
	kinds map[apiserver.Kind]*watchedKind
	// compacted is the version before which only kinds' histories reach.
	compacted uint64
	// marked are the watchers that are sent bookmarks, mark when the next is due.
	marked []*watcher
	mark   *loop.Timer
	cut    atomic.Uint64 // watches that were too slow
}

// watchedKind has the changes of one kind, from when the facade was made.
type watchedKind struct {
	history
	watchers []*watcher
}

func newWatches(o Options) *watches {
	w := &watches{o: o, kinds: map[apiserver.Kind]*watchedKind{}}
	w.mark = o.API.Loop().Root().NewTimer("watch bookmarks", w.sendBookmarks)
	for _, row := range o.API.Store().Kinds().All() {
		w.kinds[row.Kind] = &watchedKind{history: *w.firstHistory(row.Kind)}
	}
	o.API.OnChange(w.changed)
	o.API.OnChange(w.definitionGone, apiserver.KindCustomResourceDefinition)
	return w
}

// firstHistory is what is known of a kind when the facade is made: all, if its objects
// are those that every cluster begins with.
func (w *watches) firstHistory(kind apiserver.Kind) *history {
	h := newHistory(w.o.API.Store().Version())
	if w.o.API.Writes(kind) > 0 {
		return h
	}
	all, _ := w.o.API.List(kind, "") // the kind is served
	h.from = 0
	for _, obj := range all {
		version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
		if err != nil {
			return newHistory(w.o.API.Store().Version())
		}
		h.changes = append(h.changes, past{Change: apiserver.Change{Type: watch.Added, Kind: kind, New: obj, Version: version}})
	}
	slices.SortFunc(h.changes, func(a, b past) int { return cmp.Compare(a.Version, b.Version) })
	return h
}

// of is what there is of a kind: nothing but what is yet to come, if it is new.
func (w *watches) of(kind apiserver.Kind) *watchedKind {
	k := w.kinds[kind]
	if k == nil {
		version := w.o.API.Store().Version() - 1
		k = &watchedKind{history: *newHistory(version)}
		k.born = version
		w.kinds[kind] = k
	}
	return k
}

// at returns the objects of a kind at a version (0: now), in the order of their keys.
// Error: Expired, of versions that are forgotten.
func (w *watches) at(kind apiserver.Kind, namespace string, version uint64) ([]apiserver.Object, error) {
	all, err := w.o.API.List(kind, namespace)
	if err != nil {
		return nil, err
	}
	if k := w.of(kind); version > 0 {
		switch {
		case version >= k.from:
			all = k.asOf(version, namespace, all)
		case version <= k.born && version >= w.compacted: // before the kind came
			return nil, nil
		default:
			return nil, apierrors.NewResourceExpired(listExpired)
		}
	}
	if !slices.IsSortedFunc(all, byKey) {
		slices.SortFunc(all, byKey)
	}
	return all, nil
}

// Compact forgets old versions as etcd's compaction does, on the API's loop: of a kind
// that came later than the facade, what was before. The recent past of the others is
// kept, as upstream's watch caches keep it.
func (f *Facade) Compact() { f.watches.compacted = f.o.API.Store().Version() }

// Forget forgets all versions but the present one, on the API's loop: watches and lists
// that begin behind it are refused as expired. It is more than a compaction does, since
// upstream's watch caches outlive those.
func (f *Facade) Forget() {
	f.Compact()
	for _, k := range f.watches.kinds {
		k.forget(f.watches.compacted)
	}
}

// CutWatches returns how many watches were ended because their clients read too slowly.
func (f *Facade) CutWatches() uint64 { return f.watches.cut.Load() }

// changed tells of a change.
func (w *watches) changed(c apiserver.Change) {
	k := w.of(c.Kind)
	c.New = kept(c.Kind, c.New)
	if c.Old != nil {
		c.Old = kept(c.Kind, c.Old)
	}
	k.add(c, w.o.API.Loop().UnixNano())
	k.watchers = slices.DeleteFunc(k.watchers, (*watcher).ended)
	for _, one := range k.watchers {
		if c.Version <= one.after {
			continue
		}
		if ev, ok := one.event(c); ok {
			one.send(ev)
		}
	}
}

// kept returns an object that may be kept: leases and events are good until a hook returns.
func kept(kind apiserver.Kind, obj apiserver.Object) apiserver.Object {
	if kind == apiserver.KindLease || kind == apiserver.KindEvent {
		return obj.DeepCopyObject().(apiserver.Object)
	}
	return obj
}

// goneAfter is when the resources of a definition that was deleted are gone for sure.
const goneAfter = 10 * time.Millisecond

// definitionGone ends the watches of a definition's resources, after they are gone.
func (w *watches) definitionGone(c apiserver.Change) {
	if c.Type != watch.Deleted {
		return
	}
	kind := apiserver.Kind(c.New.GetName())
	w.o.API.Loop().Root().After(goneAfter, func() {
		k := w.kinds[kind]
		if k == nil || w.o.API.Store().Kinds().Find(kind) != nil {
			return
		}
		delete(w.kinds, kind)
		for _, one := range k.watchers {
			one.end()
		}
	})
}

// add begins a watch. What is wrong with its version beyond its form is told by an event,
// as upstream's watch cache does.
func (w *watches) add(ctx context.Context, s *storage, namespace string, o *metainternalversion.ListOptions) (*watcher, error) {
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	k := w.of(s.row.Kind)
	one := &watcher{
		ctx: ctx, w: w, s: s, namespace: namespace, sel: selectionOf(o), after: version,
		out: make(chan watch.Event, watchAhead), wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	first, err := one.firstEvents(k, version, o)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		refusal := status.Status()
		first = []told{{typ: watch.Error, obj: &refusal}}
	}
	one.mayBehind = len(first) + watchBuffer
	one.send(first...)
	if err != nil {
		one.end()
		return one, nil
	}
	k.watchers = append(k.watchers, one)
	if o.AllowWatchBookmarks {
		w.markLater(one, o.TimeoutSeconds)
	}
	return one, nil
}

// firstEvents are those that a watch begins with: what has changed since a version, or
// all that there is (getAllEventsSinceLocked of upstream's watch cache).
func (o *watcher) firstEvents(k *watchedKind, version uint64, options *metainternalversion.ListOptions) (out []told, err error) {
	now, initial := o.w.o.API.Store().Version(), options.SendInitialEvents
	switch {
	case initial != nil && *initial:
		if err := reached(version, now); err != nil {
			return nil, err
		}
		if out, err = o.present(); err == nil && options.AllowWatchBookmarks {
			end := o.bookmark(now)
			err = corestorage.AnnotateInitialEventsEndBookmark(end.obj)
			out = append(out, end)
		}
		return out, err
	case version == 0 && initial == nil:
		return o.present()
	case version == 0:
		return nil, nil
	case version < k.from:
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, k.from))
	}
	for _, c := range k.since(version) {
		if ev, ok := o.event(c.Change); ok {
			out = append(out, ev)
		}
	}
	return out, nil
}

// present are events that add all that there is.
func (o *watcher) present() (out []told, err error) {
	all, err := o.w.at(o.s.row.Kind, o.namespace, 0)
	for _, obj := range all {
		if o.sel.matches(o.s.row, obj) {
			out = append(out, told{typ: watch.Added, obj: kept(o.s.row.Kind, obj)})
		}
	}
	return out, err
}

// watchBuffer is how many events a watcher may be behind, beside those that it begins
// with, before it is cut off.
const watchBuffer = 1000

// watchAhead is how many events are made before the handler reads them.
const watchAhead = 64

// watcher is one watch. What is told is queued when it arrives, and made into events by a
// goroutine when they are read: 10,000 objects to begin with are shared until then.
type watcher struct {
	ctx       context.Context // of the request
	w         *watches
	s         *storage
	namespace string
	sel       selection
	after     uint64 // changes up to this version are not told

	nextMark, lastMark int64 // of bookmarks: when the next is due; before the watch's end

	out        chan watch.Event
	wake, quit chan struct{}

	mu        sync.Mutex
	queue     []told
	mayBehind int  // how long the queue may be
	ending    bool // when the queue is empty
	done      bool
}

// told is an event that nobody has read yet.
type told struct {
	typ watch.EventType
	// obj is shared with the state, but for bookmarks and errors.
	obj runtime.Object
	// version is the one that the object is shown with; 0: its own.
	version uint64
}

// event is what a change is to who selects; false: nothing.
func (o *watcher) event(c apiserver.Change) (told, bool) {
	if o.namespace != "" && c.New.GetNamespace() != o.namespace {
		return told{}, false
	}
	is := c.Type != watch.Deleted && o.sel.matches(o.s.row, c.New)
	was := c.Old != nil && o.sel.matches(o.s.row, c.Old)
	switch {
	case is && was:
		return told{typ: watch.Modified, obj: c.New}, true
	case is:
		return told{typ: watch.Added, obj: c.New}, true
	case was && c.Type == watch.Deleted:
		return told{typ: watch.Deleted, obj: c.New}, true
	case was: // is selected no longer: the object as it last was
		return told{watch.Deleted, c.Old, c.Version}, true
	}
	return told{}, false
}

// show makes what is told an event, whose object is the reader's own.
func (o *watcher) show(t told) watch.Event {
	obj, ok := t.obj.(apiserver.Object)
	if !ok || t.typ == watch.Bookmark {
		return watch.Event{Type: t.typ, Object: t.obj}
	}
	out, err := o.s.shown(o.ctx, o.s.lend(obj), nil)
	if err != nil {
		status := err.(apierrors.APIStatus).Status() //nolint:errorlint // it is shown's
		return watch.Event{Type: watch.Error, Object: &status}
	}
	if m, ok := out.(apiserver.Object); ok && t.version > 0 {
		m.SetResourceVersion(strconv.FormatUint(t.version, 10))
	}
	return watch.Event{Type: t.typ, Object: out}
}

// send has something told.
func (o *watcher) send(list ...told) {
	o.w.o.Door.Deliver(o.ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		switch {
		case o.done || o.ending:
		case len(o.queue)+len(list) > o.mayBehind: // too slow
			o.w.cut.Add(1)
			o.stop()
		default:
			o.queue = append(o.queue, list...)
			o.awake()
		}
	})
}

// end ends the watch after what has been sent.
func (o *watcher) end() {
	o.w.o.Door.Deliver(o.ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ending = true
		o.awake()
	})
}

// awake has the queue looked at.
func (o *watcher) awake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// ended reports whether nobody listens any more.
func (o *watcher) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done || o.ending
}

// Stop implements watch.Interface.
func (o *watcher) Stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop()
}

// stop ends the watch at once. The caller holds the lock.
func (o *watcher) stop() {
	if !o.done {
		o.done, o.queue = true, nil
		close(o.quit)
	}
}

// ResultChan implements watch.Interface.
func (o *watcher) ResultChan() <-chan watch.Event { return o.out }

// next takes what is to be shown next; last says that nothing will follow.
func (o *watcher) next() (list []told, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(o.queue), watchAhead)
	list, o.queue = o.queue[:n:n], o.queue[n:]
	if len(o.queue) == 0 {
		o.queue = nil
	}
	return list, o.ending && n == 0
}

// run shows what is told until the watch ends. It is the goroutine of the watch.
func (o *watcher) run() {
	defer close(o.out)
	for {
		list, last := o.next()
		if last {
			return
		}
		for _, t := range list {
			select {
			case o.out <- o.show(t):
			case <-o.quit:
				return
			}
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-o.wake:
		case <-o.quit:
			return
		}
	}
}
