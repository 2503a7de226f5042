// Package envtest runs suites that were written for controller-runtime's envtest,
// controller-runtime's own, in a bubble of package drydocktest, with a file more that has a
// TestMain. It is a module of its own, so that controller-runtime is no dependency of
// Drydock's.
//
//	cd examples/envtest && go test -timeout 30m ./...
package envtest
