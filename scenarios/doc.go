// Package scenarios has the scenario document: its types, loading it strictly
// with errors that name file, line and field, overriding parts of it, and its
// JSON Schema; and the running of scenarios.
//
//	list, err := scenarios.Load("web.yaml", scenarios.LoadOptions{})
//
// The document's types are plain data. The comments on their fields are also
// the descriptions in the JSON Schema and in docs/scenarios.md; after a change
// run `go test ./scenarios -run TestGenerated -update`.
package scenarios
