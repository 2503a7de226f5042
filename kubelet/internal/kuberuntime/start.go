package kuberuntime

import (
	"context"
	"fmt"
	"strings"

	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
)

// start is the start of one container: first what it is given, then what is
// found out on its way.
type start struct {
	pod          *v1.Pod
	c            *v1.Container
	status       *kubecontainer.PodStatus
	sandboxID    string
	sandbox      *sandboxConfig
	pullSecrets  []v1.Secret
	podIPs       []string
	imageVolumes map[string]imageVolume
	target       string // of an ephemeral container: whose processes it shows

	ref      *v1.ObjectReference
	imageRef string
	logDir   string
	// restartCount is the attempt, which names the log file and is an
	// annotation.
	restartCount int
	// targetID is target's container, "" without one.
	targetID    string
	containerID string
}

// startContainer pulls the image if need be, creates the container and starts
// it (upstream kuberuntime_container.go startContainer). On failure it returns
// the short reason and the message that belongs to it, and has sent the
// events. The postStart hook is the last step.
// Reasons are the errors of kubecontainer, whose texts a status shows; a
// message is what the runtime or the helper said.
func (m *Manager) startContainer(ctx context.Context, s *start) (message string, err error) { //nolint:revive // as upstream
	s.ref = kubecontainer.ContainerRef(s.pod, s.c)
	s.imageRef, message, err = m.images.EnsureImageExists(ctx, images.Request{
		Ref: s.ref, Pod: s.pod, Image: s.c.Image, Policy: s.c.ImagePullPolicy, PullSecrets: s.pullSecrets, Sandbox: s.sandbox,
	})
	if err != nil {
		m.startFailed(s, "Error: "+err.Error())
		return message, err
	}
	s.logDir = m.logs.dir(s.pod, s.c)
	s.restartCount = m.logs.restartCount(s.logDir, s.c, s.status)
	if s.target != "" {
		t := s.status.FindContainerStatusByName(s.target)
		if t == nil {
			message = fmt.Sprintf("unable to find target container %v", s.target)
			m.startFailed(s, "Error: "+message)
			return message, kubecontainer.ErrCreateContainerConfig
		}
		s.targetID = t.ID
	}
	config, err := m.generateContainerConfig(ctx, s)
	if err != nil {
		return m.failStart(s, err, kubecontainer.ErrCreateContainerConfig)
	}
	s.containerID, err = m.rt.CreateContainer(ctx, s.sandboxID, config, s.sandbox)
	if err != nil {
		return m.failStart(s, err, kubecontainer.ErrCreateContainer)
	}
	m.event(s.ref, v1.EventTypeNormal, "Created", "Container created")
	if m.o.Affinity != nil {
		m.o.Affinity.Created(s.pod, s.c)
	}
	if err := m.rt.StartContainer(ctx, s.containerID); err != nil {
		return m.failStart(s, err, kubecontainer.ErrRunContainer)
	}
	m.logs.makeLink(s, config)
	m.actuated(s.pod, s.c)
	m.event(s.ref, v1.EventTypeNormal, "Started", "Container started")
	return m.postStart(ctx, s)
}

// failStart ends a start: the event and the result's message are the runtime's
// words, the error is the reason that a status shows.
func (m *Manager) failStart(s *start, err, reason error) (string, error) {
	message := statusMessage(err)
	m.startFailed(s, "Error: "+message)
	return message, reason
}

// startFailed sends the event of a failed start, with the container's name in
// place of its ID.
func (m *Manager) startFailed(s *start, message string) {
	if s.containerID != "" {
		message = strings.ReplaceAll(message, s.containerID, s.c.Name)
	}
	m.event(s.ref, v1.EventTypeWarning, "Failed", message)
}

// statusMessage is the message of a gRPC status error without its wrapper, or
// the text of another error.
func statusMessage(err error) string {
	if s, ok := grpcstatus.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// doBackOff holds a container that keeps exiting back: it returns an error
// that knows when that ends, and its message; or it takes the next step of the
// series and returns nil. A container with another image or other resources
// begins a series of its own (upstream kuberuntime_manager.go doBackOff).
func (m *Manager) doBackOff(pod *v1.Pod, c *v1.Container, status *kubecontainer.PodStatus, b *kubecontainer.Backoff) (string, error) {
	var last *kubecontainer.Status
	for _, s := range status.ContainerStatuses {
		if s.Name == c.Name && s.State == kubecontainer.StateExited {
			last = s
			break
		}
	}
	if last == nil || b == nil {
		return "", nil
	}
	ts := last.FinishedAt
	now := m.o.Loop.Now()
	key := kubecontainer.CrashLoopKey(pod, c)
	if !b.InBackOffSince(key, ts, now) {
		b.Next(key, ts, now)
		return "", nil
	}
	m.event(kubecontainer.ContainerRef(pod, c), v1.EventTypeWarning, "BackOff",
		fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.Name, kubecontainer.PodDesc(pod)))
	delay := b.Delay(key)
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.Name, kubecontainer.PodDesc(pod)),
		&kubecontainer.BackoffError{Err: kubecontainer.ErrCrashLoopBackOff, Expiry: ts.Add(delay)}
}
