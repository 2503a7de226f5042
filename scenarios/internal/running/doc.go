// Package running runs scenarios against a simulated cluster, or in real time
// against a machine outside.
//
// Run (running.go) is the way through: build.go makes the cluster, its nodes and
// the agenda; drive.go runs the engine from one item of the agenda to the next;
// finish.go judges what is left and counts what the run cost.
//
// Three parts of a run have doors of their own:
//
//   - the agenda (agenda.go): what the timeline still has to do, done between runs
//     of the engine only, when no loop runs and all clocks show one time. What an
//     action gets to act upon is in stage.go.
//   - the journal (journal.go): takes every record, writes the timeline and the
//     trace, and keeps what explains a failed expectation.
//   - the state (state.go, cgroups.go): the cluster as expectations see it. It
//     tells them of every committed change of what they read.
//
// Nothing here changes what happens: a run with a timeline, a trace or other
// expectations has the hash of one without.
package running
