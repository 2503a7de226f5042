// Package result is the outcome of a run: the verdicts of its expectations, what
// it did to pods and nodes, and what it cost.
//
// result.go has the types, which are plain data; text.go writes them for a
// reader, json.go for programs. metrics.go has what was done to pods and nodes,
// as figures that two runs can be compared by, and the census of what nodes keep
// of pods that are gone.
//
// JSON has times in seconds and lists that are never null. Its field names are
// what scripts rely on.
package result
