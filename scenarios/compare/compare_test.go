package compare

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/result"
	"github.com/drydock-sim/drydock/sim"
)

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		in     result.Measure
		want   string
	}{
		{[]float64{2}, result.Counted, "2"},
		{[]float64{2, 2, 2}, result.Counted, "2"},
		{[]float64{1, 2, 6}, result.Counted, "3 (1 to 6)"},
		{[]float64{1, 2}, result.Counted, "1.5 (1 to 2)"},
		{[]float64{60, 120}, result.Timed, "1m30s (1m to 2m)"},
		{[]float64{0.5, 1}, result.Shared, "75.00% (50.00% to 100.00%)"},
		{[]float64{2e9}, result.Sized, "2.0 GB"},
		{nil, result.Counted, "0"},
	} {
		if got := spreadOf(tt.values).text(tt.in); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.values, got, tt.want)
		}
	}
	if got := seedsText([]uint64{1, 2, 3, 7, 9, 10}); got != "1-3,7,9-10" {
		t.Errorf("seeds: %s", got)
	}
}

// outcome is a run with so many OOM kills and restarts.
func outcome(seed uint64, kills, restarts int64) *result.Result {
	m := &result.Metrics{Metrics: sim.Metrics{OOMKills: make([]sim.OOMKill, kills)}}
	if restarts > 0 {
		m.Restarts = []sim.PodRestarts{{Pod: "default/a", Restarts: restarts}}
	}
	return &result.Result{Seed: seed, Passed: true, Metrics: m}
}

func TestDifferencesSeedBySeed(t *testing.T) {
	c := &Comparison{Seeds: []uint64{1, 2, 3, 4}, A: Side{Scenario: &document.Scenario{}}, B: Side{Scenario: &document.Scenario{}}}
	for i, x := range [][4]int64{{3, 0, 5, 0}, {3, 1, 5, 2}, {3, 1, 7, 0}, {3, 1, 5, 0}} {
		c.A.Runs = append(c.A.Runs, outcome(uint64(i+1), x[0], x[1]))
		c.B.Runs = append(c.B.Runs, outcome(uint64(i+1), x[2], x[3]))
	}
	var out bytes.Buffer
	c.WriteText(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"OOM kills 3 5.5 (5 to 7) +2.5 (+2 to +4)",
		"container restarts 0.8 (0 to 1) 0.5 (0 to 2) -0.2 (-1 to +1)",
		"B does better than A in: container restarts (-0.2 for 2 of 4 seeds) B does worse than A in: OOM kills (+2.5 for 4 of 4 seeds)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, f := range c.figures() {
		if f.name == "container restarts" && (f.better != 2 || f.worse != 1) {
			t.Errorf("restarts: better %d, worse %d", f.better, f.worse)
		}
	}
}

func TestKeepWhole(t *testing.T) {
	cut := func(r *result.Result) *result.Result {
		r.Interrupted, r.Passed, r.Summary.Virtual = true, false, 90*time.Second
		return r
	}
	all := func(from uint64) (out []*result.Result) {
		for i := range uint64(3) {
			out = append(out, outcome(from+i, 0, 0))
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		change func(a, b []*result.Result)
		want   string // seeds
		text   string
	}{
		{"all", func(_, _ []*result.Result) {}, "[1 2 3]", "A: there are no expectations\nB: there are no expectations\n"},
		{"one missing", func(a, _ []*result.Result) { a[1] = nil }, "[1 3]", "warning: cut short: the figures are those of 2 of 3 seeds\n"},
		{"one cut", func(_, b []*result.Result) { cut(b[2]) }, "[1 2]", "warning: cut short: the figures are those of 2 of 3 seeds\n"},
		{"none whole", func(a, b []*result.Result) { a[0], a[2] = nil, nil; cut(b[1]) }, "[2]", "A: there are no expectations\nB: cut short\n    seed 2: interrupted at 1m30s\n"},
		{"none", func(a, _ []*result.Result) { clear(a) }, "[]", ""},
	} {
		c := &Comparison{Seeds: []uint64{1, 2, 3}, A: Side{Scenario: &document.Scenario{}, Runs: all(1)}, B: Side{Scenario: &document.Scenario{}, Runs: all(1)}}
		tt.change(c.A.Runs, c.B.Runs)
		whole := c.KeepWhole()
		if fmt.Sprint(c.Seeds) != tt.want || whole != (tt.name == "all") || c.Interrupted == whole || c.Passed() != whole {
			t.Errorf("%s: seeds %v, whole %v, interrupted %v, passed %v", tt.name, c.Seeds, whole, c.Interrupted, c.Passed())
		}
		if len(c.A.Runs) != len(c.Seeds) || len(c.B.Runs) != len(c.Seeds) {
			t.Errorf("%s: %d and %d runs", tt.name, len(c.A.Runs), len(c.B.Runs))
		}
		if tt.text == "" {
			continue
		}
		var out bytes.Buffer
		c.WriteText(&out)
		if !strings.Contains(out.String(), tt.text) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.text, out.String())
		}
		if judged := strings.Contains(out.String(), "neither better nor worse"); judged == (tt.name == "none whole") {
			t.Errorf("%s: judged %v:\n%s", tt.name, judged, out.String())
		}
	}
}

func TestUndecidedIsNotHeld(t *testing.T) {
	for _, tt := range []struct {
		outcomes []expect.Outcome
		want     string
	}{
		{[]expect.Outcome{expect.Held, expect.Held}, "A: 2 expectations held\n"},
		{[]expect.Outcome{expect.Held, expect.Undecided}, "A: 1 expectation held, 1 not decided by then\n"},
		{[]expect.Outcome{expect.Undecided, expect.Undecided}, "A: 2 expectations, not decided by then\n"},
	} {
		r := outcome(1, 0, 0)
		for _, o := range tt.outcomes {
			r.Verdicts = append(r.Verdicts, result.Verdict{Verdict: expect.Verdict{Outcome: o}})
		}
		s := Side{Scenario: &document.Scenario{Spec: document.Spec{Expect: make([]document.Expectation, len(tt.outcomes))}}, Runs: []*result.Result{r}}
		var out bytes.Buffer
		s.writeVerdicts(&out, "A")
		if out.String() != tt.want {
			t.Errorf("%v: %q, want %q", tt.outcomes, out.String(), tt.want)
		}
	}
}

// TestManyPodsAreGrouped compares more pods than a text shows one by one.
func TestManyPodsAreGrouped(t *testing.T) {
	run := func(pods int, ready time.Duration) *result.Result {
		r := outcome(1, 0, 0)
		add := func(name string, ready time.Duration) {
			r.Metrics.Availability = append(r.Metrics.Availability, sim.Availability{Workload: sim.Workload{Kind: "Pod", Name: name}, QoS: "Burstable", Ready: ready, Asked: 100 * time.Second})
		}
		for i := range pods {
			name := fmt.Sprintf("default/job-%d", i)
			add(name, ready)
			r.Metrics.Evictions = append(r.Metrics.Evictions, sim.PodEnd{Pod: name, QoS: "Burstable", Reason: "memory"})
		}
		add("default/still-1", 100*time.Second)
		add("default/web", ready)
		return r
	}
	c := &Comparison{Seeds: []uint64{1}, A: Side{Scenario: &document.Scenario{}}, B: Side{Scenario: &document.Scenario{}}}
	c.A.Runs, c.B.Runs = []*result.Result{run(40, 50*time.Second)}, []*result.Result{run(35, 75*time.Second)}
	var out bytes.Buffer
	c.WriteText(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"default/job-* (40 / 35) Burstable 40 / 35 0 / 0 0 / 0 50.00% / 75.00%",
		"default/web Burstable 0 / 0 0 / 0 0 / 0 50.00% / 75.00%",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "still") || strings.Contains(text, "more pods") {
		t.Errorf("to some nothing happened:\n%s", out.String())
	}
	if got := len(c.pods()); got != 41 {
		t.Errorf("%d pods in JSON", got)
	}
}

// TestWorkloadsAreCompared: a workload's pods have other names on each side and are one line, and
// who keeps the replicas ready for longer does better.
func TestWorkloadsAreCompared(t *testing.T) {
	web := sim.Workload{Kind: "Deployment", Name: "default/web"}
	run := func(suffix string, evictions int, ready time.Duration) *result.Result {
		r := outcome(1, 0, 0)
		for i := range evictions {
			r.Metrics.Evictions = append(r.Metrics.Evictions, sim.PodEnd{Pod: fmt.Sprintf("default/web-%s%d", suffix, i), Workload: web, QoS: "Burstable", Reason: "memory"})
		}
		r.Metrics.Availability = []sim.Availability{{Workload: web, QoS: "Burstable", Ready: ready, Asked: 600 * time.Second}}
		return r
	}
	c := &Comparison{Seeds: []uint64{1}, A: Side{Scenario: &document.Scenario{}}, B: Side{Scenario: &document.Scenario{}}}
	c.A.Runs, c.B.Runs = []*result.Result{run("x", 3, 540*time.Second)}, []*result.Result{run("y", 1, 594*time.Second)}
	var out bytes.Buffer
	c.WriteText(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Deployment default/web Burstable 3 / 1 0 / 0 0 / 0 90.00% / 99.00%", "B does better than A in: evictions (-2), pod availability (+9.00%)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "B does worse") || len(c.pods()) != 1 {
		t.Errorf("%d workloads:\n%s", len(c.pods()), out.String())
	}
}
