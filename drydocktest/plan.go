package drydocktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Plan is what goes wrong in one run of an exploration.
type Plan struct {
	Seed    uint64   `json:"seed"`
	Mishaps []Mishap `json:"mishaps"`
}

// Mishap is one thing that goes wrong.
type Mishap struct {
	// Kind is which, of mishapKinds.
	Kind string `json:"kind"`
	// At is when, after the body began. Of crashes at a write it is from when on writes are
	// counted.
	At time.Duration `json:"at"`
	// For is how long it lasts.
	For time.Duration `json:"for,omitempty"`
	// On is the node, or the resource, that it hits.
	On string `json:"on,omitempty"`
	// Write is which write, of those from At on, a crash comes at: 1 is the first.
	Write int `json:"write,omitempty"`
}

// String is the mishap in a few words.
func (m Mishap) String() string {
	out := fmt.Sprintf("%v %s", m.At, m.Kind)
	if m.Write > 0 {
		out += fmt.Sprintf(" %d", m.Write)
	}
	if m.On != "" {
		out += " (" + m.On + ")"
	}
	if m.For > 0 {
		out += fmt.Sprintf(" for %v", m.For)
	}
	return out
}

// mishapKind is a kind of mishap: how one is drawn, and what it does. lasts bounds how
// long it takes.
type mishapKind struct {
	name     string
	min, max time.Duration
	on       func(e *Exploration, c *Cluster) []string // what it may hit
	all      bool                                      // or everything at once
	crash    bool                                      // at a write
	do       func(e *Exploration, c *Cluster, m Mishap)
}

func onNodes(_ *Exploration, c *Cluster) []string { return c.nodeNames }

func onResources(e *Exploration, _ *Cluster) []string { return e.Resources }

// mishapKinds are all kinds. Their order is part of what a seed means.
var mishapKinds = []mishapKind{
	{name: "crash", do: func(e *Exploration, c *Cluster, m Mishap) {
		if p := c.proc(e.Process); p != nil && p.life.Load().clients.Load() > 0 {
			c.Crash(e.Process)
		}
	}},
	{name: "crash before write", crash: true, do: func(e *Exploration, c *Cluster, m Mishap) { c.killAtWrite(e.Process, m.Write, false) }},
	{name: "crash after write", crash: true, do: func(e *Exploration, c *Cluster, m Mishap) { c.killAtWrite(e.Process, m.Write, true) }},
	{name: "stale cache", min: 5 * time.Second, max: 2 * time.Minute, on: onResources, all: true, do: func(e *Exploration, c *Cluster, m Mishap) {
		c.API().Fault(Fault{Client: e.Client, Verb: "watch", Resource: m.On, Latency: m.For, For: m.For})
	}},
	{name: "watches break", on: onResources, all: true, do: func(e *Exploration, c *Cluster, m Mishap) {
		c.API().Forget()
		c.API().BreakWatches(e.Client, m.On)
	}},
	{name: "answers lost", min: time.Second, max: 20 * time.Second, on: onResources, all: true, do: func(e *Exploration, c *Cluster, m Mishap) {
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			c.API().Fault(Fault{Client: e.Client, Verb: verb, Resource: m.On, LoseAnswer: true, Probability: 0.5, For: m.For})
		}
	}},
	{name: "errors", min: time.Second, max: time.Minute, on: onResources, all: true, do: func(e *Exploration, c *Cluster, m Mishap) {
		c.API().Fault(Fault{Client: e.Client, Resource: m.On, Code: 500, Probability: 0.5, For: m.For})
	}},
	{name: "conflicts", min: time.Second, max: time.Minute, on: onResources, all: true, do: func(e *Exploration, c *Cluster, m Mishap) {
		for _, verb := range []string{"update", "patch"} {
			c.API().Fault(Fault{Client: e.Client, Verb: verb, Resource: m.On, Code: 409, Probability: 0.5, For: m.For})
		}
	}},
	{name: "slow API", min: 5 * time.Second, max: time.Minute, do: func(e *Exploration, c *Cluster, m Mishap) {
		c.API().Fault(Fault{Client: e.Client, Latency: 2 * time.Second, For: m.For})
	}},
	{name: "partition", min: 5 * time.Second, max: 2 * time.Minute, do: func(e *Exploration, c *Cluster, m Mishap) { c.API().Partition(e.Client, m.For) }},
	{name: "power cut", min: time.Minute, max: 10 * time.Minute, on: onNodes, do: func(_ *Exploration, c *Cluster, m Mishap) { c.Node(m.On).PowerCut(m.For) }},
	{name: "node partition", min: time.Minute, max: 10 * time.Minute, on: onNodes, do: func(_ *Exploration, c *Cluster, m Mishap) { c.Node(m.On).Partition(m.For) }},
}

// maxMishaps is how many a plan has at most, maxWrite at which write a crash comes at most.
const (
	maxMishaps = 5
	maxWrite   = 12
)

// draw makes the plan of a seed: some kinds, and some mishaps of them.
func (e *Exploration) draw(seed uint64, c *Cluster) *Plan {
	n := uint64(0)
	below := func(bound int) int {
		n++
		return int(loop.Hash(seed, []string{"explore"}, n) % uint64(bound))
	}
	var kinds []*mishapKind
	for i := range mishapKinds {
		k := &mishapKinds[i]
		if below(3) == 0 && (k.on == nil || len(k.on(e, c)) > 0) {
			kinds = append(kinds, k)
		}
	}
	p := &Plan{Seed: seed}
	if len(kinds) == 0 {
		kinds = append(kinds, &mishapKinds[below(3)])
	}
	for range 1 + below(maxMishaps) {
		k := kinds[below(len(kinds))]
		m := Mishap{Kind: k.name, At: time.Duration(below(int(e.Within)))}
		if k.on != nil {
			list := k.on(e, c)
			m.On = list[below(len(list))]
			if k.all && below(2) == 0 {
				m.On = "" // every resource
			}
		}
		if k.max > 0 {
			m.For = (k.min + time.Duration(below(int(k.max-k.min)))).Round(time.Millisecond)
		}
		if k.crash {
			m.Write = 1 + below(maxWrite)
		}
		p.Mishaps = append(p.Mishaps, m)
	}
	slices.SortStableFunc(p.Mishaps, func(a, b Mishap) int { return int(a.At - b.At) })
	return p
}

// String lists what goes wrong.
func (p *Plan) String() string {
	var out []string
	for _, m := range p.Mishaps {
		out = append(out, m.String())
	}
	return fmt.Sprintf("seed %d: %s", p.Seed, strings.Join(out, "; "))
}

// perform has what is planned go wrong. It returns when the last mishap is over.
func (p *Plan) perform(t *testing.T, e *Exploration, c *Cluster) {
	began, over := time.Now(), time.Now()
	for _, m := range p.Mishaps {
		i := slices.IndexFunc(mishapKinds, func(k mishapKind) bool { return k.name == m.Kind })
		if i < 0 {
			t.Errorf("drydocktest: there is no mishap %q", m.Kind)
			return
		}
		time.Sleep(time.Until(began.Add(m.At)))
		mishapKinds[i].do(e, c, m)
		if end := time.Now().Add(m.For); end.After(over) {
			over = end
		}
	}
	time.Sleep(time.Until(over))
}
