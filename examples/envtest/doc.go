// Package envtest runs suites that were written for controller-runtime's envtest,
// controller-runtime's own, on clusters of Drydock's: in a bubble of package drydocktest
// with a file more that has a TestMain, and in real time against package up, unmodified.
// It is a module of its own, so that neither is a dependency of Drydock's.
//
//	cd examples/envtest && go test -timeout 30m ./...
package envtest
