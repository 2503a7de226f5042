package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// YAML writes the scenario as a file has it: times as texts, actions by their names, Kubernetes'
// objects with their kinds. What Parse makes of it is the same scenario, so that one that was
// put together in Go can be checked, run and kept.
func (s *Scenario) YAML() ([]byte, error) {
	w := writer{kinds: map[reflect.Type]schema.GroupVersionKind{}}
	for kind, k := range value.ManifestKinds() { //drydock:unordered each key is set once
		w.kinds[reflect.TypeOf(k.Make())] = schema.FromAPIVersionAndKind(k.APIVersion, kind)
	}
	head := *s
	head.APIVersion, head.Kind = APIVersion, Kind
	n, err := w.node(reflect.ValueOf(&head).Elem())
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Metadata.Name, err)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Metadata.Name, err)
	}
	return out.Bytes(), enc.Close()
}

// Loaded reports whether the scenario came from a file or a text: then it was checked, and its
// expectations are compiled.
func (s *Scenario) Loaded() bool { return s.doc.Node() != nil }

// writer writes values as documents have them; kinds are those of objects that say none.
type writer struct {
	kinds map[reflect.Type]schema.GroupVersionKind
}

// node writes a value.
func (w *writer) node(v reflect.Value) (*yaml.Node, error) {
	if v.Kind() == reflect.Pointer {
		return w.node(v.Elem())
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return scalar(x.String())
	case value.Range:
		if x.Min == x.Max {
			return scalar(x.Min.String())
		}
		return scalar(x.Min.String() + ".." + x.Max.String())
	case value.Time:
		if x.End {
			return scalar("end")
		}
		return scalar(x.After.String())
	case value.JSON:
		return fromJSON(x)
	case value.Manifest:
		return w.manifest(&x)
	case value.StaticPods:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for i := range x {
			n, err := w.manifest(&x[i].Manifest)
			if err != nil {
				return nil, err
			}
			if err := add(out, x[i].File, n); err != nil {
				return nil, err
			}
		}
		return out, nil
	case KubeletRestart:
		if x.Never {
			return scalar("never")
		}
	case Action:
		return w.action(&x)
	case NodeGroup:
		// A disk's size is said once.
		if f := x.Filesystems; f != nil && f.Nodefs != nil && f.Nodefs.Capacity != nil && x.Capacity != nil {
			x.Capacity = maps.Clone(x.Capacity)
			delete(x.Capacity, v1.ResourceEphemeralStorage)
			v = reflect.ValueOf(x)
		}
	}
	if strings.HasPrefix(v.Type().PkgPath(), "k8s.io/") {
		return encoded(v.Interface())
	}
	switch v.Kind() {
	case reflect.Struct:
		out := &yaml.Node{Kind: yaml.MappingNode}
		return out, w.fields(v, out)
	case reflect.Slice:
		out := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n, err := w.node(v.Index(i))
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, n)
		}
		return out, nil
	case reflect.Map:
		if v.Type().Elem().PkgPath() == reflect.TypeFor[value.Range]().PkgPath() {
			out := &yaml.Node{Kind: yaml.MappingNode}
			for _, k := range sortedKeys(v) {
				n, err := w.node(v.MapIndex(k))
				if err != nil {
					return nil, err
				}
				if err := add(out, k.String(), n); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
		return encoded(v.Interface())
	}
	return scalar(v.Interface())
}

// sortedKeys are a map's keys, which are texts.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys() //drydock:unordered sorted below
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// fields writes a struct's fields by their json tags; those that are left out may be empty.
func (w *writer) fields(v reflect.Value, into *yaml.Node) error {
	t := v.Type()
	for i := range t.NumField() {
		f, x := t.Field(i), v.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			if err := w.fields(x, into); err != nil {
				return err
			}
			continue
		case (x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.IsNil():
			continue
		case strings.Contains(opts, "omitempty") && x.Kind() != reflect.Pointer && x.Kind() != reflect.Slice && x.IsZero():
			continue
		}
		n, err := w.node(x)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := add(into, name, n); err != nil {
			return err
		}
	}
	return nil
}

// action writes an action: its time, and the one field that it is.
func (w *writer) action(a *Action) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	at, err := scalar(a.At.String())
	if err != nil {
		return nil, err
	}
	if err := add(out, "at", at); err != nil {
		return nil, err
	}
	if a.Does == nil {
		return out, nil // loading says what is missing
	}
	does, err := w.node(reflect.ValueOf(a.Does))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Kind(), err)
	}
	if x, ok := a.Does.(*action.Apply); ok && x.Manifest == nil && x.File == "" && len(x.Files) == 0 {
		n, err := w.manifest(&value.Manifest{Objects: x.Objects})
		if err != nil {
			return nil, err
		}
		if err := add(does, "manifest", n); err != nil {
			return nil, err
		}
	}
	return out, add(out, a.Kind(), does)
}

// manifest writes objects with their kinds, or the text that a manifest is.
func (w *writer) manifest(m *value.Manifest) (*yaml.Node, error) {
	if len(m.Objects) == 0 {
		return scalar(string(m.Content))
	}
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for _, o := range m.Objects {
		n, err := w.object(o.Object)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, n)
	}
	if len(out.Content) == 1 {
		return out.Content[0], nil
	}
	return out, nil
}

// object writes a Kubernetes object.
func (w *writer) object(o runtime.Object) (*yaml.Node, error) {
	if o.GetObjectKind().GroupVersionKind().Empty() {
		gvk, ok := w.kinds[reflect.TypeOf(o)]
		if !ok {
			return nil, fmt.Errorf("the API serves no %T", o)
		}
		o = o.DeepCopyObject()
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return encoded(o)
}

// encoded writes what Kubernetes' types say of themselves.
func encoded(x any) (*yaml.Node, error) {
	data, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return fromJSON(data)
}

// fromJSON reads JSON, which is YAML, and writes it as YAML is written.
func fromJSON(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	n := doc.Content[0]
	plain(n)
	return n, nil
}

// plain takes JSON's style off a node and all below it. Texts that would be read as something
// else get quotes by their tags.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}

// scalar writes a number, a text or a truth.
func scalar(x any) (*yaml.Node, error) {
	n := &yaml.Node{}
	return n, n.Encode(x)
}

// add adds a field to a mapping.
func add(into *yaml.Node, name string, n *yaml.Node) error {
	key, err := scalar(name)
	if err != nil {
		return err
	}
	into.Content = append(into.Content, key, n)
	return nil
}
