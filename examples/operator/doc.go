// Package operator is a small operator as anybody writes them, and its tests in virtual
// time. A Shop is a Deployment with a ConfigMap: the operator makes both, says in the
// status how many pods are ready, and cleans up when the shop goes. It is a module of its
// own, so that controller-runtime is no dependency of Drydock's.
//
//	cd examples/operator && go test ./...
package operator
