// Package action is the catalogue of what a timeline can do: one file an action,
// all of one shape.
//
// An action is a struct whose name, begun in lower case, is its field in the
// timeline, with
//
//   - its fields, whose comments are their descriptions in the JSON Schema and in
//     docs/scenarios.md; the comment on the struct describes the action, with a
//     paragraph "In the timeline: ..." for its field there if that says more;
//   - Check, if there is something to check or a default to fill in that the
//     types don't say;
//   - Do, what it does to the cluster, with the words that the timeline has for
//     it: what a Do notes is its line there.
//
// What else can be said of an action is an interface beside these: that it
// creates pods (Creator) or objects that are to be compared (Applier), that no
// machine outside knows it (OnlySimulated).
//
// To add one, write its file and run
//
//	go test ./scenarios/action ./scenarios -run 'TestCatalogue|TestGenerated' -update
//
// which lists it in catalogue.go, the schema and the docs. Loading, running,
// conformance, comparing take it from there.
//
// Beside the actions: action.go and stage.go have what they are and what they get
// to act upon; nodes.go, container.go, sandbox.go what several of them say alike;
// churn.go the pods of a template that come and go.
package action
