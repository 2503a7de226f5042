//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// The commands below act on the machine: they need Linux's mounts, cgroups and
// sockets. They are listed everywhere, so that help and scripts find the same
// commands, and say plainly that this machine can't run them.

func newConformance() *cobra.Command {
	return onlyLinux("conformance", "Check what a kubelet needs of a container runtime, against any CRI socket")
}

func newFakecri() *cobra.Command {
	return onlyLinux("fakecri", "Serve an in-memory container runtime on a CRI socket")
}

func newKubelet() *cobra.Command {
	return onlyLinux("kubelet", "Run the kubelet on this machine, on a CRI socket")
}

func newRig() *cobra.Command {
	cmd := onlyLinux("rig", "What hack/containerd.sh needs")
	cmd.Hidden = true
	return cmd
}

// onlyLinux is a command that refuses to run, whatever its flags are.
func onlyLinux(name, short string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              short + " (Linux only)",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if a == "-h" || a == "--help" {
					return cmd.Help()
				}
			}
			return badInput("%s works on Linux only, because it uses its mounts, cgroups and sockets; this is %s/%s. Run it in a Linux machine or container", name, runtime.GOOS, runtime.GOARCH)
		},
	}
}
