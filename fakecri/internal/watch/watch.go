// Package watch has the one kind of watcher: somebody who is told of something for
// as long as a group of the loop lives.
package watch

import (
	"slices"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Watchers are told of something while their groups live, in the order in which
// they came.
type Watchers[T any] struct{ list []watcher[T] }

type watcher[T any] struct {
	g  *loop.Group
	fn func(T)
}

// Add has fn called, on the loop, until g dies. A watcher that is told must not
// wait.
func (w *Watchers[T]) Add(g *loop.Group, fn func(T)) {
	if g.Dead() {
		return
	}
	w.list = append(w.list, watcher[T]{g, fn})
	g.OnKill(func() { // into a new list: the old one may be being told
		w.list = slices.DeleteFunc(slices.Clone(w.list), func(x watcher[T]) bool { return x.g == g })
	})
}

// Any reports whether anybody wants to know, which decides whether what is told
// has to be made.
func (w *Watchers[T]) Any() bool { return len(w.list) > 0 }

// Tell calls all that watch now, in order; who comes or goes meanwhile is told from
// the next time on.
func (w *Watchers[T]) Tell(v T) {
	for _, x := range w.list {
		x.fn(v)
	}
}
