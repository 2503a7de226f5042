//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/conformance/images"
	"github.com/drydock-sim/drydock/conformance/rig"
)

// newRig are the hidden commands that the scripts in hack bring runtimes up and
// down with. They are hidden from help since they are no interface: scripts and commands change
// together.
func newRig() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "rig",
		Short:  "What hack/containerd.sh needs",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRigImages(), newRigProbe(), newRigClear())
	return cmd
}

// newRigImages serves the test images. It serves until the context ends, that is until a signal.
func newRigImages() *cobra.Command {
	var o images.Options
	var file string
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Serve the test images until it is stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := images.New(cmd.Context(), o)
			if err != nil {
				return &codeError{exitFailed, err}
			}
			defer r.Close()
			// The file appears when images can be pulled: scripts wait for it.
			if file != "" {
				if err := os.WriteFile(file, []byte(r.Addr()+"\n"), 0o644); err != nil {
					return &codeError{exitFailed, err}
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), r.Addr())
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Addr, "listen", "127.0.0.1:0", "where to listen, host:port")
	cmd.Flags().StringVar(&o.Advertise, "advertise", "", "the host, or host:port, that references begin with, if it is another")
	cmd.Flags().StringVar(&o.Program, "program", "", "the test program, if it is not the embedded one")
	cmd.Flags().StringVar(&file, "address-file", "", "write the address to a file once the images are there")
	return cmd
}

// newRigProbe tries a runtime. A runtime whose socket answers may still be unable
// to pull or to run: the probe does both. The image is the one that conformance runs with.
func newRigProbe() *cobra.Command {
	var endpoint, registry string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Try whether a runtime can run a pod",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := rig.Probe(ctx, endpoint, registry+"/drydock/drydock-actor:1"); err != nil {
				return &codeError{exitFailed, err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&endpoint, "runtime-endpoint", "", "the CRI socket")
	cmd.Flags().StringVar(&registry, "test-registry", "", "the registry with the test images, host:port")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long it may take")
	return cmd
}

// newRigClear removes all pods. It is for what a killed run has left, whoever
// made it. It touches all pods of the runtime, so it must not be run against one that is in use.
func newRigClear() *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Remove every pod of a runtime",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			// What was removed is told also when something could not be.
			n, err := rig.Clear(ctx, endpoint)
			if n > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "removed %d pods that were left\n", n)
			}
			if err != nil {
				return &codeError{exitFailed, err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&endpoint, "runtime-endpoint", "", "the CRI socket")
	return cmd
}
