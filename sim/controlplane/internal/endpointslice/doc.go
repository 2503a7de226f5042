// Package endpointslice keeps the EndpointSlices of Services that have a
// selector. It mirrors upstream's pkg/controller/endpointslice and to
// k8s.io/endpointslice, which decides what goes into which slice.
//
// The pods of a service are kept in an index: a pod's change costs a lookup per
// label, and a sync costs the service's pods, and the nodes if it is to have hints
// by the zones' CPUs. Beyond that it differs from upstream in that a service without
// a clusterIP is not headless: the simulated API gives out none.
package endpointslice
