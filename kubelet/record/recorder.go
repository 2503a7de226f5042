// Package record sends a kubelet's events: a queue, a correlator that folds
// and counts them, and a task that writes them to the API and exists only
// while there is something to write. It mirrors client-go's tools/record
// with its defaults, on a loop and with a fraction of the memory.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// client-go's limits (tools/record/event.go).
const (
	queueLength = 1000
	maxTries    = 12
	retryDelay  = 10 * time.Second
)

// Client is what the recorder needs of the API. The events given are the
// recorder's again once an answer has come: they are not kept. When none comes
// (an error that is no API status) they are not written to any more.
type Client interface {
	CreateEvent(ctx context.Context, event *v1.Event) (*v1.Event, error)
	PatchEvent(ctx context.Context, base, event *v1.Event) (*v1.Event, error)
}

// Options configure a Recorder.
type Options struct {
	// Loop gives the times of events.
	Loop *loop.Loop
	// Client writes the events; nil means that they are only logged.
	Client Client
	// Host is the node's name, the host of the events' source.
	Host string
	// Component is the source's component; "" means "kubelet".
	Component string
	// QPS and Burst limit the writes per second; a QPS of 0 or less means no
	// limit. The kubelet's are eventRecordQPS (50) and eventBurst (100).
	QPS   float64
	Burst int
	// PodVersion returns the resourceVersion that references to a pod have; ""
	// leaves that of the reference. May be nil.
	PodVersion func(uid types.UID) string
	// Log is told of each event and of what goes wrong; nil means nobody is.
	Log func(format string, args ...any)
}

// Recorder records events. It is for use on one loop.
type Recorder struct {
	opts    Options
	g       *loop.Group
	queue   []pending
	done    int // of the queue's, they were taken
	sending bool
	run     func(context.Context) // send, as a function
	// spare is the event that was written last, for the next: most of a pod's are
	// written one by one, and an event is 640 bytes.
	spare   *v1.Event
	corr    correlator
	stamp   int64
	tokens  float64
	refill  int64
	dropped uint64
	retries uint64
}

// pending is an event that was not yet correlated.
type pending struct {
	ref                        *v1.ObjectReference
	version                    string // replaces the reference's resourceVersion
	eventtype, reason, message string
	annotations                map[string]string
	stamp                      int64
}

// New returns a recorder that keeps events until Start.
func New(opts Options) *Recorder {
	opts.Component = cmp.Or(opts.Component, "kubelet")
	r := &Recorder{opts: opts, corr: newCorrelator(), tokens: float64(opts.Burst)}
	r.run = r.send
	return r
}

// Start has events written by a task of g, those recorded before it included.
func (r *Recorder) Start(g *loop.Group) {
	r.g = g
	r.wake()
}

// Event records an event about the object. It never waits; beyond 1000 events
// that wait to be written it is dropped. The reference is shared: it must not
// change afterwards.
func (r *Recorder) Event(ref *v1.ObjectReference, eventtype, reason, message string) {
	r.AnnotatedEvent(ref, nil, eventtype, reason, message)
}

// Eventf is Event with a message made by fmt.Sprintf.
func (r *Recorder) Eventf(ref *v1.ObjectReference, eventtype, reason, format string, args ...any) {
	r.AnnotatedEvent(ref, nil, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEvent is Event with annotations, which must not change afterwards.
func (r *Recorder) AnnotatedEvent(ref *v1.ObjectReference, annotations map[string]string, eventtype, reason, message string) {
	if r == nil {
		return
	}
	if eventtype != v1.EventTypeNormal && eventtype != v1.EventTypeWarning {
		r.log("unsupported event type %q of event %s about %s %s/%s", eventtype, reason, ref.Kind, ref.Namespace, ref.Name)
		return
	}
	if r.opts.Log != nil {
		r.log("event %s %s about %s %s/%s %s: %s", eventtype, reason, ref.Kind, ref.Namespace, ref.Name, ref.FieldPath, message)
	}
	if r.opts.Client == nil {
		return
	}
	if len(r.queue)-r.done >= queueLength {
		r.dropped++
		r.log("too many queued events, dropped %s about %s/%s", reason, ref.Namespace, ref.Name)
		return
	}
	version := ref.ResourceVersion
	if r.opts.PodVersion != nil && ref.Kind == "Pod" {
		if v := r.opts.PodVersion(ref.UID); v != "" {
			version = v
		}
	}
	r.enqueue(pending{ref: ref, version: version, eventtype: eventtype, reason: reason, message: message, annotations: annotations, stamp: r.nextStamp()})
	r.wake()
}

// Dropped returns how many events found the queue full.
func (r *Recorder) Dropped() uint64 { return r.dropped }

// nextStamp returns the present time, made unique: names of events are made of
// it, and several events can be recorded in one step of the loop.
func (r *Recorder) nextStamp() int64 {
	r.stamp = max(r.opts.Loop.UnixNano(), r.stamp+1)
	return r.stamp
}

// wake has a task send, unless one does or nothing waits.
func (r *Recorder) wake() {
	if r.sending || r.g == nil || r.done == len(r.queue) {
		return
	}
	r.sending = true
	r.g.Start("events", r.run)
}

// send sends one event at a time, in order. The object of one that is done is
// used for the next, so that a storm of events makes no garbage.
func (r *Recorder) send(ctx context.Context) {
	defer func() { r.sending = false }()
	for r.done < len(r.queue) {
		p := r.dequeue()
		ev := r.spare
		if ev == nil {
			ev = new(v1.Event)
		}
		r.spare = nil
		r.event(&p, ev)
		if !r.corr.correlate(ev, p.stamp, r.nextStamp()) || r.write(ctx, ev) {
			*ev = v1.Event{} // keeps nothing of the object
			r.spare = ev
		}
	}
}

// keptQueue is for how many events the queue always keeps room.
const keptQueue = 4

// enqueue adds to the queue, whose memory is used again from its beginning.
func (r *Recorder) enqueue(p pending) {
	if r.done > 0 && len(r.queue) == cap(r.queue) {
		n := copy(r.queue, r.queue[r.done:])
		clear(r.queue[n:])
		r.queue, r.done = r.queue[:n], 0
	}
	r.queue = append(r.queue, p)
}

// dequeue takes the next event; an empty queue that was once long gives its
// memory back.
func (r *Recorder) dequeue() pending {
	p := r.queue[r.done]
	r.queue[r.done] = pending{}
	r.done++
	if r.done == len(r.queue) {
		r.queue, r.done = r.queue[:0], 0
		if cap(r.queue) > keptQueue {
			r.queue = nil
		}
	}
	return p
}

// event is client-go's makeEvent.
func (r *Recorder) event(p *pending, to *v1.Event) {
	ns := cmp.Or(p.ref.Namespace, metav1.NamespaceDefault)
	t := metav1.Time{Time: time.Unix(0, p.stamp).UTC().Truncate(time.Second)}
	*to = v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: eventName(p.ref.Name, p.stamp), Namespace: ns, Annotations: p.annotations},
		InvolvedObject:      *p.ref,
		Reason:              p.reason,
		Message:             p.message,
		Source:              v1.EventSource{Component: r.opts.Component, Host: r.opts.Host},
		FirstTimestamp:      t,
		LastTimestamp:       t,
		Count:               1,
		Type:                p.eventtype,
		ReportingController: r.opts.Component,
		ReportingInstance:   r.opts.Host,
	}
	to.InvolvedObject.ResourceVersion = p.version
}

// write writes one event; everything else waits while it is tried again. It tells
// whether nobody else has the event any more.
func (r *Recorder) write(ctx context.Context, ev *v1.Event) bool {
	lost := false // a request whose answer was
	for tries := 1; !r.writeOnce(ctx, ev); tries++ {
		if tries >= maxTries {
			r.log("unable to write event %s/%s: retry limit exceeded", ev.Namespace, ev.Name)
			return false
		}
		delay := retryDelay
		if tries == 1 { // so that clients don't come back all at once
			delay = time.Duration(float64(delay) * r.opts.Loop.Float64("event-retry", r.opts.Host, r.retries))
			r.retries++
		}
		if r.opts.Loop.Sleep(ctx, delay) != nil {
			return false
		}
		lost = true
	}
	return !lost
}

// writeOnce reports whether the event was written or is given up.
func (r *Recorder) writeOnce(ctx context.Context, ev *v1.Event) bool {
	var answer *v1.Event
	var err error
	if ev.Count > 1 {
		base := *ev
		base.Count, base.Message = 0, ""
		base.LastTimestamp = metav1.Time{Time: time.Unix(0, 0).UTC()}
		r.throttle(ctx)
		answer, err = r.opts.Client.PatchEvent(ctx, &base, ev)
	}
	if ev.Count <= 1 || err != nil && apierrors.IsNotFound(err) { // also when it has expired
		r.throttle(ctx)
		answer, err = r.opts.Client.CreateEvent(ctx, ev)
	}
	if err == nil {
		answer = cmp.Or(answer, ev)
		r.corr.update(answer)
		return true
	}
	if status := (*apierrors.StatusError)(nil); errors.As(err, &status) {
		r.log("server rejected event %s/%s: %v", ev.Namespace, ev.Name, err)
		return true
	}
	r.log("unable to write event %s/%s (may retry): %v", ev.Namespace, ev.Name, err)
	return false
}

// throttle waits for the client's own rate limit.
func (r *Recorder) throttle(ctx context.Context) {
	if r.opts.QPS <= 0 {
		return
	}
	l := r.opts.Loop
	now := l.UnixNano()
	if r.refill != 0 {
		r.tokens = min(float64(r.opts.Burst), r.tokens+float64(now-r.refill)/1e9*r.opts.QPS)
	}
	r.refill = now
	r.tokens--
	if r.tokens < 0 {
		// the caller's own wait tells it when the context has ended
		_ = l.Sleep(ctx, time.Duration(-r.tokens/r.opts.QPS*float64(time.Second)))
	}
}

func (r *Recorder) log(format string, args ...any) {
	if r.opts.Log != nil {
		r.opts.Log(format, args...)
	}
}
