// Package clusterapi runs Cluster API's controllers of machines, machine sets, machine
// deployments and machine health checks, as their module has them, in virtual time. The
// machines that they ask for are nodes of the simulated cluster, which a small provider
// of infrastructure hands out, so that they really die. It is a module of its own, so that
// Cluster API is no dependency of Drydock's.
//
//	cd examples/clusterapi && go test ./...
package clusterapi
