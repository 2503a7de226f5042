package parity

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// object is a JSON object as it is decoded. What is compared stays in this
// form, because the rules tell a field that is absent from one that is zero.
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

// child is a field that is an object; nil for any other, which reads as an empty
// one.
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

// same compares decoded JSON, in which all numbers are float64.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// encode is the JSON of v; what cannot be encoded is not made here.
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
