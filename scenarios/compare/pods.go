package compare

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim"
)

// podFigures is how the pods of a workload, or those of one name, fared on one side: means over
// the seeds, the availability's over the runs that had such a pod.
type podFigures struct {
	Runs         int     `json:"runs"`
	Evictions    float64 `json:"evictions"`
	OOMKills     float64 `json:"oomKills"`
	Restarts     float64 `json:"restarts"`
	Availability float64 `json:"availability"`

	ready, asked float64 // seconds, of all runs
}

// divide makes means of sums. Availability is that of the runs which had the pod:
// in the others it was not unavailable but unknown.
func (f *podFigures) divide(runs int) {
	n := float64(max(runs, 1))
	f.Evictions, f.OOMKills, f.Restarts = f.Evictions/n, f.OOMKills/n, f.Restarts/n
	f.Availability /= float64(max(f.Runs, 1))
}

// comparedPod is how the pods of a workload, or, of kind Pod, those of one name, fared on both
// sides: the names of a workload's pods are drawn.
type comparedPod struct {
	Kind string     `json:"kind"`
	Pod  string     `json:"pod"`
	QoS  string     `json:"qos,omitempty"`
	A    podFigures `json:"a"`
	B    podFigures `json:"b"`

	// happened is set if something was done to it on a side: then it is shown even
	// if both sides did the same.
	happened bool
}

// differ reports whether a pod fared differently enough to show. That one was on
// one side only is not enough: pods that come and go do so at other times.
func (p *comparedPod) differ() bool {
	d := p.A.Availability - p.B.Availability
	if p.A.Runs == 0 || p.B.Runs == 0 {
		d = 0
	}
	return p.A.Evictions != p.B.Evictions || p.A.OOMKills != p.B.OOMKills || p.A.Restarts != p.B.Restarts || d > 0.001 || d < -0.001
}

// weight puts the pods first whose lots differ most: what happened to them counts
// before how long they were ready.
func (p *comparedPod) weight() float64 {
	w := 10 * (math.Abs(p.A.Evictions-p.B.Evictions) + math.Abs(p.A.OOMKills-p.B.OOMKills) + math.Abs(p.A.Restarts-p.B.Restarts))
	if p.A.Runs > 0 && p.B.Runs > 0 {
		w += math.Abs(p.A.Availability - p.B.Availability)
	}
	return math.Round(1000 * w)
}

// pods are those that something happened to on a side, or that were not as
// available on the one as on the other: by name.
func (c *Comparison) pods() []comparedPod {
	return slices.DeleteFunc(c.allPods(), func(p comparedPod) bool { return !p.happened && !p.differ() })
}

// title is the pod's name, or the workload's with its kind.
func (p *comparedPod) title() string {
	if p.Kind == aPod {
		return p.Pod
	}
	return p.Kind + " " + p.Pod
}

// aPod is the kind of a pod that is no workload's.
const aPod = "Pod"

// allPods are all workloads and pods by themselves that there were, by name. Names are what the
// sides have in common: UIDs are drawn.
func (c *Comparison) allPods() []comparedPod {
	all := map[sim.Workload]*comparedPod{}
	find := func(w sim.Workload, pod string) *comparedPod {
		if w.Name == "" {
			w = sim.Workload{Kind: aPod, Name: pod}
		}
		if all[w] == nil {
			all[w] = &comparedPod{Kind: w.Kind, Pod: w.Name}
		}
		return all[w]
	}
	for i, s := range []*Side{&c.A, &c.B} {
		// happened finds a pod that something happened to, which is shown even if the sides agree.
		happened := func(w sim.Workload, pod string) *podFigures {
			p := find(w, pod)
			p.happened = true
			return p.side(i)
		}
		for _, r := range s.Runs {
			m := r.Metrics
			for _, e := range m.Evictions {
				happened(e.Workload, e.Pod).Evictions++
			}
			for _, l := range [][]sim.PodEnd{m.Preemptions, m.Shutdowns, m.Rejections} {
				for _, e := range l {
					happened(e.Workload, e.Pod)
				}
			}
			for _, k := range m.OOMKills {
				happened(k.Workload, k.Pod).OOMKills++
			}
			for _, x := range m.Restarts {
				happened(x.Workload, x.Pod).Restarts += float64(x.Restarts)
			}
			for _, a := range m.Availability {
				p := find(a.Workload, "")
				p.QoS = string(a.QoS)
				// Of what was never wanted there is no availability, not one of 0.
				if a.Asked > 0 {
					f := p.side(i)
					f.Runs++
					f.ready, f.asked = f.ready+a.Ready.Seconds(), f.asked+a.Asked.Seconds()
					f.Availability += a.Ready.Seconds() / a.Asked.Seconds()
				}
			}
		}
	}
	var out []comparedPod
	for _, p := range all { //drydock:unordered sorted below
		p.A.divide(len(c.A.Runs))
		p.B.divide(len(c.B.Runs))
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b comparedPod) int { return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// side returns A's figures or B's.
func (p *comparedPod) side(i int) *podFigures {
	if i == 0 {
		return &p.A
	}
	return &p.B
}

// numbered finds what tells apart the pods of a template or of a StatefulSet.
var numbered = regexp.MustCompile(`-[0-9]+$`)

// podGroups puts the pods together whose names differ by the number at their end,
// as those of a template do. What happened to them is added up, and their
// availability is that of all.
func (c *Comparison) podGroups() []comparedPod {
	groups, counts := map[string]*comparedPod{}, map[string]*[2]int{}
	for _, p := range c.allPods() {
		if p.Kind == aPod {
			p.Pod = numbered.ReplaceAllString(p.Pod, "-*")
		}
		name := p.title()
		g := groups[name]
		if g == nil {
			g = &comparedPod{Kind: p.Kind, Pod: p.Pod, QoS: p.QoS}
			groups[name], counts[name] = g, &[2]int{}
		}
		// Pods of one template share a class; those that only share a name may
		// not.
		if g.QoS != p.QoS {
			g.QoS = "several"
		}
		g.happened = g.happened || p.happened
		g.A.add(&p.A)
		g.B.add(&p.B)
		counts[name][0] += p.A.Runs
		counts[name][1] += p.B.Runs
	}
	var out []comparedPod
	for _, name := range decode.SortedKeys(groups) {
		g := groups[name]
		// A group's availability goes by time, so that short-lived pods count for
		// less. The bound keeps a group that nobody asked for at 0 rather than
		// NaN.
		g.A.Availability, g.B.Availability = g.A.ready/max(g.A.asked, 1e-9), g.B.ready/max(g.B.asked, 1e-9)
		if !g.happened && !g.differ() {
			continue
		}
		// The counts are pods per run, A's and B's.
		if strings.HasSuffix(name, "-*") {
			a, b := counts[name][0]/max(len(c.A.Runs), 1), counts[name][1]/max(len(c.B.Runs), 1)
			g.Pod += fmt.Sprintf(" (%d / %d)", a, b)
		}
		out = append(out, *g)
	}
	return out
}

// add puts another pod's figures to these. That a run had one of them is counted
// once.
func (f *podFigures) add(x *podFigures) {
	f.Runs = max(f.Runs, x.Runs)
	f.Evictions, f.OOMKills, f.Restarts = f.Evictions+x.Evictions, f.OOMKills+x.OOMKills, f.Restarts+x.Restarts
	f.ready, f.asked = f.ready+x.ready, f.asked+x.asked
}
