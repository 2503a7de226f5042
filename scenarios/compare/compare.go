package compare

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/result"
)

// Comparison is what two scenarios came to, run with the same seeds.
type Comparison struct {
	A, B Side
	// Version is that of who runs it, for JSON; "" is left out.
	Version string
	// Seeds are those of the runs, in their order.
	Seeds []uint64
	// SeedsText is how they were written, if they were; it is shown while all of them are there.
	SeedsText string
	// Differences are in what the scenarios' documents say.
	Differences []Difference
	// Warnings say why the figures may differ for other reasons than the
	// kubelets' configuration.
	Warnings []string
	// Interrupted means that not all runs are there, or not to their ends.
	Interrupted bool
}

// Side is one side of a comparison.
type Side struct {
	Scenario *document.Scenario
	// Set are the overrides, for the reader.
	Set []string
	// Runs are the results, with metrics, one for each seed.
	Runs []*result.Result
}

// Difference is a field that two documents do not agree on; "" is absent.
type Difference struct {
	Path string `json:"path"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// New finds the differences of two scenarios. The runs are the caller's to add.
func New(a, b *document.Scenario) *Comparison {
	c := &Comparison{A: Side{Scenario: a}, B: Side{Scenario: b}, Differences: differences(a, b)}
	// A difference of configuration is what was asked for, so it needs no
	// warning.
	var machines, workload []string
	for _, d := range c.Differences {
		switch part := partOf(d.Path); part {
		case "configuration":
		case "machines":
			machines = append(machines, d.Path)
		default:
			workload = append(workload, d.Path)
		}
	}
	if len(machines) > 0 {
		c.Warnings = append(c.Warnings, "A and B do not have the same machines: "+some(machines))
	}
	if len(workload) > 0 {
		c.Warnings = append(c.Warnings, "A and B do not have the same workload: "+some(workload))
	}
	return c
}

// KeepWhole drops the seeds for which a run is missing or was interrupted, and
// reports whether there were none. If nothing is left, the seeds that began on both
// sides stay. A warning says so.
func (c *Comparison) KeepWhole() bool {
	all := len(c.Seeds)
	kept := c.seedsWith(func(r *result.Result) bool { return r != nil && !r.Interrupted })
	if len(kept) == all {
		return true
	}
	c.Interrupted, c.SeedsText = true, ""
	warning := fmt.Sprintf("cut short: the figures are those of %d of %d seeds", len(kept), all)
	if len(kept) == 0 {
		kept = c.seedsWith(func(r *result.Result) bool { return r != nil })
		warning = "cut short: no run came to its end"
	}
	// Both sides keep the same seeds, since figures are compared seed by seed.
	keep := func(s *Side) {
		runs := lists.Map(kept, func(i int) *result.Result { return s.Runs[i] })
		s.Runs = runs
	}
	keep(&c.A)
	keep(&c.B)
	seeds := lists.Map(kept, func(i int) uint64 { return c.Seeds[i] })
	c.Seeds = seeds
	c.Warnings = append(c.Warnings, warning)
	return false
}

// seedsWith are the indices of the seeds for which both sides' runs are good.
func (c *Comparison) seedsWith(good func(*result.Result) bool) (out []int) {
	for i := range c.Seeds {
		if good(c.A.Runs[i]) && good(c.B.Runs[i]) {
			out = append(out, i)
		}
	}
	return out
}

// some names the first few of many.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// partOf says what a field is a part of: the configuration, the machines, or
// the workload. Only a difference of configuration is what a comparison is for:
// with other machines or another workload the figures say nothing of kubelets.
func partOf(path string) string {
	rest, node := strings.CutPrefix(path, "spec.nodes[")
	if !node {
		switch {
		case path == "spec.kubeletRestart" || strings.HasPrefix(path, "spec.kubeletRestart."):
			return "configuration"
		case path == "spec.nodes":
			return "machines"
		}
		return "workload"
	}
	// What is left is the field within the node, whatever the node's index.
	_, field, _ := strings.Cut(rest, "]")
	field = strings.TrimPrefix(field, ".")
	for _, f := range []string{"kubelet", "runtime"} {
		if field == f || strings.HasPrefix(field, f+".") || strings.HasPrefix(field, f+"[") {
			return "configuration"
		}
	}
	if strings.HasPrefix(field, "staticPods") {
		return "workload"
	}
	return "machines"
}

// differences compares two documents field by field, except what makes no
// difference to what happens: names, descriptions, expectations, the seed.
func differences(a, b *document.Scenario) []Difference {
	left, right := map[string]string{}, map[string]string{}
	flatten(a.Written(), "", left)
	flatten(b.Written(), "", right)
	// A field may be on one side only.
	paths := maps.Clone(left)
	maps.Copy(paths, right)
	var out []Difference
	for _, p := range decode.SortedKeys(paths) {
		if left[p] == right[p] || strings.HasPrefix(p, "metadata.") || strings.HasPrefix(p, "spec.expect[") || p == "spec.expect" || p == "spec.seed" {
			continue
		}
		out = append(out, Difference{p, left[p], right[p]})
	}
	return append(out, unseen(a, b, out)...)
}

// unseen are differences in files that the documents name: the documents can be
// equal to the letter and their files not.
func unseen(a, b *document.Scenario, told []Difference) []Difference {
	var out []Difference
	note := func(path string, same bool) {
		// A difference that a field of the documents shows need not be told
		// twice.
		known := slices.ContainsFunc(told, func(d Difference) bool { return strings.HasPrefix(d.Path, path) })
		if !same && !known {
			out = append(out, Difference{path, "(in " + a.Pos.File + ")", "(in " + b.Pos.File + ", with another content)"})
		}
	}
	note("spec.programs", reflect.DeepEqual(unplaced(a.Spec.Programs), unplaced(b.Spec.Programs)))
	// Where the timelines differ in length, flatten has told of it.
	for i := range min(len(a.Spec.Timeline), len(b.Spec.Timeline)) {
		x, okA := a.Spec.Timeline[i].Does.(action.Applier)
		y, okB := b.Spec.Timeline[i].Does.(action.Applier)
		if !okA || !okB {
			continue
		}
		// What can't be written counts as different: silence would say that it is
		// equal.
		left, errA := objectsJSON(x)
		right, errB := objectsJSON(y)
		note(fmt.Sprintf("spec.timeline[%d].%s", i, a.Spec.Timeline[i].Kind()), errA == nil && errB == nil && left == right)
	}
	return out
}

// unplaced are programs without where they are written.
func unplaced(list []document.Program) []document.Program {
	return lists.Map(list, func(p document.Program) document.Program {
		p.Pos = decode.Position{}
		return p
	})
}

// objectsJSON is what an action applies, to be compared.
func objectsJSON(a action.Applier) (string, error) {
	var b strings.Builder
	for _, o := range a.Applied() {
		data, err := text.JSON(o)
		if err != nil {
			return "", err
		}
		b.Write(data)
	}
	return b.String(), nil
}

// flatten notes each scalar of a document by its path, as --set writes it, so
// that a reader can turn one side into the other.
func flatten(n *yaml.Node, at string, into map[string]string) {
	switch n.Kind {
	case yaml.MappingNode:
		if len(n.Content) == 0 {
			into[at] = "{}"
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			next := at + "." + key
			if !decode.IsPlainKey(key) {
				next = fmt.Sprintf("%s[%q]", at, key)
			}
			flatten(n.Content[i+1], strings.TrimPrefix(next, "."), into)
		}
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			into[at] = "[]"
		}
		for i, e := range n.Content {
			flatten(e, fmt.Sprintf("%s[%d]", at, i), into)
		}
	default:
		// An empty string that is written differs from a field that is not set.
		if n.Value == "" && n.ShortTag() == "!!str" {
			into[at] = `""`
			return
		}
		into[at] = n.Value
	}
}

// spread is a figure over the seeds. Few seeds are run, so the least and the most
// say more than a deviation would.
type spread struct {
	Mean  float64 `json:"mean"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// spreadOf is the spread of a figure's values, one a seed.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := spread{Least: values[0], Most: values[0]}
	for _, v := range values {
		s.Mean += v
		s.Least, s.Most = min(s.Least, v), max(s.Most, v)
	}
	s.Mean /= float64(len(values))
	if s.Least == s.Most {
		s.Mean = s.Least // whatever the sum was rounded to
	}
	return s
}

// comparedFigure is a figure on both sides; diff is B - A seed by seed, better
// and worse count the seeds for which B is. A difference that has the same sign
// for every seed is one of the configurations, whatever the means are.
type comparedFigure struct {
	name, part    string
	in            result.Measure
	a, b, diff    spread
	better, worse int
}

// compare fills in the figure from the values of both sides, by seed.
func (f *comparedFigure) compare(a, b []float64) {
	f.a, f.b = spreadOf(a), spreadOf(b)
	var diffs []float64
	for i := range min(len(a), len(b)) {
		d := b[i] - a[i]
		diffs = append(diffs, d)
		switch {
		case d == 0:
		case (d > 0) == (f.in == result.Shared): // of all else less is better
			f.better++
		default:
			f.worse++
		}
	}
	f.diff = spreadOf(diffs)
	// It is set rather than averaged, so that it is exactly the difference of the
	// means that are shown.
	f.diff.Mean = f.b.Mean - f.a.Mean
}

// figures are those of both sides, in the order of Metrics.Figures; what one run
// has and another has not is 0 there. Parts are named by what happened, so that
// runs have different ones.
// A figure that first turns up in a later run was 0 in the runs before it, and
// one that is missing from the last runs is 0 in those: lists are filled up so
// that an index is a seed's on both sides.
func (c *Comparison) figures() []comparedFigure {
	type key struct{ name, part string }
	var order []comparedFigure
	index := map[key]int{}
	sides := [2]map[key][]float64{{}, {}}
	for i, s := range []*Side{&c.A, &c.B} {
		for k, r := range s.Runs {
			for _, f := range r.Metrics.Figures() {
				id := key{f.Name, f.Part}
				if _, ok := index[id]; !ok {
					index[id] = len(order)
					order = append(order, comparedFigure{name: f.Name, part: f.Part, in: f.In})
				}
				values := sides[i][id]
				for len(values) < k {
					values = append(values, 0)
				}
				sides[i][id] = append(values, f.Value)
			}
		}
	}
	for i := range order {
		f := &order[i]
		var values [2][]float64
		for k, s := range []*Side{&c.A, &c.B} {
			values[k] = sides[k][key{f.name, f.part}]
			for len(values[k]) < len(s.Runs) {
				values[k] = append(values[k], 0)
			}
		}
		f.compare(values[0], values[1])
	}
	return grouped(order)
}

// grouped puts parts behind the figure that they are parts of, by name.
func grouped(list []comparedFigure) []comparedFigure {
	var out []comparedFigure
	for _, f := range list {
		if f.part != "" {
			continue
		}
		out = append(out, f)
		parts := lists.Filter(list, func(p comparedFigure) bool { return p.name == f.name && p.part != "" })
		slices.SortFunc(parts, func(a, b comparedFigure) int { return strings.Compare(a.part, b.part) })
		out = append(out, parts...)
	}
	return out
}

// Passed reports whether every expectation held in every run. A comparison that
// was cut short has not passed: nobody knows how it would have ended.
func (c *Comparison) Passed() bool {
	return !c.Interrupted && c.A.failed() == 0 && c.B.failed() == 0
}

// failed counts the runs that did not pass.
func (s *Side) failed() int {
	return lists.Count(s.Runs, func(r *result.Result) bool { return !r.Passed })
}
