package scenarios_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/drydock-sim/drydock/scenarios"
)

const crash = `
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: crash}
spec:
  duration: 3m
  nodes: [{name: worker}]
  programs:
  - {match: {container: app}, runFor: 5s, exit: 1}
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: app, image: "web:1"}]}
  expect:
  - {by: 2m, that: 'restarts("web") >= 3'}
  - {always: 'restarts("web") < 3'}
`

// Load reads scenario files, Run runs one: three minutes of a crash loop in
// milliseconds, of which one expectation holds and the other doesn't.
func Example() {
	list, err := scenarios.Parse("crash.yaml", []byte(crash), scenarios.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := scenarios.Run(context.Background(), list[0], scenarios.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range result.Verdicts {
		fmt.Printf("%s: %s\n", v.Verdict.Outcome, v.Title())
	}
	fmt.Println(result.Repeat)
	// Output:
	// held: by 2m: restarts("web") >= 3
	// failed: always: restarts("web") < 3
	// drydock run crash.yaml --focus '^crash$' --seed 0
}

// A mistake in a file is named with its place, and with what was probably meant.
func ExampleParse_mistakes() {
	_, err := scenarios.Parse("web.yaml", []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: web}
spec:
  duraton: 30s
  nodes: [{name: worker}]
`), scenarios.LoadOptions{})
	fmt.Println(err)
	// Output:
	// web.yaml:6:3: spec.duraton: unknown field "duraton" (did you mean "duration"?)
}

// The timeline is what drydock run prints. Until cuts the run short: what is not
// decided by then stays open.
func ExampleRun() {
	list, err := scenarios.Parse("crash.yaml", []byte(crash), scenarios.LoadOptions{Set: []string{"spec.expect=[]"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	seed := uint64(3)
	_, err = scenarios.Run(context.Background(), list[0], scenarios.RunOptions{Seed: &seed, Until: 100 * time.Millisecond, Timeline: os.Stdout})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	//      1      0.000s  worker       node worker                              kubelet  starts
	//      2      0.085s  worker       node worker                              event    Starting: Starting kubelet.
	//      3      0.095s  worker       node worker                              event    Warning InvalidDiskCapacity: invalid capacity 0 on image filesystem
}
