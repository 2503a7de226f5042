// Package scenarios is the door to scenarios: loading them, running them, and
// what a run comes to.
//
//	list, err := scenarios.Load("web.yaml", scenarios.LoadOptions{})
//	result, err := scenarios.Run(ctx, list[0], scenarios.RunOptions{})
//	result.WriteText(os.Stdout, true)
//
// Behind it, each package imports only those above it here:
//
//   - internal/decode reads YAML strictly into Go values and remembers where
//     everything is written; internal/suggest finds the name that was meant;
//     internal/text writes numbers and times;
//   - value has the types that more than one part of a document writes;
//   - action is the catalogue of what a timeline can do, one file an action;
//   - document is the document: its types, each with its check, and its loading;
//   - expect compiles and judges expectations;
//   - internal/timeline tells in words what records say, one line each;
//   - result is the outcome of a run, as text and JSON;
//   - internal/running runs a scenario against a cluster;
//   - compare has what two scenarios came to, side by side.
//
// library has the scenario files that ship with Drydock, suite runs them under
// Ginkgo, matchers is for others' suites, long has scenarios that take minutes,
// and parity replays recordings of a real kubelet.
//
// The document's types are plain data. The comments on their fields are also
// the descriptions in the JSON Schema and in docs/scenarios.md; after a change
// run `go test ./scenarios -run TestGenerated -update`.
package scenarios
