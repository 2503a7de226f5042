// Package exec judges probes that run a command in a container (upstream
// pkg/probe/exec and the exec part of pkg/kubelet/prober).
package exec

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	"github.com/drydock-sim/drydock/kubelet/internal/util/expansion"
)

// maxReadLength bounds the output that a probe shows, in bytes.
const maxReadLength = 10 << 10

// Runner runs a command in a container and returns what it wrote, standard
// output before standard error. A timeout of 0 means none. An error with a
// method ExitStatus() int is the command's own end; a *TimeoutError says that it
// did not end in time.
type Runner interface {
	RunInContainer(ctx context.Context, containerID string, command []string, timeout time.Duration) ([]byte, error)
}

// TimeoutError says that a command did not end in time (upstream
// pkg/probe/exec.TimeoutError).
type TimeoutError struct {
	Err     error
	Timeout time.Duration
}

func (e *TimeoutError) Error() string {
	return "command timed out: " + e.Err.Error() + " timed out after " + e.Timeout.String()
}

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Err }

// Probe runs the command once. An error means that it could not be run.
func Probe(ctx context.Context, r Runner, containerID string, command []string, timeout time.Duration) (probe.Result, string, error) {
	data, err := r.RunInContainer(ctx, containerID, command, timeout)
	if len(data) > maxReadLength {
		data = data[:maxReadLength]
	}
	return judge(string(data), err)
}

func judge(output string, err error) (probe.Result, string, error) {
	if err == nil {
		return probe.Success, output, nil
	}
	if exit := (interface{ ExitStatus() int })(nil); errors.As(err, &exit) {
		if exit.ExitStatus() == 0 {
			return probe.Success, output, nil
		}
		return probe.Failure, output, nil
	}
	if late := (*TimeoutError)(nil); errors.As(err, &late) {
		return probe.Failure, late.Error(), nil
	}
	return probe.Unknown, "", err
}

// Command is a probe's command with $(NAME) of the plain values in the
// container's environment replaced (upstream
// kubecontainer.ExpandContainerCommandOnlyStatic).
func Command(command []string, c *v1.Container) []string {
	out := command
	for i, s := range command {
		e := expansion.Expand(s, func(name string) (string, bool) { return plainValue(c, name) })
		if e == s {
			continue
		}
		if &out[0] == &command[0] {
			out = append([]string(nil), command...)
		}
		out[i] = e
	}
	return out
}

// plainValue is the value that the spec writes for a variable, the last of that
// name; one from elsewhere counts as empty.
func plainValue(c *v1.Container, name string) (string, bool) {
	for i := len(c.Env) - 1; i >= 0; i-- {
		if c.Env[i].Name == name {
			return c.Env[i].Value, true
		}
	}
	return "", false
}
