// Package dra has DRA drivers prepare the devices of pods' ResourceClaims before a pod
// starts, and take them back when it has ended. It mirrors upstream's
// pkg/kubelet/cm/dra.
//
// Where upstream goes through a map of drivers, here they come in the order of their
// names.
//
// manager.go prepares and unprepares, claims.go has the claims that pods of the node use,
// checkpoint.go keeps them over a restart. plugins.go has
// the drivers, and health.go what they say of their devices.
package dra
