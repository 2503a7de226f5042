package facade

import (
	"context"

	"github.com/drydock-sim/drydock/ground/loop"
)

// PacedDoor is the way to an API on an engine that follows the wall clock (loop.Pacer):
// a request is served between two windows of the engine, as soon as it comes.
type PacedDoor struct {
	pacer *loop.Pacer
	loop  *loop.Loop
}

// NewPacedDoor returns the way to a loop of a pacer's engine.
func NewPacedDoor(p *loop.Pacer, l *loop.Loop) *PacedDoor { return &PacedDoor{p, l} }

// Do implements Door.
func (d *PacedDoor) Do(_ context.Context, fn func()) error {
	if err := d.pacer.On(d.loop, fn); err != nil {
		return errGone
	}
	return nil
}

// Deliver implements Door.
func (d *PacedDoor) Deliver(fn func()) { fn() }
