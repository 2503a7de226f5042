package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/up"
)

// maxUpNodes bounds --nodes. Beyond it there is a typo, and no memory.
const maxUpNodes = 100_000

// upFlags are the flags of drydock up. What is not given is the package's default.
type upFlags struct {
	o            up.Options
	set          []string
	controlPlane bool
	scheduler    string
	start        string
	seed         uint64
	// authorization is the mode of upstream's --authorization-mode.
	authorization string
	// kubeconfig is the file, context what the cluster is called in it. merge adds to a file that
	// has others'.
	kubeconfig, context string
	merge               bool
	timeline            bool
}

// newUp is drydock up.
func newUp() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up [FILE]",
		Short: "Serve a simulated cluster to kubectl and other clients",
		Long: `Serve a simulated cluster to kubectl, client-go and Helm until a signal: that of a
scenario file, whose timeline happens and whose expectations are not judged, or
one of --nodes. Its API is served over TLS, and a kubeconfig says where.`,
		Example: `  drydock up --nodes 50
  kubectl --kubeconfig drydock.kubeconfig get nodes
  drydock up web.yaml --speed 10 --kubeconfig ~/.kube/config --merge`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			if changed("seed") {
				f.o.Seed = &f.seed
			}
			if len(args) == 1 && changed("nodes") {
				return badInput("--nodes goes without a file, which says what nodes there are")
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.o.Nodes, "nodes", 3, "how many nodes there are, without a file")
	fl.StringArrayVar(&f.set, "set", nil, "override a field of the scenario, such as 'spec.nodes[0].count=5'")
	fl.BoolVar(&f.controlPlane, "control-plane", true, "run the scheduler and the controllers")
	fl.StringVar(&f.scheduler, "scheduler-config", "", "kube-scheduler's KubeSchedulerConfiguration, instead of the scenario's: a file")
	fl.StringVar(&f.authorization, "authorization", "AlwaysAllow", "who may do what: AlwaysAllow")
	fl.Float64Var(&f.o.Speed, "speed", 1, "how many times as fast as the wall clock the cluster's time runs")
	fl.BoolVar(&f.o.Paused, "paused", false, "have the time stand still until drydock ctl step or resume")
	fl.StringVar(&f.start, "start", "", "begin at this time (2026-01-01T00:00:00Z) instead of the wall clock's")
	fl.Uint64Var(&f.seed, "seed", 0, "run with this seed instead of the scenario's")
	fl.StringVar(&f.o.Address, "address", up.DefaultAddress, "listen at this IP address; one that is not of the loopback lets other machines in")
	fl.IntVar(&f.o.Port, "port", 0, "listen at this port (0: one that is free)")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "drydock.kubeconfig", "write a kubeconfig to this file")
	fl.StringVar(&f.context, "context", up.DefaultContext, "what the cluster, its context and its user are called in the kubeconfig")
	fl.BoolVar(&f.merge, "merge", false, "add to a kubeconfig that has other clusters")
	fl.BoolVar(&f.timeline, "timeline", false, "show what happens")
	fl.BoolVarP(&f.o.Verbose, "verbose", "v", false, "show everything that happens, also in large clusters, with the kubelets' log lines")
	fl.IntVar(&f.o.Workers, "workers", 0, "cores to use (0: all)")
	complete(cmd)
	return cmd
}

// check finds what is wrong with the flags themselves.
func (f *upFlags) check() error {
	switch {
	case f.o.Nodes < 0 || f.o.Nodes > maxUpNodes:
		return badInput("--nodes: %d is not within 0 and %d", f.o.Nodes, maxUpNodes)
	case f.authorization == "RBAC":
		return badInput("--authorization: RBAC is not there yet; roles and bindings are stored, and nothing goes by them")
	case f.authorization != "AlwaysAllow":
		return badInput("--authorization: %q is not AlwaysAllow", f.authorization)
	case !(f.o.Speed > 0 && f.o.Speed <= up.MaxSpeed):
		return badInput("--speed: %v is not over 0 and up to %v", f.o.Speed, up.MaxSpeed)
	case f.o.Port < 0 || f.o.Port > 65535:
		return badInput("--port: %d is not within 0 and 65535", f.o.Port)
	case net.ParseIP(f.o.Address) == nil:
		return badInput("--address: %q is not an IP address", f.o.Address)
	case f.o.Workers < 0 || f.o.Workers > maxWorkers:
		return badInput("--workers: %d is not within 0 and %d", f.o.Workers, maxWorkers)
	case f.kubeconfig == "":
		return badInput("--kubeconfig: name a file")
	case f.context == "":
		return badInput("--context: it needs a name")
	}
	if f.start != "" {
		var err error
		if f.o.Start, err = time.Parse(time.RFC3339, f.start); err != nil {
			return badInput("--start: %q is no time such as 2026-01-01T00:00:00Z", f.start)
		}
	}
	return nil
}

// run serves a cluster until ctx ends.
func (f *upFlags) run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if len(args) == 1 {
		f.o.Nodes = 0
		list, err := scenarios.Load(args[0], scenarios.LoadOptions{Set: f.set})
		if err != nil {
			return &codeError{exitBadInput, err}
		}
		if len(list) != 1 {
			return badInput("%s: has %s; name a file with one", args[0], scenarios.Plural(len(list), "scenario"))
		}
		f.o.Scenario = list[0]
	} else if len(f.set) > 0 {
		return badInput("--set: there is no scenario to set anything in")
	}
	f.o.NoControlPlane = !f.controlPlane
	if f.scheduler != "" {
		if f.o.NoControlPlane {
			return badInput("--scheduler-config: there is no scheduler without the control plane")
		}
		data, err := scenarios.ReadFile(f.scheduler)
		if err != nil {
			return badInput("--scheduler-config: %w", err)
		}
		if f.o.Scheduler, err = scenarios.ParseKubeSchedulerConfiguration(f.scheduler, data); err != nil {
			return &codeError{exitBadInput, err}
		}
	}
	if f.timeline || f.o.Verbose {
		f.o.Timeline = stdout
	}
	f.o.Notice = func(text string) { fmt.Fprintf(stderr, "drydock: %s\n", text) }
	if ip := net.ParseIP(f.o.Address); !ip.IsLoopback() {
		fmt.Fprintf(stderr, "drydock: %s is not of the loopback: whoever reaches it and has the token is the cluster's administrator\n", f.o.Address)
	}
	// The streaming libraries log each client that goes away as an error.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	c, err := up.Start(context.WithoutCancel(ctx), f.o)
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	write := c.WriteKubeconfig
	if f.merge {
		write = c.MergeKubeconfig
	}
	if err := write(f.kubeconfig, f.context); err != nil {
		_ = c.Stop() // nobody has used it
		return badInput("%w", err)
	}
	fmt.Fprintf(stdout, "cluster: %s\nkubectl --kubeconfig %s --context %s get nodes\n", c.URL(), f.kubeconfig, f.context)
	stop := context.AfterFunc(ctx, func() { _ = c.Stop() }) // Wait has its error
	defer stop()
	if err := c.Wait(); err != nil {
		if p := (*loop.PanicError)(nil); errors.As(err, &p) { // what it takes to mend it: nobody can run this again
			fmt.Fprintf(stderr, "%s\n", p.Stack)
		}
		return &codeError{exitInternal, err}
	}
	return nil
}
