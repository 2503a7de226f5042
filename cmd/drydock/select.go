package main

import (
	"regexp"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drydock-sim/drydock/scenarios"
)

// selection is which of the scenarios found are meant. An empty field selects
// everything. set are overrides, PATH=VALUE, in the order given. It is filled by flags and read
// by load.
type selection struct {
	labels, focus, skip string
	set                 []string
}

// flags declares the flags that run, list, validate and compare share.
func (s *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.labels, "labels", "l", "", "only scenarios whose labels match this selector (\"area=static,!slow\")")
	f.StringVar(&s.focus, "focus", "", "only scenarios whose name matches this regular expression")
	f.StringVar(&s.skip, "skip", "", "no scenarios whose name matches this regular expression")
	f.StringArrayVar(&s.set, "set", nil, "override a field: 'spec.nodes[*].kubelet.evictionHard[\"memory.available\"]=500Mi' (repeatable)")
}

// load loads the scenarios of files and directories that are selected. None is an
// error: a job whose selection has a typo must not pass. Errors carry the flag's name, or files
// and lines.
func (s *selection) load(paths []string) ([]*scenarios.Scenario, error) {
	sel, err := labels.Parse(s.labels)
	if err != nil {
		return nil, badInput("--labels: %w", err)
	}
	focus, err := regexp.Compile(s.focus)
	if err != nil {
		return nil, badInput("--focus: %w", err)
	}
	skip, err := regexp.Compile(s.skip)
	if err != nil {
		return nil, badInput("--skip: %w", err)
	}
	// Everything is loaded and checked, also what is not selected: a broken file
	// shows at once.
	all, err := scenarios.LoadPaths(paths, scenarios.LoadOptions{Set: s.set})
	if err != nil {
		return nil, &codeError{exitBadInput, err}
	}
	var out []*scenarios.Scenario
	for _, sc := range all {
		name := sc.Metadata.Name
		// An empty --focus matches everything; an empty --skip must match
		// nothing.
		if !sel.Matches(labels.Set(sc.Metadata.Labels)) || !focus.MatchString(name) || s.skip != "" && skip.MatchString(name) {
			continue
		}
		out = append(out, sc)
	}
	if len(out) == 0 {
		return nil, badInput("of %s found none is selected", scenarios.Plural(len(all), "scenario"))
	}
	return out, nil
}
