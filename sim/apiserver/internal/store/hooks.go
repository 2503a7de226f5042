package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// hook is a function that is told of changes; its address tells it from others.
type hook struct {
	fn    func(kind.Change)
	kinds []kind.Kind // none: all
	but   bool        // all but kinds
	// bare says that it need not see events that expire: those are packed, and
	// as many go as came an hour ago.
	bare bool
}

// wants reports whether a hook is told of a kind.
func (h *hook) wants(k kind.Kind) bool {
	return len(h.kinds) == 0 || slices.Contains(h.kinds, k) != h.but
}

// hooksOf returns the hooks that are told of a kind. Most are not told of the
// kinds that change most often: events, leases and pods.
func (s *State) hooksOf(k kind.Kind) []*hook {
	on := s.shelf(k)
	if on.hooks != nil {
		return on.hooks
	}
	list := []*hook{} // so that none are found again, too
	for _, h := range s.hooks {
		if h.wants(k) {
			list = append(list, h)
		}
	}
	on.hooks = list
	return list
}

// forgetHooks has the hooks of each kind found anew.
func (s *State) forgetHooks() {
	for _, on := range s.shelves {
		on.hooks = nil
	}
}

// showExpiry reports whether anybody wants to see the events that expire.
func (s *State) showExpiry() bool {
	return slices.ContainsFunc(s.hooksOf(kinds.Event), func(h *hook) bool { return !h.bare })
}

// Hooks are functions that were given to OnChange together.
type Hooks struct {
	s     *State
	hooks []*hook
}

// Hooked returns the hooks that register gives to OnChange.
func (s *State) Hooked(register func()) Hooks {
	from := len(s.hooks)
	register()
	return Hooks{s, slices.Clone(s.hooks[from:])}
}

// List tells the hooks of all objects that there are, as an informer's first
// list does. It is for use while no change is being told.
func (h Hooks) List() {
	if len(h.hooks) == 0 {
		return
	}
	for _, in := range h.s.kinds.All() {
		objs, _ := h.s.List(in.Kind, "") // the kind is served
		for _, obj := range objs {
			c := kind.Change{Type: watch.Added, Kind: in.Kind, New: obj, Verb: "list", Version: h.s.version}
			for _, k := range h.hooks {
				if k.wants(in.Kind) {
					k.fn(c)
				}
			}
		}
	}
}

// Remove has the hooks told of nothing any more.
func (h Hooks) Remove() {
	for _, k := range h.hooks {
		k.fn = func(kind.Change) {} // a change may be being told
	}
	h.s.hooks = slices.DeleteFunc(slices.Clone(h.s.hooks), func(k *hook) bool { return slices.Contains(h.hooks, k) })
	h.s.forgetHooks()
}

// OnChange has fn called after each committed write of an object of these kinds
// (of any kind, if none is given), in the order of the writes. A write made by fn
// is told after fn returned.
func (s *State) OnChange(fn func(kind.Change), kinds ...kind.Kind) {
	s.hooks = append(s.hooks, &hook{fn: fn, kinds: kinds})
	s.forgetHooks()
}

// OnChangeBut is OnChange for all kinds but these, also for those that are defined later.
func (s *State) OnChangeBut(fn func(kind.Change), kinds ...kind.Kind) {
	s.hooks = append(s.hooks, &hook{fn: fn, kinds: kinds, but: true})
	s.forgetHooks()
}

// OnChangeBare is OnChange, first of all hooks and for all kinds, for who need not
// see events that expire: those are packed, and as many go as came an hour ago.
func (s *State) OnChangeBare(fn func(kind.Change)) {
	s.hooks = append([]*hook{{fn: fn, bare: true}}, s.hooks...)
	s.forgetHooks()
}

// tell calls the hooks; a change made while they run waits for its turn.
func (s *State) tell(c kind.Change) {
	hooks := s.hooksOf(c.Kind)
	if len(hooks) == 0 {
		return
	}
	if s.telling {
		s.pending = append(s.pending, c)
		return
	}
	s.telling = true
	defer func() { s.telling = false }()
	for _, k := range hooks {
		k.fn(c)
	}
	for i := 0; i < len(s.pending); i++ { // hooks may add to it
		c := s.pending[i]
		s.pending[i] = kind.Change{}
		for _, k := range s.hooksOf(c.Kind) {
			k.fn(c)
		}
	}
	s.pending = s.pending[:0]
}
