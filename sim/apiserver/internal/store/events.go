package store

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// Events expire in the order of their last writes. Most have just one: those
// stand in the table in that order already, and their creation times tell the
// rest. Others queue.

// expiries is what is known of expiry beyond the table.
type expiries struct {
	// queue has the writes of events that were written again, and of those that the
	// table holds whole.
	queue []expiring
	// again are the events of the first sort, by the number of their UIDs, with the
	// version of the last write.
	again map[uint64]uint64
}

// expiring is an event write whose time to live began at a time.
type expiring struct {
	namespace, name string
	uid             uint64 // its number; 0: the table holds it whole
	version         uint64
	at              int64 // Unix seconds at which it expires
}

// noteExpiry starts an event's time to live anew.
func (s *Store) noteExpiry(now time.Time, ev *v1.Event) {
	if slot, ok := s.events.slot(ev.Namespace, ev.Name); ok {
		s.noteStored(now, slot, false)
	}
}

// noteStored starts the time to live of the event in a slot; created says that
// it was just made.
func (s *Store) noteStored(now time.Time, slot int32, created bool) {
	x := s.events.item(slot)
	if s.opts.EventTTL < 0 || created && x.class != nil {
		return
	}
	namespace, name := s.events.key(slot)
	s.expiry.queue = append(s.expiry.queue, expiring{namespace, name, x.uid, x.version, now.Add(s.opts.EventTTL).Unix()})
	if x.class == nil {
		return
	}
	if s.expiry.again == nil {
		s.expiry.again = map[uint64]uint64{}
	}
	s.expiry.again[x.uid] = x.version
}

// ExpireEvents removes the events whose time to live has passed. It returns
// when to call it next; the zero time when no event is stored.
func (s *Store) ExpireEvents(now time.Time) time.Time {
	created, more := s.expireCreated(now.Unix())
	written, again := s.expireWritten(now.Unix())
	switch {
	case more && (!again || created < written):
		return time.Unix(created, 0).UTC()
	case again:
		return time.Unix(written, 0).UTC()
	}
	return time.Time{}
}

// expireCreated removes the events that were written once, and returns when the
// next of them expires.
func (s *Store) expireCreated(now int64) (at int64, more bool) {
	t, ttl := s.events, int64(s.opts.EventTTL/time.Second)
	if ttl < 0 {
		return 0, false
	}
	for t.head < t.n {
		x := t.item(int32(t.head))
		_, queued := s.expiry.again[x.uid]
		switch at = int64(x.created) + ttl; {
		case x.version == 0 || x.class == nil || queued:
			t.head++
		case at > now:
			return at, true
		default:
			t.head++ // before it may go down as holes are closed
			s.expireEvent(int32(t.head - 1))
		}
	}
	return 0, false
}

// expireWritten is expireCreated for the queue.
func (s *Store) expireWritten(now int64) (at int64, more bool) {
	q := &s.expiry
	for len(q.queue) > 0 && q.queue[0].at <= now {
		e := q.queue[0]
		q.queue[0] = expiring{}
		q.queue = q.queue[1:]
		if q.again[e.uid] == e.version {
			delete(q.again, e.uid)
		}
		// A later write of the same event has a later entry.
		if slot, ok := s.events.slot(e.namespace, e.name); ok && s.events.item(slot).version == e.version {
			s.expireEvent(slot)
		}
	}
	if len(q.queue) == 0 {
		q.queue = nil
		return 0, false
	}
	return q.queue[0].at, true
}

// expireEvent removes the event in a slot. It is made of what the table has only
// if somebody wants to see it.
func (s *Store) expireEvent(slot int32) {
	s.version++
	c := kind.Change{Type: watch.Deleted, Kind: kinds.Event, Verb: "expire", Version: s.version}
	// To make an event of what is packed costs more than to drop it.
	if s.showExpiry() {
		old := s.events.at(slot)
		last := *old
		last.ResourceVersion = strconv.FormatUint(s.version, 10)
		c.Old, c.New = old, &last
	}
	namespace, name := s.events.key(slot)
	delete(s.applied, objectKey{kinds.Event, namespace, name})
	s.events.dropAt(slot, namespace, name)
	s.tell(c)
}

// commitEvent is commit for what stores events in quantity; uid is the number
// of a new event's UID. kept reports whether the store needs ev on.
func (s *Store) commitEvent(now time.Time, typ watch.EventType, old kind.Object, ev *v1.Event, uid uint64, verb string) (kept bool) {
	s.version++
	ev.ResourceVersion = strconv.FormatUint(s.version, 10)
	slot := s.events.set(ev, uid)
	s.noteStored(now, slot, typ == watch.Added)
	kept = s.events.item(slot).class == nil
	s.tell(kind.Change{Type: typ, Kind: kinds.Event, Old: old, New: ev, Verb: verb, Version: s.version})
	return kept
}

// CreateEvent stores an event of a component. The event is copied, not kept.
// Errors: TooManyRequests when there are limits on events.
func (s *Store) CreateEvent(now time.Time, ev *v1.Event) (*v1.Event, error) {
	c := *ev
	if _, err := s.createEvent(now, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

// PostEvent is CreateEvent for who doesn't want to see what was stored: that is
// made only if hooks that are busy with another change are told later, or the
// store keeps events at full size.
func (s *Store) PostEvent(now time.Time, ev *v1.Event) error {
	if s.telling || s.events.views != nil {
		_, err := s.CreateEvent(now, ev)
		return err
	}
	c := s.spareEvent
	if c == nil {
		c = new(v1.Event)
	}
	s.spareEvent = nil // a hook may post one
	*c = *ev
	if kept, err := s.createEvent(now, c); !kept {
		s.spareEvent = c
		return err
	}
	return nil
}

// createEvent takes ev over; kept reports whether the store needs it on.
func (s *Store) createEvent(now time.Time, ev *v1.Event) (kept bool, err error) {
	in := s.info(kinds.Event)
	if err := s.prepareCreate(ev, in); err != nil {
		return false, err
	}
	asjson.Event(ev)
	if errs := append(in.ValidateMeta(ev), in.Validate(ev, false)...); len(errs) > 0 {
		return false, apierrors.NewInvalid(in.GroupKind(), ev.Name, errs)
	}
	if s.admitEvent != nil {
		if err := s.admitEvent(now, ev); err != nil {
			return false, err
		}
	}
	if _, ok := s.events.slot(ev.Namespace, ev.Name); ok {
		return false, apierrors.NewAlreadyExists(in.GroupResource(), ev.Name)
	}
	s.stampMeta(now, ev, in)
	return s.commitEvent(now, watch.Added, nil, ev, s.uids, "create"), nil
}

// PatchEvent writes what differs between base and ev (count, lastTimestamp,
// message) to the stored event. Errors: NotFound; TooManyRequests as CreateEvent.
func (s *Store) PatchEvent(now time.Time, base, ev *v1.Event) (*v1.Event, error) {
	old, ok := s.events.get(ev.Namespace, ev.Name)
	if !ok {
		return nil, apierrors.NewNotFound(s.info(kinds.Event).GroupResource(), ev.Name)
	}
	c := *old
	if base == nil || ev.Count != base.Count {
		c.Count = ev.Count
	}
	if base == nil || !ev.LastTimestamp.Equal(&base.LastTimestamp) {
		c.LastTimestamp = ev.LastTimestamp
	}
	if base == nil || ev.Message != base.Message {
		c.Message = ev.Message
	}
	if ev.Series != nil && (base == nil || base.Series == nil || *ev.Series != *base.Series) {
		c.Series = ev.Series
	}
	asjson.Event(&c)
	if s.admitEvent != nil {
		if err := s.admitEvent(now, &c); err != nil {
			return nil, err
		}
	}
	if c.Count == old.Count && c.LastTimestamp.Equal(&old.LastTimestamp) && c.Message == old.Message && c.Series == old.Series {
		return old, nil
	}
	s.commitEvent(now, watch.Modified, old, &c, 0, "patch")
	return &c, nil
}

// EventsFor returns the events whose involved object has that UID, oldest
// first.
func (s *Store) EventsFor(uid types.UID) []*v1.Event {
	var out []*v1.Event
	for i := range int32(s.events.n) {
		if x := s.events.item(i); x.version == 0 || x.class != nil && x.objectUID != uid {
			continue
		}
		if ev := s.events.at(i); ev.InvolvedObject.UID == uid {
			out = append(out, ev)
		}
	}
	return out
}
