package report

import "time"

// Summary is a report's main figures, for JSON. Times are seconds. Names of JSON fields are for
// scripts, so they stay.
type Summary struct {
	SLOs []SLOSummary `json:"slos"`
	// Startup has the parts of startup.csv.
	Startup []StartupSummary `json:"startup"`
	// Waiting counts the pods that were on their way at the end.
	Waiting   int               `json:"podsOnTheirWay"`
	Rejected  uint64            `json:"podsRejected"`
	OOMKills  uint64            `json:"oomKills"`
	Evictions map[string]uint64 `json:"evictions"` // by cause, those that there were
}

// SLOSummary is an SLO with its verdict.
type SLOSummary struct {
	Name    string   `json:"slo"`
	Verdict string   `json:"verdict"`
	P99     *float64 `json:"p99Seconds,omitempty"` // without it there is none to judge
	Limit   float64  `json:"limitSeconds"`
	Count   uint64   `json:"count"`
	Of      string   `json:"of,omitempty"`
}

// StartupSummary is the percentiles of a part of pods' starts.
type StartupSummary struct {
	Part  string  `json:"part"`
	Count int     `json:"count"`
	Mean  float64 `json:"meanSeconds"`
	P50   float64 `json:"p50Seconds"`
	P90   float64 `json:"p90Seconds"`
	P99   float64 `json:"p99Seconds"`
	Max   float64 `json:"maxSeconds"`
}

// Summary sums the report up. It is what programs read; pages and tables have
// more. It holds no slices of the report.
func (r *Report) Summary() *Summary {
	out := &Summary{Waiting: r.Startup.Waiting, Rejected: r.Totals.Rejected, OOMKills: r.Totals.OOMKills, Evictions: map[string]uint64{}}
	for i := range r.SLOs {
		s := &r.SLOs[i]
		x := SLOSummary{Name: s.Name, Verdict: s.Verdict(), Limit: s.Limit.Seconds(), Count: s.Count, Of: s.Worst}
		if s.Count > 0 && !s.Unmodelled {
			x.P99 = new(s.P99.Seconds())
		}
		out.SLOs = append(out.SLOs, x)
	}
	part := func(name string, p *Percentiles) {
		sec := time.Duration.Seconds
		out.Startup = append(out.Startup, StartupSummary{name, p.Count, sec(p.Mean), sec(p.P50), sec(p.P90), sec(p.P99), sec(p.Max)})
	}
	part("All", &r.Startup.Total)
	part("SLO", &r.Startup.SLI)
	for p := range parts {
		part(p.String(), &r.Startup.Parts[p])
	}
	for e := range evictions {
		if n := r.Totals.Evictions[e]; n > 0 {
			out.Evictions[e.String()] = n
		}
	}
	return out
}
