// Package suite_test runs every scenario of the library, one It each:
//
//	go test ./scenarios/suite
//	go tool ginkgo -p ./scenarios/suite        # in parallel processes
//	DRYDOCK_SEEDS=20 go test ./scenarios/suite # each with 20 seeds
package suite_test

import (
	"context"
	"os"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/drydock-sim/drydock/scenarios"
	. "github.com/drydock-sim/drydock/scenarios/matchers"
)

const library = "../library"

func TestLibrary(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The scenario library")
}

// seeds is with how many seeds each scenario runs: its own, then others.
func seeds() int {
	if n, err := strconv.Atoi(os.Getenv("DRYDOCK_SEEDS")); err == nil {
		return n
	}
	return 3
}

var _ = Describe("library", func() {
	list, err := scenarios.LoadPaths([]string{library}, scenarios.LoadOptions{})
	if err != nil {
		It("loads", func() { Expect(err).NotTo(HaveOccurred()) })
		return
	}
	for _, s := range list {
		It(s.Metadata.Name, func(ctx SpecContext) {
			n := seeds()
			if s.Metadata.Labels["scale"] != "" {
				if testing.Short() {
					Skip("a large scenario")
				}
				n = 1
			}
			for i := range n {
				opts := scenarios.RunOptions{}
				if i > 0 {
					seed := s.Spec.Seed + uint64(i)
					opts.Seed = &seed
				}
				Expect(s.Run(context.WithoutCancel(ctx), opts)).To(Pass())
			}
		})
	}
})
