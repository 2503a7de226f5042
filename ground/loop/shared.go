package loop

import "sync/atomic"

// Shared is a value that loops have in common and that whoever asks first makes. What
// makes it must depend on nothing but constants: two loops may make it at once, and one
// of the two is kept. The value is not written to afterwards.
type Shared[T any] struct{ made atomic.Pointer[T] }

// Get returns the value, made by the function if nobody has yet.
func (s *Shared[T]) Get(create func() *T) *T {
	if v := s.made.Load(); v != nil {
		return v
	}
	s.made.CompareAndSwap(nil, create())
	return s.made.Load()
}
