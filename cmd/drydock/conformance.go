//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/conformance"
)

// textRPCs is how many calls a failed check shows on the terminal. The report as JSON has all of
// them.
const textRPCs = 12

// conformanceFlags are the flags of drydock conformance. focus and skip are
// regular expressions that opts gets compiled; reports are files. list only names the checks;
// nothing is contacted then.
type conformanceFlags struct {
	opts                  conformance.Options
	focus, skip           string
	reportJSON, reportXML string
	list, quiet           bool
}

// newConformance is drydock conformance.
func newConformance() *cobra.Command {
	f := &conformanceFlags{}
	cmd := &cobra.Command{
		Use:   "conformance --runtime-endpoint unix:///PATH",
		Short: "Check what a kubelet needs of a container runtime, against any CRI socket",
		// The wall clock is the runtime's own, so a run takes minutes.
		Long: `Checks a container runtime over its CRI socket, in real time: its calls one by
one (cri/...), and pods that a whole kubelet core runs on it (kubelet/...). What
is checked is required or optional; a failure says what was expected, what came,
and which calls were made.

Test images are served by a registry of the run's own, on a free port of
127.0.0.1. A runtime that cannot reach that needs --test-registry, and has to
take it for one without TLS.

A run is a guest: other pods are neither touched nor seen. All that it makes is
removed at the end, also after Ctrl-C; a second Ctrl-C ends it at once.

Exit codes: 0 every required check that was run passed, 1 one failed or the run
was cut short, 2 bad input or no runtime.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.opts.Endpoint, "runtime-endpoint", "", "the runtime's socket, unix:///PATH")
	fl.StringVar(&f.opts.ImageEndpoint, "image-endpoint", "", "the socket of its image service, if that is another")
	fl.StringVar(&f.opts.TestRegistry, "test-registry", "", "host:port where to serve the test images (default a free port of 127.0.0.1)")
	fl.StringVar(&f.opts.TestRegistryName, "test-registry-name", "", "host or host:port by which the runtime reaches it, if not that")
	fl.StringVar(&f.focus, "focus", "", "only checks whose names match this regular expression")
	fl.StringVar(&f.skip, "skip", "", "no checks whose names match this regular expression")
	fl.IntVar(&f.opts.Parallel, "parallel", conformance.DefaultParallel, "how many checks run at once")
	fl.DurationVar(&f.opts.Timeout, "timeout", conformance.DefaultTimeout, "how long all may take")
	fl.StringVar(&f.reportJSON, "report-json", "", "write the report as JSON to this file")
	fl.StringVar(&f.reportXML, "report-junit", "", "write the report as JUnit XML to this file")
	fl.BoolVar(&f.list, "list", false, "only list the checks")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "only show what failed, and the summary")
	return cmd
}

// run lists the checks or runs them. Whether reports can be written is tried
// first: a run takes minutes on somebody's runtime. A check that fails is exit code 1; a runtime
// that cannot be reached is the user's to mend, and 2.
func (f *conformanceFlags) run(cmd *cobra.Command) error {
	var err error
	if f.opts.Focus, err = pattern("--focus", f.focus); err != nil {
		return &codeError{exitBadInput, err}
	}
	if f.opts.Skip, err = pattern("--skip", f.skip); err != nil {
		return &codeError{exitBadInput, err}
	}
	if cmd.Flags().Changed("parallel") && f.opts.Parallel < 1 {
		return badInput("--parallel: %d is less than 1", f.opts.Parallel)
	}
	if cmd.Flags().Changed("timeout") && f.opts.Timeout <= 0 {
		return badInput("--timeout: %v is no time", f.opts.Timeout)
	}
	out := cmd.OutOrStdout()
	list, err := conformance.List(f.opts)
	if err != nil {
		return &codeError{exitInternal, err}
	}
	if len(list) == 0 {
		return badInput("no check has a name that --focus and --skip leave over; --list shows them all")
	}
	if f.list {
		return writeChecks(out, list)
	}
	if err := writable("--report-json", f.reportJSON); err != nil {
		return err
	}
	if err := writable("--report-junit", f.reportXML); err != nil {
		return err
	}
	// Results come in the order in which checks end, since several run at once.
	f.opts.Progress = func(r conformance.Result) {
		// Failures are always shown; what --focus left out is not worth a line.
		if !f.quiet && !(r.Status == conformance.Skipped && f.opts.Focus != nil && !f.opts.Focus.MatchString(r.Name)) || r.Status == conformance.Failed {
			conformance.WriteLine(out, r, textRPCs)
		}
	}
	f.opts.Log = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), "drydock: "+s) }
	// From here on, what a run makes has to be removed.
	defer holdSignals(cmd.Context())()
	report, err := conformance.Run(cmd.Context(), f.opts)
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	report.Version = version()
	report.WriteSummary(out)
	if err := writeReport(f.reportJSON, report.WriteJSON); err != nil {
		return &codeError{exitInternal, err}
	}
	if err := writeReport(f.reportXML, report.WriteJUnit); err != nil {
		return &codeError{exitInternal, err}
	}
	// The summary has said why.
	if !report.Conforms() {
		return &codeError{exitFailed, nil}
	}
	return nil
}

// echo is how long after the first signal others count as the same: timeout(1)
// and some supervisors send theirs twice, and a run that is killed leaves pods.
const echo = 3 * time.Second

// holdSignals keeps a second signal from killing the process until a moment after
// the first, which has ended ctx. The cleanup that follows the first signal
// removes what was made; a second signal soon after is most likely the same, sent
// to the whole process group. After the echo the signals have their default again, so a third
// Ctrl-C kills a cleanup that hangs.
func holdSignals(ctx context.Context) (release func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(echo, func() { signal.Stop(ch) }) })
	return func() {
		stop()
		signal.Stop(ch)
	}
}

// writeChecks lists checks: name, level and what is expected.
func writeChecks(out io.Writer, list []conformance.Listed) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Level, c.Expect)
	}
	return w.Flush()
}
