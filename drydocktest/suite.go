package drydocktest

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime/pprof"
	"testing"
)

// Main runs all tests of a package in one bubble with one cluster, and returns the code to
// exit with: for suites that were written for envtest, whose TestMain starts an
// environment that their tests share.
//
//	func TestMain(m *testing.M) {
//		os.Exit(drydocktest.Main(m, drydocktest.Options{CRDs: crds}, func(c *drydocktest.Cluster) { config = c.Config("suite") }))
//	}
//
// start is called in the bubble before the first test. Its tests are as ever: they may
// call t.Run and t.Parallel, and time passes as fast as the machine can. What they leave behind
// is told, and ends with the process.
//
// package testing has no way to run tests in a bubble, so that Main reaches for what a
// testing.M keeps for itself. It says so and returns 2 should that be kept elsewhere one
// day.
func Main(m *testing.M, o Options, start func(c *Cluster)) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	own := reflect.ValueOf(m).Elem().FieldByName("tests")
	if !own.IsValid() || own.Type() != reflect.TypeFor[[]testing.InternalTest]() {
		fmt.Fprintln(os.Stderr, "drydocktest: Main doesn't know this version of package testing")
		return 2
	}
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run()
	}
	list := (*[]testing.InternalTest)(own.Addr().UnsafePointer())
	tests := *list
	// Flags choose among the suite's tests, not whether there is a suite. How often is said
	// to the suite alone: each time has a cluster of its own.
	run, skip := setFlag("test.run", ""), setFlag("test.skip", "")
	*list = []testing.InternalTest{{Name: "DrydockSuite", F: func(t *testing.T) {
		setFlag("test.run", run)
		setFlag("test.skip", skip)
		count := setFlag("test.count", "1")
		defer func() {
			setFlag("test.run", "")
			setFlag("test.skip", "")
			setFlag("test.count", count)
		}()
		Run(t, o, func(t *testing.T, c *Cluster) {
			// What is left of a suite ends with its process.
			pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels(processLabel, "the suite")))
			start(c)
			if !testing.RunTests(matches, tests) {
				t.Error("tests of the suite failed")
			}
		})
	}}}
	return m.Run()
}

// setFlag sets a flag and returns what it was.
func setFlag(name, value string) (was string) {
	f := flag.Lookup(name)
	was = f.Value.String()
	if err := f.Value.Set(value); err != nil {
		panic(fmt.Sprintf("drydocktest: -%s: %v", name, err)) // was a value of it before
	}
	return was
}

// matches is how package testing's flags choose tests.
func matches(pattern, name string) (bool, error) { return regexp.MatchString(pattern, name) }

// Spec is Run for runners of tests whose failures are panics, such as Ginkgo: one of body is
// one of Spec's. t is the suite's, at which the specs are run:
//
//	var suite *testing.T
//
//	func TestShops(t *testing.T) {
//		suite = t
//		RegisterFailHandler(Fail)
//		RunSpecs(t, "Shops")
//	}
//
//	var _ = It("survives a node", func() {
//		drydocktest.Spec(suite, options, func(t *testing.T, c *drydocktest.Cluster) { ... })
//	})
//
// In body Gomega's Eventually and Consistently take the cluster's time. Contexts that the
// runner gives are from outside of the bubble: use that of body's t.
func Spec(t *testing.T, o Options, body func(t *testing.T, c *Cluster)) {
	t.Helper()
	var failure any
	Run(t, o, func(t *testing.T, c *Cluster) {
		defer func() { failure = recover() }()
		body(t, c)
	})
	if failure != nil {
		panic(failure)
	}
}
