package facade

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

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
	row *apiserver.KindInfo
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (f fieldLabels) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	set := f.row.SelectableFields(f.row.New())
	switch {
	case label == "metadata.name" || label == "metadata.namespace" || set.Has(label):
		return label, value, nil
	case set == nil:
		return "", "", fmt.Errorf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, label)
	case f.row.Group == "":
		return "", "", fmt.Errorf("field label not supported: %s", label)
	}
	return "", "", fmt.Errorf("field label %q not supported for %s", label, f.row.Kind)
}

// maxHistory is how many changes of a kind a watch can begin behind.
const maxHistory = 1024

// watches tell clients of changes. But for a watcher's channel, all of it is on the
// API's loop.
type watches struct {
	o     Options
	kinds map[apiserver.Kind]*watchedKind
}

// watchedKind has the changes of one kind, from when the facade was made.
type watchedKind struct {
	history []apiserver.Change
	// from is the version after which history is complete.
	from     uint64
	watchers []*watcher
}

func newWatches(o Options) *watches {
	w := &watches{o: o, kinds: map[apiserver.Kind]*watchedKind{}}
	for _, row := range o.API.Store().Kinds().All() {
		w.kinds[row.Kind] = &watchedKind{from: o.API.Store().Version()}
	}
	o.API.OnChange(w.changed)
	return w
}

// of is what there is of a kind: nothing but what is yet to come, if it is new.
func (w *watches) of(kind apiserver.Kind) *watchedKind {
	k := w.kinds[kind]
	if k == nil {
		k = &watchedKind{from: w.o.API.Store().Version() - 1}
		w.kinds[kind] = k
	}
	return k
}

// changed tells of a change.
func (w *watches) changed(c apiserver.Change) {
	k := w.of(c.Kind)
	if c.Kind == apiserver.KindLease || c.Kind == apiserver.KindEvent { // good until the hook returns
		c.New = c.New.DeepCopyObject().(apiserver.Object)
		if c.Old != nil {
			c.Old = c.Old.DeepCopyObject().(apiserver.Object)
		}
	}
	k.history = append(k.history, c)
	if len(k.history) > 2*maxHistory {
		k.from = k.history[maxHistory-1].Version
		k.history = slices.Clone(k.history[maxHistory:])
	}
	k.watchers = slices.DeleteFunc(k.watchers, (*watcher).ended)
	for _, one := range k.watchers {
		if ev, ok := one.event(c); ok {
			one.send(ev)
		}
	}
}

// add begins a watch.
func (w *watches) add(s *storage, namespace string, o *metainternalversion.ListOptions) (watch.Interface, error) {
	k := w.of(s.row.Kind)
	one := &watcher{w: w, s: s, namespace: namespace, sel: selectionOf(o)}
	first, err := one.firstEvents(k, o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	one.out = make(chan watch.Event, len(first)+watchBuffer)
	for _, ev := range first {
		one.send(ev)
	}
	k.watchers = append(k.watchers, one)
	return one, nil
}

// firstEvents are those that a watch begins with: what has changed since a version, or
// all that there is.
func (o *watcher) firstEvents(k *watchedKind, since string) (out []watch.Event, err error) {
	if since == "" || since == "0" {
		all, err := o.w.o.API.List(o.s.row.Kind, o.namespace)
		for _, obj := range all {
			if o.sel.matches(o.s.row, obj) {
				out = append(out, watch.Event{Type: watch.Added, Object: o.s.lend(obj)})
			}
		}
		return out, err
	}
	version, err := strconv.ParseUint(since, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid resource version " + strconv.Quote(since))
	}
	if version < k.from {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, k.from))
	}
	for _, c := range k.history {
		if ev, ok := o.event(c); ok && c.Version > version {
			out = append(out, ev)
		}
	}
	return out, nil
}

// watchBuffer is how many events a watcher may be behind, beside those that it begins
// with, before it is cut off.
const watchBuffer = 1000

// watcher is one watch. Events are sent by the loop and read by the handler.
type watcher struct {
	w         *watches
	s         *storage
	namespace string
	sel       selection
	out       chan watch.Event

	mu   sync.Mutex
	done bool
}

// event is what a change is to who selects; false: nothing.
func (o *watcher) event(c apiserver.Change) (watch.Event, bool) {
	if o.namespace != "" && c.New.GetNamespace() != o.namespace {
		return watch.Event{}, false
	}
	is := c.Type != watch.Deleted && o.sel.matches(o.s.row, c.New)
	was := c.Old != nil && o.sel.matches(o.s.row, c.Old)
	switch {
	case is && was:
		return watch.Event{Type: watch.Modified, Object: o.s.lend(c.New)}, true
	case is:
		return watch.Event{Type: watch.Added, Object: o.s.lend(c.New)}, true
	case was && c.Type == watch.Deleted:
		return watch.Event{Type: watch.Deleted, Object: o.s.lend(c.New)}, true
	case was: // is selected no longer: the object as it last was
		old := o.s.row.Copy(c.Old)
		old.SetResourceVersion(c.New.GetResourceVersion())
		return watch.Event{Type: watch.Deleted, Object: old}, true
	}
	return watch.Event{}, false
}

// send has an event delivered.
func (o *watcher) send(ev watch.Event) {
	o.w.o.Door.Deliver(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.done {
			return
		}
		select {
		case o.out <- ev:
		default: // too slow
			o.done = true
			close(o.out)
		}
	})
}

// ended reports whether nobody listens any more.
func (o *watcher) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

// Stop implements watch.Interface.
func (o *watcher) Stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		o.done = true
		close(o.out)
	}
}

// ResultChan implements watch.Interface.
func (o *watcher) ResultChan() <-chan watch.Event { return o.out }
