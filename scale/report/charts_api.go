package report

import (
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// maxSeries is how many lines a chart has before the rest are summed up.
const maxSeries = 7

// spread returns a curve of at most 201 points through the sorted values. A hundred thousand
// points would be a page of megabytes.
func spread(nodes []Node, value func(*Node) float64) (xy []point) {
	v := make([]float64, len(nodes))
	for i := range nodes {
		v[i] = value(&nodes[i])
	}
	slices.Sort(v)
	n := min(len(v), 201)
	for i := range n {
		at := i * (len(v) - 1) / max(n-1, 1)
		xy = append(xy, point{X: 100 * float64(at+1) / float64(len(v)), Y: v[at]})
	}
	return xy
}

// overAPI returns a line of a value per interval of the API's statistics.
func (r *Report) overAPI(name string, n int, value func(i int) float64) line {
	u := unitFor(r.For)
	l := line{name: name}
	for i := range n {
		l.xy = append(l.xy, point{X: u.at(r.apiEnd(i)), Y: value(i)})
	}
	return l
}

// intervals is how many there are in the API's statistics. The API's statistics have intervals of
// their own width.
func (r *Report) intervals() int {
	return int((r.For + r.API.Interval - 1) / r.API.Interval)
}

// apiEnd is when an interval of the API's statistics ends; the last is cut.
func (r *Report) apiEnd(i int) time.Duration { return min(time.Duration(i+1)*r.API.Interval, r.For) }

// seconds is the length of such an interval.
func (r *Report) seconds(i int) float64 {
	return (r.apiEnd(i) - time.Duration(i)*r.API.Interval).Seconds()
}

// get is s[i], or zero beyond its end: statistics end with the last thing that
// happened. The slices are as long as what happened, not as the run.
func get[T any](s []T, i int) (v T) {
	if i < len(s) {
		return s[i]
	}
	return v
}

// apiRequests is how much was asked of the API. Colours are few: what is rare is one line.
func (r *Report) apiRequests() *chart {
	c := &chart{id: "api-requests", title: "API requests", about: "Requests per second by verb and resource, the most frequent apart.", yLabel: "requests per second", stacked: true, file: fileAPIOver}
	calls := Calls(r.API)
	for n, x := range calls {
		if n >= maxSeries {
			break
		}
		c.lines = append(c.lines, r.overAPI(x.name(), r.intervals(), func(i int) float64 { return float64(get(x.Over, i)) / r.seconds(i) }))
	}
	if len(calls) > maxSeries {
		c.lines = append(c.lines, r.overAPI("all others", r.intervals(), func(i int) float64 {
			sum := lists.Sum(calls[maxSeries:], func(x Call) uint64 { return get(x.Over, i) })
			return float64(sum) / r.seconds(i)
		}))
	}
	return r.timed(c)
}

// sumOver sums up a value of all requests per interval. Users are summed up as well.
func (r *Report) sumOver(value func(q *apiserver.RequestInterval) uint32) func(i int) float64 {
	return func(i int) float64 {
		var sum float64
		for k := range r.API.Requests {
			if q := &r.API.Requests[k]; i < len(q.Over) {
				sum += float64(value(&q.Over[i]))
			}
		}
		return sum / r.seconds(i)
	}
}

// apiErrors is what it did not do.
func (r *Report) apiErrors() *chart {
	c := &chart{id: "api-errors", title: "API errors", about: "Requests per second without an answer or with a code of 400 or more, and those among them with 429.", yLabel: "requests per second", file: fileAPIOver}
	c.lines = []line{
		r.overAPI("Errors", r.intervals(), r.sumOver(func(q *apiserver.RequestInterval) uint32 { return q.Errors })),
		r.overAPI("Rejected (429)", r.intervals(), r.sumOver(func(q *apiserver.RequestInterval) uint32 { return q.Rejected })),
	}
	return r.timed(c)
}

// apiLatency is how long the slowest took. Maxima rather than percentiles: intervals keep only
// sums and maxima.
func (r *Report) apiLatency() *chart {
	c := &chart{id: "api-latency", title: "Slowest API requests", about: "The longest latency at the server in each interval: of calls that change something, of other calls.", yLabel: "seconds", file: fileAPIOver}
	worst := func(mutating bool) func(i int) float64 {
		return func(i int) float64 {
			var most time.Duration
			for k := range r.API.Requests {
				if q := &r.API.Requests[k]; i < len(q.Over) && isMutating(q.Verb) == mutating {
					most = max(most, q.Over[i].LatencyMax)
				}
			}
			return most.Seconds()
		}
	}
	c.lines = []line{r.overAPI("Mutating", r.intervals(), worst(true)), r.overAPI("Reading", r.intervals(), worst(false))}
	if !slices.ContainsFunc(c.lines, func(l line) bool { return slices.ContainsFunc(l.xy, func(p point) bool { return p.Y > 0 }) }) {
		c.lines = nil // requests took no time
	}
	return r.timed(c)
}

// apiWatches is how much it told watchers. An event counts once for each watcher that gets it: it
// is what leaves the server.
func (r *Report) apiWatches() *chart {
	c := &chart{id: "api-watches", title: "Watch events sent", about: "Events per second by resource.", yLabel: "events per second", stacked: true, file: fileWatches}
	byResource := map[string][]float64{}
	var names []string
	for k := range r.API.Watches {
		w := &r.API.Watches[k]
		sum := byResource[w.Resource]
		if sum == nil {
			names = append(names, w.Resource)
			sum = make([]float64, r.intervals())
			byResource[w.Resource] = sum
		}
		for i := range min(len(w.Over), len(sum)) {
			sum[i] += float64(w.Over[i]) / r.seconds(i)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		c.lines = append(c.lines, r.overAPI(n, r.intervals(), func(i int) float64 { return byResource[n][i] }))
	}
	return r.timed(c)
}

func (r *Report) apiLevels() *chart {
	c := &chart{id: "api-levels", title: "Queued requests by priority level", about: "The most requests in the queues of each priority level in each interval.", yLabel: "requests", file: fileLevels}
	for k := range r.API.Levels {
		l := &r.API.Levels[k]
		c.lines = append(c.lines, r.overAPI(l.Name, r.intervals(), func(i int) float64 { return float64(get(l.Over, i).MaxQueued) }))
	}
	return r.timed(c)
}
