package cluster

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// object is a JSON object as it is decoded. What is compared stays in this form, because the rules
// tell a field that is absent from one that is zero.
type object = map[string]any

// text is a field that is a text; "" for any other.
func text(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

// number is a field that is a number; 0 for any other.
func number(o object, key string) float64 {
	f, _ := o[key].(float64)
	return f
}

// truth is a field that is true.
func truth(o object, key string) bool {
	b, _ := o[key].(bool)
	return b
}

// has reports whether a field is there, be it null.
func has(o object, key string) bool {
	_, ok := o[key]
	return ok
}

// child is a field that is an object; nil for any other, which reads as an empty one.
func child(o object, key string) object {
	c, _ := o[key].(object)
	return c
}

// list is a field that is a list; nil for any other.
func list(o object, key string) []any {
	l, _ := o[key].([]any)
	return l
}

// children returns the objects of a list.
func children(o object, key string) []object {
	l := list(o, key)
	out := make([]object, 0, len(l))
	for _, x := range l {
		c, _ := x.(object)
		out = append(out, c)
	}
	return out
}

// without is an object without some fields.
func without(o object, fields ...string) object {
	out := maps.Clone(o)
	for _, f := range fields {
		delete(out, f)
	}
	return out
}

// same compares decoded JSON, in which all numbers are float64.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// dump is a value as JSON, keys sorted and characters as they are; what cannot be encoded is not made
// here.
func dump(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cut bounds what is told of a value.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// keysOf are the keys of a JSON object in the order in which they stand.
func keysOf(data []byte) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var out []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		k, _ := t.(string)
		out = append(out, k)
		if err := d.Decode(new(json.RawMessage)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
