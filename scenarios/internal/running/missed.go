package running

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// missed has the objects that expectations name and that were not there so far.
type missed struct {
	refs []document.Reference
	// there: which of them have been there; left is how many have not.
	there []bool
	left  int
	// named are those that an object is one of.
	named map[missedKey][]int
}

// missedKey is an object by its kind in the API.
type missedKey struct {
	kind            apiserver.Kind
	namespace, name string
}

// note takes an object that is there. Once all have been there that costs nothing.
func (m *missed) note(k missedKey) {
	if m.left == 0 {
		return
	}
	for _, i := range m.named[k] {
		if !m.there[i] {
			m.there[i] = true
			m.left--
		}
	}
}

// watchNamed begins to look for the objects that expectations name.
func (p *performance) watchNamed() {
	m := &missed{named: map[missedKey][]int{}}
	p.missed = m
	var kinds []apiserver.Kind
	for i := range p.s.Spec.Expect {
		for _, ref := range p.s.Spec.Expect[i].References {
			keys := p.keysOf(ref.ObjectRef)
			if len(keys) == 0 {
				continue
			}
			for _, k := range keys {
				m.named[k] = append(m.named[k], len(m.refs))
				if !slices.Contains(kinds, k.kind) {
					kinds = append(kinds, k.kind)
				}
			}
			m.refs = append(m.refs, ref)
		}
	}
	m.left, m.there = len(m.refs), make([]bool, len(m.refs))
	for k := range m.named { //drydock:unordered marks what there is from the start
		if p.cluster.Store().Lookup(k.kind, k.namespace, k.name) != nil {
			m.note(k)
		}
	}
	if m.left > 0 {
		p.cluster.Store().OnChange(func(c apiserver.Change) {
			if m.left > 0 && c.Old == nil {
				m.note(missedKey{c.Kind, c.New.GetNamespace(), c.New.GetName()})
			}
		}, kinds...)
	}
}

// keysOf are what an expectation's name may mean: that of events() is about anything. A node
// that the scenario has may well stay out of the API.
func (p *performance) keysOf(o expect.ObjectRef) []missedKey {
	switch o.Kind {
	case expect.KindNode:
		if slices.Contains(p.s.NodeNames(), o.Name) {
			return nil
		}
	case expect.KindEventTarget:
		if slices.Contains(p.s.NodeNames(), o.Name) {
			return nil
		}
		var out []missedKey
		for k, api := range p.state.kinds { //drydock:unordered all of them are looked at
			if k != expect.KindLease && k != expect.KindEvent {
				out = append(out, missedKey{api.name, o.Namespace, o.Name})
			}
		}
		return out
	}
	return []missedKey{{p.state.kinds[o.Kind].name, o.Namespace, o.Name}}
}

// warnOfMissed warns, once each, of what the scenario names and the run never had.
func (p *performance) warnOfMissed() {
	for _, do := range p.atEnd {
		do()
	}
	p.warnOfPrograms()
	p.journal.warnOfOnly()
	for i, ref := range p.missed.refs {
		if !p.missed.there[i] {
			p.warnOnce(document.MissingObject(ref))
		}
	}
}

// warnOfPrograms warns of programs that no container took.
func (p *performance) warnOfPrograms() {
	taken := make([]bool, len(p.s.Spec.Programs))
	for _, n := range p.cluster.Nodes() {
		for i, did := range n.Runtime().Matched() {
			taken[i] = taken[i] || did
		}
	}
	for i := range taken {
		if !taken[i] {
			p.warnOnce(document.IdleProgram(fmt.Sprintf("%v", p.s.Spec.Programs[i].Pos)))
		}
	}
}

// warnOnce warns unless loading has said so, perhaps with what was meant.
func (p *performance) warnOnce(text string) {
	if !slices.ContainsFunc(p.s.Notices, func(n string) bool { return strings.HasPrefix(n, text) }) {
		p.journal.warn(text)
	}
}
