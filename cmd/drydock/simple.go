package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drydock-sim/drydock/scenarios"
)

// complete has a shell offer YAML files as arguments, and the formats that a
// command's --output takes. Cobra's generated scripts ask the program itself.
func complete(cmd *cobra.Command, formats ...string) {
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	if len(formats) == 0 {
		return
	}
	// A mistake of this program, found by the first test that makes the command.
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// newList is drydock list. Scenarios are listed in the order of files and of documents in them.
func newList() *cobra.Command {
	var sel selection
	cmd := &cobra.Command{
		Use:   "list FILE|DIR...",
		Short: "List scenarios with their labels",
		Args:  someArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := sel.load(args)
			if err != nil {
				return err
			}
			// Columns are for people; a program reads the files themselves.
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tNODES\tDURATION\tEXPECTATIONS\tLABELS\tFILE")
			for _, s := range list {
				fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\n", s.Metadata.Name, len(s.NodeNames()), s.Spec.Duration, len(s.Spec.Expect), labels.Set(s.Metadata.Labels), s.Pos.File)
			}
			return w.Flush()
		},
	}
	sel.flags(cmd)
	complete(cmd)
	return cmd
}

// newValidate is drydock validate. It checks what run would: nothing is left for
// the run to refuse but what the API does. A mistake is exit code 2, which is what a pre-commit
// hook looks at.
func newValidate() *cobra.Command {
	var sel selection
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR...",
		Short: "Check scenarios without running them",
		Args:  someArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := sel.load(args)
			if err != nil {
				return err
			}
			for _, s := range list {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is valid\n", s.Pos.File, s.Metadata.Name)
				for _, what := range s.Notices {
					fmt.Fprintf(cmd.OutOrStdout(), "    warning: %s\n", what)
				}
			}
			return nil
		},
	}
	sel.flags(cmd)
	complete(cmd)
	return cmd
}

// newInit is drydock init. What it writes runs and passes as it is.
func newInit() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented scenario to start from",
		Long:  "Writes a commented scenario to start from into FILE, scenario.yaml unless said (\"-\": to standard output).",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "scenario.yaml"
			if len(args) > 0 {
				file = args[0]
			}
			if file == "-" {
				_, err := io.WriteString(cmd.OutOrStdout(), scenarios.Starter())
				return err
			}
			// Made and checked for at once: nobody's file is overwritten in
			// between.
			mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			f, err := os.OpenFile(file, mode, 0o644)
			if os.IsExist(err) {
				return badInput("%s exists; --force replaces it", file)
			}
			if err != nil {
				return &codeError{exitBadInput, err}
			}
			if _, err := f.WriteString(scenarios.Starter()); err != nil {
				return &codeError{exitInternal, err}
			}
			if err := f.Close(); err != nil {
				return &codeError{exitInternal, err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; try: drydock run %s\n", file, file)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	return cmd
}

// newSchema is drydock schema. It is generated from the types and embedded.
func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of scenario files, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(scenarios.Schema())
			return err
		},
	}
}

// kubernetesVersion is the release whose kubelet Drydock follows.
const kubernetesVersion = "v1.36"

// version is what Go stamped into the binary: the module's version, and the commit that it was
// built from, with + if files were changed.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	out := info.Main.Version
	if out == "" {
		out = "(devel)"
	}
	if commit := settings["vcs.revision"]; commit != "" {
		out += " commit " + commit[:min(len(commit), 12)]
		if settings["vcs.modified"] == "true" {
			out += "+"
		}
	}
	return out
}

// newVersion is drydock version.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "drydock %s, kubelet behaviour of Kubernetes %s, %s, %s/%s\n", version(), kubernetesVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
