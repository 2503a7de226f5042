//go:build linux

package conformance_test

import (
	"fmt"
	"regexp"

	"github.com/drydock-sim/drydock/conformance"
)

// List names the checks that Run would make, with what each expects.
func ExampleList() {
	checks, err := conformance.List(conformance.Options{Focus: regexp.MustCompile("^cri/container/(create|attempts)$")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range checks {
		fmt.Println(c.Level, c.Name)
	}
	// Output:
	// required cri/container/attempts
	// required cri/container/create
}
