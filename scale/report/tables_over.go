package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// snake writes a name as a column: "Scheduler preemption" is scheduler_preemption. Columns derive
// from the names in charts, so the two cannot part.
func snake(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "_")) }

func (r *Report) overTable() table {
	columns := []column{columnTime}
	for p := range phases {
		columns = append(columns, column{"pods_" + snake(p.String()), "pods in the phase at the end of the interval"})
	}
	columns = append(columns, column{"pods_terminating", "of them, those with a deletionTimestamp"})
	for s := range nodeStates {
		columns = append(columns, column{"nodes_" + snake(s.String()), "nodes with the condition at the end of the interval"})
	}
	for _, name := range []string{"created", "scheduled", "started", "deleted", "rejected"} {
		columns = append(columns, column{name, "pods in the interval"})
	}
	columns = append(columns, column{"restarts", "containers in the interval"}, column{"oom_kills", "containers in the interval"})
	for e := range evictions {
		columns = append(columns, column{"evicted_" + snake(e.String()), "pods in the interval"})
	}
	return table{
		File: fileOver, Title: "Over time", Columns: columns,
		rows: func(yield func([]string) bool) {
			for i := range r.Over {
				x := &r.Over[i]
				row := []string{seconds(min(time.Duration(i+1)*r.Interval, r.For))}
				for _, n := range x.Pods {
					row = append(row, number(n))
				}
				row = append(row, number(x.Terminating))
				for _, n := range x.Nodes {
					row = append(row, number(n))
				}
				for _, n := range []uint64{x.Created, x.Scheduled, x.Started, x.Deleted, x.Rejected, x.Restarts, x.OOMKills} {
					row = append(row, number(n))
				}
				for _, n := range x.Evictions {
					row = append(row, number(n))
				}
				if !yield(row) {
					return
				}
			}
		},
	}
}

func (r *Report) nodesTable() table {
	return table{
		File: fileNodes, Title: "Nodes",
		Columns: []column{
			{"node", "name"}, {"pods", "pods on it at the end that have not ended"}, {"started", "pods that started on it"}, {"start_p99_s", "99th percentile of their start, all parts"},
			{"evicted", "pods"}, {"rejected", "pods"}, {"restarts", "of containers"}, {"oom_kills", "of containers"}, {"outages", "how often it stopped being Ready"}, {"not_ready_s", "for how long in all"},
		},
		rows: func(yield func([]string) bool) {
			for i := range r.Nodes {
				n := &r.Nodes[i]
				if !yield([]string{
					n.Name, number(n.Pods), number(n.Started), seconds(n.StartupP99), number(n.Evicted), number(n.Rejected), number(n.Restarts), number(n.OOMKills), number(n.Outages), seconds(n.NotReady),
				}) {
					return
				}
			}
		},
	}
}

func (r *Report) hotTable() table {
	return table{
		File: fileHot, Title: "Hot spots",
		Columns: []column{{"what", "what there was most of"}, {"rank", "from 1"}, {"node", "name"}, {"value", "its value"}, {"median", "the median over all nodes"}},
		rows: func(yield func([]string) bool) {
			for _, h := range r.hotSpots() {
				if !yield([]string{h.What, number(h.Rank), h.Node, decimal(h.Value), decimal(h.Median)}) {
					return
				}
			}
		},
	}
}

// decimal writes a number to the tenth of a thousandth. Rounding keeps float noise such as
// 0.30000000000000004 out of files.
func decimal(v float64) string { return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64) }

func (r *Report) callsTable() table {
	return table{
		File: fileCalls, Title: "API calls by verb and resource",
		Columns: []column{
			{"verb", "of the API"}, {"resource", "with the subresource"}, {"requests", "in all"}, {"errors", "no answer, or a code of 400 or more"}, {"rejected", "code 429"},
			{"mean_s", "latency at the server: mean"}, {"p50_s", "50th percentile"}, {"p90_s", "90th percentile"}, {"p99_s", "99th percentile"}, {"max_s", "longest"},
		},
		rows: func(yield func([]string) bool) {
			for _, c := range Calls(r.API) {
				l := &c.Latency
				if !yield([]string{
					c.Verb, c.Resource, number(c.Total), number(c.Errors), number(c.Rejected),
					seconds(l.Mean()), seconds(l.Quantile(0.5)), seconds(l.Quantile(0.9)), seconds(l.Quantile(0.99)), seconds(l.Max),
				}) {
					return
				}
			}
		},
	}
}

func (r *Report) apiTable() table {
	return table{
		File: fileAPI, Title: "API requests by user",
		Columns: []column{
			{"user", "kubelet (all of them), or a component"}, {"verb", "of the API"}, {"resource", "with the subresource"}, {"code", "HTTP status; 0 is no answer"}, {"requests", "with that code"},
			{"p99_s", "99th percentile of the latency at the server, over all codes"}, {"throttled", "requests that waited for their client's own QPS, over all codes"}, {"throttled_p99_s", "for how long, 99th percentile"},
		},
		rows: func(yield func([]string) bool) {
			for i := range r.API.Requests {
				q := &r.API.Requests[i]
				for _, c := range q.Codes {
					if !yield([]string{
						q.User, q.Verb, q.Resource, strconv.Itoa(int(c.Code)), number(c.Count),
						seconds(q.Latency.Quantile(0.99)), number(q.Throttled.Count), seconds(q.Throttled.Quantile(0.99)),
					}) {
						return
					}
				}
			}
		},
	}
}

func (r *Report) apiOverTable() table {
	return table{
		File: fileAPIOver, Title: "API requests over time",
		Columns: []column{
			columnTime, {"user", "kubelet (all of them), or a component"}, {"verb", "of the API"}, {"resource", "with the subresource"}, {"requests", "that arrived in the interval"},
			{"errors", "of them: no answer, or a code of 400 or more"}, {"rejected", "of them: code 429"}, {"mean_s", "latency at the server: mean"}, {"max_s", "longest"},
		},
		rows: func(yield func([]string) bool) {
			for i := range r.API.Requests {
				q := &r.API.Requests[i]
				for t := range q.Over {
					x := &q.Over[t]
					if x.Requests == 0 {
						continue
					}
					if !yield([]string{
						seconds(r.apiEnd(t)), q.User, q.Verb, q.Resource, number(x.Requests), number(x.Errors), number(x.Rejected),
						seconds(x.LatencySum / time.Duration(x.Requests)), seconds(x.LatencyMax),
					}) {
						return
					}
				}
			}
		},
	}
}

func (r *Report) watchesTable() table {
	return table{
		File: fileWatches, Title: "Watch events over time",
		Columns: []column{columnTime, {"user", "kubelet (all of them), or a component"}, {"resource", "what is watched"}, {"events", "sent in the interval"}},
		rows: func(yield func([]string) bool) {
			for i := range r.API.Watches {
				w := &r.API.Watches[i]
				for t, n := range w.Over {
					if n > 0 && !yield([]string{seconds(r.apiEnd(t)), w.User, w.Resource, number(n)}) {
						return
					}
				}
			}
		},
	}
}

func (r *Report) levelsTable() table {
	return table{
		File: fileLevels, Title: "API priority levels over time",
		Columns: []column{columnTime, {"level", "the priority level; none without a model of the API's load"}, {"seats", "its nominal concurrency limit; 0 is none"}, {"max_seats", "most seats in use in the interval"}, {"max_queued", "most requests in its queues"}},
		rows: func(yield func([]string) bool) {
			for i := range r.API.Levels {
				l := &r.API.Levels[i]
				for t, x := range l.Over {
					if !yield([]string{seconds(r.apiEnd(t)), l.Name, strconv.Itoa(l.Seats), number(x.MaxSeats), number(x.MaxQueued)}) {
						return
					}
				}
			}
		},
	}
}
