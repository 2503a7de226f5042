package server

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// logReader reads log files as the runtime writes them (k8s.io/cri-client's logs).
type logReader struct{ h Handle }

// ReadLog implements server.LogReader.
func (r logReader) ReadLog(ctx context.Context, log server.Log, o *v1.PodLogOptions, stdout, stderr io.Writer) error {
	return logs.ReadLogs(ctx, log.Path, log.ContainerID, logOptions(o, time.Now()), &statusAsker{h: r.h}, stdout, stderr)
}

// logOptions are those of the API, whose seconds count back from now.
func logOptions(o *v1.PodLogOptions, now time.Time) *logs.LogOptions {
	out := &logs.LogOptions{TailLines: o.TailLines, LimitBytes: o.LimitBytes, Follow: o.Follow, Timestamp: o.Timestamps}
	if o.SinceSeconds != nil {
		out.Since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	if o.SinceTime != nil && out.Since.Before(o.SinceTime.Time) {
		out.Since = o.SinceTime.Time
	}
	return out
}

// statusAsker is as much of a runtime as following a log takes: whether the
// container runs.
type statusAsker struct {
	internalapi.RuntimeService
	h Handle
}

// ContainerStatus implements the CRI's, by the kubelet's connection.
func (a *statusAsker) ContainerStatus(ctx context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	return ask(ctx, a.h, func(ctx context.Context, k kubelet.Host) (*runtimeapi.ContainerStatusResponse, error) {
		resp, err := k.ContainerStatus(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", id, err)
		}
		return resp, nil
	})
}
