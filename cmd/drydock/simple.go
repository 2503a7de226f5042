package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drydock-sim/drydock/scale"
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
	output := "text"
	cmd := &cobra.Command{
		Use:   "list FILE|DIR...",
		Short: "List scenarios with their labels",
		Args:  someArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			list, err := sel.load(cmd.Context(), args)
			if err != nil {
				return err
			}
			if output == "json" {
				return listJSON(cmd.OutOrStdout(), list)
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
	outputVar(cmd, &output)
	complete(cmd, "text", "json")
	return cmd
}

// listJSON lists scenarios for programs.
func listJSON(w io.Writer, list []*scenarios.Scenario) error {
	type entry struct {
		Name         string            `json:"name"`
		File         string            `json:"file"`
		Nodes        int               `json:"nodes"`
		Duration     float64           `json:"durationSeconds"`
		Expectations int               `json:"expectations"`
		Labels       map[string]string `json:"labels,omitempty"`
		Description  string            `json:"description,omitempty"`
	}
	doc := struct {
		Version   string  `json:"version"`
		Scenarios []entry `json:"scenarios"`
	}{version(), []entry{}}
	for _, s := range list {
		doc.Scenarios = append(doc.Scenarios, entry{
			s.Metadata.Name, s.Pos.File, len(s.NodeNames()), s.Spec.Duration.Seconds(), len(s.Spec.Expect), s.Metadata.Labels, s.Metadata.Description,
		})
	}
	return encodeJSON(w, doc)
}

// newInit is drydock init. What it writes runs and passes as it is.
func newInit() *cobra.Command {
	var force bool
	var apply string
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented scenario to start from",
		Long: `Writes a commented scenario to start from into FILE, scenario.yaml unless said ("-": to standard
output); with --apply one that applies your manifests, and wants its workloads ready. Manifests
from standard input are kept in a file beside it, to be run again.`,
		Example: `  helm template shop ./charts/shop > shop.yaml
  drydock init --apply shop.yaml

  helm template shop ./charts/shop | drydock init --apply - shop.scenario.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "scenario.yaml"
			if len(args) > 0 {
				file = args[0]
			}
			text := scenarios.Starter()
			if apply == "-" && file != "-" {
				kept, err := keepInput(cmd.InOrStdin(), file, force)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "wrote %s, what came on standard input\n", kept)
				apply = kept
			}
			if apply != "" {
				rel, err := beside(apply, file)
				if err != nil {
					return badInput("--apply: %w", err)
				}
				text = scenarios.StarterFor(rel)
			}
			if file == "-" {
				_, err := io.WriteString(cmd.OutOrStdout(), text)
				return err
			}
			if err := writeNew(file, text, force); err != nil {
				return err
			}
			if apply != "" {
				// What is wrong with the manifests shows now. The scenario stays, to be run
				// once they are mended.
				if _, err := new(selection).load(cmd.Context(), []string{file}); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; try: drydock run %s\n", file, file)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	cmd.Flags().StringVar(&apply, "apply", "", "write a scenario that applies these manifests: a file, a directory, or - for standard input")
	return cmd
}

// keepInput writes manifests from standard input to a file beside a scenario's, and returns its name.
func keepInput(in io.Reader, scenario string, force bool) (string, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return "", &codeError{exitBadInput, err}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return "", badInput("--apply -: standard input is empty")
	}
	file := strings.TrimSuffix(scenario, filepath.Ext(scenario)) + "-manifests.yaml"
	return file, writeNew(file, string(data), force)
}

// writeNew writes a file that must not be there, or may be replaced.
func writeNew(file, text string, replace bool) error {
	// Made and checked for at once: nobody's file is overwritten in between.
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, mode, 0o644)
	if os.IsExist(err) {
		return badInput("%s exists; --force replaces it", file)
	}
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return &codeError{exitInternal, err}
	}
	return nil
}

// beside returns the path of manifests as the scenario in a file names them.
func beside(manifests, file string) (string, error) {
	if manifests == "-" {
		return manifests, nil
	}
	if _, err := os.Stat(manifests); err != nil {
		return "", err
	}
	if file == "-" || filepath.IsAbs(manifests) {
		return filepath.ToSlash(manifests), nil
	}
	rel, err := filepath.Rel(filepath.Dir(file), manifests)
	return filepath.ToSlash(rel), err
}

// newSchema is drydock schema. It is generated from the types and embedded.
func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:       "schema [scenario|workload]",
		Short:     "Print the JSON Schema of scenario files or of workload files, for editors",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"scenario", "workload"},
		RunE: func(cmd *cobra.Command, args []string) error {
			schema := scenarios.Schema()
			if len(args) == 1 && args[0] == "workload" {
				schema = scale.WorkloadSchema()
			}
			_, err := cmd.OutOrStdout().Write(schema)
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
	output := "text"
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if output == "json" {
				return encodeJSON(cmd.OutOrStdout(), struct {
					Version    string `json:"version"`
					Kubernetes string `json:"kubernetes"`
					Go         string `json:"go"`
					Platform   string `json:"platform"`
				}{version(), kubernetesVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "drydock %s, kubelet behaviour of Kubernetes %s, %s, %s/%s\n", version(), kubernetesVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	outputVar(cmd, &output)
	return cmd
}
