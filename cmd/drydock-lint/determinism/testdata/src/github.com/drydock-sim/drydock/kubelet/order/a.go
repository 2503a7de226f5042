package order

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

type labels map[string]string

type strings interface{ ~map[string]string }

func bad(m map[string]int, l labels, s sets.Set[string], v reflect.Value) {
	for k := range m { // want `range over a map: keep a slice`
		_ = k
	}
	for range l { // want `range over a map`
	}
	for range s { // want `range over a map`
	}
	_ = maps.Keys(m)                   // want `use of maps.Keys`
	_ = slices.Collect(maps.Values(m)) // want `use of maps.Values`
	for range maps.All(m) {            // want `use of maps.All`
	}
	_ = maps.Collect(slices.All([]int{})) // want `use of maps.Collect`
	_ = s.UnsortedList()                  // want `use of k8s.io/apimachinery/pkg/util/sets.Set.UnsortedList`
	_ = v.MapKeys()                       // want `use of reflect.Value.MapKeys`
	_ = v.MapRange()                      // want `use of reflect.Value.MapRange`
}

func generic[M ~map[K]V, K comparable, V any](m M) {
	for range m { // want `range over a map`
	}
}

func generic2[M strings](m M) {
	for range m { // want `range over a map`
	}
}

func escaped(m map[string]int) int {
	n := 0
	for _, v := range m { //drydock:unordered adds up
		n += v
	}
	//drydock:unordered counts
	for range m {
		n++
	}
	for range maps.Keys(m) { //drydock:unordered counts
		n++
	}
	return n
}

func badEscapes(m map[string]int) {
	for range m { /* want `unordered without a reason` */ //drydock:unordered
	}
	for range m { // drydock:unordered spaced // want `range over a map` `unknown directive // drydock:unordered`
	}
	for range m { //drydock:unorderd misspelt // want `range over a map` `unknown directive //drydock:unorderd`
	}
	for range []int{} { //drydock:unordered a slice // want `escapes nothing`
	}
	for range m { //drydock:unordered of the outer one only
		for range m { // want `range over a map`
		}
	}

	//drydock:unordered too far above // want `escapes nothing`

	for range m { // want `range over a map`
	}
	go func() {}() //drydock:unordered of order only // want `a go statement` `escapes nothing`
}

func fine(m map[string]int, l []int, s string, f func(func(int) bool)) {
	for range l {
	}
	for range s {
	}
	for range f {
	}
	m["a"] = m["b"]
	delete(m, "c")
	clear(m)
	_ = maps.Clone(m)
	_ = maps.Equal(m, m)
	_ = sets.List(sets.Set[string]{})
}
