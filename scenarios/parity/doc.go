// Package parity replays recordings of the real kubelet on a simulated node and
// compares what the two showed: the statuses of pods, events, calls that change
// something in the runtime, timing, and the node.
//
// A recording names actions (pods created, deleted, patched; containers stopped
// behind the kubelet's back; a kubelet killed and started) and what was seen in
// one or two runs of the real thing. [Case.Replay] does the same actions on
// virtual time; the containers' own shell commands are interpreted. It reads the
// case's name, actions, configuration and machine, never its runs. [Judge]
// compares; its rules are those of judge.py beside the recordings, which a test
// holds it to.
package parity
