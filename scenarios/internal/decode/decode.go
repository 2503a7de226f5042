package decode

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// Reader reads documents and collects what is wrong with any of them. It is for one load: types
// are looked up once and all mistakes of all its files are found in one list. It is not for
// several goroutines.
type Reader struct {
	// Found, if any, is called with a pointer to each value that may want a
	// check: each struct, and whatever a Custom value hands over. A struct comes
	// before its parts, and neither is filled in yet.
	Found func(v any, at Place)
	// ReadDir, if any, returns the manifests of a directory, by path; nil of what is none.
	ReadDir func(name string) ([]string, error)

	// A function instead of a file system: tests and the language server hand over what is in
	// memory.
	readFile func(name string) ([]byte, error)
	errs     Errors
	types    map[reflect.Type]*structType
	// Nodes are remembered by identity, which works because every tree was expanded: no node is
	// in two places.
	sets map[*yaml.Node]string // nodes that come from --set, with the override
}

// NewReader returns a reader; readFile reads the files that documents name.
func NewReader(readFile func(name string) ([]byte, error)) *Reader {
	return &Reader{readFile: readFile, types: map[reflect.Type]*structType{}, sets: map[*yaml.Node]string{}}
}

// Fail reports what is wrong with a file as a whole.
func (r *Reader) Fail(file, format string, args ...any) {
	r.report(&Error{Pos: Position{File: file}, Message: OneLine(fmt.Sprintf(format, args...))})
}

// report is where every error arrives. Nothing stops at an error: one run of the loader tells all
// that is wrong, as a compiler does.
func (r *Reader) report(e *Error) { r.errs = append(r.errs, e) }

// Err returns all that was found wrong so far, as Errors, or nil.
func (r *Reader) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	// Found in the order of decoding and of checks, errors of one line would be far apart; the
	// user reads a file from the top.
	return r.errs.sorted()
}

// Custom is a value that is written otherwise than its Go type says. DecodeYAML
// decodes what is at the place; false means that it is written as the Go type
// says after all. Custom must be implemented with a pointer receiver, since what is decoded into
// is addressed.
type Custom interface{ DecodeYAML(at Place) bool }

// Open is a struct that takes more keys than it has fields. Keys are their
// names, for who misspells one; Field returns a pointer to what a key's value,
// which stands at the place, is decoded into, and nil for a key that it does not
// take. It is how plugins of a kind, such as faults and actions, add keys to a struct of somebody
// else's: the struct need not know them.
type Open interface {
	Keys() []string
	Field(key string, at Place) any
}

// Shorthand is a struct that can be written as a scalar besides: Shorthand
// returns a pointer to what that is decoded into, one of its fields. So "image: nginx" and
// "image: {name: nginx}" may mean the same.
type Shorthand interface{ Shorthand() any }

// Decode decodes the place's value into what a pointer points to. Null leaves it
// as it is. It is what Custom values call for their parts.
func (at Place) Decode(into any) { at.value(reflect.ValueOf(into).Elem()) }

// Refuse reports a value that can't be decoded; the error points at the value
// itself.
func (at Place) Refuse(format string, args ...any) { at.refuse(at.node, format, args...) }

// RefuseKey reports the key that the value stands behind.
func (at Place) RefuseKey(format string, args ...any) { at.refuse(at.key, format, args...) }

// refuse reports a value and points at a node of the caller's choice. It does not look whether
// the place is bad already, as Errorf does: it is what makes it bad.
func (at Place) refuse(n *yaml.Node, format string, args ...any) {
	at.Report(at.doc.pos(n), fmt.Sprintf(format, args...))
}

// Mismatch reports that something else is wanted: "a list".
func (at Place) Mismatch(want string) { at.Refuse("want %s, got %s", want, describe(at.node)) }

// value decodes into v, which must be settable. It goes on after an error, to
// find the next.
func (at Place) value(v reflect.Value) {
	n := at.node
	if v.Kind() == reflect.Struct {
		// Before the value is decoded, so that a struct comes before its parts; a check that
		// wants the values waits until decoding is over.
		at.Found(v.Addr().Interface())
	}
	// A key without a value is as if it were not written, as in the API.
	if at.Null() || at.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		x := reflect.New(v.Type().Elem())
		at.value(x.Elem())
		v.Set(x)
	case reflect.Struct:
		at.structure(v)
	case reflect.Map:
		// A Go map is decoded anew each time. It is set only at the end, complete.
		at.mapping(v)
	case reflect.Slice:
		at.slice(v)
	case reflect.String:
		if s, ok := at.Text(); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		var b bool
		// --set true is a text to YAML only if it was quoted, which shells make awkward; so what
		// comes from there is taken for what is wanted.
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" && !at.isSet() || n.Decode(&b) != nil {
			at.Mismatch("true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		// Only what YAML itself resolves to an integer: "0x10" is one, "1e3" is not.
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&i) != nil || v.OverflowInt(i) {
			at.Mismatch("a whole number")
			return
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var i uint64
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&i) != nil || v.OverflowUint(i) {
			at.Mismatch("a whole number of at least 0")
			return
		}
		v.SetUint(i)
	case reflect.Float32, reflect.Float64:
		var f float64
		// f-f is not 0 for infinities and NaN, which YAML has and JSON has not.
		if t := n.ShortTag(); n.Kind != yaml.ScalarNode || t != "!!int" && t != "!!float" || n.Decode(&f) != nil || f-f != 0 {
			at.Mismatch("a number")
			return
		}
		v.SetFloat(f)
	case reflect.Interface:
		// Any value, as encoding/json would have made it.
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(at.Plain()))
			return
		}
		at.Refuse("cannot be set in a scenario")
	default:
		at.Refuse("cannot be set in a scenario")
	}
}

// Found tells whoever reads the document of a value that may want a check. A nil hook is that of
// tools that want the values only.
func (at Place) Found(v any) {
	if at.doc.r.Found != nil {
		at.doc.r.Found(v, at)
	}
}

// isSet reports whether the value comes from a --set override, whose texts need
// no quotes.
func (at Place) isSet() bool {
	_, ok := at.doc.r.sets[at.node]
	return ok
}

// structure decodes a mapping into a struct, key by key, in the document's
// order. Every mistake in it is told: unknown and repeated keys, and what is
// required and missing or empty.
func (at Place) structure(v reflect.Value) {
	n := at.node
	if n.Kind != yaml.MappingNode {
		at.Mismatch("a mapping")
		return
	}
	t := at.doc.r.structType(v.Type())
	open, _ := v.Addr().Interface().(Open)
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		// A mapping's Content has keys and values in turn.
		k, x := n.Content[i], n.Content[i+1]
		to := at.below(k, x, &path{up: at.path, key: k.Value})
		if !to.goodKey(k, seen) {
			continue
		}
		if f, ok := t.fields[k.Value]; ok {
			field := v.FieldByIndex(f.index)
			to.value(field)
			to.enum(field, f.enum)
			continue
		}
		var into any
		names := t.names
		if open != nil {
			// The slice is cut to its length, so that append copies it: names belongs to the
			// type, which all values share.
			into, names = open.Field(k.Value, to), append(names[:len(names):len(names)], open.Keys()...)
		}
		if into == nil {
			to.refuse(k, "unknown field %q%s", k.Value, suggest.Suffix(k.Value, names))
			continue
		}
		to.Decode(into)
	}
	// After all keys, so that the message about what is missing comes after those of what is
	// there.
	for _, name := range t.required {
		if seen[name] == nil {
			at.Missing(name)
		} else if to := at.Field(name); to.node.Kind == yaml.ScalarNode && (to.Null() || to.node.Value == "") {
			to.Refuse("must be set")
		}
	}
}

// goodKey notes the key of a mapping; false means that it is no good. YAML allows repeated keys
// in the trees that this library makes; of two values one would be lost without a word.
func (at Place) goodKey(k *yaml.Node, seen map[string]*yaml.Node) bool {
	if k.Kind != yaml.ScalarNode {
		at.refuse(k, "want a text as the key, got %s", describe(k))
		return false
	}
	if before := seen[k.Value]; before != nil {
		at.refuse(k, "%q is there twice, first on line %d", k.Value, before.Line)
		return false
	}
	seen[k.Value] = k
	return true
}

// enum wants a text to be one of those allowed, if any are named, or none. "" is what stands for
// a default and is always allowed.
func (at Place) enum(v reflect.Value, allowed []string) {
	if len(allowed) == 0 || v.String() == "" {
		return
	}
	s := v.String()
	if slices.Contains(allowed, s) {
		return
	}
	if len(allowed) == 1 {
		at.Refuse("must be %s, not %q", allowed[0], s)
		return
	}
	at.Refuse("%q is none of %s%s", s, strings.Join(allowed, ", "), suggest.Suffix(s, allowed))
}

// mapping decodes a mapping into a Go map. Its keys are the user's.
func (at Place) mapping(v reflect.Value) {
	// Keys of other kinds do not occur in the API types and cannot be written in JSON.
	if v.Type().Key().Kind() != reflect.String {
		at.Refuse("cannot be set in a scenario")
		return
	}
	entries, ok := at.Entries("a mapping")
	if !ok {
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(entries))
	for _, to := range entries {
		e := reflect.New(v.Type().Elem()).Elem()
		to.value(e)
		// The key type may be a named string, such as v1.ResourceName.
		m.SetMapIndex(reflect.ValueOf(to.path.key).Convert(v.Type().Key()), e)
	}
	v.Set(m)
}

// Entries returns the places of a mapping's values in their order, and false,
// with an error that wants what the caller says, if it is no mapping. Name has
// an entry's key. It is for values whose keys are the user's and that are decoded by a Custom.
func (at Place) Entries(want string) ([]Place, bool) {
	n := at.node
	if n.Kind != yaml.MappingNode {
		at.Mismatch(want)
		return nil, false
	}
	out := make([]Place, 0, len(n.Content)/2)
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if to := at.below(k, n.Content[i+1], &path{up: at.path, key: k.Value}); to.goodKey(k, seen) {
			out = append(out, to)
		}
	}
	return out, true
}

// Name is the key that the place's value stands behind.
func (at Place) Name() string { return at.path.key }

// Items returns the places of a list's elements; none if it is no list.
func (at Place) Items() []Place {
	if at.node == nil || at.node.Kind != yaml.SequenceNode {
		return nil
	}
	out := make([]Place, len(at.node.Content))
	for i := range out {
		out[i] = at.Index(i)
	}
	return out
}

// slice decodes a list; bytes are written as base64, as in a Secret. Numbers of bytes would be
// the other way to write []byte; the API has only base64 (encoding/json).
func (at Place) slice(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		s, ok := at.Text()
		if !ok {
			return
		}
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
		if err != nil {
			at.Refuse("is not base64: %v", err)
			return
		}
		v.SetBytes(b)
		return
	}
	if at.node.Kind != yaml.SequenceNode {
		at.Mismatch("a list")
		return
	}
	items := at.Items()
	s := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, to := range items {
		to.value(s.Index(i))
	}
	v.Set(s)
}

// structType is what decoding wants to know of a struct, worked out once for
// each type.
type structType struct {
	fields   map[string]structField
	names    []string
	required []string
}

// structField is where a field lies in its struct, and what its tags say of it.
type structField struct {
	index []int
	enum  []string
}

// structType looks at a struct's fields and tags, once for each reader. API types have many
// fields and are decoded many times: reflection over tags would be most of loading.
func (r *Reader) structType(t reflect.Type) *structType {
	if s := r.types[t]; s != nil {
		return s
	}
	s := &structType{fields: map[string]structField{}}
	s.add(t, nil)
	r.types[t] = s
	return s
}

// EnumOf returns the texts that a field may have: those of its tag enum, with
// commas between, or those that its type lists. nil: any.
func EnumOf(f reflect.StructField) []string {
	if e := f.Tag.Get("enum"); e != "" {
		return strings.Split(e, ",")
	}
	if v, ok := reflect.Zero(f.Type).Interface().(interface{ Values() []string }); ok {
		return v.Values()
	}
	return nil
}

// add notes the fields of t, which is found at index: those of embedded structs
// count as the struct's own. json:",inline" is the tag that API types embed with; encoding/json
// ignores it, since embedding alone has that effect.
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
		// A field without a json tag is none that a document can set.
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		sf := structField{index: at}
		sf.enum = EnumOf(f)
		s.fields[name] = sf
		s.names = append(s.names, name)
		// The tag's presence counts; its value is empty.
		if _, ok := f.Tag.Lookup("required"); ok {
			s.required = append(s.required, name)
		}
	}
}
