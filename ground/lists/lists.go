// Package lists has the few loops over slices that package slices lacks: what
// becomes of each item, which are wanted, how many or how much they are.
//
// What comes back is nil where it is empty, as after appending nothing to a nil
// slice: whoever writes it as JSON sees null, not [].
package lists

// Map is what f makes of each item, in order.
func Map[T, R any](list []T, f func(T) R) []R {
	if len(list) == 0 {
		return nil
	}
	out := make([]R, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// Filter are the items that keep is true of, in order, in a slice of their own.
func Filter[T any](list []T, keep func(T) bool) (out []T) {
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// Count is how many items is is true of.
func Count[T any](list []T, is func(T) bool) (n int) {
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// Sum adds up what the items amount to. It knows no fractions, whose sum would
// depend on the order.
func Sum[T any, N ~int | ~int64 | ~uint64](list []T, amount func(T) N) (n N) {
	for _, x := range list {
		n += amount(x)
	}
	return n
}
