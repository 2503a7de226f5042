package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drydock-sim/drydock/scale/report"
)

// commandLine is what was typed: the command with its flags, by name, and its arguments.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				words = append(words, "--"+f.Name+"="+quote(v))
			}
			return
		}
		if v := f.Value.String(); f.Value.Type() == "bool" && v == "true" {
			words = append(words, "--"+f.Name)
		} else {
			words = append(words, "--"+f.Name+"="+quote(v))
		}
	})
	for _, a := range args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// newScaleCompare is drydock scale compare: the figures of two runs side by side.
func newScaleCompare() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Show the figures of two runs side by side",
		Long: `Shows the figures of two runs of drydock scale side by side. Each is the directory
of a report (--report) or a file that --json wrote.`,
		Example: `  drydock scale --nodes 500 --report a/
  drydock scale --nodes 500 --scheduler-qps 50 --report b/
  drydock scale compare a/ b/`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return badInput("--output: %q is none of text, json", output)
			}
			var sides [2]report.Figured
			for i, name := range args {
				var err error
				if sides[i], err = readFigures(name); err != nil {
					return &codeError{exitBadInput, err}
				}
			}
			if output == "json" {
				return encodeJSON(cmd.OutOrStdout(), struct {
					Version string           `json:"version"`
					Figures []comparedFigure `json:"figures"`
					Facts   [2][]report.Fact `json:"facts"`
				}{version(), compareFigures(&sides[0], &sides[1]), [2][]report.Fact{sides[0].Facts, sides[1].Facts}})
			}
			writeCompared(cmd.OutOrStdout(), args, &sides[0], &sides[1])
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// readFigures reads a report's directory, or what --json wrote.
func readFigures(name string) (out report.Figured, err error) {
	file := name
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		file = filepath.Join(name, report.FiguresFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	var doc struct {
		report.Figured
		Version, Command string
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return out, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Figures) == 0 {
		return out, fmt.Errorf("%s: has no figures; want the directory of --report, or what drydock scale --json wrote", file)
	}
	if doc.Command != "" {
		doc.Facts = []report.Fact{{Name: "Drydock", Value: doc.Version}, {Name: "Command", Value: doc.Command}}
	}
	return doc.Figured, nil
}

// comparedFigure is a figure of two runs; nil is of a run that has none.
type comparedFigure struct {
	Name string   `json:"name"`
	Unit string   `json:"unit,omitempty"`
	A    *float64 `json:"a"`
	B    *float64 `json:"b"`
}

// compareFigures are the figures of both, in A's order.
func compareFigures(a, b *report.Figured) []comparedFigure {
	var out []comparedFigure
	for i, side := range []*report.Figured{a, b} {
		for _, f := range side.Figures {
			at := slices.IndexFunc(out, func(c comparedFigure) bool { return c.Name == f.Name })
			if at < 0 {
				at = len(out)
				out = append(out, comparedFigure{Name: f.Name, Unit: f.Unit})
			}
			if i == 0 {
				out[at].A = &f.Value
			} else {
				out[at].B = &f.Value
			}
		}
	}
	return out
}

// writeCompared writes which facts differ, and the figures.
func writeCompared(w io.Writer, names []string, a, b *report.Figured) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "A:\t%s\nB:\t%s\n", names[0], names[1])
	for _, f := range a.Facts {
		for _, g := range b.Facts {
			if f.Name == g.Name && f.Value != g.Value {
				fmt.Fprintf(t, "%s\tA: %s\n\tB: %s\n", f.Name, f.Value, g.Value)
			}
		}
	}
	t.Flush()
	fmt.Fprintf(t, "\n\tA\tB\tB - A\n")
	for _, c := range compareFigures(a, b) {
		text := func(v *float64) string {
			if v == nil {
				return "-"
			}
			return report.Figure{Unit: c.Unit, Value: *v}.Text()
		}
		difference := "="
		switch {
		case c.A == nil || c.B == nil:
			difference = ""
		case *c.A != *c.B:
			d := *c.B - *c.A
			if difference = text(&d); d > 0 {
				difference = "+" + difference
			}
			if *c.A != 0 {
				difference += fmt.Sprintf(" (%+.1f%%)", 100*d / *c.A)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Name, text(c.A), text(c.B), difference)
	}
	t.Flush()
}
