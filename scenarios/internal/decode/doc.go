// Package decode reads YAML documents strictly into Go values, by the names in
// their json tags, and remembers where everything is written.
//
//	r := decode.NewReader(readFile)
//	r.Found = func(v any, at decode.Place) { ... } // what wants to be checked
//	for _, doc := range r.Documents("web.yaml", data) {
//		doc.Decode(&scenario)
//	}
//	return r.Err() // all that is wrong, by file and line
//
// It knows the scalars of Go and of Kubernetes, but no document: types that are
// written otherwise than their Go types say decode themselves (Custom).
//
// The central type is Place (place.go): a field of a document with its value,
// its path and its position. Decoding walks from place to place (decode.go,
// scalars.go); whoever checks a decoded value gets the value's place and reports
// what is wrong there, or at a field below it. Nobody finds a field again from
// the text of its path, except where somebody else's validation names it.
//
// yaml.go turns a file into trees in which aliases and merge keys are expanded,
// so that each node is one place; override.go applies --set to such a tree;
// errors.go has the errors.
package decode
