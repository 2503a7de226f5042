package fakecri

import (
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// This file is what happens behind the kubelet's back. Pods are named
// "namespace/name"; with several sandboxes or runs the newest is meant. These
// acts need no daemon and take no time.

// ErrNothingThere is in the chain of the errors about a sandbox or container
// that the runtime doesn't have, or that doesn't run where it would have to.
var ErrNothingThere = errors.New("nothing there")

// nothing is an error that reads as what and is an [ErrNothingThere].
type nothing struct{ what string }

func (n *nothing) Error() string        { return n.what }
func (n *nothing) Is(target error) bool { return target == ErrNothingThere }

// findSandbox returns the newest sandbox of a pod.
func (r *recordStore) findSandbox(pod string) (*sandbox, error) {
	for i := len(r.sandboxes) - 1; i >= 0; i-- {
		md := r.sandboxes[i].metadata
		if md.Namespace+"/"+md.Name == pod {
			return r.sandboxes[i], nil
		}
	}
	return nil, &nothing{fmt.Sprintf("node %s has no sandbox of pod %s", r.node, pod)}
}

// findContainer returns the newest container of a name; with alive the newest
// that runs.
func (r *recordStore) findContainer(pod, name string, alive bool) (*container, error) {
	for i := len(r.containers) - 1; i >= 0; i-- {
		c := r.containers[i]
		md := c.sandbox.metadata
		if c.config.Metadata.Name == name && (!alive || c.alive()) && md.Namespace+"/"+md.Name == pod {
			return c, nil
		}
	}
	what := "container"
	if alive {
		what = "running container"
	}
	return nil, &nothing{fmt.Sprintf("node %s has no %s %q of pod %s", r.node, what, name, pod)}
}

// StopContainerOutside kills a running container, as a StopContainer with a
// timeout of 0 by somebody else would: exit code 137.
func (r *Runtime) StopContainerOutside(pod, container string) error {
	return r.SignalContainerOutside(pod, container, sigKILL)
}

// SignalContainerOutside sends a signal to a running container. SIGKILL kills;
// any other counts as the stop signal.
func (r *Runtime) SignalContainerOutside(pod, container string, signal int) error {
	c, err := r.recs.findContainer(pod, container, true)
	if err != nil {
		return err
	}
	r.run.signal(c, signal)
	return nil
}

// ExitContainerOutside has a running container exit by itself with a code.
func (r *Runtime) ExitContainerOutside(pod, container string, code int32) error {
	c, err := r.recs.findContainer(pod, container, true)
	if err != nil {
		return err
	}
	r.run.exit(c, exitStatus{code: code})
	return nil
}

// OOMKillContainerOutside has the OOM killer kill a running container.
func (r *Runtime) OOMKillContainerOutside(pod, container string) error {
	c, err := r.recs.findContainer(pod, container, true)
	if err != nil {
		return err
	}
	r.run.exit(c, exitByOOM)
	return nil
}

// LoseContainerOutside makes the runtime lose track of a running container,
// which is UNKNOWN then.
func (r *Runtime) LoseContainerOutside(pod, container string) error {
	c, err := r.recs.findContainer(pod, container, true)
	if err != nil {
		return err
	}
	r.recs.setContainerState(c, stateUnknown)
	return nil
}

// RemoveContainerOutside removes a container, running or not.
func (r *Runtime) RemoveContainerOutside(pod, container string) error {
	c, err := r.recs.findContainer(pod, container, false)
	if err != nil {
		return err
	}
	r.life.removeContainer(c)
	return nil
}

// StopSandboxOutside stops a pod's sandbox as StopPodSandbox does.
func (r *Runtime) StopSandboxOutside(pod string) error {
	s, err := r.recs.findSandbox(pod)
	if err != nil {
		return err
	}
	r.run.killAll(s)
	r.life.endSandbox(s)
	return nil
}

// KillSandboxOutside kills a pod's sandbox process: the sandbox is NOTREADY,
// its containers die, and its IP stays taken until it is stopped.
func (r *Runtime) KillSandboxOutside(pod string) error {
	s, err := r.recs.findSandbox(pod)
	if err != nil {
		return err
	}
	r.run.killAll(s)
	if s.state == sandboxReady {
		r.life.setSandboxState(s, sandboxNotReady)
	}
	return nil
}

// RemoveSandboxOutside removes a pod's sandbox with its containers.
func (r *Runtime) RemoveSandboxOutside(pod string) error {
	s, err := r.recs.findSandbox(pod)
	if err != nil {
		return err
	}
	r.life.removeSandbox(s)
	return nil
}

// StopAllOutside kills every container and stops every sandbox, as an orderly
// shutdown of the runtime's work does: exit code 137. The daemon lives on.
func (r *Runtime) StopAllOutside() {
	for _, s := range r.recs.sandboxes {
		if s.state == sandboxReady || s.ip.IsValid() {
			r.life.endSandbox(s)
		}
	}
}

// RemoveImageOutside removes an image by id, tag or digest.
func (r *Runtime) RemoveImageOutside(name string) error {
	im := r.images.find(name)
	if im == nil {
		return fmt.Errorf("node %s has no image %q", r.opts.Node, name)
	}
	r.images.remove(im)
	return nil
}

// SetNetworkReady sets the condition NetworkReady, which is true at first.
func (r *Runtime) SetNetworkReady(ready bool, reason, message string) {
	r.view.networkNotReady = nil
	if !ready {
		r.view.networkNotReady = &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Reason: reason, Message: message}
	}
	r.recs.changed()
}

// PowerCut ends every process, the daemon included, at once. Records and
// images survive: when the daemon is started again, sandboxes are NOTREADY,
// and what ran is EXITED with code 255 and reason Unknown, as containerd says
// of what went while it wasn't looking. A container that was not started yet
// stays CREATED.
func (r *Runtime) PowerCut() {
	r.StopDaemon()
	for _, c := range r.recs.containers {
		if c.alive() {
			r.run.exit(c, exitStatus{code: unknownExitCode, reason: unknownReason})
			r.lost = append(r.lost, c)
		}
	}
	for _, s := range r.recs.sandboxes {
		s.netUp = false
		r.net.networkDown(s)
		if s.state == sandboxReady {
			r.life.setSandboxState(s, sandboxNotReady)
		}
	}
	r.use.cutUse()
	r.kern.powerCut()
}

// State counts what there is, for statistics and reports.
type State struct {
	Sandboxes, ReadySandboxes     int
	Containers, RunningContainers int
	Images                        int
}

// State returns what there is now. It is no call.
func (r *Runtime) State() State {
	st := State{Sandboxes: len(r.recs.sandboxes), Containers: len(r.recs.containers), Images: len(r.images.images)}
	for _, s := range r.recs.sandboxes {
		if s.state == sandboxReady {
			st.ReadySandboxes++
		}
	}
	for _, c := range r.recs.containers {
		if c.alive() {
			st.RunningContainers++
		}
	}
	return st
}
