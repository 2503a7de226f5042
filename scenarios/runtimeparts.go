package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/fakecri"
)

// RuntimeParts are the parts of a scenario that a container runtime can have
// on its own, for the commands that run one.
type RuntimeParts struct {
	Images   []fakecri.Image
	Programs []fakecri.Program
	Faults   []fakecri.Fault
}

// The names of RuntimeParts in files.
const (
	partImages   = "images"
	partPrograms = "programs"
	partFaults   = "faults"
)

// ParseImages reads a catalogue: a list of images as in a scenario's
// spec.images, a mapping that has it as images, or a scenario.
func ParseImages(file string, data []byte) ([]fakecri.Image, error) {
	parts, err := parseParts(file, data, partImages)
	return parts.Images, err
}

// ParsePrograms reads what containers do: a list of programs as in a scenario's
// spec.programs, a mapping that has it as programs, or a scenario.
func ParsePrograms(file string, data []byte) ([]fakecri.Program, error) {
	parts, err := parseParts(file, data, partPrograms)
	return parts.Programs, err
}

// ParseFaults reads faults of a container runtime: a list, or a mapping that
// has it as faults, of what a scenario's action has as fault.cri. Each may
// also be written as `cri: {...}`, or as an action, `{at: 10s, fault: {cri:
// {...}}}`, whose time counts from when the faults are set. A single fault
// needs no list.
func ParseFaults(file string, data []byte) ([]fakecri.Fault, error) {
	parts, err := parseParts(file, data, partFaults)
	return parts.Faults, err
}

// ReadPart reads a file for the functions above, up to 32 MiB.
func ReadPart(file string) ([]byte, error) { return readFile(file) }

// parseParts puts what the file has into a scenario, so that it is decoded and
// judged like one.
func parseParts(file string, data []byte, what string) (RuntimeParts, error) {
	l := &loader{types: map[reflect.Type]*structType{}, sets: map[*yaml.Node]string{}}
	d := &decoder{l: l, file: file}
	docs := l.parseYAML(file, data)
	if len(docs) == 0 && len(l.errs) == 0 {
		return RuntimeParts{}, nil // an empty list
	}
	var out RuntimeParts
	for _, doc := range docs {
		list := d.part(doc, what)
		if list == nil {
			continue
		}
		s, w := d.wrapped(doc, list, what)
		before := len(l.errs)
		d.value(w, &path{}, reflect.ValueOf(s).Elem())
		v := &validator{d: d, doc: w, s: s, before: before}
		v.parts()
		out.Images = append(out.Images, fakeImages(s.Spec.Images)...)
		out.Programs = append(out.Programs, fakePrograms(s.Spec.Programs)...)
		for i := range s.Spec.Timeline {
			if a := &s.Spec.Timeline[i]; a.Fault != nil && a.Fault.CRI != nil {
				f := fakeFault(a.Fault.CRI)
				f.From = a.At
				out.Faults = append(out.Faults, f)
			}
		}
	}
	if len(l.errs) > 0 {
		for _, e := range l.errs {
			e.Path = partPath(e.Path)
		}
		return RuntimeParts{}, l.errs.sorted()
	}
	return out, nil
}

// parts judges what parseParts has put into the scenario.
func (v *validator) parts() {
	for _, e := range v.d.l.errs[v.before:] {
		v.bad = append(v.bad, e.Path)
	}
	for i := range v.s.Spec.Images {
		v.image(i)
	}
	for i := range v.s.Spec.Programs {
		v.program(fmt.Sprintf("spec.programs[%d]", i), &v.s.Spec.Programs[i])
	}
	for i := range v.s.Spec.Timeline {
		at := fmt.Sprintf("spec.timeline[%d].fault", i)
		switch f := v.s.Spec.Timeline[i].Fault; {
		case f == nil:
		case f.CRI == nil && (f.API != nil || f.Partition != nil):
			v.errorf(at, "a container runtime has faults of cri only")
		default:
			v.fault(at, f)
		}
	}
}

// partPath is a path in the scenario that parseParts makes as it is in the file.
func partPath(p string) string {
	if rest, ok := strings.CutPrefix(p, "spec.timeline"); ok {
		rest = strings.Replace(rest, ".fault.cri", "", 1)
		return partFaults + strings.Replace(rest, ".fault", "", 1)
	}
	return strings.TrimPrefix(p, "spec.")
}

// part returns the list in a document, or nil if there is none.
func (d *decoder) part(doc *yaml.Node, what string) *yaml.Node {
	root := &path{}
	if doc.Kind == yaml.MappingNode && lookup(doc, "kind") != nil && lookup(doc, "spec") != nil && what != partFaults {
		return lookup(lookup(doc, "spec"), what) // a scenario
	}
	if doc.Kind == yaml.SequenceNode {
		return doc
	}
	if doc.Kind != yaml.MappingNode {
		d.mismatch(doc, root, "a list of "+what)
		return nil
	}
	k, list := entry(doc, what)
	if k == nil && what == partFaults {
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: doc.Line, Column: doc.Column, Content: []*yaml.Node{doc}}
	}
	if k == nil {
		d.errorf(doc, root, "want a list of %s, or %s: with one", what, what)
		return nil
	}
	for i := 0; i < len(doc.Content); i += 2 {
		if o := doc.Content[i]; o != k {
			d.errorf(o, root.field(o.Value), "unknown field %q beside %s", short(o.Value), what)
			return nil
		}
	}
	if list.Kind != yaml.SequenceNode {
		d.mismatch(list, root.field(what), "a list")
		return nil
	}
	return list
}

// wrapped makes a scenario of a list.
func (d *decoder) wrapped(doc, list *yaml.Node, what string) (*Scenario, *yaml.Node) {
	s := &Scenario{Pos: d.pos(doc)}
	if what == partFaults {
		actions := *list
		actions.Content = nil
		for _, n := range list.Content {
			actions.Content = append(actions.Content, asAction(n))
		}
		list, what = &actions, "timeline"
	}
	name := mappingOf(doc, "name", text(doc, "runtime"))
	spec := mappingOf(list, what, list)
	spec.Content = append(spec.Content, text(doc, "nodes"),
		&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: doc.Line, Column: doc.Column, Content: []*yaml.Node{mappingOf(doc, "name", text(doc, "node"))}})
	w := mappingOf(doc, "apiVersion", text(doc, APIVersion))
	w.Content = append(w.Content, text(doc, "kind"), text(doc, Kind), text(doc, "metadata"), name, text(doc, "spec"), spec)
	return s, w
}

// asAction is an entry of a list of faults as an action of a timeline.
func asAction(n *yaml.Node) *yaml.Node {
	var out yaml.Node
	switch {
	case lookup(n, "fault") != nil:
		out = *n
		out.Content = slices.Clone(n.Content)
	case lookup(n, "cri") != nil, lookup(n, "api") != nil, lookup(n, "partition") != nil:
		out = *mappingOf(n, "fault", n)
	default:
		out = *mappingOf(n, "fault", mappingOf(n, "cri", n))
	}
	if lookup(&out, "at") == nil {
		out.Content = append(out.Content, text(n, "at"), text(n, "0s"))
	}
	return &out
}

// mappingOf returns a mapping of one key, at the place of a node.
func mappingOf(at *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column, Content: []*yaml.Node{text(at, key), value}}
}

func text(at *yaml.Node, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: at.Line, Column: at.Column}
}
