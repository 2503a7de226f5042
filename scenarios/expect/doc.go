// Package expect compiles and judges a scenario's expectations: expressions in CEL over the
// cluster's state, each with a time form (at, by, always, never, for).
//
// A [Compiler] type-checks expressions against the Kubernetes types by reflection, without JSON.
// An [Expectation] is immutable and serves many runs at once; what belongs to a run is in an
// [Engine], which is told of every change of the cluster's state and re-evaluates what reads it,
// and only that.
//
// What is absent reads as nothing rather than failing: an absent scalar as its zero value, an
// absent object as an empty one, an absent map key or list element likewise. has() and exists()
// tell. So an expectation about a pod that is not there yet is false and no error.
//
// An aggregate over all objects of a kind (pods().all(p, ...), .exists(...), .filter(...).size()
// and their like) keeps a verdict per object and counters, so that a change of one object costs
// one evaluation of the predicate. With a hundred thousand pods it is that, or no expectations at
// all.
//
// Whatever is put off or left out, verdicts are those of an engine that evaluates everything
// after each change ([Options.Naive]); a test holds both against each other.
//
// # Files
//
// state.go has what the package is given: the cluster's state, the forms, what an expectation
// says. compile.go checks and rewrites expressions, in the environment of env.go and objects.go,
// with the types of types.go and values.go; aggregate.go finds the aggregates in them. engine.go
// is told of changes, judge.go decides, history.go remembers transitions, explain.go says why
// something failed. view.go is the state as expressions see it; usage.go, cgroups.go and
// functions.go are its further functions.
package expect
