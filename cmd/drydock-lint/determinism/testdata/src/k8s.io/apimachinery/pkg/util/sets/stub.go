package sets

type Set[T comparable] map[T]struct{}

func (s Set[T]) UnsortedList() []T { return nil }

func List[T comparable](s Set[T]) []T { return nil }
