package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Times of a series of equal events (client-go tools/events/event_broadcaster.go).
const (
	finishTime  = 6 * time.Minute
	refreshTime = 30 * time.Minute
)

// recorder writes events as client-go's tools/events does, which kube-scheduler
// uses: an event that recurs becomes a series. Only refusals recur; the others
// are not kept.
type recorder struct {
	l        *loop.Loop
	api      *apiserver.Component
	requests pump
	byKey    map[seriesKey]*series
	open     []*series // the oldest first
	finish   *loop.Timer
	refresh  *loop.Timer
	started  time.Time
}

// seriesKey is what equal events share besides their reason. The note is not part
// of it.
type seriesKey struct {
	uid     types.UID
	version string
}

// series is an event and what has recurred of it since it was written.
type series struct {
	key   seriesKey
	event *v1.Event
	count int32 // of a series; 0: one event
	last  time.Time
}

// newRecorder returns a recorder without timers: they run while there are series.
func newRecorder(g *loop.Group, api *apiserver.Component) *recorder {
	r := &recorder{l: g.Loop(), api: api, byKey: map[seriesKey]*series{}, started: g.Loop().Now()}
	r.requests = pump{group: g, name: "kube-scheduler event"}
	r.finish = g.NewTimer("kube-scheduler finish series", r.finishSeries)
	r.refresh = g.NewTimer("kube-scheduler refresh series", r.refreshSeries)
	return r
}

// event records an event about a pod. A second one of the same key makes it a
// series and is written at once; later ones are only counted until a timer writes
// the count.
func (r *recorder) event(pod *v1.Pod, typ, reason, action, note string) {
	if typ == v1.EventTypeNormal {
		r.create(r.make(pod, nil, typ, reason, action, note))
		return
	}
	now := r.l.Now()
	k := seriesKey{pod.UID, pod.ResourceVersion}
	if se := r.byKey[k]; se != nil {
		se.last = now
		if se.count == 0 {
			se.count = 2
			r.patch(se)
		} else {
			se.count++
		}
		return
	}
	se := &series{key: k, event: r.make(pod, nil, typ, reason, action, note), last: now}
	r.byKey[k] = se
	r.open = append(r.open, se)
	r.arm(r.finish, finishTime)
	r.arm(r.refresh, refreshTime)
	r.create(se.event)
}

// related records an event about a pod because of another.
func (r *recorder) related(pod, other *v1.Pod, typ, reason, action, note string) {
	r.create(r.make(pod, other, typ, reason, action, note))
}

// arm sets a timer to the next multiple of its period since the start.
func (r *recorder) arm(t *loop.Timer, period time.Duration) {
	if !t.Set() {
		t.Reset(period - r.l.Since(r.started)%period)
	}
}

// make fills in an event. Its name ends in the time, in ns, as client-go's does;
// the reporting instance is the profile's name and a host, which is always the
// control plane's.
func (r *recorder) make(pod, related *v1.Pod, typ, reason, action, note string) *v1.Event {
	now := r.l.Now()
	ev := &v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, now.UnixNano())},
		InvolvedObject:      *controller.Reference(pod),
		Type:                typ,
		Reason:              reason,
		Action:              action,
		Message:             note,
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: pod.Spec.SchedulerName,
		ReportingInstance:   pod.Spec.SchedulerName + "-control-plane",
	}
	if related != nil {
		ev.ReportingController = related.Spec.SchedulerName
		ev.ReportingInstance = related.Spec.SchedulerName + "-control-plane"
		ev.Related = controller.Reference(related)
	}
	return ev
}

// create writes an event. A lost one is lost: a namespace that ends takes none.
func (r *recorder) create(ev *v1.Event) {
	r.requests.add(func(ctx context.Context) {
		req := apiserver.Request{Verb: "create", Resource: "events", Namespace: ev.Namespace, Name: ev.Name}
		_ = r.api.Do(ctx, req, func(srv *apiserver.Server) error { return srv.PostEvent(ev) })
	})
}

// patch writes a series' count.
func (r *recorder) patch(se *series) {
	ev := *se.event
	ev.Series = &v1.EventSeries{Count: se.count, LastObservedTime: metav1.NewMicroTime(se.last)}
	r.requests.add(func(ctx context.Context) {
		req := apiserver.Request{Verb: "patch", Resource: "events", Namespace: ev.Namespace, Name: ev.Name}
		_ = r.api.Do(ctx, req, func(srv *apiserver.Server) error {
			_, err := srv.PatchEvent(se.event, &ev)
			return err
		})
	})
}

// finishSeries ends what has not recurred for a while.
func (r *recorder) finishSeries() {
	limit := r.l.Now().Add(-finishTime)
	r.open = slices.DeleteFunc(r.open, func(se *series) bool {
		if !se.last.Before(limit) {
			return false
		}
		if se.count > 0 {
			r.patch(se)
		}
		delete(r.byKey, se.key)
		return true
	})
	if len(r.open) > 0 {
		r.arm(r.finish, finishTime)
	}
}

// refreshSeries writes the counts of all series, so that they don't expire.
func (r *recorder) refreshSeries() {
	for _, se := range r.open {
		if se.count > 0 {
			r.patch(se)
		}
	}
	if len(r.open) > 0 {
		r.arm(r.refresh, refreshTime)
	}
}
