//go:build linux

package main

import (
	"strings"
	"testing"
)

// The kubelet's exit codes are upstream's; kubelet/app tests the rest.
func TestKubeletCommand(t *testing.T) {
	for _, tc := range []struct {
		args   string
		code   int
		stdout string
	}{
		{"kubelet --version", exitOK, "Kubernetes v1.36.3\n"},
		{"kubelet --help", exitOK, "drydock kubelet [flags]"},
		{"kubelet --foo", exitFailed, ""},
		{"kubelet pods", exitFailed, ""},
		{"kubelet --config /no/such/file", exitFailed, ""},
	} {
		code, stdout, stderr := drydock(t, strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(stdout, tc.stdout) || tc.stdout == "" && stdout != "" || stderr != "" {
			t.Errorf("%s: exit code %d, stdout %.200q, stderr %q", tc.args, code, stdout, stderr)
		}
	}
}
