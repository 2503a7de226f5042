package report

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// section is a part of the page.
type section struct {
	ID, Title, About string
	charts           []*chart
	tables           []string // files of the tables shown
}

// timeUnit is what time is shown in on an axis. One report has one unit: charts below each other
// must line up.
type timeUnit struct {
	name string
	of   time.Duration
}

// unitFor chooses the unit in which a span has at most a few hundred.
func unitFor(d time.Duration) timeUnit {
	switch {
	case d <= 5*time.Minute:
		return timeUnit{"virtual time (s)", time.Second}
	case d <= 5*time.Hour:
		return timeUnit{"virtual time (min)", time.Minute}
	}
	return timeUnit{"virtual time (h)", time.Hour}
}

// at is a time in the unit.
func (u timeUnit) at(d time.Duration) float64 { return float64(d) / float64(u.of) }

// sections are the page's, with their charts. Charts without figures are left out by the page, so
// this need not know what there was.
func (r *Report) sections() []section {
	out := []section{
		{
			ID: "startup", Title: "Start of pods",
			About:  "From a pod's creation until a watcher has seen it run.",
			charts: []*chart{r.startupShare(), r.startupOver(), r.startupParts()},
			tables: []string{fileStartup},
		},
		{
			ID: "pods", Title: "Pods",
			charts: []*chart{r.podPhases(), r.podRates(), r.disruptions()},
			tables: []string{fileTotals},
		},
		{
			ID: "nodes", Title: "Nodes",
			charts: []*chart{r.nodeConditions(), r.nodeSpread("node-startup", "Slowest starts by node", "99th percentile of pods' starts of each node", "p99 start (s)", func(n *Node) float64 { return n.StartupP99.Seconds() }),
				r.nodeSpread("node-pods", "Pods by node", "Pods on each node at the end", "pods", func(n *Node) float64 { return float64(n.Pods) })},
			tables: []string{fileHot},
		},
		{
			ID: "kubelets", Title: "Kubelets",
			About:  "What the kubelets count themselves, as their /metrics shows it at the end, over all nodes.",
			tables: []string{fileKubelets},
		},
		{
			ID: "api", Title: "API server", About: r.aboutAPI(),
			charts: []*chart{r.apiRequests(), r.apiErrors(), r.apiLatency(), r.apiWatches(), r.apiLevels()},
			tables: []string{fileCalls},
		},
	}
	if len(r.Devices) > 0 {
		out = append(out, section{
			ID: "devices", Title: "Devices",
			About:  "Devices of plugins and other extended resources, by node group: how many are used, and how many of the free ones are of little use.",
			tables: []string{fileDevices},
		})
	}
	return out
}

// aboutAPI says what the server's latencies are made of.
func (r *Report) aboutAPI() string {
	out := "Latency is at the server: queues of API priority and fairness, service, faults."
	if len(r.API.Levels) == 0 {
		out = "Latency is at the server. There was no model of its load, so it is what faults add."
	}
	if n := r.firstLooks(); n > 0 {
		out += fmt.Sprintf(" Of the errors %d are no trouble: kubelets that start ask for their node and their lease, and make them on the answer 404.", n)
	}
	return out
}

// firstLooks counts the answers 404 to kubelets that look for their node or their lease.
func (r *Report) firstLooks() (n uint64) {
	for i := range r.API.Requests {
		q := &r.API.Requests[i]
		if q.User != apiserver.UserKubelet || q.Verb != "get" || q.Resource != "nodes" && q.Resource != "leases" {
			continue
		}
		for _, c := range q.Codes {
			if c.Code == http.StatusNotFound {
				n += c.Count
			}
		}
	}
	return n
}

// line returns a series of a value per interval, at the intervals' ends. A point stands at its
// interval's end, when what happened in it was known; the last one may be cut by the end of the
// report.
func (r *Report) line(name string, value func(*Interval) float64) line {
	u := unitFor(r.For)
	xy := make([]point, len(r.Over))
	for i := range r.Over {
		end := min(time.Duration(i+1)*r.Interval, r.For)
		xy[i] = point{X: u.at(end), Y: value(&r.Over[i])}
	}
	return line{name, xy}
}

// used drops lines that are 0 throughout, unless all are. A legend of lines at
// zero hides the one that is not. If all are zero one is kept, so that the chart shows that there
// was nothing.
func used(lines []line) []line {
	var out []line
	for _, l := range lines {
		for _, p := range l.xy {
			if p.Y != 0 {
				out = append(out, l)
				break
			}
		}
	}
	if len(out) == 0 && len(lines) > 0 {
		return lines[:1]
	}
	return out
}

// podPhases is how many pods were in each phase.
func (r *Report) podPhases() *chart {
	c := &chart{id: "phases", title: "Pods by phase", about: "How many pods are in each phase over time.", yLabel: "pods", stacked: true, file: fileOver}
	// Running is the ground on which the others stand.
	for _, p := range []Phase{Running, Starting, Unscheduled, Succeeded, Failed, Unknown} {
		c.lines = append(c.lines, r.line(p.String(), func(i *Interval) float64 { return float64(i.Pods[p]) }))
	}
	return r.timed(c)
}

// timed gives a chart the time axis of the whole report, and drops lines without
// figures.
func (r *Report) timed(c *chart) *chart {
	u := unitFor(r.For)
	c.xLabel, c.xMax, c.lines = u.name, u.at(r.For), used(c.lines)
	return c
}

// rate is of a count per second; the last interval may be cut. A cut interval's count is over
// less time.
func (r *Report) rate(name string, value func(*Interval) uint64) line {
	l := r.line(name, func(i *Interval) float64 { return float64(value(i)) / r.Interval.Seconds() })
	if cut := r.For - time.Duration(len(r.Over)-1)*r.Interval; cut > 0 && cut < r.Interval {
		l.xy[len(l.xy)-1].Y *= r.Interval.Seconds() / cut.Seconds()
	}
	return l
}

// podRates is what happened to pods, per second.
func (r *Report) podRates() *chart {
	c := &chart{id: "rates", title: "Pods created, scheduled, started, deleted", about: "Pods per second over time.", yLabel: "pods per second", file: fileOver}
	c.lines = []line{
		r.rate("Created", func(i *Interval) uint64 { return i.Created }),
		r.rate("Scheduled", func(i *Interval) uint64 { return i.Scheduled }),
		r.rate("Started", func(i *Interval) uint64 { return i.Started }),
		r.rate("Deleted", func(i *Interval) uint64 { return i.Deleted }),
	}
	return r.timed(c)
}

// disruptions is what happened to pods and containers against their will.
func (r *Report) disruptions() *chart {
	c := &chart{id: "disruptions", title: "Restarts and evictions", about: "Container restarts, OOM kills, evictions and rejections per interval.", yLabel: "per " + r.Interval.String(), file: fileOver}
	c.lines = []line{
		r.line("Restarts", func(i *Interval) float64 { return float64(i.Restarts) }),
		r.line("OOM kills", func(i *Interval) float64 { return float64(i.OOMKills) }),
		r.line("Rejected", func(i *Interval) float64 { return float64(i.Rejected) }),
	}
	// Most causes don't occur and are dropped by timed.
	for e := range evictions {
		c.lines = append(c.lines, r.line("Evicted: "+e.String(), func(i *Interval) float64 { return float64(i.Evictions[e]) }))
	}
	return r.timed(c)
}

// nodeConditions is how many nodes had each condition.
func (r *Report) nodeConditions() *chart {
	c := &chart{id: "conditions", title: "Nodes by condition", about: "How many nodes have each condition over time.", yLabel: "nodes", file: fileOver}
	for s := range nodeStates {
		c.lines = append(c.lines, r.line(s.String(), func(i *Interval) float64 { return float64(i.Nodes[s]) }))
	}
	return r.timed(c)
}

// startupShare is the share of pods that had started after a time. It is an empirical
// distribution by percents; the log axis shows tens of milliseconds and minutes at once. Times
// below a hundredth of a second are drawn there, since a logarithm has no zero.
func (r *Report) startupShare() *chart {
	c := &chart{
		id: "startup-share", title: "Share of pods started within a time", about: "All: everything; SLO: without image pulls and init containers.",
		xLabel: "time since creation (s)", yLabel: "% of pods", logX: true, limitX: startupLimit.Seconds(), file: fileStarts,
	}
	for _, s := range []struct {
		name string
		list []time.Duration
	}{{"All", r.Startup.totals}, {"SLO", r.Startup.slis}} {
		l := line{name: s.name}
		for i := range 101 {
			if n := len(s.list); n > 0 {
				d := s.list[min(i*n/100, n-1)]
				l.xy = append(l.xy, point{X: math.Max(d.Seconds(), 0.01), Y: float64(i)})
			}
		}
		c.lines = append(c.lines, l)
	}
	return c
}

// startupOver shows whether starts got slower while the run went on. Spans without starts are
// left out rather than drawn as 0; points mark single ones.
func (r *Report) startupOver() *chart {
	c := &chart{id: "startup-over", title: "SLO startup latency over time", about: "Percentiles by time of creation.", yLabel: "seconds", limitY: startupLimit.Seconds(), file: fileStartupOver}
	c.lines = []line{{name: "p50"}, {name: "p90"}, {name: "p99"}}
	u := unitFor(r.For)
	for i, p := range r.Startup.Over {
		if p.Count == 0 {
			continue
		}
		for k, d := range []time.Duration{p.P50, p.P90, p.P99} {
			c.lines[k].xy = append(c.lines[k].xy, point{X: u.at(time.Duration(i) * r.Startup.Width), Y: d.Seconds()})
		}
	}
	c.xLabel, c.xMax, c.points = u.name, u.at(r.For), true
	if c.limitFar() {
		c.about += fmt.Sprintf(" The SLO's limit, %v, is far above.", startupLimit)
	}
	return c
}

// startupParts shows which part of a start took the time. Bars of a percentile don't add up to
// that percentile of the whole: each part has its own slowest pods.
func (r *Report) startupParts() *chart {
	c := &chart{id: "startup-parts", title: "Parts of a start", about: "Percentiles of each part, in the order of a start.", yLabel: "seconds", lines: []line{{name: "p50"}, {name: "p90"}, {name: "p99"}}, file: fileStartup}
	if r.Startup.Total.Count == 0 {
		return c
	}
	for p := range parts {
		c.groups = append(c.groups, p.String())
		x := r.Startup.Parts[p]
		for k, d := range []time.Duration{x.P50, x.P90, x.P99} {
			c.lines[k].xy = append(c.lines[k].xy, point{X: float64(p), Y: d.Seconds()})
		}
	}
	return c
}

// nodeSpread has the nodes sorted by a value. A flat curve means that no node stands out.
func (r *Report) nodeSpread(id, title, about, y string, value func(*Node) float64) *chart {
	c := &chart{id: id, title: title, about: about + ", nodes sorted by it.", xLabel: "% of nodes", yLabel: y, file: fileNodes}
	c.lines = []line{{name: y, xy: spread(r.Nodes, value)}}
	return c
}
