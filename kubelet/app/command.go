//go:build linux

// Package app is the command line of the kubelet on a real machine: flags,
// configuration files and how they are laid over each other, validation, and the
// process around the kubelet of kubelet/real (lock file, health checks,
// systemd, signals). It mirrors upstream's cmd/kubelet/app at v1.36, whose
// flags, messages and exit codes it has.
//
// What can be set and has no effect is told at the start, see [Ignored].
//
// The files by the way of a start: command.go is the command, parse.go reads
// flags, files and flags again, options.go and configflags.go have the flags,
// values.go their forms, config.go reads configuration files, host.go asks the
// machine, ignored.go names what has no effect, run.go makes the kubelet's
// options and runs it, lock.go, logging.go, systemd.go and fetch.go are what a
// process needs beside.
//
// This is an edge: it may read clocks, start goroutines and exit, which the
// kubelet itself never does.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	v1 "k8s.io/api/core/v1"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/real"
)

// Deps are what the command takes from others. The kubelet's packages know no API server; these
// hooks are what keeps it so.
type Deps struct {
	// Defaulter fills in the API's defaults in static pods, Validator judges them
	// as the API would.
	Defaulter func(*v1.Pod)
	Validator func(*v1.Pod) error
	// Run runs a kubelet; nil means real.Run.
	Run func(ctx context.Context, o real.Options) error
}

// long is the help's text. It says what differs for whoever knows upstream's.
const long = `The kubelet is the node agent: it makes the containers of the pods that it is
told of run, restarts and probes them, and removes what is no longer wanted. It
doesn't touch containers that it didn't create.

Pods come from the API server (--kubeconfig), from manifests in a file or a
directory (--pod-manifest-path, looked at every 20s and after each change), and
from a URL (--manifest-url, fetched every 20s). Without --kubeconfig it runs
standalone.

This is the core that drydock simulates, on the wall clock, with a real
container runtime behind a CRI socket. Flags and configuration files are those
of the kubelet of Kubernetes ` + kubelet.Version + `; what has no effect yet is named at the
start. A stopped kubelet leaves containers running, and the next one takes them
over.`

// NewCommand returns the command. It parses its flags itself, since those of
// the command line are read again over configuration files. Its errors are for
// LogFailure; the exit code is 1.
// cobra sees none of the flags, hence the help of its own.
func NewCommand(deps Deps) *cobra.Command {
	if deps.Run == nil {
		deps.Run = real.Run
	}
	cmd := &cobra.Command{
		Use:                "kubelet",
		Short:              "Run the kubelet on this machine, on a CRI socket",
		Long:               long,
		DisableFlagParsing: true,
		SilenceErrors:      true,
		SilenceUsage:       true,
	}
	// Each call parses anew, so a command value may be run more than once.
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return execute(cmd, args, &deps) }
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		cl, err := newCommandLine(cmd.ErrOrStderr())
		if err != nil {
			return
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", cmd.Long, cmd.CommandPath(), wrapUsages(cl.set.FlagUsages(), widthOf(cmd.OutOrStdout())))
	})
	return cmd
}

// plainWidth is how wide the help is where there is no terminal.
const plainWidth = 100

// usageIndent is how far to the right what a flag does stands, below its name.
const usageIndent = 10

// flagLine is a line of FlagUsages that begins a flag: its name and type, and what it does.
var flagLine = regexp.MustCompile(`^(\s*(?:-\w, )?\s*--\S+(?: \S+)?)\s{2,}(.*)$`)

// wrapUsages breaks what flags do at a width. pflag's own wrapping stops at the first word that
// is longer than a line.
func wrapUsages(usages string, width int) string {
	var b strings.Builder
	at := 0 // in the line
	words := func(text string) {
		for _, w := range strings.Fields(text) {
			if at > 0 && at+1+len(w) > width {
				b.WriteString("\n")
				at = 0
			}
			if at == 0 {
				b.WriteString(strings.Repeat(" ", usageIndent))
				at = usageIndent
			} else {
				b.WriteString(" ")
				at++
			}
			b.WriteString(w)
			at += len(w)
		}
	}
	for line := range strings.Lines(usages) {
		line = strings.TrimRight(line, "\n")
		if m := flagLine.FindStringSubmatch(line); m != nil {
			if at > 0 {
				b.WriteString("\n")
			}
			b.WriteString(m[1] + "\n")
			at, line = 0, m[2]
		} else if at > 0 {
			b.WriteString("\n") // a line break of the usage's own
			at = 0
		}
		words(line)
	}
	return b.String() + "\n"
}

// widthOf is how wide the lines of a help may be.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return plainWidth
}

// execute is one run of the command, in upstream's order: flags alone first, so
// that --help and --version work beside a broken configuration file; then
// files; then logging, since its settings may be in a file; and only then what
// is logged. Errors before logging is set up are logged with klog's defaults, as upstream's.
func execute(cmd *cobra.Command, args []string, deps *Deps) error {
	if err := registerFormats(); err != nil {
		return err
	}
	cl, err := newCommandLine(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := cl.parse(args); err != nil {
		return err
	}
	if cl.global.help {
		return cmd.Help()
	}
	switch cl.global.version.text {
	case "true":
		fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s\n", kubelet.Version)
		return nil
	case "raw":
		fmt.Fprintf(cmd.OutOrStdout(), "version.Info{GitVersion:%q, GoVersion:%q, Compiler:%q, Platform:%q}\n",
			kubelet.Version, runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH)
		return nil
	}
	if err := cl.load(args); err != nil {
		return err
	}
	if err := startLogging(cl.config); err != nil {
		return err
	}
	defer klog.Flush()
	cliflag.PrintFlags(cl.set)
	cl.warn()
	if err := cl.check(); err != nil {
		return err
	}
	// The percentage was set higher by the program around it.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100) // a daemon's garbage, not a simulator's
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	if err := run(ctx, cl, deps); err != nil {
		return fmt.Errorf("failed to run Kubelet: %w", err)
	}
	return nil
}

// warn tells what the configuration says that is doubtful, or does nothing.
// None of it keeps the kubelet from running. The order is upstream's as far as it has the lines.
func (cl *commandLine) warn() {
	if cl.lenient != nil {
		klog.InfoS("Using lenient decoding as strict decoding failed", "err", cl.lenient)
	}
	for _, w := range features.Warnings(cl.config.FeatureGates) {
		klog.Warningf("Warning: %s", w)
	}
	for _, file := range cl.skipped {
		klog.V(4).InfoS("Skipped file in drop-in directory (does not have .conf extension)", "file", file)
	}
	if os.Geteuid() != 0 {
		klog.ErrorS(errors.New("the user is not root"), "Kubelet running with insufficient permissions")
	}
	for _, w := range Ignored(cl.config, cl.set) {
		klog.Warning(w)
	}
}

// untilSignal returns a context that ends at the first SIGTERM or SIGINT. The
// second one ends the process at once.
// Whoever sends a second one doesn't want to wait for the first's effect.
func untilSignal(parent context.Context) (context.Context, func()) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-signals:
				if n > 0 {
					os.Exit(1)
				}
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
