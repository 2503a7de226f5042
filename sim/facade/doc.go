// Package facade is the door of a cluster's API for real clients: an [http.Handler]
// that speaks the Kubernetes API over HTTP as kube-apiserver v1.36 does.
//
// It stands on the handlers of k8s.io/apiserver (endpoints/handlers), which decode,
// negotiate, patch, track managed fields and stream watches. Behind them is one
// storage for all kinds ([storage]), which hands each request to the API's loop.
//
// # Edge and loop
//
// The facade is an edge: its handlers run on goroutines, those of an HTTP server or of
// clients in process. The API's state lives on a loop. A request crosses once, by the
// [Door] that the facade was given: what reads or writes the state runs on the loop, as
// one step, and so do a patch's or an update's changes of the stored object. Objects
// that come back are shared with the state and are never written to: the facade copies
// an object's struct before a library sees it.
//
//   - facade.go: routing, from a path to a kind's handler
//   - door.go: how requests get to the loop and events from it
//   - users.go: who sends a request
//   - scope.go: what the library is told of a kind
//   - storage.go: the verbs, on the loop
//   - list.go, history.go: lists in pages, and of the past
//   - watch.go, bookmarks.go: who is told of changes
//   - partial.go: reads that ask for metadata where there is none
//   - virtual.go: kinds of which nothing is stored; podaccess.go: what leads out of the API
//   - discovery.go, root.go, health.go: what is served, and what is outside of groups
//   - openapi.go: what types are made of, by package internal/openapi
package facade
