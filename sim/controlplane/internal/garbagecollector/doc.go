// Package garbagecollector deletes objects whose owners are gone, and carries
// out foreground deletion and orphaning. It mirrors upstream's
// pkg/controller/garbagecollector.
//
// Upstream keeps a graph of all objects. Here there is an entry per owner, with
// the number of its pods and the keys of its other dependents: the pods of an
// owner are looked for when it is deleted, from the youngest pod on until all
// have been found.
package garbagecollector
