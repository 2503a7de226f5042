// Command drydock runs scenarios: simulated Kubernetes nodes, with full kubelet
// behaviour, on a virtual clock.
//
// There is no logic of the simulation here: flags become options of a package
// below, and what that returns becomes text, JSON or JUnit. A command is a file:
// run.go with seeds.go, select.go and output.go; compare.go; scale.go with its
// input, progress, report and garbage collection in scale_*.go; parity.go;
// fakecri.go and fakecri_listen.go; conformance.go; kubelet.go; rig.go; up.go and ctl.go; the
// small ones in simple.go.
//
// Every command keeps to three rules. Bad input is found before anything runs,
// and ends with exit code 2 and one line that says file and line, or the flag.
// What a machine reads goes to stdout, what a person watches to stderr as soon as
// the two differ. A signal ends a run with what there is. Scripts in
// testdata/script hold all three.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/scenarios"
)

// The exit codes.
const (
	// They are part of the interface: CI jobs go by them. exitFailed stands for an outcome,
	// exitBadInput for something to mend in files or flags, exitInternal for a mistake in
	// Drydock.
	exitOK       = 0
	exitFailed   = 1 // an expectation failed
	exitBadInput = 2
	exitInternal = 3
)

// codeError is an error with an exit code. One with a nil err was reported. What is returned by a
// RunE without being one is cobra's own complaint, and so bad input.
type codeError struct {
	code int
	err  error
}

// Error implements error.
func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap lets errors.As find what is wrong with a scenario.
func (e *codeError) Unwrap() error { return e.err }

// badInput is a mistake of the user: it ends the program with exitBadInput. %w keeps what the
// error is about for errors.As.
func badInput(format string, args ...any) error {
	return &codeError{exitBadInput, fmt.Errorf(format, args...)}
}

// main runs the command line of the process, until its end or a signal. Nothing but execute runs
// here, so that deferred functions of commands run before os.Exit.
func main() {
	// Nobody reads the heap's profile, which the API's libraries bring along.
	runtime.MemProfileRate = 0
	// The simulator's garbage is short-lived; collecting less often is worth
	// the memory. GOGC in the environment still decides.
	if os.Getenv("GOGC") == "" {
		// 400 lets the heap grow to five times what lives.
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends a run with what there is; the next one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit code. Tests call it with a
// context and buffers of their own; it keeps nothing between calls. It returns rather than exits.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var ce *codeError
	if !errors.As(err, &ce) {
		ce = &codeError{exitBadInput, err} // cobra's own: an unknown flag or command
	}
	if ce.err != nil {
		complain(stderr, ce.err)
	}
	return ce.code
}

// maxErrors bounds how many errors of scenarios are shown. The rest are mostly consequences of
// the first.
const maxErrors = 100

// complain writes an error, one line each: what is wrong with scenarios as
// file:line:column: message, so that editors can follow it. Other errors lose
// their line breaks, because a line is an error for whoever reads them. Positions are relative to
// where the user is, as the files were named.
func complain(w io.Writer, err error) {
	var list scenarios.LoadErrors
	if errors.As(err, &list) {
		for i, e := range list {
			if i == maxErrors {
				fmt.Fprintf(w, "drydock: and %d more errors\n", len(list)-maxErrors)
				break
			}
			if e.Pos.File == "" {
				fmt.Fprintf(w, "drydock: %v\n", e)
				continue
			}
			fmt.Fprintln(w, e)
		}
		return
	}
	fmt.Fprintf(w, "drydock: %s\n", strings.Join(strings.Fields(err.Error()), " "))
}

// someArgs wants at least one file or directory. cobra's own check would say how
// many arguments are missing, not which.
func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: name a scenario file or a directory of them; see drydock %s --help", cmd.Name(), cmd.Name())
	}
	return nil
}

// newRoot is the command with all others below it. cobra prints neither errors
// nor usage: execute does, in one line. Commands are made anew for each call: flags hold state.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "drydock",
		Short: "The kubelet in dry dock: simulated Kubernetes nodes on a virtual clock",
		Long: `Drydock runs scenarios: files that say which nodes there are, what happens to
them and when, and what is expected. Each node has a whole kubelet core, on a
virtual clock, over an in-memory container runtime, so that hours pass in
seconds and every run can be repeated.

Exit codes: 0 all expectations held, 1 one failed or the run was interrupted,
2 bad input, 3 internal error.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newScale(), newCompare(), newList(), newValidate(), newInit(), newSchema(), newParity(), newFakecri(), newConformance(), newRig(), newKubelet(), newUp(), newCtl(), newTest(), newVersion())
	return root
}
