package podworkers

import "k8s.io/apimachinery/pkg/types"

// staticStarts orders the starts of static pods that share a full name: one
// UID at a time, in the order of their first update.
type staticStarts struct {
	started map[types.NamespacedName]types.UID
	waiting map[types.NamespacedName][]types.UID
}

func newStaticStarts() staticStarts {
	return staticStarts{started: map[types.NamespacedName]types.UID{}, waiting: map[types.NamespacedName][]types.UID{}}
}

// add appends a UID to those that wait for a name.
func (s *staticStarts) add(name types.NamespacedName, uid types.UID) {
	s.waiting[name] = append(s.waiting[name], uid)
}

// allow reports whether uid may start now, and if so makes it the started one.
// gone tells of a waiting UID that it will never start.
func (s *staticStarts) allow(name types.NamespacedName, uid types.UID, gone func(types.UID) bool) bool {
	if started, ok := s.started[name]; ok {
		return started == uid
	}
	waiting := s.waiting[name]
	for len(waiting) > 0 && waiting[0] != uid && gone(waiting[0]) {
		waiting = waiting[1:]
	}
	allowed := len(waiting) == 0 || waiting[0] == uid
	if allowed {
		s.started[name] = uid
		if len(waiting) > 0 {
			waiting = waiting[1:]
		}
	}
	if len(waiting) == 0 {
		delete(s.waiting, name)
	} else {
		s.waiting[name] = waiting
	}
	return allowed
}

// release lets the next one start, if uid was the started one.
func (s *staticStarts) release(name types.NamespacedName, uid types.UID) {
	if s.started[name] == uid {
		delete(s.started, name)
	}
}
