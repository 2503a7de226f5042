// Package envtest runs suites that were written for controller-runtime's envtest,
// controller-runtime's own, in a bubble of package drydocktest, with a file more that has a
// TestMain; and specs of Ginkgo's, each in a bubble of its own. It is a module of its own, so
// that controller-runtime and Ginkgo are no dependencies of Drydock's.
//
//	cd examples/envtest && go test -timeout 30m ./...
package envtest
