package record

import (
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// The defaults of client-go's event correlator.
const (
	maxEntries        = 4096
	aggregateMax      = 10
	aggregateInterval = 600 * time.Second
	spamBurst         = 25
	spamQPS           = float64(float32(1. / 300.))
	aggregatePrefix   = "(combined from similar events): "
)

// correlator does what client-go's EventCorrelator does with its defaults:
// it folds events that differ by their message only into one, counts repeated
// events, and refuses what one source says too often about one object.
//
// One difference, where upstream is random: an aggregate that is full forgets
// its oldest message instead of any.
type correlator struct {
	aggregates lru[aggregate]
	logs       lru[eventLog]
	spam       lru[bucket]
	// more are the second message and those after it of aggregates that have so
	// many, as hashes.
	more map[key][]uint64
}

// aggregate remembers similar events and the hash of their first message: most
// have no other.
type aggregate struct {
	last  int64 // ns
	first uint64
}

// eventLog remembers an event that was sent. Its name is that of its object
// and the stamp.
type eventLog struct {
	stamp int64
	first uint32 // firstTimestamp, s since the Unix epoch
	count int32
}

// bucket is a token bucket of golang.org/x/time/rate.
type bucket struct {
	tokens float64
	last   int64 // ns
}

// newCorrelator returns one that has seen nothing. Its three memories are
// bounded as client-go's are.
func newCorrelator() correlator {
	return correlator{
		aggregates: lru[aggregate]{max: maxEntries},
		logs:       lru[eventLog]{max: maxEntries},
		spam:       lru[bucket]{max: maxEntries},
	}
}

// eventName is client-go's name of an event.
func eventName(object string, stamp int64) string {
	b := make([]byte, 0, len(object)+1+16)
	b = append(b, object...)
	b = append(b, '.')
	return string(strconv.AppendInt(b, stamp, 16))
}

// correlate rewrites ev, which is the caller's own and whose name was made
// with stamp, to what is to be sent; false means that nothing is. A count
// above 1 means that an event of that name was sent before. now is in ns.
func (c *correlator) correlate(ev *v1.Event, stamp, now int64) bool {
	keys := keysOf(ev)
	k, stamp := c.aggregate(ev, keys, stamp, now)
	c.observe(ev, k, stamp)
	return c.accept(keys.source, now)
}

// aggregate is EventAggregator.EventAggregate: it returns the key to count ev
// under and the stamp in its name.
func (c *correlator) aggregate(ev *v1.Event, keys eventKeys, stamp, now int64) (key, int64) {
	similar := keys.similar
	var m loop.Hasher
	m.Str(ev.Message)
	local := uint64(m)

	r := c.aggregates.get(similar)
	switch {
	case r == nil:
		if old, full := c.aggregates.put(similar, aggregate{last: now, first: local}); full {
			delete(c.more, old)
		}
		return keys.full, stamp
	case now-r.last > int64(aggregateInterval):
		*r = aggregate{last: now, first: local}
		delete(c.more, similar)
		return keys.full, stamp
	}
	r.last = now
	if c.messages(similar, r.first, local) < aggregateMax {
		return keys.full, stamp
	}
	more := c.more[similar]
	r.first = more[0]
	c.more[similar] = append(more[:0], more[1:]...)
	t := metav1.Time{Time: time.Unix(0, now).UTC().Truncate(time.Second)}
	*ev = v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: eventName(ev.InvolvedObject.Name, now), Namespace: ev.Namespace},
		Count:          1,
		FirstTimestamp: t,
		InvolvedObject: ev.InvolvedObject,
		LastTimestamp:  t,
		Message:        aggregatePrefix + ev.Message,
		Type:           ev.Type,
		Reason:         ev.Reason,
		Source:         ev.Source,
	}
	return similar, now
}

// messages adds a message to an aggregate and returns how many different ones
// it has.
func (c *correlator) messages(similar key, first, local uint64) int {
	more := c.more[similar]
	if first != local && !slices.Contains(more, local) {
		more = append(more, local)
		if c.more == nil {
			c.more = map[key][]uint64{}
		}
		c.more[similar] = more
	}
	return 1 + len(more)
}

// observe is eventLogger.eventObserve.
func (c *correlator) observe(ev *v1.Event, k key, stamp int64) {
	if l := c.logs.get(k); l != nil && l.count > 0 {
		l.count++
		ev.Name = eventName(ev.InvolvedObject.Name, l.stamp)
		ev.FirstTimestamp = metav1.Time{Time: time.Unix(int64(l.first), 0).UTC()}
		ev.Count = l.count
		return
	}
	c.logs.put(k, eventLog{first: uint32(ev.FirstTimestamp.Unix()), stamp: stamp, count: ev.Count})
}

// accept is EventSourceObjectSpamFilter.Filter, the other way round.
func (c *correlator) accept(k key, now int64) bool {
	b := c.spam.get(k)
	if b == nil {
		c.spam.put(k, bucket{tokens: spamBurst - 1, last: now})
		return true
	}
	tokens := b.tokens
	if now > b.last {
		tokens = min(spamBurst, tokens+time.Duration(now-b.last).Seconds()*spamQPS)
	}
	tokens--
	if tokens < 0 && time.Duration(float64(time.Second)*(-tokens/spamQPS)) > 0 {
		return false
	}
	b.tokens, b.last = tokens, now
	return true
}

// update is EventCorrelator.UpdateState: it takes over what the server
// answered. The stamp is the one in the event's name.
func (c *correlator) update(ev *v1.Event) {
	n := len(ev.InvolvedObject.Name) + 1
	if len(ev.Name) < n {
		return
	}
	stamp, err := strconv.ParseInt(ev.Name[n:], 16, 64)
	if err != nil {
		return
	}
	c.logs.put(keysOf(ev).full, eventLog{first: uint32(ev.FirstTimestamp.Unix()), stamp: stamp, count: ev.Count})
}

// eventKeys are what an event is counted under: full equal events, similar those
// that may differ by their message, source those of one type that one source
// sends about one object.
type eventKeys struct{ full, similar, source key }

// keysOf hashes what client-go makes strings of (client-go's tools/record,
// getEventKey, EventAggregatorByReasonFunc and getSpamKey).
func keysOf(ev *v1.Event) (k eventKeys) {
	var h loop.Hasher
	h.Str(ev.Source.Component)
	h.Str(ev.Source.Host)
	o := &ev.InvolvedObject
	h.Str(o.Kind)
	h.Str(o.Namespace)
	h.Str(o.Name)
	h.Str(string(o.UID))
	h.Str(o.APIVersion)
	h.Str(ev.Type)
	k.source = key(h)
	h.Str(ev.Reason)
	similar := h
	similar.Str(ev.ReportingController)
	similar.Str(ev.ReportingInstance)
	k.similar = key(similar)
	h.Str(o.FieldPath)
	h.Str(ev.Message)
	h.Word(1) // the two kinds of keys share a table
	k.full = key(h)
	return k
}
