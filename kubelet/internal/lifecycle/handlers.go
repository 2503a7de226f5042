package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
)

// errSleepEnded is what a sleep action says that was cut short.
var errSleepEnded = errors.New("container terminated before sleep hook finished")

// errNoNetwork fails hooks that need a network where nobody carries their
// requests.
var errNoNetwork = errors.New("the node has no network")

// PodStatusProvider reads a pod's status from the runtime.
type PodStatusProvider interface {
	GetPodStatus(ctx context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error)
}

// EventRecorder records events.
type EventRecorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// HandlerRunner runs the hooks of containers (upstream
// pkg/kubelet/lifecycle/handlers.go).
type HandlerRunner struct {
	Loop     *loop.Loop
	Commands exec.Runner
	// HTTP is nil if the node has no network.
	HTTP     httpprobe.Transport
	Pods     PodStatusProvider
	Recorder EventRecorder // nil: no events
	Metrics  *metrics.Kubelet
}

// Run runs a hook of a container and waits for its end; nothing but ctx limits
// it. On failure it also returns what the container's status says of that.
func (r *HandlerRunner) Run(ctx context.Context, containerID string, pod *v1.Pod, c *v1.Container, h *v1.LifecycleHandler) (message string, err error) {
	switch {
	case h.Exec != nil:
		output, err := r.Commands.RunInContainer(ctx, containerID, h.Exec.Command, 0)
		if err != nil {
			return fmt.Sprintf("Exec lifecycle hook (%v) for Container %q in Pod %q failed - error: %v, message: %q",
				h.Exec.Command, c.Name, kubecontainer.PodDesc(pod), err, string(output)), err
		}
	case h.HTTPGet != nil:
		if err := r.http(ctx, containerID, pod, c, h.HTTPGet); err != nil {
			return fmt.Sprintf("HTTP lifecycle hook (%s) for Container %q in Pod %q failed - error: %v",
				h.HTTPGet.Path, c.Name, kubecontainer.PodDesc(pod), err), err
		}
	case h.Sleep != nil:
		if r.Loop.Sleep(ctx, time.Duration(h.Sleep.Seconds)*time.Second) != nil {
			r.Metrics.SleepEnded()
			return fmt.Sprintf("Sleep lifecycle hook (%d) for Container %q in Pod %q failed - error: %v",
				h.Sleep.Seconds, c.Name, kubecontainer.PodDesc(pod), errSleepEnded), errSleepEnded
		}
	default:
		err := fmt.Errorf("invalid handler: %v", h)
		return fmt.Sprintf("Cannot run handler: %v", err), err
	}
	return "", nil
}

// http makes a hook's request. Whatever is answered is a success. A server that
// speaks HTTP where HTTPS was asked for is asked again in HTTP.
func (r *HandlerRunner) http(ctx context.Context, containerID string, pod *v1.Pod, c *v1.Container, h *v1.HTTPGetAction) error {
	if r.HTTP == nil {
		return errNoNetwork
	}
	ip := h.Host
	if ip == "" {
		status, err := r.Pods.GetPodStatus(ctx, &kubecontainer.Pod{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace})
		if err != nil {
			return err
		}
		if len(status.IPs) == 0 {
			return fmt.Errorf("failed to find networking container: %v", status.Name)
		}
		ip = status.IPs[0]
	}
	req, err := httpprobe.NewRequest(h, c, ip, httpprobe.LifecycleAgent)
	if err != nil {
		return err
	}
	_, err = httpprobe.Do(ctx, r.HTTP, containerID, req, 0)
	if !httpprobe.IsPlainHTTP(err) {
		return err
	}
	if _, err := httpprobe.Do(ctx, r.HTTP, containerID, withoutTLS(req), 0); err == nil {
		if r.Recorder != nil {
			r.Recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.LifecycleHTTPFallback,
				fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", req.Host))
		}
		return nil
	}
	return err
}

// withoutTLS is the request in HTTP, without its credentials.
func withoutTLS(req *http.Request) *http.Request {
	u := *req.URL
	u.Scheme = "http"
	out := *req
	out.URL, out.Header = &u, req.Header.Clone()
	out.Header.Del("Authorization")
	return &out
}
