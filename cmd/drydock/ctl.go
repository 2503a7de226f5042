package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/up"
)

// ctlFlags are the flags of drydock ctl: how the cluster is found.
type ctlFlags struct{ kubeconfig, context string }

// newCtl is drydock ctl, with a command for each thing that can be done to a cluster.
func newCtl() *cobra.Command {
	var f ctlFlags
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Control a cluster of drydock up: its time, and what goes wrong in it",
		Long: `Control a cluster that drydock up serves: its time, and what goes wrong in it.
Each command shows where the cluster stands.`,
		Example: `  drydock ctl step 10s
  drydock ctl fault '{node: node-0, partition: {for: 30s}}'
  drydock ctl do '{powerCut: {node: node-*, for: 1m}}'`,
		Args: cobra.NoArgs, // a word that is no command is a mistake
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fl := cmd.PersistentFlags()
	fl.StringVar(&f.kubeconfig, "kubeconfig", "drydock.kubeconfig", "the kubeconfig that drydock up wrote")
	fl.StringVar(&f.context, "context", "", "the context of that file, instead of its current one")
	add := func(use, short string, args int, do func(ctx context.Context, c *up.Client, args []string) (*up.Status, error)) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args), RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args, do)
		}})
	}
	add("status", "Show where the cluster stands", 0, func(ctx context.Context, c *up.Client, _ []string) (*up.Status, error) { return c.Status(ctx) })
	add("pause", "Have the cluster's time stand still; requests are still answered", 0, func(ctx context.Context, c *up.Client, _ []string) (*up.Status, error) { return c.Pause(ctx) })
	add("resume", "Have the time go on", 0, func(ctx context.Context, c *up.Client, _ []string) (*up.Status, error) { return c.Resume(ctx) })
	add("step DURATION", "Pause, and have the time go on by so much, as fast as the machine can", 1, func(ctx context.Context, c *up.Client, args []string) (*up.Status, error) {
		d, err := time.ParseDuration(args[0])
		if err != nil || d <= 0 {
			return nil, badInput("step: %q is no time such as 10s", args[0])
		}
		return c.Step(ctx, d)
	})
	add("compact", "Have the API forget old versions of its objects, as a compaction of etcd does", 0, func(ctx context.Context, c *up.Client, _ []string) (*up.Status, error) { return c.Compact(ctx) })
	add("forget", "Have the API forget all but the present versions, also those cached for watches", 0, func(ctx context.Context, c *up.Client, _ []string) (*up.Status, error) { return c.Forget(ctx) })
	add("fault FAULT", "Make the runtime or the API fail, or cut a node off: what a timeline has as fault", 1, func(ctx context.Context, c *up.Client, args []string) (*up.Status, error) {
		text, err := actionText(args[0])
		if err != nil {
			return nil, err
		}
		return c.Do(ctx, "fault:\n  "+strings.ReplaceAll(text, "\n", "\n  "))
	})
	add("do ACTION", "Do what a timeline can do (\"-\": read it from the input)", 1, func(ctx context.Context, c *up.Client, args []string) (*up.Status, error) {
		text, err := actionText(args[0])
		if err != nil {
			return nil, err
		}
		return c.Do(ctx, text)
	})
	return cmd
}

// actionText is an argument, or for "-" what there is to read.
func actionText(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return "", fmt.Errorf("reading the action: %w", err)
	}
	return string(data), nil
}

// run has something done, and shows where the cluster then stands.
func (f *ctlFlags) run(cmd *cobra.Command, args []string, do func(context.Context, *up.Client, []string) (*up.Status, error)) error {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return badInput("--kubeconfig: %w", err)
	}
	c, err := up.NewClient(config)
	if err != nil {
		return badInput("--kubeconfig: %w", err)
	}
	s, err := do(cmd.Context(), c, args)
	if err != nil {
		return badInput("%w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), statusLine(s))
	return nil
}

// statusLine is where a cluster stands, in a line.
func statusLine(s *up.Status) string {
	pace := fmt.Sprintf("speed %v", s.Speed)
	if s.Paused {
		pace = "paused"
	}
	if s.Lost > 0 {
		pace += ", too slow for " + scenarios.ShortTime(scenarios.RoundWall(s.Lost))
	}
	pods := 0
	for _, n := range s.Pods {
		pods += n
	}
	var phases []string
	for _, phase := range slices.Sorted(maps.Keys(s.Pods)) {
		phases = append(phases, fmt.Sprintf("%d %s", s.Pods[phase], phase))
	}
	out := fmt.Sprintf("%s (%s): %s, %d ready; %s", s.Now.Format("2006-01-02T15:04:05.000Z07:00"), pace, scenarios.Plural(s.Nodes, "node"), s.Ready, scenarios.Plural(pods, "pod"))
	if len(phases) > 0 {
		out += ": " + strings.Join(phases, ", ")
	}
	return out
}
