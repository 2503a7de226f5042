// Package images makes the test images of the conformance checks and serves
// them: a static program of ours (package conformance/actor) with the
// configurations that package fakecri/actor lists, in an in-process registry,
// so that a runtime really pulls them and no internet is needed.
//
// # The program
//
// It is embedded when it was built before drydock was: `make build` and
// `go generate ./conformance/images` do that, into bin, which is not committed.
// A drydock that was built without it builds it with the go command if it runs
// in a checkout, and otherwise says that it has none.
//
// # Names
//
// Images are named as scenario files have them, "drydock-actor:1"; a
// [Registry] knows their full references. Whatever stands between "drydock/"
// and the last element of a repository's name is an alias: a check that counts
// pulls, or that wants trouble of its own, pulls "drydock/check-17/drydock-actor"
// and has the repository for itself. Some aliases are trouble from the start;
// see actor.TroubleOf.
package images
