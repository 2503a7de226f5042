package report

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Text writes the report's figures for a terminal. It returns the writer's error. It is the short
// form: the CSV files have everything.
func (r *Report) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s: %v of virtual time\n", r.Title, r.For.Round(time.Millisecond))
	if r.Partial != "" {
		fmt.Fprintf(b, "Partial: %s\n", r.Partial)
	}
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	for _, f := range r.Facts {
		fmt.Fprintf(t, "  %s\t%s\n", f.Name, f.Value)
	}
	t.Flush()
	last := r.last()
	fmt.Fprintf(b, "\nPods: %d created, %d scheduled, %d started, %d deleted, %d rejected; at the end", r.Totals.Created, r.Totals.Scheduled, r.Totals.Started, r.Totals.Deleted, r.Totals.Rejected)
	none := " none"
	for p := range phases {
		if n := last.Pods[p]; n > 0 {
			fmt.Fprintf(b, " %s %d", p, n)
			none = ""
		}
	}
	b.WriteString(none)
	fmt.Fprintf(b, "\nContainers: %d restarts, %d OOM kills. Evictions: %d", r.Totals.Restarts, r.Totals.OOMKills, r.Totals.Evicted())
	for e := range evictions {
		if n := r.Totals.Evictions[e]; n > 0 {
			fmt.Fprintf(b, ", %s %d", e, n)
		}
	}
	fmt.Fprintf(b, "\nNodes at the end: %d Ready, %d NotReady, %d Unknown\n\n", last.Nodes[Ready], last.Nodes[NotReady], last.Nodes[ReadyUnknown])
	r.startupText(b, t)
	r.devicesText(b, t)
	if n := r.firstLooks(); n > 0 {
		fmt.Fprintf(b, "API: %d requests were answered with an error, %d of them 404 to kubelets that start and look for their node and lease\n", r.requests(func(code int) bool { return code == 0 || code >= 400 }), n)
	}
	fmt.Fprintln(b, "\nSLOs")
	for i := range r.SLOs {
		s := &r.SLOs[i]
		switch {
		case s.Count == 0:
			fmt.Fprintf(t, "  %s\t%s\n", s.Name, s.Verdict())
			continue
		case s.Unmodelled:
			fmt.Fprintf(t, "  %s\t%s\trequests took the API server no time\n", s.Name, s.Verdict())
			continue
		}
		fmt.Fprintf(t, "  %s\t%s\tp99 %v\tat most %v\t%s\n", s.Name, s.Verdict(), round(s.P99), s.Limit, s.Worst)
	}
	t.Flush()
	return b.Flush()
}

// startupText writes how long pods took to start, the table by t, which writes to b. The tab
// writer must be flushed before b is written to again, or lines change places.
func (r *Report) startupText(b io.Writer, t *tabwriter.Writer) {
	n := r.Startup.Waiting
	if r.Startup.Total.Count == 0 {
		fmt.Fprintf(b, "Start of pods: none has started, %d on their way\n", n)
		return
	}
	fmt.Fprintln(t, "Start of pods\tcount\tmean\tp50\tp90\tp99\tmax")
	line := func(name string, p Percentiles) {
		fmt.Fprintf(t, "  %s\t%d\t%v\t%v\t%v\t%v\t%v\n", name, p.Count, round(p.Mean), round(p.P50), round(p.P90), round(p.P99), round(p.Max))
	}
	line("all", r.Startup.Total)
	line("SLO", r.Startup.SLI)
	for p := range parts {
		line(p.String(), r.Startup.Parts[p])
	}
	t.Flush()
	if n > 0 {
		fmt.Fprintf(b, "  Not started yet at the end: %d (the figures are of those that have)\n", n)
	}
}

// devicesText writes how devices were used, if there were any.
func (r *Report) devicesText(b io.Writer, t *tabwriter.Writer) {
	if len(r.Devices) == 0 {
		return
	}
	fmt.Fprintln(t, "Devices\tof\tnodes\tused, mean\tused\tsplit\tstranded\tlargest free\twaiting pods\twaiting for")
	for i := range r.Devices {
		d := &r.Devices[i]
		share := func(n float64) string { return fmt.Sprintf("%.1f%%", 100*n/max(float64(d.Total), 1)) }
		fmt.Fprintf(t, "  %s %s\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", d.Group, d.Resource, d.Total, d.Nodes,
			share(d.UsedMean), share(float64(d.Used)), share(float64(d.Split)), share(float64(d.Stranded)), d.Largest, d.Waiting, d.WaitingFor)
	}
	t.Flush()
	fmt.Fprintln(b)
}

// last is how things were at the end. There is always one: series.until returns at least the
// present interval.
func (r *Report) last() *Interval { return &r.Over[len(r.Over)-1] }

// Milliseconds, for the eye.
func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
