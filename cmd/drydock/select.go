package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/scenarios"
)

// selection is which of the scenarios found are meant. An empty field selects
// everything. set are overrides, PATH=VALUE, in the order given. It is filled by flags and read
// by load.
type selection struct {
	labels, focus, skip string
	set                 []string
	// kubelet is a file with the KubeletConfiguration of all nodes, instead of theirs; "" is none.
	kubelet string
	// scheduler is a file with the scheduler's KubeSchedulerConfiguration, instead of the
	// scenario's; "" is none.
	scheduler string
	// read, if any, is told of each file that was read.
	read func(file string)
}

// kubeletFlag declares --kubelet-config, or a side's.
func (s *selection) kubeletFlag(cmd *cobra.Command, name, usage string) {
	cmd.Flags().StringVar(&s.kubelet, name, "", usage)
	_ = cmd.MarkFlagFilename(name, "yaml", "yml", "json")
}

// schedulerFlag declares --scheduler-config.
func (s *selection) schedulerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.scheduler, "scheduler-config", "", "kube-scheduler's KubeSchedulerConfiguration, instead of the scenario's: a file")
	_ = cmd.MarkFlagFilename("scheduler-config", "yaml", "yml", "json")
}

// overrides are those of --set, and before them what --kubelet-config and --scheduler-config say.
func (s *selection) overrides() ([]string, error) {
	var out []string
	for _, x := range []struct {
		flag, file, field string
		parse             func(file string, data []byte) error
	}{
		{"kubelet-config", s.kubelet, "spec.nodes[*].kubelet", func(file string, data []byte) error {
			_, err := scenarios.ParseKubeletConfiguration(file, data)
			return err
		}},
		{"scheduler-config", s.scheduler, "spec.controlPlane.scheduler.configuration", func(file string, data []byte) error {
			_, err := scenarios.ParseKubeSchedulerConfiguration(file, data)
			return err
		}},
	} {
		if x.file == "" {
			continue
		}
		data, err := scenarios.ReadFile(x.file)
		if err != nil {
			return nil, badInput("--%s: %w", x.flag, err)
		}
		if err := x.parse(x.file, data); err != nil {
			return nil, &codeError{exitBadInput, err}
		}
		text, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, badInput("--%s: %w", x.flag, err)
		}
		out = append(out, x.field+"="+string(text))
	}
	return append(out, s.set...), nil
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
//
// Files may be pipes that nobody writes to: the first signal ends the wait.
func (s *selection) load(ctx context.Context, paths []string) ([]*scenarios.Scenario, error) {
	type loaded struct {
		list []*scenarios.Scenario
		err  error
	}
	done := make(chan loaded, 1)
	go func() {
		list, err := s.loadAll(paths)
		done <- loaded{list, err}
	}()
	select {
	case l := <-done:
		return l.list, l.err
	case <-ctx.Done():
		return nil, &codeError{exitFailed, fmt.Errorf("interrupted while reading")}
	}
}

// loadAll is load without an end before its time.
func (s *selection) loadAll(paths []string) ([]*scenarios.Scenario, error) {
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
	set, err := s.overrides()
	if err != nil {
		return nil, err
	}
	opts := scenarios.LoadOptions{Set: set}
	if s.read != nil {
		opts.ReadDir = scenarios.ReadDir
		opts.ReadFile = func(name string) ([]byte, error) {
			s.read(name)
			return scenarios.ReadFile(name)
		}
	}
	all, err := scenarios.LoadPaths(paths, opts)
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
