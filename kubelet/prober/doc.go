// Package prober runs the startup, readiness and liveness probes of containers.
// It mirrors upstream's pkg/kubelet/prober at v1.36.
//
// A worker per container and type looks at its container at each tick of its
// period, and at once when the kubelet asks for it (Manager's TriggerReadiness);
// what it finds goes to a results.Manager, whose changes the sync loop takes.
//
// # How it differs
//
// A worker is a struct and a timer. A probe that the Network answers quickly, as
// it does for programs that are stated, is the timer alone; one that runs
// something is a task while it does. Pods without probes are not in here. A
// worker that ended because its container will not run again is remembered and
// not made anew at each sync, which upstream does to no effect. Who stores a
// result never waits for the sync loop.
package prober
