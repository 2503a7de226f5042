// Package pleg is the pod lifecycle event generator: it compares what the
// runtime lists with what it listed before, inspects the pods that changed,
// puts their status into the pod cache and tells the sync loop. It mirrors
// upstream's pkg/kubelet/pleg/generic.go.
//
// With the gate EventedPLEG the runtime tells itself of what happens to containers
// ([Evented], upstream's evented.go), and relists are rare, until its stream has failed
// five times.
//
// It differs in that a relist which could show nothing new costs nothing: if
// the runtime has a generation number and that has not changed since the last
// good relist, the listing is skipped and its visible effects (the time of the
// last relist, the cache's global time, readers served) happen all the same.
package pleg
