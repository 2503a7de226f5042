package apiserver

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// expiring is an event write whose time to live began at a time.
type expiring struct {
	event   *storedEvent
	version uint64
	at      int64 // Unix seconds at which it expires
}

// noteExpiry starts an event's time to live anew.
func (s *Store) noteExpiry(now time.Time, ev *v1.Event) {
	if i, ok := s.events.slot(ev.Namespace, ev.Name); ok {
		s.noteStored(now, s.events.items[i])
	}
}

func (s *Store) noteStored(now time.Time, x *storedEvent) {
	if s.opts.EventTTL >= 0 {
		s.expiry = append(s.expiry, expiring{x, x.version, now.Add(s.opts.EventTTL).Unix()})
	}
}

// ExpireEvents removes the events whose time to live has passed. It returns
// when to call it next; the zero time when no event is stored.
func (s *Store) ExpireEvents(now time.Time) time.Time {
	i := 0
	for ; i < len(s.expiry) && s.expiry[i].at <= now.Unix(); i++ {
		// A later write of the same event has a later entry.
		if x := s.expiry[i]; x.event.version == x.version {
			s.remove(KindEvent, s.events.unpack(x.event), "expire")
		}
	}
	clear(s.expiry[:i])
	s.expiry = s.expiry[i:]
	if len(s.expiry) == 0 {
		s.expiry = nil
		return time.Time{}
	}
	return time.Unix(s.expiry[0].at, 0).UTC()
}

// commitEvent is commit for what stores events in quantity; uid is the number
// of a new event's UID.
func (s *Store) commitEvent(now time.Time, typ watch.EventType, old Object, ev *v1.Event, uid uint64, verb string) {
	s.version++
	ev.ResourceVersion = strconv.FormatUint(s.version, 10)
	x := s.events.set(ev, uid)
	s.noteStored(now, x)
	s.tell(Change{Type: typ, Kind: KindEvent, Old: old, New: ev, Verb: verb, Version: s.version})
}

// CreateEvent stores an event of a component. The event is copied, not kept.
// Errors: TooManyRequests when there are limits on events.
func (s *Store) CreateEvent(now time.Time, ev *v1.Event) (*v1.Event, error) {
	in := KindEvent.info()
	c := *ev
	if err := s.prepareCreate(&c, in); err != nil {
		return nil, err
	}
	wireEvent(&c)
	if errs := append(validateMeta(&c, in), validateEvent(&c)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(in.gk(), c.Name, errs)
	}
	if s.admitEvent != nil {
		if err := s.admitEvent(now, &c); err != nil {
			return nil, err
		}
	}
	if _, ok := s.events.slot(c.Namespace, c.Name); ok {
		return nil, apierrors.NewAlreadyExists(in.gr(), c.Name)
	}
	s.stampMeta(now, &c)
	s.commitEvent(now, watch.Added, nil, &c, s.uids, "create")
	return &c, nil
}

// PatchEvent writes what differs between base and ev (count, lastTimestamp,
// message) to the stored event. Errors: NotFound; TooManyRequests as CreateEvent.
func (s *Store) PatchEvent(now time.Time, base, ev *v1.Event) (*v1.Event, error) {
	old, ok := s.events.get(ev.Namespace, ev.Name)
	if !ok {
		return nil, apierrors.NewNotFound(KindEvent.info().gr(), ev.Name)
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
	wireEvent(&c)
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

// wireEvent cuts an event's times as JSON does.
func wireEvent(ev *v1.Event) {
	if !ev.FirstTimestamp.IsZero() {
		ev.FirstTimestamp = wire(ev.FirstTimestamp.Time)
	}
	if !ev.LastTimestamp.IsZero() {
		ev.LastTimestamp = wire(ev.LastTimestamp.Time)
	}
	if !ev.EventTime.IsZero() {
		ev.EventTime.Time = ev.EventTime.UTC().Truncate(time.Microsecond)
	}
}

// EventsFor returns the events whose involved object has that UID, oldest
// first.
func (s *Store) EventsFor(uid types.UID) []*v1.Event {
	var out []*v1.Event
	for i, x := range s.events.items {
		if x == nil || x.class != nil && x.objectUID != uid {
			continue
		}
		if ev := s.events.at(int32(i)); ev.InvolvedObject.UID == uid {
			out = append(out, ev)
		}
	}
	return out
}
