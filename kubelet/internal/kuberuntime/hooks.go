package kuberuntime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
)

// ExecSync gives a command its timeout, and the runtime the usual time on top
// of it to clean up; without a timeout it has no end.
// The error for a timeout is exec's own, by which probes tell a slow command
// from a broken runtime.
func (r *remote) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	d := time.Duration(0)
	if timeout > 0 && r.timeout > 0 {
		d = r.timeout + timeout
	}
	err = r.do(ctx, metrics.ExecSync, d, func(ctx context.Context) (err error) {
		stdout, stderr, err = r.rt.ExecSync(ctx, id, command, timeout)
		return err
	})
	var exit interface{ ExitStatus() int }
	switch {
	case err == nil, errors.As(err, &exit):
	case errors.Is(err, context.DeadlineExceeded), grpcstatus.Code(err) == codes.DeadlineExceeded:
		return nil, nil, &exec.TimeoutError{Err: fmt.Errorf("%q", strings.Join(command, " ")), Timeout: timeout}
	case errors.Is(err, context.Canceled):
		return nil, nil, grpcstatus.FromContextError(context.Canceled).Err()
	}
	return stdout, stderr, err
}

// RunInContainer runs a command in a container and returns its output,
// standard output before standard error. A timeout of 0 means none. See
// exec.Runner for its errors.
func (m *Manager) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	stdout, stderr, err := m.rt.ExecSync(ctx, id, command, timeout)
	if len(stdout) == 0 {
		return stderr, err
	}
	return append(stdout[:len(stdout):len(stdout)], stderr...), err
}

// hookPods reads a pod's status for the hooks, from the listings on.
// A hook's request goes to the pod's address, which the cached status may not
// have yet.
type hookPods struct{ m *Manager }

// GetPodStatus implements lifecycle's PodStatusProvider. A pod that is gone has
// an empty status.
func (h hookPods) GetPodStatus(ctx context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	p, err := h.m.GetPod(ctx, pod.ID)
	if err != nil || p == nil {
		return &kubecontainer.PodStatus{ID: pod.ID, Name: pod.Name, Namespace: pod.Namespace}, err
	}
	return h.m.GetPodStatus(ctx, p)
}

// postStart runs a container's postStart hook, if it has one. While it runs
// the container is running for everybody else; if it fails the container is
// killed.
// It is part of the start: the next container waits for it, as upstream's does.
func (m *Manager) postStart(ctx context.Context, s *start) (message string, err error) {
	if s.c.Lifecycle == nil || s.c.Lifecycle.PostStart == nil {
		return "", nil
	}
	message, err = m.hooks.Run(ctx, s.containerID, s.pod, s.c, s.c.Lifecycle.PostStart)
	if err == nil {
		return "", nil
	}
	m.o.Log("failed to execute PostStartHook of container %s in pod %s: %v", s.c.Name, kubecontainer.PodDesc(s.pod), err)
	// What the hook said stays out of the event: it may be a secret.
	m.event(s.ref, v1.EventTypeWarning, events.FailedPostStartHook, "PostStartHook failed")
	k := kill{pod: s.pod, id: s.containerID, name: s.c.Name, message: "FailedPostStartHook", reason: actions.ReasonFailedPostStartHook}
	if err := m.killContainer(ctx, k); err != nil {
		m.o.Log("failed to kill container %s in pod %s: %v", s.c.Name, kubecontainer.PodDesc(s.pod), err)
	}
	return message, kubecontainer.ErrPostStartHook
}

// preStop runs a container's preStop hook and waits at most grace seconds for
// it; a hook that takes longer goes on beside the kill. It returns the whole
// seconds that it took.
// A sleep needs no task: nothing but time can happen in it.
func (m *Manager) preStop(ctx context.Context, pod *v1.Pod, id string, c *v1.Container, grace int64) int64 {
	start, limit := m.o.Loop.Now(), time.Duration(grace)*time.Second
	if sleep := c.Lifecycle.PreStop.Sleep; sleep != nil { // nobody has to wait beside this one
		_ = m.o.Loop.Sleep(ctx, min(time.Duration(sleep.Seconds)*time.Second, limit))
		return int64(m.o.Loop.Since(start) / time.Second)
	}
	done := &loop.Event{}
	m.o.Group.Go("preStop/"+pod.Namespace+"/"+pod.Name, func(hctx context.Context) {
		defer done.Fire()
		if message, err := m.hooks.Run(hctx, id, pod, c, c.Lifecycle.PreStop); err != nil {
			m.o.Log("PreStop hook failed for container %s in pod %s: %s", c.Name, kubecontainer.PodDesc(pod), message)
			m.event(kubecontainer.ContainerRef(pod, c), v1.EventTypeWarning, events.FailedPreStopHook, "PreStopHook failed")
		}
	})
	wctx, cancel := loop.WithTimeout(ctx, limit)
	defer cancel()
	if done.Wait(wctx) != nil {
		m.o.Log("PreStop hook of container %s in pod %s not completed in grace period %ds", c.Name, kubecontainer.PodDesc(pod), grace)
	}
	return int64(m.o.Loop.Since(start) / time.Second)
}

// stopSignal is the signal that the container's spec wants it stopped with; by
// default that is the runtime's business.
func (m *Manager) stopSignal(c *v1.Container) runtimeapi.Signal {
	if !m.o.Node.StopSignals || c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_RUNTIME_DEFAULT
	}
	return runtimeapi.Signal(runtimeapi.Signal_value[string(*c.Lifecycle.StopSignal)])
}
