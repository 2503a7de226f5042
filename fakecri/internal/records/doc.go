// Package records is what the runtime knows: sandboxes, containers and their
// processes as records, and the store that finds and lists them. Records are data.
// Package lifecycle changes their states, package process their processes.
//
// # Memory
//
// A simulation has 150,000 pods, so a record holds what most containers need, and
// what few need is in a map of whoever needs it. Replicas share configurations: a
// sandbox or container that was made with a lean request has the part that is its
// own made when somebody looks (lean.go).
//
// # Changes
//
// Store.Gen grows with each change of what a call could answer, and
// Store.Watchers are told. Clients that list again and again are told of the pods
// that changed since they last asked instead (listchanges.go); each has a Lister,
// which is a short list of pods or, when many changed, the word that any may have.
//
// # Files
//
// store.go has the store, sandbox.go, container.go and process.go the records,
// signals.go and events.go names of the CRI. lookup.go finds by id, find.go by a
// pod's name; list.go lists. warner.go says what is not acted on.
package records
