package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drydock-sim/drydock/scale"
	"github.com/drydock-sim/drydock/scale/report"
	"github.com/drydock-sim/drydock/scenarios"
)

// source says where the pods come from. It is text for a reader; nothing parses it.
func (f *scaleFlags) source() string {
	// In the order in which sources exclude each other, see together.
	c := &f.cfg
	switch {
	case c.Trace != nil:
		return fmt.Sprintf("trace %s: %s over %s", f.trace, scenarios.Plural(c.Trace.Pods(), "pod"), scenarios.ShortTime(c.Trace.End().Truncate(time.Second)))
	case c.Snapshot != nil && c.Workload != nil:
		return fmt.Sprintf("cluster %s and workload %s", f.cluster, f.workload)
	case c.Snapshot != nil:
		return fmt.Sprintf("cluster %s: %s", f.cluster, scenarios.Plural(len(c.Snapshot.Pods), "pod"))
	case c.Workload != nil:
		return "workload " + f.workload
	}
	return fmt.Sprintf("%d idle web servers for each node", c.PodsPerNode)
}

// title is that of the report and of the output.
func (f *scaleFlags) title() string { return "drydock scale: " + scenarios.Plural(f.nodes(), "node") }

// nodes is how many nodes the run is about.
func (f *scaleFlags) nodes() int {
	if s := f.cfg.Snapshot; s != nil {
		return len(s.Nodes)
	}
	return f.cfg.Nodes
}

// limits are those of the control plane's clients, as text. Both have the same form, so a reader
// sees at once whether they differ.
func (f *scaleFlags) limits() string {
	text := func(qps float64, burst int) string {
		if qps < 0 {
			return "without limit"
		}
		return fmt.Sprintf("%g/s, burst %d", qps, burst)
	}
	s, m := f.cfg.ControlPlane.Scheduler, f.cfg.ControlPlane.ControllerManager
	out := "scheduler " + text(s.QPS, s.Burst) + "; controllers " + text(m.QPS, m.Burst)
	if s == m && s.QPS == scale.ScaleQPS && s.Burst == scale.ScaleBurst {
		out += " each (as in sig-scalability's tests on GCE; upstream's defaults are 50/s and 20/s)"
	}
	return out
}

// facts are what a reader must know to judge the figures: sizes, rates and
// limits, the seed, and what is not modelled. A figure without these is not comparable: limits
// alone move start-up by factors.
func (f *scaleFlags) facts() []report.Fact {
	c := &f.cfg
	out := []report.Fact{{Name: "Nodes", Value: strconv.Itoa(f.nodes())}, {Name: "Pods", Value: f.source()}, {Name: "API clients", Value: f.limits()}, {Name: "Seed", Value: strconv.FormatUint(c.Seed, 10)}}
	switch {
	case c.Bound:
		out = append(out, report.Fact{Name: "Scheduling", Value: "none: pods are created with their node's name"})
	case c.Trace == nil && (c.Snapshot == nil || c.Workload != nil) && c.CreateRate > 0:
		out = append(out, report.Fact{Name: "Creation", Value: f.createRate.String()})
	}
	if l := c.APILoad; l != nil {
		out = append(out, report.Fact{Name: "API server", Value: fmt.Sprintf("%d seats for requests; service times are assumed (docs/scale.md)", l.MaxRequestsInflight+l.MaxMutatingRequestsInflight)})
	} else {
		out = append(out, report.Fact{Name: "API server", Value: "takes no time (see --api-load)"})
	}
	if c.Churn > 0 {
		out = append(out, report.Fact{Name: "Churn", Value: f.churn.String()})
	}
	return out
}

// head tells what is run. With --json it goes to stderr, which leaves stdout to
// the document. It comes before the run, so that somebody who watches for an hour knows what.
func (f *scaleFlags) head() {
	w := f.stdout
	if f.json {
		w = f.stderr
	}
	for _, x := range f.facts() {
		fmt.Fprintf(w, "%-12s %s\n", x.Name+":", x.Value)
	}
}

// cost is what a run took of the machine. It depends on the machine, so it is apart from the
// result, which does not.
type cost struct {
	LiveBytes     int64   `json:"liveHeapBytes"`
	PeakRSSBytes  int64   `json:"peakRSSBytes"`
	CollectionCPU float64 `json:"collectionCPUSeconds"`
}

// cost reads what the run has taken so far.
func (p *pacer) cost() cost {
	return cost{LiveBytes: int64(p.live()), PeakRSSBytes: peakRSS(), CollectionCPU: p.collecting()}
}

// write writes what came of the run, in the form asked for. It is written for a
// run that was cut short as well, marked as partial; the exit code says why. The first error of
// writing is returned; the rest is tried all the same.
func (f *scaleFlags) write(res *scale.Result, failed error, pace *pacer, rep *reporter) error {
	partial := ""
	switch {
	case failed != nil:
		partial = failed.Error()
	case res.Interrupted:
		partial = "interrupted after " + scenarios.ShortTime(res.Virtual)
	}
	c := pace.cost()
	rep.hash = fmt.Sprintf("%016x", res.Hash)
	if f.json {
		out := struct {
			Version string          `json:"version"`
			Command string          `json:"command"`
			Result  *scale.Result   `json:"result"`
			Report  *report.Summary `json:"report,omitempty"`
			Figures []report.Figure `json:"figures,omitempty"`
			Cost    cost            `json:"cost"`
			Error   string          `json:"error,omitempty"`
		}{Version: version(), Command: f.command, Result: res, Report: rep.summary(), Figures: rep.figures(), Cost: c}
		if failed != nil {
			out.Error = failed.Error()
		}
		if err := encodeJSON(f.stdout, out); err != nil {
			return err
		}
		return rep.write(nil, partial)
	}
	// head has told the facts.
	fmt.Fprintln(f.stdout)
	err := rep.write(f.stdout, partial)
	f.summary(res, &c)
	return err
}

// summary tells what the run came to and what it cost. Rates are rounded to whole numbers: more
// digits vary from run to run.
func (f *scaleFlags) summary(res *scale.Result, c *cost) {
	w := f.stdout
	// Both figures are told: start-up is where pods cost, steady where nodes do.
	all, steady := res.NodeSecondsPerSecond()
	fmt.Fprintln(w, "\nThe simulation")
	// Without an end of start-up there is no rate of it.
	if res.StartedAt > 0 && res.Wanted > 0 {
		fmt.Fprintf(w, "  start-up: %s of virtual time in %s of wall time, %s pods/s\n", scenarios.ShortTime(res.StartedAt), scenarios.RoundWall(res.Wall.Startup), grouped(res.StartsPerSecond()))
	}
	fmt.Fprintf(w, "  all: %s of virtual time in %s of wall time, %s node-seconds/s", scenarios.ShortTime(res.Virtual), scenarios.RoundWall(res.Wall.Total()), grouped(all))
	if steady > 0 {
		fmt.Fprintf(w, " (%s after start-up)", grouped(steady))
	}
	fmt.Fprintf(w, "\n  %s API requests, %s leases renewed, %s pod writes, %s events; %s syncs, %s probes\n", grouped(float64(res.Requests)), grouped(float64(res.Leases)), grouped(float64(res.PodWrites)), grouped(float64(res.Events)), grouped(float64(res.Syncs)), grouped(float64(res.Probes)))
	const mib = 1 << 20
	fmt.Fprintf(w, "  memory: %s MiB peak, %s MiB live heap; %.1f s of processor time collecting garbage\n", grouped(float64(c.PeakRSSBytes/mib)), grouped(float64(c.LiveBytes/mib)), c.CollectionCPU)
	fmt.Fprintf(w, "  %s records; seed %d, hash %016x\n", grouped(float64(res.Records)), res.Seed, res.Hash)
	for _, x := range res.Pending {
		fmt.Fprintf(w, "pending: %s\n", x)
	}
	for _, x := range res.Warnings {
		fmt.Fprintf(w, "warning: %s\n", x)
	}
	for _, x := range res.Errors {
		fmt.Fprintf(w, "refused: %s\n", x)
	}
	// Only the first errors are kept, and all are counted.
	if more := res.Refused - len(res.Errors); more > 0 {
		fmt.Fprintf(w, "refused: and %d more\n", more)
	}
	if res.Interrupted {
		fmt.Fprintln(w, "INTERRUPTED")
	}
}

// checkScenario refuses flags that don't go with a scenario file. Only what is about watching a
// run, and the few things that drydock run has too, is allowed.
func (f *scaleFlags) checkScenario(fl *pflag.FlagSet) error {
	allowed := map[string]bool{"seed": true, "workers": true, "report": true, "memory": true, "progress": true, "json": true, "for": true, "verify": true, "expect": true, "output": true}
	bad := ""
	// Visit goes by name and over flags that were given, so the first bad one is
	// always the same.
	fl.Visit(func(x *pflag.Flag) {
		if !allowed[x.Name] && bad == "" {
			bad = x.Name
		}
	})
	switch {
	case bad != "":
		return badInput("--%s is not for a scenario file, which says that itself", bad)
	case f.verify && f.report != "":
		return badInput("--verify and --report exclude each other")
	case f.cfg.For < 0:
		return badInput("--for: %v is negative", f.cfg.For)
	case f.progress < 0:
		return badInput("--progress: %v is negative", f.progress)
	case f.cfg.Workers < 0 || f.cfg.Workers > maxWorkers:
		return badInput("--workers: %d is not within 0 and %d", f.cfg.Workers, maxWorkers)
	}
	return nil
}

// runScenario runs a scenario file as drydock run does, with the progress, the
// report and the memory of a large run. A scenario's own expectations are judged,
// so its exit codes are those of drydock run. runFlags are filled in by hand, so that options,
// output and repeat command are those of drydock run.
func (f *scaleFlags) runScenario(cmd *cobra.Command, file string) error {
	if err := f.checkScenario(cmd.Flags()); err != nil {
		return err
	}
	target, err := f.memoryTarget()
	if err != nil {
		return err
	}
	r := runFlags{seed: f.cfg.Seed, seedSet: cmd.Flags().Changed("seed"), until: f.cfg.For, workers: f.cfg.Workers, output: "text", stdout: f.stdout, stderr: f.stderr, verify: f.verify}
	if f.json {
		r.output = "json"
	}
	began := time.Now()
	list, err := r.sel.load(cmd.Context(), []string{file})
	// A workload given as argument is the commonest mistake.
	if err != nil {
		// The two kinds of documents are easily confused, and the remedy is
		// short.
		if head, rerr := scenarios.ReadFile(file); rerr == nil {
			if _, werr := scale.ParseWorkload(file, head); werr == nil {
				return badInput("%s is a Workload: drydock scale --workload %s", file, file)
			}
		}
		return err
	}
	if len(list) != 1 {
		return badInput("%s has %d scenarios; drydock scale runs one", filepath.Base(file), len(list))
	}
	s, out := list[0], newOutput(&r, 1)
	if f.verify {
		err := r.runVerify(cmd.Context(), list, out)
		if cerr := out.close(); err == nil && cerr != nil {
			err = &codeError{exitInternal, cerr}
		}
		return err
	}
	rep, err := newScenarioReporter(f.report, s, f.command)
	if err != nil {
		return err
	}
	// From here on it is a run of drydock run, watched as a large one.
	pace := newPacer(target, len(s.NodeNames()), s.PodCount())
	show := newScaleProgress(f.stderr, f.progress)
	o := r.options()
	o.Loaded = time.Since(began)
	o.Attach = rep.attach
	o.Progress = func(p scenarios.Progress) {
		// The live heap grows with the run, so the pace is looked at again and again.
		pace.adjust()
		show.show(scale.Progress{
			Phase: "scenario", Now: p.Now, Until: p.Duration, Nodes: p.Nodes, Ready: p.Ready, Requests: p.Requests,
			Pods: scale.Pods{Pending: p.Pods["Pending"], Running: p.Pods["Running"], Succeeded: p.Pods["Succeeded"], Failed: p.Pods["Failed"]},
		})
	}
	res, err := scenarios.Run(cmd.Context(), s, o)
	show.close()
	// With --json the report's text would break the document.
	text := f.stdout
	if f.json {
		text = nil
	}
	rep.scenario(res)
	werr := rep.write(text, partial(res, err))
	// The verdicts come after the report's text: they are what a reader looks for at the end.
	out.end(s, res, err)
	if cerr := out.close(); werr == nil {
		werr = cerr
	}
	var v verdict
	v.add(res, err)
	switch {
	case res.Interrupted && err == nil:
		return &codeError{code: exitInterrupted}
	case werr != nil:
		return &codeError{exitInternal, werr}
	case err == nil && !f.judge(rep) && v.err() == nil:
		return &codeError{code: exitFailed}
	}
	return v.err()
}
