// Package resourceclaim is the controller of claims of devices. It makes the claims
// that pods want from templates, reserves claims for pods that came to a node without
// the scheduler, and takes the reservations, and with the last one the devices, from
// pods that are done. It mirrors upstream's pkg/controller/resourceclaim.
//
// controller.go has the queues and what wakes them, pod.go a pod's sync and claim.go a
// claim's. A pod without claims costs a look at the length of their list.
package resourceclaim
