// Package expect compiles and judges a scenario's expectations: expressions in
// CEL over the cluster's state, each with a time form (at, by, always, never,
// for).
//
// A [Compiler] type-checks expressions against the Kubernetes types by
// reflection, without JSON. An [Expectation] is immutable and serves many runs
// at once; what belongs to a run is in an [Engine], which is told of every
// change of the cluster's state and re-evaluates what reads it, and only that.
//
// What is absent reads as nothing rather than failing: an absent scalar as its
// zero value, an absent object as an empty one, an absent map key or list
// element likewise. has() and exists() tell.
//
// An aggregate over all objects of a kind (pods().all(p, ...), .exists(...),
// .filter(...).size() and their like) keeps a verdict per object and counters,
// so that a change of one object costs one evaluation of the predicate.
package expect
