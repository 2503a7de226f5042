// Package value has the types of scenario documents that more than one part of
// a document writes: times and selections of nodes (values.go), Kubernetes
// objects (manifest.go), and amounts that change over time (usage.go; curve.go
// checks them and makes their curves).
//
// Each decodes itself where it is written otherwise than its Go type says, and
// checks itself where it is decoded. Checks get the value's place and a Scope:
// what they may ask of the document as a whole (scope.go).
//
// The comments on fields are also their descriptions in the JSON Schema and in
// docs/scenarios.md.
package value
