package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// The CSV files.
const (
	// The names are documented in docs/report.md and linked by the page.
	fileSLOs        = "slos.csv"
	fileStartup     = "startup.csv"
	fileStartupOver = "startup_over_time.csv"
	fileStarts      = "starts.csv"
	fileTotals      = "totals.csv"
	fileOver        = "over_time.csv"
	fileNodes       = "nodes.csv"
	fileDevices     = "devices.csv"
	fileKubelets    = "kubelets.csv"
	fileHot         = "hot_spots.csv"
	fileCalls       = "api_calls.csv"
	fileAPI         = "api_requests.csv"
	fileAPIOver     = "api_over_time.csv"
	fileWatches     = "api_watches.csv"
	fileLevels      = "api_levels.csv"
)

// table is one of the CSV files; the page shows some of them. docs/report.md has
// the columns. A table is made once and read by the CSV writer and the page; rows are made while
// they are read.
type table struct {
	File, Title string
	Columns     []column
	// rows yields values as the file has them; a row may be reused by the next. So a reader that
	// keeps a row has to copy it.
	rows iter.Seq[[]string]
}

// column is a column's name, with the unit at its end, and what it says.
type column struct{ Name, About string }

// writeCSV writes a line of names and the rows. Rows are written as they come:
// starts.csv may have a million. The writer buffers; its error comes with the last flush.
func (t *table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	if err := out.Write(names); err != nil {
		return err
	}
	for row := range t.rows {
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// tables are all CSV files.
func (r *Report) tables() []table {
	return []table{
		r.sloTable(), r.startupTable(), r.startupOverTable(), r.startsTable(), r.totalsTable(), r.overTable(),
		r.nodesTable(), r.devicesTable(), r.kubeletsTable(), r.hotTable(), r.callsTable(), r.apiTable(), r.apiOverTable(), r.watchesTable(), r.levelsTable(),
	}
}

// seconds writes a time as decimal seconds, to the tenth of a millisecond. Four digits are a
// tick.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 4, 64) }

// tenth writes a mean.
func tenth(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// number writes a whole number.
func number[T int | int64 | uint64 | uint32](n T) string { return fmt.Sprint(n) }

var (
	// Columns that several tables have. Names end with their unit.
	columnTime   = column{"time_s", "end of the interval, virtual seconds since the start of the run"}
	percentilesC = []column{
		{"count", "how many the percentiles are of"}, {"mean_s", "mean"}, {"p50_s", "50th percentile"}, {"p90_s", "90th percentile"}, {"p99_s", "99th percentile"}, {"max_s", "longest"},
	}
)

// values are the cells of percentilesC.
func (p *Percentiles) values() []string {
	return []string{number(p.Count), seconds(p.Mean), seconds(p.P50), seconds(p.P90), seconds(p.P99), seconds(p.Max)}
}

// The tables, one function each: file, title, columns with what they say, and the
// rows. docs/report.md repeats the columns. The functions are apart so that each table's columns
// stand beside the code that fills them, in the same order.
func (r *Report) sloTable() table {
	return table{
		File: fileSLOs, Title: "Scalability SLOs",
		Columns: []column{
			{"slo", "what it is about"}, {"verdict", "met, missed, no data, or not modelled (nothing made API calls take time)"}, {"p99_s", "99th percentile; of API calls that of the worst"}, {"limit_s", "what it must not exceed"},
			{"count", "pods or requests"}, {"of", "which pods; which call was the worst"}, {"objective", "what the SLO wants"},
		},
		rows: func(yield func([]string) bool) {
			for i := range r.SLOs {
				s, p99 := &r.SLOs[i], ""
				if s.Count > 0 && !s.Unmodelled {
					p99 = seconds(s.P99)
				}
				if !yield([]string{s.Name, s.Verdict(), p99, seconds(s.Limit), number(s.Count), s.Worst, s.Objective}) {
					return
				}
			}
		},
	}
}

func (r *Report) startupTable() table {
	return table{
		File: fileStartup, Title: "Start of pods by part",
		Columns: append([]column{{"part", "All, SLO (without Image pull and Init, of stateless, schedulable pods), or a part of All"}}, percentilesC...),
		rows: func(yield func([]string) bool) {
			if !yield(append([]string{"All"}, r.Startup.Total.values()...)) || !yield(append([]string{"SLO"}, r.Startup.SLI.values()...)) {
				return
			}
			for p := range parts {
				if !yield(append([]string{p.String()}, r.Startup.Parts[p].values()...)) {
					return
				}
			}
		},
	}
}

func (r *Report) startupOverTable() table {
	return table{
		File: fileStartupOver, Title: "SLO startup latency over time",
		Columns: append([]column{{"created_from_s", "pods created from this virtual time on"}, {"created_to_s", "and before this"}}, percentilesC...),
		rows: func(yield func([]string) bool) {
			for i := range r.Startup.Over {
				from := time.Duration(i) * r.Startup.Width
				if !yield(append([]string{seconds(from), seconds(from + r.Startup.Width)}, r.Startup.Over[i].values()...)) {
					return
				}
			}
		},
	}
}

func (r *Report) startsTable() table {
	columns := []column{{"created_s", "virtual time of the pod's creation"}, {"node", "node"}}
	for _, name := range []string{"scheduling_s", "sandbox_s", "image_pull_s", "init_s", "containers_s", "reporting_s"} {
		columns = append(columns, column{name, "the part of the start"})
	}
	columns = append(columns, column{"slo", "true if the SLO is about the pod"})
	return table{
		File: fileStarts, Title: "Each start", Columns: columns,
		rows: func(yield func([]string) bool) {
			// One slice for all rows: a million would be garbage.
			row := make([]string, len(columns))
			for i := range r.Startup.starts {
				s := &r.Startup.starts[i]
				row[0], row[1] = seconds(s.at()), r.Nodes[s.on()].Name
				for p, v := range s.parts {
					row[2+p] = seconds(time.Duration(v) * tick)
				}
				row[len(row)-1] = strconv.FormatBool(s.counts())
				if !yield(row) {
					return
				}
			}
		},
	}
}

func (r *Report) totalsTable() table {
	return table{
		File: fileTotals, Title: "Totals",
		Columns: []column{{"what", "what was counted"}, {"count", "how often, in the whole run"}},
		rows: func(yield func([]string) bool) {
			t := &r.Totals
			rows := [][]string{
				{"Pods created", number(t.Created)}, {"Pods scheduled", number(t.Scheduled)}, {"Pods started", number(t.Started)}, {"Pods deleted", number(t.Deleted)},
				{"Pods not started yet at the end", number(r.Startup.Waiting)}, {"Pods rejected by a kubelet", number(t.Rejected)}, {"Container restarts", number(t.Restarts)}, {"OOM kills", number(t.OOMKills)}, {"Evictions", number(t.Evicted())},
			}
			for e := range evictions {
				rows = append(rows, []string{"Evictions: " + e.String(), number(t.Evictions[e])})
			}
			last := r.last()
			for p := range phases {
				rows = append(rows, []string{"Pods at the end: " + p.String(), number(last.Pods[p])})
			}
			for s := range nodeStates {
				rows = append(rows, []string{"Nodes at the end: " + s.String(), number(last.Nodes[s])})
			}
			for _, row := range rows {
				if !yield(row) {
					return
				}
			}
		},
	}
}

// kubeletsTable is of the kubelets' own metrics, by series.
func (r *Report) kubeletsTable() table {
	return table{
		File: fileKubelets, Title: "Counted by the kubelets",
		Columns: []column{
			{"metric", "the family of /metrics or /metrics/probes"},
			{"labels", "of the series, without those that name a pod, a container or a claim"},
			{"type", "counter, gauge or histogram"},
			{"value", "the sum over all nodes; of a histogram the number of values"},
			{"p50", "of a histogram's values, in its unit, by the bounds of its buckets"},
			{"p99", "the same"},
		},
		rows: func(yield func([]string) bool) {
			for i := range r.Kubelets {
				s := &r.Kubelets[i]
				row := []string{s.Name, s.Labels, s.Type, sixDigits(s.Value), "", ""}
				if s.Type == sim.HistogramSeries {
					row[4], row[5] = sixDigits(s.P50), sixDigits(s.P99)
				}
				if !yield(row) {
					return
				}
			}
		},
	}
}

// sixDigits writes a number to six digits.
func sixDigits(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
