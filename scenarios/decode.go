package scenarios

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// decoder fills Go values from YAML nodes, strictly, by the names in their json
// tags. It knows the types of this package and those of Kubernetes, and goes on
// after an error to find the next.
type decoder struct {
	l    *loader
	file string
}

func (d *decoder) errorf(n *yaml.Node, p *path, format string, args ...any) {
	d.l.errs = append(d.l.errs, &LoadError{Pos: d.pos(n), Path: p.String(), Message: oneLine(fmt.Sprintf(format, args...))})
}

func (d *decoder) pos(n *yaml.Node) Position {
	if n == nil {
		return Position{File: d.file}
	}
	if arg, ok := d.l.sets[n]; ok {
		return Position{File: "--set '" + oneLine(arg) + "'"}
	}
	return Position{d.file, n.Line, n.Column}
}

func (d *decoder) mismatch(n *yaml.Node, p *path, want string) {
	d.errorf(n, p, "want %s, got %s", want, describe(n))
}

// value decodes n into v, which must be settable. Null leaves the zero value.
func (d *decoder) value(n *yaml.Node, p *path, v reflect.Value) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if d.special(n, p, v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		x := reflect.New(v.Type().Elem())
		d.value(n, p, x.Elem())
		v.Set(x)
	case reflect.Struct:
		d.structure(n, p, v)
	case reflect.Map:
		d.mapping(n, p, v)
	case reflect.Slice:
		d.slice(n, p, v)
	case reflect.String:
		if s, ok := d.text(n, p); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		var b bool
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" && !d.isSet(n) || n.Decode(&b) != nil {
			d.mismatch(n, p, "true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&i) != nil || v.OverflowInt(i) {
			d.mismatch(n, p, "a whole number")
			return
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var i uint64
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&i) != nil || v.OverflowUint(i) {
			d.mismatch(n, p, "a whole number of at least 0")
			return
		}
		v.SetUint(i)
	case reflect.Float32, reflect.Float64:
		var f float64
		if t := n.ShortTag(); n.Kind != yaml.ScalarNode || t != "!!int" && t != "!!float" || n.Decode(&f) != nil || f-f != 0 {
			d.mismatch(n, p, "a number")
			return
		}
		v.SetFloat(f)
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(plain(n)))
			return
		}
		d.errorf(n, p, "cannot be set in a scenario")
	default:
		d.errorf(n, p, "cannot be set in a scenario")
	}
}

// isSet says whether a node comes from a --set override.
func (d *decoder) isSet(n *yaml.Node) bool {
	_, ok := d.l.sets[n]
	return ok
}

func (d *decoder) text(n *yaml.Node, p *path) (string, bool) {
	switch t := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode:
		d.mismatch(n, p, "a text")
	case t == "!!str" || t == "!!timestamp" || t == "!!merge" || d.isSet(n):
		return n.Value, true
	default:
		d.errorf(n, p, "want a text, got %s: put it in quotes", describe(n))
	}
	return "", false
}

func (d *decoder) structure(n *yaml.Node, p *path, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, p, "a mapping")
		return
	}
	t := d.l.structType(v.Type())
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, x := n.Content[i], n.Content[i+1]
		at := p.field(k.Value)
		if !d.key(k, at, seen) {
			continue
		}
		f, ok := t.fields[k.Value]
		if !ok {
			d.errorf(k, at, "unknown field %q%s", k.Value, suggest.Suffix(k.Value, t.names))
			continue
		}
		field := v.FieldByIndex(f.index)
		d.value(x, at, field)
		if len(f.enum) > 0 {
			d.enum(x, at, field, f.enum)
		}
	}
	for _, name := range t.required {
		if x := seen[name]; x == nil {
			d.errorf(n, p.field(name), "must be set")
		} else if _, val := entry(n, name); val.Kind == yaml.ScalarNode && (val.ShortTag() == "!!null" || val.Value == "") {
			d.errorf(val, p.field(name), "must be set")
		}
	}
}

// key notes a mapping's key; false means that it is no good.
func (d *decoder) key(k *yaml.Node, at *path, seen map[string]*yaml.Node) bool {
	if k.Kind != yaml.ScalarNode {
		d.errorf(k, at, "want a text as the key, got %s", describe(k))
		return false
	}
	if before := seen[k.Value]; before != nil {
		d.errorf(k, at, "%q is there twice, first on line %d", k.Value, before.Line)
		return false
	}
	seen[k.Value] = k
	return true
}

func (d *decoder) enum(n *yaml.Node, p *path, v reflect.Value, allowed []string) {
	s := v.String()
	if s == "" {
		return
	}
	for _, a := range allowed {
		if a == s {
			return
		}
	}
	if len(allowed) == 1 {
		d.errorf(n, p, "must be %s, not %q", allowed[0], s)
		return
	}
	d.errorf(n, p, "%q is none of %s%s", s, strings.Join(allowed, ", "), suggest.Suffix(s, allowed))
}

func (d *decoder) mapping(n *yaml.Node, p *path, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, p, "a mapping")
		return
	}
	if v.Type().Key().Kind() != reflect.String {
		d.errorf(n, p, "cannot be set in a scenario")
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, x := n.Content[i], n.Content[i+1]
		at := p.field(k.Value)
		if !d.key(k, at, seen) {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(x, at, e)
		m.SetMapIndex(reflect.ValueOf(k.Value).Convert(v.Type().Key()), e)
	}
	v.Set(m)
}

func (d *decoder) slice(n *yaml.Node, p *path, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		s, ok := d.text(n, p)
		if !ok {
			return
		}
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
		if err != nil {
			d.errorf(n, p, "is not base64: %v", err)
			return
		}
		v.SetBytes(b)
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.mismatch(n, p, "a list")
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, x := range n.Content {
		d.value(x, p.at(i), s.Index(i))
	}
	v.Set(s)
}

// structType is what the decoder knows of a struct.
type structType struct {
	fields   map[string]structField
	names    []string
	required []string
}

type structField struct {
	index []int
	enum  []string
}

func (l *loader) structType(t reflect.Type) *structType {
	if s := l.types[t]; s != nil {
		return s
	}
	s := &structType{fields: map[string]structField{}}
	s.add(t, nil)
	l.types[t] = s
	return s
}

func (s *structType) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(append([]int(nil), index...), i)
		if f.Anonymous && name == "" || strings.Contains(opts, "inline") {
			if f.Type.Kind() == reflect.Struct && f.Tag.Get("json") != "-" {
				s.add(f.Type, at)
			}
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		sf := structField{index: at}
		if e := f.Tag.Get("enum"); e != "" {
			sf.enum = strings.Split(e, ",")
		}
		s.fields[name] = sf
		s.names = append(s.names, name)
		if _, ok := f.Tag.Lookup("required"); ok {
			s.required = append(s.required, name)
		}
	}
}
