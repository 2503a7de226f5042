//go:build linux

// Command actor is the test program of the conformance checks, as it runs in
// real containers: package fakecri/actor has what it does, here is the machine
// for it. It must stay small and static: no net/http, no cgo.
package main

import (
	"context"
	"os"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// main takes the turn that tasks of a world have, and never gives it back. All that the actor
// does is in package fakecri/actor, which runs in simulated containers, too.
func main() {
	w := newWorld(os.Args)
	w.mu.Lock()
	os.Exit(actor.Main(context.Background(), w))
}
