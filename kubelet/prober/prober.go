package prober

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/grpc"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/tcp"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// maxTries is how often a probe is tried that can't be made. The tries follow
// each other at once.
const maxTries = 3

// errNoNetwork fails probes that need a network where nobody carries their
// requests.
var errNoNetwork = errors.New("the node has no network")

// run begins a probe; finish is told what it comes to, in this step or later.
// Which kind of probe it is decides whether it needs a task: what a network can
// answer at once is only waited for.
func (w *worker) run(s *v1.PodStatus) tick {
	w.probing = true
	spec, ip := w.spec(), s.PodIP
	timeout := time.Duration(spec.TimeoutSeconds) * time.Second
	switch {
	case spec.Exec != nil:
		return w.runExec(spec.Exec.Command, timeout)
	case spec.HTTPGet != nil:
		return w.runHTTP(spec.HTTPGet, ip, timeout)
	case spec.TCPSocket != nil:
		return w.runTCP(spec.TCPSocket, ip, timeout)
	case spec.GRPC != nil:
		service := ""
		if spec.GRPC.Service != nil {
			service = *spec.GRPC.Service
		}
		return w.runGRPC(ip, int(spec.GRPC.Port), service, timeout)
	default:
		return w.done(outcome{result: probe.Unknown, err: fmt.Errorf("missing probe handler for %s:%s", kubecontainer.PodDesc(w.pod), w.container.Name)})
	}
}

// done ends a probe in the step in which it began: fire goes on from there.
func (w *worker) done(o outcome) tick {
	w.probing = false
	return w.take(o)
}

// later ends a probe when its answer, which took that long, has arrived.
// The worker keeps the outcome and sets its timer, since a probe has at most
// one answer under way.
func (w *worker) later(took time.Duration, o outcome) tick {
	if took <= 0 {
		return w.done(o)
	}
	w.quick = o
	w.timer.Reset(took)
	return underway
}

// task runs a probe that takes a task.
func (w *worker) task(fn func(ctx context.Context) outcome) tick {
	w.m.o.Group.Start("probe/"+w.pod.Namespace+"/"+w.pod.Name, func(ctx context.Context) {
		w.finish(fn(ctx))
	})
	return underway
}

// A command always needs a task: the runtime takes its time, and the pod's end
// cancels it.
func (w *worker) runExec(command []string, timeout time.Duration) tick {
	if w.cancelled { // each try ends before it has begun
		return w.done(outcome{result: probe.Unknown, err: status.FromContextError(context.Canceled).Err()})
	}
	id := w.containerID
	w.m.o.Group.Start("probe/"+w.pod.Namespace+"/"+w.pod.Name, func(ctx context.Context) {
		ctx, cancel := loop.WithCancel(ctx)
		defer cancel()
		if w.cancelled {
			cancel()
		}
		w.cancel = cancel
		var o outcome
		for range maxTries {
			o.result, o.output, o.err = exec.Probe(ctx, w.m.o.Runner, id, exec.Command(command, w.container), timeout)
			if o.err == nil {
				break
			}
		}
		w.finish(o)
	})
	return underway
}

// The request is made again only when the pod's address changes. A redirect
// needs a task, since it leads to another request.
func (w *worker) runHTTP(h *v1.HTTPGetAction, ip string, timeout time.Duration) tick {
	if w.request == nil || w.requestIP != ip {
		r, err := httpprobe.NewRequest(h, w.container, ip, httpprobe.ProbeAgent)
		if err != nil {
			return w.done(outcome{result: probe.Unknown, err: err})
		}
		if len(h.HTTPHeaders) == 0 { // nobody writes to it
			if w.m.header == nil {
				w.m.header = r.Header
			}
			r.Header = w.m.header
		}
		w.request, w.requestIP = r, ip
	}
	n, req, id := w.m.o.Network, w.request, w.containerID
	if n == nil {
		return w.done(outcome{result: probe.Unknown, err: errNoNetwork})
	}
	if a, ok := n.QuickHTTP(id, req); ok && (a.Err != nil || httpprobe.Location(req, &a.Response) == nil) {
		var o outcome
		switch {
		case a.Took >= timeout:
			a.Took = timeout
			o = outcome{result: probe.Failure, output: httpprobe.RequestError(req, orDeadline(a.Err), true).Error()}
		case a.Err != nil:
			o = outcome{result: probe.Failure, output: httpprobe.RequestError(req, a.Err, false).Error()}
		default:
			o.result, o.output = httpprobe.Judge(&a.Response)
		}
		return w.later(a.Took, o)
	}
	return w.task(func(ctx context.Context) (o outcome) {
		o.result, o.output = httpprobe.Probe(ctx, n, id, req, timeout)
		return o
	})
}

func orDeadline(err error) error {
	if err == nil {
		return context.DeadlineExceeded
	}
	return err
}

func (w *worker) runTCP(t *v1.TCPSocketAction, ip string, timeout time.Duration) tick {
	port, err := probe.ResolveContainerPort(t.Port, w.container)
	n, id, host := w.m.o.Network, w.containerID, t.Host
	if err == nil && n == nil {
		err = errNoNetwork
	}
	if err != nil {
		return w.done(outcome{result: probe.Unknown, err: err})
	}
	if host == "" {
		host = ip
	}
	if a, ok := n.QuickTCP(id, host, port); ok {
		var o outcome
		if a.Took >= timeout {
			a.Took = timeout
			o.result, o.output = tcp.Late(host, port)
		} else {
			o.result, o.output = tcp.Judge(a.Err)
		}
		return w.later(a.Took, o)
	}
	return w.task(func(ctx context.Context) (o outcome) {
		o.result, o.output = tcp.Probe(ctx, n, id, host, port, timeout)
		return o
	})
}

func (w *worker) runGRPC(host string, port int, service string, timeout time.Duration) tick {
	n, id := w.m.o.Network, w.containerID
	if n == nil {
		return w.done(outcome{result: probe.Unknown, err: errNoNetwork})
	}
	if a, ok := n.QuickGRPC(id, host, port, service); ok {
		switch {
		case tcp.IsDialError(a.Err):
			a.Took = timeout // the client dials until then
		case a.Took >= timeout:
			a.Took, a.Err = timeout, context.DeadlineExceeded
		}
		var o outcome
		o.result, o.output = grpc.Judge(a.Status, a.Err, host, port, timeout)
		return w.later(a.Took, o)
	}
	return w.task(func(ctx context.Context) (o outcome) {
		o.result, o.output = grpc.Probe(ctx, n, id, host, port, service, timeout)
		return o
	})
}

// tell sends the event of a probe that did not go well, and returns what
// counts; ok is false if it could not be made, which doesn't count.
func (w *worker) tell(o outcome) (r results.Result, ok bool) {
	switch {
	case o.err != nil:
		w.event(events.ContainerUnhealthy, fmt.Sprintf("%s probe errored and resulted in %s state: %s", w.probeType, o.result, o.err))
		return results.Failure, false
	case o.result == probe.Success:
		return results.Success, true
	case o.result == probe.Warning:
		w.event(events.ContainerProbeWarning, fmt.Sprintf("%s probe warning: %s", w.probeType, o.output))
		return results.Success, true
	}
	w.event(events.ContainerUnhealthy, fmt.Sprintf("%s probe failed: %s", w.probeType, o.output))
	return results.Failure, true
}

func (w *worker) event(reason, message string) {
	if w.m.o.Recorder != nil {
		w.m.o.Recorder.Event(kubecontainer.ContainerRef(w.pod, w.container), v1.EventTypeWarning, reason, message)
	}
}
