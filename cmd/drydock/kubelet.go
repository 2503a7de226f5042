//go:build linux

package main

import (
	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/app"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// newKubelet is the kubelet on this machine. What upstream's kubelet defines,
// exit codes and messages among it, is as there and not as in the other commands.
// The kubelet packages know no API server: defaulting and validation of static
// pods are handed in here. The command's flags are those of app: this file only plugs in what
// must not be a dependency of the kubelet.
func newKubelet() *cobra.Command {
	cmd := app.NewCommand(app.Deps{
		Defaulter: apiserver.SetPodDefaults,
		Validator: func(pod *v1.Pod) error { return apiserver.ValidatePod(pod).ToAggregate() },
	})
	// Upstream's exit code is 1 for everything, and its message is logged. Errors go through
	// klog, since that is where operators of a kubelet look.
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			app.LogFailure(err)
			return &codeError{exitFailed, nil}
		}
		return nil
	}
	return cmd
}
