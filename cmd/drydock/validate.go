package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/scale"
	"github.com/drydock-sim/drydock/scenarios"
)

// newValidate is drydock validate. It checks what run would: nothing is left for
// the run to refuse but what the API does. A mistake is exit code 2, which is what a pre-commit
// hook looks at.
func newValidate() *cobra.Command {
	var sel selection
	output := "text"
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR...",
		Short: "Check scenarios and workloads without running them",
		Args:  someArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			list, err := sel.validate(cmd.Context(), args)
			if err != nil {
				return err
			}
			return writeValid(cmd.OutOrStdout(), output, list)
		},
	}
	sel.flags(cmd)
	sel.kubeletFlag(cmd, "kubelet-config", "the nodes' KubeletConfiguration, instead of theirs: a file")
	sel.schedulerFlag(cmd)
	outputVar(cmd, &output)
	complete(cmd, "text", "json")
	return cmd
}

// validated is a document in which nothing is wrong.
type validated struct {
	File     string   `json:"file"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Warnings []string `json:"warnings,omitempty"`
}

// validate checks workloads, which are named by their files, and all else as scenarios.
func (s *selection) validate(ctx context.Context, args []string) ([]validated, error) {
	var out []validated
	var rest []string
	for _, file := range args {
		w, err := workload(file)
		switch {
		case err != nil:
			return nil, &codeError{exitBadInput, err}
		case w != nil:
			out = append(out, validated{File: file, Kind: scale.WorkloadKind, Name: w.Metadata.Name})
		default:
			rest = append(rest, file)
		}
	}
	if len(rest) == 0 {
		return out, nil
	}
	list, err := s.load(ctx, rest)
	if err != nil {
		return nil, err
	}
	for _, sc := range list {
		if ctx.Err() != nil {
			return nil, &codeError{exitFailed, fmt.Errorf("interrupted")}
		}
		if err := scenarios.Check(sc); err != nil {
			return nil, badInput("%s: %w", sc.Pos, err)
		}
		out = append(out, validated{sc.Pos.File, scenarios.Kind, sc.Metadata.Name, sc.Notices})
	}
	return out, nil
}

// workload reads a file that is a workload; nil if it is none.
func workload(file string) (*scale.Workload, error) {
	st, err := os.Stat(file)
	if err != nil || !st.Mode().IsRegular() {
		return nil, nil // reading scenarios says what is wrong
	}
	data, err := scenarios.ReadFile(file)
	if err != nil || !scale.IsWorkload(data) {
		return nil, nil
	}
	return scale.ParseWorkload(file, data)
}

// writeValid tells what is valid, and what is worth knowing of it.
func writeValid(w io.Writer, output string, list []validated) error {
	if output == "json" {
		return encodeJSON(w, struct {
			Version string      `json:"version"`
			Valid   []validated `json:"valid"`
		}{version(), append([]validated{}, list...)})
	}
	for _, v := range list {
		fmt.Fprintf(w, "%s: %s is valid\n", v.File, v.Name)
		for _, what := range v.Warnings {
			fmt.Fprintf(w, "    warning: %s\n", what)
		}
	}
	return nil
}
