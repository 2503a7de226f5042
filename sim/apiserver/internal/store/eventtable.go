package store

import (
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// eventTable holds the events in the order of their creation. There are
// several of each pod, hardly anybody looks at them, and an event is 640 bytes:
// so it keeps what differs from event to event, and makes the event of it when
// somebody asks.
type eventTable struct {
	seed  uint64
	names table.Names
	// chunks hold n items and holes. They stand in them by value, since millions of
	// objects of their own would be the garbage collector's to mark.
	chunks [][]storedEvent
	n      int
	holes  int
	// head is the first item that has not yet been looked at for its expiry.
	head int
	// views are the items' events, once all have been asked for.
	views []*v1.Event
	// whole are the events with something that a storedEvent has no room for, by
	// their slots.
	whole map[int32]*v1.Event

	classes  map[eventClass]*eventClass
	sources  map[eventSource]*eventSource
	messages map[string]string // of recent events, to share them
	most     int               // classes and sources from which on those without an event are dropped
}

// eventChunk is how many items are allocated at once.
const eventChunk = 128

// storedEvent is what an event has of its own: 112 bytes.
type storedEvent struct {
	class         *eventClass // nil: see eventTable.whole
	source        *eventSource
	object        string // involvedObject.name
	objectUID     types.UID
	message       string
	objectVersion uint64 // involvedObject.resourceVersion; 0: none
	stamp         uint64 // in hex the end of the event's name
	uid           uint64 // the number of the event's UID
	version       uint64 // of the last write; 0: a hole
	// Seconds since the Unix epoch; 0: none.
	created, first, last uint32
	count                int32
}

// eventClass is what an event shares with many.
type eventClass struct {
	namespace, reason, typ, action string
	kind, apiVersion, objectNS     string // of the involved object
	fieldPath                      string
}

// eventSource is who tells of an event.
type eventSource struct{ component, host, controller, instance string }

// sharedMessages bounds eventTable.messages; fewClasses is how many classes and
// sources are kept in any case.
const (
	sharedMessages = 1024
	fewClasses     = 1024
)

// newEventTable returns an empty table; seed is what UIDs are made of.
func newEventTable(seed uint64) *eventTable {
	return &eventTable{
		seed: seed, names: table.NewNames(), whole: map[int32]*v1.Event{},
		classes: map[eventClass]*eventClass{}, sources: map[eventSource]*eventSource{}, messages: map[string]string{},
	}
}

// pack makes an event as small as it can; uid is the number of its UID, 0 when
// not known. It reports whether the event could be packed.
func (t *eventTable) pack(ev *v1.Event, uid uint64, to *storedEvent) bool {
	object, stamp, named := cutEventName(ev.Name)
	o := &ev.InvolvedObject
	version, versioned := parseVersion(o.ResourceVersion)
	own, ok := parseVersion(ev.ResourceVersion)
	created, okCreated := packTime(ev.CreationTimestamp)
	first, okFirst := packTime(ev.FirstTimestamp)
	last, okLast := packTime(ev.LastTimestamp)
	// Whatever would not come back as it was is kept whole.
	if uid == 0 || !named || object != o.Name || !versioned || !ok || !okCreated || !okFirst || !okLast || !plainEvent(ev) {
		return false
	}
	*to = storedEvent{
		class: share(t.classes, eventClass{
			namespace: ev.Namespace, reason: ev.Reason, typ: ev.Type, action: ev.Action,
			kind: o.Kind, apiVersion: o.APIVersion, objectNS: o.Namespace, fieldPath: o.FieldPath,
		}),
		source: share(t.sources, eventSource{ev.Source.Component, ev.Source.Host, ev.ReportingController, ev.ReportingInstance}),
		object: o.Name, objectUID: o.UID, message: t.share(ev.Message),
		objectVersion: version, stamp: stamp, uid: uid, version: own,
		created: created, first: first, last: last, count: ev.Count,
	}
	return true
}

// plainEvent reports whether an event has none of what few have.
func plainEvent(ev *v1.Event) bool {
	m := &ev.ObjectMeta
	return m.GenerateName == "" && m.SelfLink == "" && m.Generation == 0 && m.DeletionTimestamp == nil && m.DeletionGracePeriodSeconds == nil &&
		m.Labels == nil && m.Annotations == nil && m.OwnerReferences == nil && m.Finalizers == nil && m.ManagedFields == nil &&
		ev.EventTime.IsZero() && ev.Series == nil && ev.Related == nil
}

// item returns what is in a slot. It moves when the table is compacted.
func (t *eventTable) item(slot int32) *storedEvent {
	return &t.chunks[slot/eventChunk][slot%eventChunk]
}

// unpack is the event that pack was given.
func (t *eventTable) unpack(slot int32) *v1.Event {
	x := t.item(slot)
	if x.class == nil {
		return t.whole[slot]
	}
	c, src := x.class, x.source
	ev := &v1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: x.name(), Namespace: c.namespace, UID: uidOf(t.seed, x.uid),
			ResourceVersion: strconv.FormatUint(x.version, 10), CreationTimestamp: unpackTime(x.created),
		},
		InvolvedObject: v1.ObjectReference{
			Kind: c.kind, Namespace: c.objectNS, Name: x.object, UID: x.objectUID, APIVersion: c.apiVersion, FieldPath: c.fieldPath,
		},
		Reason: c.reason, Message: x.message, Type: c.typ, Action: c.action, Count: x.count,
		Source:         v1.EventSource{Component: src.component, Host: src.host},
		FirstTimestamp: unpackTime(x.first), LastTimestamp: unpackTime(x.last),
		ReportingController: src.controller, ReportingInstance: src.instance,
	}
	if x.objectVersion != 0 {
		ev.InvolvedObject.ResourceVersion = strconv.FormatUint(x.objectVersion, 10)
	}
	return ev
}

// name is the event's name, as client-go makes them: the object's, and the
// time in hex.
func (x *storedEvent) name() string {
	b := append(make([]byte, 0, 80), x.object...)
	return string(strconv.AppendUint(append(b, '.'), x.stamp, 16))
}

// cutEventName takes an event's name apart; false: it is not of that form.
func cutEventName(name string) (object string, stamp uint64, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || len(name) == i+1 || name[i+1] == '0' {
		return "", 0, false
	}
	stamp = 0
	for _, c := range []byte(name[i+1:]) {
		switch {
		case stamp>>60 != 0:
			return "", 0, false
		case '0' <= c && c <= '9':
			stamp = stamp<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			stamp = stamp<<4 | uint64(c-'a'+10)
		default:
			return "", 0, false
		}
	}
	return name[:i], stamp, true
}

// parseVersion reads a resource version as the store writes them; "" is 0.
func parseVersion(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil && v != 0 && s[0] != '0' && s[0] != '+'
}

// packTime takes whole seconds; false: t is not such a time.
func packTime(t metav1.Time) (uint32, bool) {
	if t.IsZero() {
		return 0, true
	}
	sec := uint32(t.Unix())
	return sec, sec != 0 && t == unpackTime(sec)
}

// unpackTime is the inverse of packTime.
func unpackTime(sec uint32) metav1.Time {
	if sec == 0 {
		return metav1.Time{}
	}
	return metav1.Time{Time: time.Unix(int64(sec), 0).UTC()}
}

// share returns the one copy of v.
func share[T comparable](have map[T]*T, v T) *T {
	p := have[v]
	if p == nil {
		c := v // v itself stays off the heap
		p = &c
		have[v] = p
	}
	return p
}

// share returns the one copy of a recent message. When there are too many they are
// forgotten, not dropped one by one: those that repeat come back at once.
func (t *eventTable) share(message string) string {
	if m, ok := t.messages[message]; ok {
		return m
	}
	if len(t.messages) == sharedMessages {
		clear(t.messages)
	}
	t.messages[message] = message
	return message
}

// slot returns where the event of that name is.
func (t *eventTable) slot(namespace, name string) (int32, bool) {
	return t.names.Find(namespace, name, func(slot int32) bool { return t.has(slot, namespace, name) })
}

// has reports whether an event has that name.
func (t *eventTable) has(slot int32, namespace, name string) bool {
	x := t.item(slot)
	if x.class == nil {
		ev := t.whole[slot]
		return ev.Name == name && ev.Namespace == namespace
	}
	object, stamp, ok := cutEventName(name)
	return ok && stamp == x.stamp && object == x.object && namespace == x.class.namespace
}

// key is the name of an event.
func (t *eventTable) key(slot int32) (namespace, name string) {
	x := t.item(slot)
	if x.class == nil {
		ev := t.whole[slot]
		return ev.Namespace, ev.Name
	}
	return x.class.namespace, x.name()
}

// get returns an event; it may be another copy each time.
func (t *eventTable) get(namespace, name string) (*v1.Event, bool) {
	i, ok := t.slot(namespace, name)
	if !ok {
		return nil, false
	}
	return t.at(i), true
}

// at returns the event in a slot; it may be another copy each time.
func (t *eventTable) at(slot int32) *v1.Event {
	if t.views != nil {
		return t.views[slot]
	}
	return t.unpack(slot)
}

// set stores an event and returns its slot; uid is the number of a new event's
// UID, 0 for others.
func (t *eventTable) set(ev *v1.Event, uid uint64) int32 {
	slot, ok := t.slot(ev.Namespace, ev.Name)
	if !ok {
		slot = t.append()
		t.names.Add(ev.Namespace, ev.Name, slot)
	}
	x := t.item(slot)
	if ok && x.class != nil {
		uid = x.uid
	}
	if t.pack(ev, uid, x) {
		delete(t.whole, slot)
	} else {
		version, _ := parseVersion(ev.ResourceVersion)
		*x = storedEvent{version: version}
		t.whole[slot] = ev
	}
	if t.views != nil {
		t.views[slot] = ev
	}
	return slot
}

// append makes a slot.
func (t *eventTable) append() int32 {
	if t.n == eventChunk*len(t.chunks) {
		t.chunks = append(t.chunks, make([]storedEvent, eventChunk))
	}
	t.n++
	if t.views != nil {
		t.views = append(t.views, nil)
	}
	return int32(t.n - 1)
}

// Drop takes an event out.
func (t *eventTable) Drop(namespace, name string) {
	if slot, ok := t.slot(namespace, name); ok {
		t.dropAt(slot, namespace, name)
	}
}

// dropAt is drop of what is in a slot.
func (t *eventTable) dropAt(slot int32, namespace, name string) {
	t.names.Drop(namespace, name, slot)
	delete(t.whole, slot)
	*t.item(slot) = storedEvent{}
	if t.views != nil {
		t.views[slot] = nil
	}
	t.holes++
	if t.holes > 64 && t.holes > t.n/2 {
		t.compact()
	}
}

// compact closes the holes that drop left.
func (t *eventTable) compact() {
	if t.holes == 0 {
		return
	}
	n, head := int32(0), 0
	for i := range int32(t.n) {
		x := t.item(i)
		if x.version == 0 {
			continue
		}
		if i != n {
			namespace, name := t.key(i)
			t.names.Move(namespace, name, i, n)
			*t.item(n) = *x
			if ev, ok := t.whole[i]; ok {
				delete(t.whole, i)
				t.whole[n] = ev
			}
			if t.views != nil {
				t.views[n] = t.views[i]
			}
		}
		n++
		if int(i) < t.head {
			head++
		}
	}
	t.cut(int(n))
	t.head, t.holes = head, 0
	if n == 0 {
		clear(t.messages)
	}
	// To trim costs a pass over all events, so it waits until as many classes have
	// come again.
	if n == 0 || len(t.classes)+len(t.sources) > max(t.most, fewClasses) {
		t.trim()
	}
}

// cut drops what is behind the first n items.
func (t *eventTable) cut(n int) {
	chunks := (n + eventChunk - 1) / eventChunk
	clear(t.chunks[chunks:])
	t.chunks = t.chunks[:chunks]
	if rest := n % eventChunk; rest != 0 {
		clear(t.chunks[chunks-1][rest:])
	}
	if t.views != nil {
		clear(t.views[n:])
		t.views = t.views[:n]
	}
	t.n = n
}

// trim drops the classes and sources that no event has: namespaces and nodes come
// and go.
func (t *eventTable) trim() {
	clear(t.classes)
	clear(t.sources)
	for i := range int32(t.n) {
		if x := t.item(i); x.class != nil {
			t.classes[*x.class], t.sources[*x.source] = x.class, x.source
		}
	}
	t.most = 2 * (len(t.classes) + len(t.sources))
}

// view returns the events, oldest first. It is good until the next write.
func (t *eventTable) view() []*v1.Event {
	t.compact()
	if t.n == 0 {
		return nil // who looks before there is anything need not look again
	}
	if t.views == nil {
		t.views = make([]*v1.Event, t.n)
		for i := range t.views {
			t.views[i] = t.unpack(int32(i))
		}
	}
	return t.views[:len(t.views):len(t.views)]
}

// Find is that of table.Any.
func (t *eventTable) Find(namespace, name string) kind.Object {
	if ev, ok := t.get(namespace, name); ok {
		return ev
	}
	return nil
}

// Put is that of table.Any, for events that come by the verbs of all kinds.
func (t *eventTable) Put(obj kind.Object) { t.set(obj.(*v1.Event), 0) }

// Len is that of table.Any.
func (t *eventTable) Len() int { return t.n - t.holes }

// each calls fn for the events, oldest first, until it says false. fn must not
// write to the table.
func (t *eventTable) Each(fn func(kind.Object) bool) {
	for i := range int32(t.n) {
		if t.item(i).version != 0 && !fn(t.at(i)) {
			return
		}
	}
}
