// Package parity replays recordings of the real kubelet on a simulated node and compares what the
// two showed: the statuses of pods, events, calls that change something in the runtime, timing,
// and the node.
//
// A recording names actions (pods created, deleted, patched; containers stopped behind the
// kubelet's back; a kubelet killed and started) and what was seen in one or two runs of the real
// thing. [Case.Replay] does the same actions on virtual time; the containers' own shell commands
// are interpreted. It reads the case's name, actions, configuration and machine, never its runs.
// [Judge] compares; its rules are those of judge.py beside the recordings, which a test holds it
// to.
//
// What two runs of the real kubelet differ in can't be asked of a replay: so texts are blurred
// (normalise), retries have bounds, and what has a clock of its own is compared by order alone.
// What depends on how the recorded machine happened to be (when a relist falls, how much memory
// was in use) is stated in machine.go and replay.go, each with what it was inferred from.
//
// case.go reads a recording, parse.go says where its mistakes are. replay.go sets up the node,
// actions.go does the actions, observe.go watches into an observation (observation.go). judge.go
// compares, with calls.go, events.go, status.go and timing.go for an aspect each.
package parity
