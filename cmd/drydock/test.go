package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/drydocktest/gotest"
)

// newTest is drydock test.
func newTest() *cobra.Command {
	var o gotest.Options
	var seeds string
	cmd := &cobra.Command{
		Use:   "test [package...] [-- go test flags]",
		Short: "Run go test for controllers in virtual time, under many seeds",
		Long: `Test runs go test in the present module. Its Go is the installed one with an
overlay: the order of maps, the choices of selects and what math/rand/v2 draws
are fixed, so that tests of package drydocktest are the same again in more cases
than plain go test has them be. The first run builds Go's own packages anew,
which takes minutes.

With --seeds everything is run under one seed after the other, which takes the
place of the tests' own. The summary has a line for each test that failed, with
the command that repeats it. Without packages those in the present directory are
run.

Exit codes: 0 all tests passed, 1 one failed, 2 bad input, 3 go test could not be run.`,
		Example: `  drydock test ./...
  drydock test --seeds 1-20 ./controllers -- -run TestShop -race`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if seeds != "" {
				var err error
				if o.Seeds, err = parseSeeds(seeds); err != nil {
					return err
				}
			}
			o.Args, o.Out, o.Err = args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			s, err := gotest.Run(cmd.Context(), o)
			if s != nil {
				if werr := s.Write(cmd.OutOrStdout()); werr != nil {
					return &codeError{exitInternal, werr}
				}
			}
			switch {
			case err != nil:
				return &codeError{exitInternal, fmt.Errorf("test: %w", err)}
			case !s.OK():
				return &codeError{exitFailed, nil}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&seeds, "seeds", "", "seeds to run under, such as 1-20 or 3,7 (default: the tests' own)")
	fl.BoolVar(&o.NoOverlay, "no-overlay", false, "leave the order of maps and selects to chance, as go test does")
	fl.BoolVarP(&o.Verbose, "verbose", "v", false, "show what tests print that pass, too")
	return cmd
}
