package parity

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// object is a JSON object as it is decoded. What is compared stays in this
// form, because the rules tell a field that is absent from one that is zero. It is an alias, so
// that what encoding/json makes need not be converted.
type object = map[string]any

// text is a field that is a text; "" for any other. The accessors never fail: a recording is read
// by many versions of the rules, and a field that it hasn't is compared as absent.
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

// child is a field that is an object; nil for any other, which reads as an empty
// one. Reading from a nil map is allowed in Go, so chains of child need no checks.
func child(o object, key string) object {
	c, _ := o[key].(object)
	return c
}

// children returns the objects of a list.
func children(o object, key string) []object {
	list, _ := o[key].([]any)
	out := make([]object, 0, len(list))
	for _, x := range list {
		c, _ := x.(object)
		out = append(out, c)
	}
	return out
}

// same compares decoded JSON, in which all numbers are float64. Numbers of both sides went
// through JSON, also those of a replay (asObject); an int would differ from an equal float64
// here.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// encode is the JSON of v; what cannot be encoded is not made here. Map keys come out sorted, so
// equal values have equal texts.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// asObject turns a typed value into the form that is compared.
func asObject(v any) (object, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out object
	return out, json.NewDecoder(bytes.NewReader(b)).Decode(&out)
}
