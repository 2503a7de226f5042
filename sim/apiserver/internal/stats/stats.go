package stats

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// UserKubelet is what all kubelets are called in statistics. Components are
// called by their own names.
const UserKubelet = "kubelet"

// Stats is what the API server has had to do since the start of the run: what
// upstream tells as apiserver_request_total, apiserver_request_duration_seconds,
// apiserver_watch_events_total, apiserver_flowcontrol_* and
// rest_client_rate_limiter_duration_seconds. Slices by time have a value per
// Interval, the first beginning at the start of the run; they end at the last
// interval in which something happened.
type Stats struct {
	// Start is the virtual time at which the run began, At that of the snapshot.
	Start, At time.Time
	// Interval is the width of an interval: 10 s, doubled whenever a run gets
	// longer than 512 of them.
	Interval time.Duration
	// Requests are by user, verb and resource, in that order.
	Requests []RequestStats
	// Watches are by user and resource, in that order.
	Watches []WatchStats
	// Levels are the priority levels, by name; none without a load model.
	Levels []LevelStats
}

// RequestStats tells of the requests of one user, verb and resource.
type RequestStats struct {
	// User is UserKubelet or a component's name.
	User string
	// Verb is that of the API ("get", "list", "watch", "create", ...).
	Verb string
	// Resource is the plural, with a subresource after a slash ("pods/status").
	Resource string
	// Total counts the requests that reached the server, or were lost on their
	// way to it.
	Total uint64
	// Codes counts them by the HTTP status of their answer; 0 is no answer (a
	// partition, an outage).
	Codes []CodeCount
	// Latency is from a request's arrival at the server to its answer's
	// departure, of those that were answered, watches left out: what the SLO on
	// API calls is about.
	Latency Histogram
	// Throttled is how long requests waited for their client's own rate limiter
	// (QPS and burst), of those that did.
	Throttled Histogram
	// Over has the intervals.
	Over []RequestInterval
}

// CodeCount is how often a status was answered.
type CodeCount struct {
	Code  int32
	Count uint64
}

// RequestInterval tells of the requests that arrived in one interval.
type RequestInterval struct {
	// Requests counts all; Errors those with a code of 400 or more, or no
	// answer; Rejected those with code 429, which are among the Errors.
	Requests, Errors, Rejected uint32
	// LatencySum and LatencyMax are of those that have been answered.
	LatencySum, LatencyMax time.Duration
}

// WatchStats tells of the watch events of one resource sent to one user.
type WatchStats struct {
	User, Resource string
	// Events counts them; what a watch lists at its beginning is not among them.
	Events uint64
	// Over counts the events of each interval.
	Over []uint32
}

// LevelStats tells of one priority level of API priority and fairness.
type LevelStats struct {
	// Name is upstream's ("node-high", "workload-low", ...).
	Name string
	// Seats is the level's nominal concurrency limit; 0 is none (exempt).
	Seats int
	// Dispatched counts the requests that were executed; Rejected those that
	// were not, by reason ("queue-full", "time-out", "concurrency-limit").
	Dispatched uint64
	Rejected   []ReasonCount
	// Wait is how long dispatched requests waited in a queue, those that did not
	// included.
	Wait Histogram
	// MaxSeats and MaxQueued are the most seats in use and the most requests in
	// queues at a time.
	MaxSeats, MaxQueued int
	// Over has the most seats in use and the most queued requests of each
	// interval.
	Over []LevelInterval
}

// ReasonCount is how often something happened for a reason.
type ReasonCount struct {
	Reason string
	Count  uint64
}

// LevelInterval tells of a priority level in one interval.
type LevelInterval struct {
	MaxSeats, MaxQueued uint32
}

const (
	statsInterval  = 10 * time.Second
	statsIntervals = 512
)

// statsKey names a series.
type statsKey struct{ user, verb, resource string }

// Counters counts. Series are few: what a request costs is an index into arrays.
type Counters struct {
	Start    int64
	interval int64
	requests map[statsKey]*RequestStats
	watches  map[statsKey]*WatchStats
	Levels   []*LevelStats
	// recent are series of requests, by a hash that tells the frequent ones apart:
	// their three names cost more to look up than the request to count.
	recent [16]*RequestStats
}

// New returns counters of a run that began at start, in ns since the Unix epoch.
func New(start int64) *Counters {
	return &Counters{Start: start, interval: int64(statsInterval), requests: map[statsKey]*RequestStats{}, watches: map[statsKey]*WatchStats{}}
}

// Level returns the counters of a priority level, which are kept by name.
func (st *Counters) Level(name string) *LevelStats {
	i, ok := slices.BinarySearchFunc(st.Levels, name, func(l *LevelStats, name string) int { return strings.Compare(l.Name, name) })
	if !ok {
		st.Levels = slices.Insert(st.Levels, i, &LevelStats{Name: name})
	}
	return st.Levels[i]
}

// recentSeries is the place in stats.recent of a verb and a resource, none of
// which is empty: those of a pod's start differ.
func recentSeries(verb, resource string) int {
	return (3*int(verb[0]) + int(resource[0]) + len(resource)) % 16
}

// Series returns a request's counters.
func (st *Counters) Series(user, verb, resource string) *RequestStats {
	recent := &st.recent[recentSeries(verb, resource)]
	if r := *recent; r != nil && r.Resource == resource && r.Verb == verb && r.User == user {
		return r
	}
	k := statsKey{user, verb, resource}
	r := st.requests[k]
	if r == nil {
		r = &RequestStats{User: user, Verb: verb, Resource: resource}
		st.requests[k] = r
	}
	*recent = r
	return r
}

// Slot returns the number of the interval of a time, after having widened the
// intervals if it is too far.
func (st *Counters) Slot(now int64) int {
	i := (now - st.Start) / st.interval
	for i >= statsIntervals {
		st.widen()
		i = (now - st.Start) / st.interval
	}
	return int(max(i, 0))
}

// At returns the i-th element, which it makes if need be.
func At[T any](s *[]T, i int) *T {
	if n := i + 1 - len(*s); n > 0 {
		*s = append(*s, make([]T, n)...)
	}
	return &(*s)[i]
}

// Arrive counts a request. answered is to be called with the same series.
func (st *Counters) Arrive(r *RequestStats, now int64, throttled time.Duration) {
	r.Total++
	At(&r.Over, st.Slot(now)).Requests++
	if throttled > 0 {
		r.Throttled.Observe(throttled)
	}
}

// Answered counts the answer to a request that arrived at a time and whose
// answer leaves after took.
func (st *Counters) Answered(r *RequestStats, arrived int64, took time.Duration, code int32) {
	r.count(code)
	i := At(&r.Over, st.Slot(arrived))
	if code == 0 || code >= http.StatusBadRequest {
		i.Errors++
		if code == http.StatusTooManyRequests {
			i.Rejected++
		}
	}
	if code != 0 && r.Verb != "watch" {
		r.Latency.Observe(took)
		i.LatencySum += took
		i.LatencyMax = max(i.LatencyMax, took)
	}
}

// count counts an answer by its code. Codes are few: a list is quicker than a map.
func (r *RequestStats) count(code int32) {
	for i := range r.Codes {
		if r.Codes[i].Code == code {
			r.Codes[i].Count++
			return
		}
	}
	r.Codes = append(r.Codes, CodeCount{code, 1})
}

// watch returns the counters of a resource's watch events to a user.
func (st *Counters) watch(user, resource string) *WatchStats {
	k := statsKey{user: user, resource: resource}
	w := st.watches[k]
	if w == nil {
		w = &WatchStats{User: user, Resource: resource}
		st.watches[k] = w
	}
	return w
}

// Sent counts n watch events of a resource to a user; series has those counted
// before.
func (st *Counters) Sent(series **WatchStats, user, resource string, now int64, n int) {
	if *series == nil {
		*series = st.watch(user, resource)
	}
	w := *series
	w.Events += uint64(n)
	*At(&w.Over, st.Slot(now)) += uint32(n)
}

// widen makes each two intervals one.
func (st *Counters) widen() {
	st.interval *= 2
	for _, r := range st.requests { //drydock:unordered each on its own
		r.Over = halve(r.Over, func(a *RequestInterval, b RequestInterval) {
			a.Requests += b.Requests
			a.Errors += b.Errors
			a.Rejected += b.Rejected
			a.LatencySum += b.LatencySum
			a.LatencyMax = max(a.LatencyMax, b.LatencyMax)
		})
	}
	for _, w := range st.watches { //drydock:unordered each on its own
		w.Over = halve(w.Over, func(a *uint32, b uint32) { *a += b })
	}
	for _, l := range st.Levels {
		l.Over = halve(l.Over, func(a *LevelInterval, b LevelInterval) {
			a.MaxSeats = max(a.MaxSeats, b.MaxSeats)
			a.MaxQueued = max(a.MaxQueued, b.MaxQueued)
		})
	}
}

// halve makes each two elements one.
func halve[T any](s []T, add func(a *T, b T)) []T {
	for i := range s {
		if i%2 == 0 {
			s[i/2] = s[i]
		} else {
			add(&s[i/2], s[i])
		}
	}
	return s[:(len(s)+1)/2]
}

// CodeOf returns the HTTP status of an answer; 0 when the error is no answer.
func CodeOf(verb string, err error) int32 {
	if err == nil {
		if verb == "create" {
			return http.StatusCreated
		}
		return http.StatusOK
	}
	if st := apierrors.APIStatus(nil); errors.As(err, &st) {
		return st.Status().Code
	}
	if lost := (*url.Error)(nil); errors.As(err, &lost) {
		return 0
	}
	return http.StatusInternalServerError
}

// Snapshot returns a copy of what has been counted so far.
func (st *Counters) Snapshot(now time.Time) *Stats {
	out := &Stats{Start: time.Unix(0, st.Start).UTC(), At: now, Interval: time.Duration(st.interval)}
	for _, r := range st.requests { //drydock:unordered sorted below
		c := *r
		c.Codes = slices.Clone(r.Codes)
		slices.SortFunc(c.Codes, func(a, b CodeCount) int { return cmp.Compare(a.Code, b.Code) })
		c.Latency, c.Throttled = r.Latency.clone(), r.Throttled.clone()
		c.Over = slices.Clone(r.Over)
		out.Requests = append(out.Requests, c)
	}
	slices.SortFunc(out.Requests, func(a, b RequestStats) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	})
	for _, w := range st.watches { //drydock:unordered sorted below
		c := *w
		c.Over = slices.Clone(w.Over)
		out.Watches = append(out.Watches, c)
	}
	slices.SortFunc(out.Watches, func(a, b WatchStats) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Resource, b.Resource))
	})
	for _, l := range st.Levels {
		if l.Seats == 0 && l.Dispatched == 0 {
			continue // exempt, and nobody was
		}
		c := *l
		c.Rejected = slices.Clone(l.Rejected)
		c.Wait = l.Wait.clone()
		c.Over = slices.Clone(l.Over)
		out.Levels = append(out.Levels, c)
	}
	return out
}
