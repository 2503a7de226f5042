package report

import (
	"fmt"
	"io"
	"time"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Fact is a line about the run that the report shows as it is: "seed", "7". Facts are shown in
// their order.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Verdict is what came of an expectation: "held", "failed" or "undecided", and why.
type Verdict struct {
	Title, Outcome, Reason string
	// Values are parts of a failed expression with what they were, History the lines of the
	// timeline that led to it.
	Values, History []string
}

// Report is what happened up to a time. It shares nothing with the run. The
// collector may go on while it is written. The methods that write it only read it.
type Report struct {
	// Title heads the page.
	Title string
	// Facts are Options.Facts and what the collector adds; more can be appended.
	Facts []Fact
	// Verdicts are those of expectations, Notes warnings and errors of the run: the page begins with
	// them, what failed first.
	Verdicts []Verdict
	Notes    []string
	// Partial says why the run ended before its time ("interrupted"), or is "".
	Partial string
	// For is the virtual time that the report covers, from the start of the run.
	For time.Duration
	// Startup is of the pods that have started.
	Startup Startup
	// SLOs are the verdicts, the pods' startup first.
	SLOs []SLO
	// Interval is the width of the intervals in Over.
	Interval time.Duration
	// Over has one entry per interval, from the start of the run.
	Over []Interval
	// Nodes are in the order of their first appearance.
	Nodes []Node
	// Devices are by node group and resource; none without nodes that have some.
	Devices []Devices
	// Totals sums up Over.
	Totals Counts
	// Kubelets is what the kubelets count themselves, at the end.
	Kubelets []sim.KubeletSeries
	// API is what the API server had to do.
	API *apiserver.Stats
}

// WriteDir writes index.html and the CSV files, each into what create returns
// for its name. It does not know about directories: create decides where files go. The first
// error ends it, with that file closed.
func (r *Report) WriteDir(create func(name string) (io.WriteCloser, error)) error {
	for _, f := range r.files() {
		w, err := create(f.name)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		err = f.write(w)
		if cerr := w.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("report: writing %s: %w", f.name, err)
		}
	}
	return nil
}

// file is one of a report's files. All are written the same way, to wherever
// create leads. Names are those of tables.go.
type file struct {
	name  string
	write func(io.Writer) error
}

// files are the page and all tables.
func (r *Report) files() []file {
	out := []file{{"index.html", r.writeHTML}, {FiguresFile, r.writeFigures}}
	for _, t := range r.tables() {
		out = append(out, file{t.File, t.writeCSV})
	}
	return out
}
