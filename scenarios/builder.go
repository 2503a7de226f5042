package scenarios

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Compile returns a scenario that was put together in Go as loading would: checked, with what is
// left out filled in, and with compiled expectations. Errors are LoadErrors; their places are in
// the scenario's YAML, which Scenario.YAML writes. Files that it names are relative to the
// working directory. Run compiles by itself what was not loaded.
func Compile(s *Scenario, opts LoadOptions) (*Scenario, error) {
	data, err := s.YAML()
	if err != nil {
		return nil, err
	}
	list, err := Parse(s.Metadata.Name+".yaml", data, opts)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Builder puts a scenario together, call after call. What is wrong is told by Build.
type Builder struct{ s Scenario }

// New begins a scenario of a name, which lasts 10 minutes unless Lasting says otherwise.
func New(name string) *Builder {
	return &Builder{Scenario{Metadata: Metadata{Name: name}}}
}

// Build checks the scenario. Errors are LoadErrors, as of a file.
func (b *Builder) Build() (*Scenario, error) { return Compile(&b.s, LoadOptions{}) }

// Scenario is what was put together so far, for what the builder has no method for.
func (b *Builder) Scenario() *Scenario { return &b.s }

// Lasting says how long it lasts.
func (b *Builder) Lasting(d time.Duration) *Builder { b.s.Spec.Duration = d; return b }

// Seed is that of everything that is drawn.
func (b *Builder) Seed(seed uint64) *Builder { b.s.Spec.Seed = seed; return b }

// Node adds a node of 4 CPUs and 16Gi, or of what capacity says.
func (b *Builder) Node(name string, capacity v1.ResourceList) *Builder {
	return b.Nodes(document.NodeGroup{Name: name, Capacity: capacity})
}

// Nodes adds groups of equal nodes.
func (b *Builder) Nodes(groups ...document.NodeGroup) *Builder {
	b.s.Spec.Nodes = append(b.s.Spec.Nodes, groups...)
	return b
}

// Program says what containers do; the first program that matches counts.
func (b *Builder) Program(match document.Match, does document.Behaviour) *Builder {
	b.s.Spec.Programs = append(b.s.Spec.Programs, document.Program{Match: match, Behaviour: does})
	return b
}

// Apply applies objects at a time. Their kinds are those of their types.
func (b *Builder) Apply(at time.Duration, objects ...runtime.Object) *Builder {
	a := &action.Apply{}
	for _, o := range objects {
		a.Objects = append(a.Objects, value.Object{Object: o})
	}
	return b.Do(at, a)
}

// Do has an action happen at a time: one of package action.
func (b *Builder) Do(at time.Duration, a action.Action) *Builder {
	b.s.Spec.Timeline = append(b.s.Spec.Timeline, document.Action{At: at, Does: a})
	return b
}

// By expects an expression to become true by a time.
func (b *Builder) By(t time.Duration, that string) *Builder {
	return b.Expect(document.Expectation{By: &value.Time{After: t}, That: that})
}

// At expects an expression to be true at a time.
func (b *Builder) At(t time.Duration, that string) *Builder {
	return b.Expect(document.Expectation{At: &value.Time{After: t}, That: that})
}

// AtEnd expects an expression to be true at the end.
func (b *Builder) AtEnd(that string) *Builder {
	return b.Expect(document.Expectation{At: &value.Time{End: true}, That: that})
}

// Always expects an expression to be true from a time on.
func (b *Builder) Always(from time.Duration, that string) *Builder {
	return b.Expect(document.Expectation{From: from, Always: that})
}

// Never expects an expression to be false from a time on.
func (b *Builder) Never(from time.Duration, that string) *Builder {
	return b.Expect(document.Expectation{From: from, Never: that})
}

// Expect adds expectations.
func (b *Builder) Expect(list ...document.Expectation) *Builder {
	b.s.Spec.Expect = append(b.s.Spec.Expect, list...)
	return b
}

// Pod is a pod of one container, in the namespace default, for builders.
func Pod(name, image string, command ...string) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: image, Command: command}}}}
	p.Name = name
	return p
}
