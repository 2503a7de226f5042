// Package suite_test runs every scenario of the library, one It each:
//
//	go test ./scenarios/suite
//	go tool ginkgo -p ./scenarios/suite        # in parallel processes
//	DRYDOCK_SEEDS=20 go test ./scenarios/suite # each with 20 seeds
package suite_test

import (
	"os"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gleak"

	"github.com/drydock-sim/drydock/scenarios"
	. "github.com/drydock-sim/drydock/scenarios/matchers"
)

const library = "../library"

func TestLibrary(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The scenario library")
}

// seeds is with how many seeds each scenario runs: its own, then others. Under the race detector,
// for which -short is, others would show nothing more.
func seeds() int {
	if testing.Short() {
		return 1
	}
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
			before := Goroutines()
			if s.Metadata.Labels["scale"] != "" {
				if testing.Short() {
					Skip("a large scenario")
				}
				// Once: that the cores don't count is shown by the others.
				Expect(scenarios.Run(ctx, s, scenarios.RunOptions{Workers: 2})).To(Pass())
				return
			}
			n := seeds()
			for i := range n {
				seed := s.Spec.Seed + uint64(i)
				one, err := scenarios.Run(ctx, s, scenarios.RunOptions{Seed: &seed, Workers: 1})
				Expect(err).NotTo(HaveOccurred())
				Expect(one).To(Pass())
				if i > 0 {
					continue
				}
				two, err := scenarios.Run(ctx, s, scenarios.RunOptions{Seed: &seed, Workers: 2})
				Expect(err).NotTo(HaveOccurred())
				Expect(two.Summary.Hash).To(Equal(one.Summary.Hash), "the hash on two cores")
			}
			Eventually(Goroutines).ShouldNot(HaveLeaked(before))
		})
	}
})
