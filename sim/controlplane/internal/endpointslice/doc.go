// Package endpointslice keeps the EndpointSlices of Services that have a
// selector. It mirrors upstream's pkg/controller/endpointslice and
// k8s.io/endpointslice, which decides what goes into which slice.
//
// The pods of a service are kept in an index: a pod's change costs a lookup per
// label, and a sync costs the service's pods, and the nodes if it is to have
// hints by the zones' CPUs. Beyond that it differs from upstream in that a
// service without a clusterIP is not headless: the simulated API gives out none.
// Files: controller.go queues services and carries plans out; index.go finds the
// services of a pod; plan.go computes which slices are to be made, changed and
// removed; endpoint.go makes an endpoint of a pod; hints.go and topology.go are
// the hints by zone; triggers.go is the time in the annotation that SLO tests
// read. endpoints.go and subsets.go keep the Endpoints of the same services, once
// there are clients.
package endpointslice
