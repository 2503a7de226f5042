package apiserver

import "k8s.io/apimachinery/pkg/watch"

// Hooks are functions that were given to OnChange together.
type Hooks struct {
	s        *Store
	from, to int
}

// Hooked returns the hooks that register gives to OnChange.
func (s *Store) Hooked(register func()) Hooks {
	from := len(s.hooks)
	register()
	return Hooks{s, from, len(s.hooks)}
}

// List tells the hooks of all objects that there are, as an informer's first
// list does. It is for use while no change is being told.
func (h Hooks) List() {
	if h.from == h.to {
		return
	}
	for _, in := range infos() {
		objs, err := h.s.List(in.kind, "")
		if err != nil {
			continue // no such table
		}
		for _, obj := range objs {
			c := Change{Type: watch.Added, Kind: in.kind, New: obj, Verb: "list", Version: h.s.version}
			for _, fn := range h.s.hooks[h.from:h.to] {
				fn(c)
			}
		}
	}
}

// Remove has the hooks told of nothing any more.
func (h Hooks) Remove() {
	for i := h.from; i < h.to; i++ {
		h.s.hooks[i] = func(Change) {}
	}
}
