package program

import (
	"slices"

	"github.com/drydock-sim/drydock/ground/usage"
)

// With returns what a program does that has another beside it (Program.Beside): it answers on the
// ports of both, writes the lines of both and uses what both use. Of a port that both state, the
// other says what it answers. All else is b's.
func (b *Behaviour) With(other *Behaviour) *Behaviour {
	with := *b
	with.Memory, with.CPU = sum(b.Memory, other.Memory), sum(b.CPU, other.CPU)
	with.Processes, with.LogBytes = sum(b.Processes, other.Processes), sum(b.LogBytes, other.LogBytes)
	with.Writes, with.Logs = joined(b.Writes, other.Writes), joined(b.Logs, other.Logs)
	if len(other.Ports) > 0 {
		with.others = b.others || b.Ports == nil
		with.Ports = slices.Clone(other.Ports)
		for _, p := range b.Ports {
			if !other.lists(p.Port) {
				with.Ports = append(with.Ports, p)
			}
		}
	}
	return &with
}

// sum adds two curves; nil is that of a program that says nothing.
func sum(a, b *usage.Curve) *usage.Curve {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return a.Plus(b)
}

// joined appends to a list that may be shared.
func joined[T any](a, b []T) []T {
	if len(b) == 0 {
		return a
	}
	return slices.Concat(a, b)
}
