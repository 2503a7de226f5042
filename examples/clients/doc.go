// Package clients has what others write against the Kubernetes API run unmodified
// against a cluster of Drydock: informers, leader election, server-side apply, a
// manager of controller-runtime, Helm and kubectl. It is a module of its own, so that
// none of them is a dependency of Drydock's.
//
//	cd examples/clients && go test ./...
package clients
