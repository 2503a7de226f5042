package sim_test

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/drydock-sim/drydock/fakecri"
)

// leaks walks everything that a kubelet or a runtime can reach, unexported
// fields included, and tells where a map has a key, or a list an entry, that
// belongs to a pod that is gone. gone has the pods' UIDs and their containers'
// IDs. What closures hold is not seen.
func leaks(root any, gone map[string]bool, allowed func(path string) bool) []string {
	w := &leakWalker{gone: gone, seen: map[leakVisit]bool{}, allowed: allowed}
	w.walk(reflect.ValueOf(root), "")
	return w.found
}

type leakVisit struct {
	p uintptr
	t reflect.Type
}

type leakWalker struct {
	gone    map[string]bool
	seen    map[leakVisit]bool
	allowed func(path string) bool
	found   []string
}

// inside tells whether values of a type are looked into: those of the kubelet
// and the runtime are, the ground and API objects are not.
func inside(t reflect.Type) bool {
	pkg := t.PkgPath()
	return !strings.HasPrefix(pkg, "k8s.io/") && !strings.Contains(pkg, "/sim/") && pkg != "time" && pkg != "reflect"
}

func (w *leakWalker) ofGone(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if w.gone[s] || w.gone[s[strings.LastIndexByte(s, '/')+1:]] {
			return true
		}
		for _, part := range strings.Split(s, "/") {
			if w.gone[part] {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if w.ofGone(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// named tells whether an entry of a list is of a pod that is gone.
func (w *leakWalker) named(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || !inside(v.Type()) {
		return false
	}
	for _, name := range []string{"uid", "UID"} {
		if f := v.FieldByName(name); f.IsValid() && w.ofGone(f) {
			return true
		}
	}
	return false
}

func (w *leakWalker) tell(path string, v reflect.Value) {
	if !w.allowed(path) {
		w.found = append(w.found, fmt.Sprintf("%s has %v", path, v))
	}
}

func (w *leakWalker) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		visit := leakVisit{v.Pointer(), v.Type()}
		if w.seen[visit] {
			return
		}
		w.seen[visit] = true
		w.walk(v.Elem(), path)
	case reflect.Interface:
		w.walk(v.Elem(), path)
	case reflect.Struct:
		if !inside(v.Type()) || path != "" && v.Type() == reflect.TypeFor[fakecri.Runtime]() {
			return
		}
		for i := range v.NumField() {
			w.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if w.ofGone(it.Key()) {
				w.tell(path, it.Key())
			}
			w.walk(it.Value(), path+"[]")
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			if w.named(v.Index(i)) {
				w.tell(path, v.Index(i))
			}
			w.walk(v.Index(i), path+"[]")
		}
	}
}
