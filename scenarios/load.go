package scenarios

import (
	"fmt"
	"io"
	"os"
	"reflect"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/expect"
)

// LoadOptions say how scenarios are loaded. The zero value loads files as they
// are.
type LoadOptions struct {
	// Set overrides parts of the documents: `spec.nodes[*].count=5`, see
	// docs/scenarios.md. They are applied in their order.
	Set []string
	// ValidateObject says what the API would refuse of an object of a
	// manifest; it gets a copy. Nil means what the simulated API refuses.
	ValidateObject func(runtime.Object) field.ErrorList
	// ValidateKubelet says what a kubelet would refuse of its configuration.
	// It gets a copy. Nil means what the simulated kubelet refuses.
	ValidateKubelet func(*kubeletconfig.KubeletConfiguration) field.ErrorList
	// ReadFile reads files; nil means from disk, up to 32 MiB each.
	ReadFile func(name string) ([]byte, error)
	// Compiler compiles the expectations; nil means a new one. One compiler
	// may serve many loads, one at a time.
	Compiler *expect.Compiler
}

// Load reads a file of one or more scenarios. What is wrong comes back as
// LoadErrors, all of it at once.
func Load(file string, opts LoadOptions) ([]*Scenario, error) {
	if opts.ReadFile == nil {
		opts.ReadFile = readFile
	}
	data, err := opts.ReadFile(file)
	if err != nil {
		return nil, LoadErrors{{Message: oneLine(fmt.Sprintf("cannot read the scenario: %v", err))}}
	}
	return Parse(file, data, opts)
}

// Parse is Load for a scenario's text; files that it names are relative to
// that of the given name.
func Parse(file string, data []byte, opts LoadOptions) ([]*Scenario, error) {
	if opts.ReadFile == nil {
		opts.ReadFile = readFile
	}
	if opts.ValidateObject == nil {
		opts.ValidateObject = refusedByAPI
	}
	if opts.ValidateKubelet == nil {
		opts.ValidateKubelet = refusedByKubelet
	}
	l := &loader{opts: opts, types: map[reflect.Type]*structType{}, sets: map[*yaml.Node]string{}}
	if l.opts.Compiler == nil {
		c, err := expect.NewCompiler()
		if err != nil {
			return nil, err
		}
		l.opts.Compiler = c
	}
	var out []*Scenario
	docs := l.parseYAML(file, data)
	if len(docs) == 0 && len(l.errs) == 0 {
		l.errs = append(l.errs, &LoadError{Pos: Position{File: file}, Message: "there is no scenario in this file"})
	}
	names := map[string]int{}
	for _, doc := range docs {
		d := &decoder{l: l, file: file}
		l.override(d, doc)
		s := d.scenario(doc, data)
		if s == nil {
			continue
		}
		if line := names[s.Metadata.Name]; line > 0 {
			d.errorf(find(doc, "metadata.name"), (&path{}).field("metadata").field("name"), "the scenario on line %d is called %q too", line, s.Metadata.Name)
		}
		names[s.Metadata.Name] = doc.Line
		out = append(out, s)
	}
	if len(l.errs) > 0 {
		return nil, l.errs.sorted()
	}
	return out, nil
}

// maxFile bounds the size of the files that are read.
const maxFile = 32 << 20

// readFile is os.ReadFile that gives up on what is too large, or without end.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
	}
	return data, err
}

type loader struct {
	opts    LoadOptions
	errs    LoadErrors
	types   map[reflect.Type]*structType
	sets    map[*yaml.Node]string // nodes that come from --set, with the override
	written []written
}

// scenario decodes and checks one document; nil if it is not worth looking at.
func (d *decoder) scenario(doc *yaml.Node, data []byte) *Scenario {
	root := &path{}
	if doc.Kind != yaml.MappingNode {
		d.mismatch(doc, root, "a scenario")
		return nil
	}
	// A document of another kind would give an error for each of its fields.
	kind, version := lookup(doc, "kind"), lookup(doc, "apiVersion")
	switch {
	case kind == nil || version == nil:
		d.errorf(doc, root, "a scenario begins with apiVersion: %s and kind: %s", APIVersion, Kind)
		return nil
	case kind.Value != Kind:
		d.errorf(kind, root.field("kind"), "must be %s, not %q", Kind, short(kind.Value))
		return nil
	case version.Value != APIVersion:
		d.errorf(version, root.field("apiVersion"), "must be %s, not %q", APIVersion, short(version.Value))
		return nil
	}
	s := &Scenario{Pos: d.pos(doc), doc: doc}
	d.l.written = nil
	before := len(d.l.errs)
	d.value(doc, root, reflect.ValueOf(s).Elem())
	v := &validator{d: d, doc: doc, s: s, data: data, before: before}
	v.validate()
	return s
}
