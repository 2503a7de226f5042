package fakecri

import (
	"fmt"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// StopContainerOutside kills a running container, as a StopContainer with a
// timeout of 0 by somebody else would: exit code 137.
func (r *Runtime) StopContainerOutside(pod, container string) error {
	return r.SignalContainerOutside(pod, container, records.SigKILL)
}

// outside does something to a container, running or not, of which no call asks.
func (r *Runtime) outside(pod, container string, running bool, do func(*records.Container)) error {
	c, err := r.recs.FindContainer(pod, container, running)
	if err == nil {
		do(c)
	}
	return err
}

// SignalContainerOutside sends a signal to a running container. SIGKILL kills;
// any other counts as the stop signal.
func (r *Runtime) SignalContainerOutside(pod, container string, signal int) error {
	return r.outside(pod, container, true, func(c *records.Container) { r.run.Signal(c, signal) })
}

// ExitContainerOutside has a running container exit by itself with a code.
func (r *Runtime) ExitContainerOutside(pod, container string, code int32) error {
	return r.outside(pod, container, true, func(c *records.Container) { r.run.Exit(c, records.ExitStatus{Code: code}) })
}

// OOMKillContainerOutside has the OOM killer kill a running container.
func (r *Runtime) OOMKillContainerOutside(pod, container string) error {
	return r.outside(pod, container, true, func(c *records.Container) { r.run.Exit(c, records.ExitByOOM) })
}

// LoseContainerOutside makes the runtime lose track of a running container,
// which is UNKNOWN then.
func (r *Runtime) LoseContainerOutside(pod, container string) error {
	return r.outside(pod, container, true, func(c *records.Container) { r.recs.SetContainerState(c, records.StateUnknown) })
}

// RemoveContainerOutside removes a container, running or not.
func (r *Runtime) RemoveContainerOutside(pod, container string) error {
	return r.outside(pod, container, false, func(c *records.Container) { r.life.RemoveContainer(c) })
}

// StopSandboxOutside stops a pod's sandbox as StopPodSandbox does.
func (r *Runtime) StopSandboxOutside(pod string) error {
	s, err := r.recs.FindSandbox(pod)
	if err != nil {
		return err
	}
	r.run.KillAll(s)
	r.life.EndSandbox(s)
	return nil
}

// KillSandboxOutside kills a pod's sandbox process: the sandbox is NOTREADY,
// its containers die, and its IP stays taken until it is stopped.
func (r *Runtime) KillSandboxOutside(pod string) error {
	s, err := r.recs.FindSandbox(pod)
	if err != nil {
		return err
	}
	r.run.KillAll(s)
	if s.State == records.SandboxReady {
		r.life.SetSandboxState(s, records.SandboxNotReady)
	}
	return nil
}

// RemoveSandboxOutside removes a pod's sandbox with its containers.
func (r *Runtime) RemoveSandboxOutside(pod string) error {
	s, err := r.recs.FindSandbox(pod)
	if err != nil {
		return err
	}
	r.life.RemoveSandbox(s)
	return nil
}

// StopAllOutside kills every container and stops every sandbox, as an orderly
// shutdown of the runtime's work does: exit code 137. The daemon lives on.
func (r *Runtime) StopAllOutside() {
	for _, s := range r.recs.Sandboxes {
		if s.State == records.SandboxReady || s.IP.IsValid() {
			r.life.EndSandbox(s)
		}
	}
}

// RemoveImageOutside removes an image by id, tag or digest.
func (r *Runtime) RemoveImageOutside(name string) error {
	im := r.images.Find(name)
	if im == nil {
		return fmt.Errorf("node %s has no image %q", r.opts.Node, name)
	}
	r.images.Remove(im)
	return nil
}

// SetNetworkReady sets the condition NetworkReady, which is true at first.
func (r *Runtime) SetNetworkReady(ready bool, reason, message string) {
	r.view.networkNotReady = nil
	if !ready {
		r.view.networkNotReady = &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Reason: reason, Message: message}
	}
	r.recs.Changed()
}

// PowerCut ends every process, the daemon included, at once. Records and
// images survive: when the daemon is started again, sandboxes are NOTREADY,
// and what ran is EXITED with code 255 and reason Unknown, as containerd says
// of what went while it wasn't looking. A container that was not started yet
// stays CREATED.
func (r *Runtime) PowerCut() {
	r.StopDaemon()
	for _, c := range r.recs.Containers {
		if c.Alive() {
			r.run.Exit(c, records.ExitStatus{Code: records.UnknownExitCode, Reason: records.UnknownReason})
			r.lost = append(r.lost, c)
		}
	}
	for _, s := range r.recs.Sandboxes {
		s.NetUp = false
		if s.State == records.SandboxReady {
			r.life.SetSandboxState(s, records.SandboxNotReady)
		}
	}
	r.use.CutUse()
	r.kern.PowerCut()
}

// State counts what there is, for statistics and reports.
type State struct {
	Sandboxes, ReadySandboxes     int
	Containers, RunningContainers int
	Images                        int
}

// State returns what there is now. It is no call.
func (r *Runtime) State() State {
	st := State{Sandboxes: len(r.recs.Sandboxes), Containers: len(r.recs.Containers), Images: len(r.images.Images)}
	for _, s := range r.recs.Sandboxes {
		if s.State == records.SandboxReady {
			st.ReadySandboxes++
		}
	}
	for _, c := range r.recs.Containers {
		if c.Alive() {
			st.RunningContainers++
		}
	}
	return st
}

// Pulls tells of the images that were pulled since the runtime was made, in the
// order of their first pull. It is no call and takes no time.
func (r *Runtime) Pulls() []PullCount { return slices.Clone(r.images.Pulled) }

// Matched reports of each of Options.Programs whether a container took it: one that no
// container took may have a pattern that matches none. It is nil while none was taken.
func (r *Runtime) Matched() []bool { return slices.Clone(r.run.Matched()) }
