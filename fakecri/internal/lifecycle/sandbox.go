package lifecycle

import (
	"context"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// sandboxRun is a RunPodSandbox. reserved says that Begin came far enough for Undo to have
// something to give back.
type sandboxRun struct {
	calls.Acting
	r        *Machine
	s        *records.Sandbox
	reserved bool
}

// Begin reserves the name. The pod's records exist from here on, listed or not. NOTREADY until
// End: nobody sees it before.
func (a *sandboxRun) Begin() error {
	r, s, md := a.r, a.s, a.s.Metadata
	if err := r.checkSandboxConfig(s); err != nil {
		return err
	}
	p := r.Records.PodFor(md.Uid)
	// The name is reserved by those being created too.
	for _, o := range p.Sandboxes {
		if om := o.Metadata; om.Attempt == md.Attempt && om.Name == md.Name && om.Namespace == md.Namespace {
			return status.Errorf(codes.AlreadyExists, "failed to reserve sandbox name %q: name is reserved for %q", records.SandboxName(md), o.ID)
		}
	}
	s.ID, s.Pod, s.State = r.Records.NewID("sandbox"), p, records.SandboxNotReady
	a.reserved = true
	p.Sandboxes = append(p.Sandboxes, s)
	return nil
}

// Admit has nothing to do.
func (a *sandboxRun) Admit() error { return nil }

// Undo frees the name of a sandbox that did not come to be.
func (a *sandboxRun) Undo() {
	if a.reserved && !a.s.Listed {
		a.r.Records.DropSandbox(a.s)
	}
}

// End makes the sandbox READY, with an address unless it has the host's network. In containerd's
// order: directories, network, then the pause process.
func (a *sandboxRun) End() (string, time.Duration, error) {
	r, s := a.r, a.s
	// A full disk fails the directory before the network, as containerd's order is.
	if err := r.Layers.RootDirFits("sandbox", s.ID); err != nil {
		return "", 0, status.Errorf(codes.Unknown, "failed to start sandbox %q: %v", s.ID, err)
	}
	if !s.HostNetwork() {
		ip, ok := r.Net.IPs.Take()
		if !ok {
			return "", 0, status.Errorf(codes.Unknown, `failed to setup network for sandbox %q: plugin type="bridge" failed (add): no IP addresses available in range set: %s`, s.ID, r.Net.IPs.Prefix)
		}
		// The address outlives the network: it is given back by StopPodSandbox only.
		s.IP, s.NetUp = ip, true
	}
	s.State = records.SandboxReady
	// The pause process counts among the node's processes.
	r.Accounts.SandboxStarted()
	s.CreatedAt = r.Loop.UnixNano()
	r.Records.ListSandbox(s)
	r.Event(records.EventCreated, s.ID, s)
	// A sandbox is never CREATED for anybody to see, yet both events are told.
	r.Event(records.EventStarted, s.ID, s)
	return s.ID, 0, nil
}

// StopPodSandbox is the call StopPodSandbox once faults have acted. Containers die
// at its begin, the network goes at its end; it completes even if it is cancelled. The kubelet
// has stopped the containers with their grace periods before; what is left is killed.
func (r *Machine) StopPodSandbox(ctx context.Context, sub *calls.Subject, id string) error {
	s, err := r.Records.LookupSandbox(id)
	if s == nil {
		return err
	}
	// A sandbox that died by itself still holds its address, and is stopped in full.
	if s.State != records.SandboxReady && !s.IP.IsValid() {
		return r.Calls.ShortPause(ctx, calls.StopPodSandbox, sub)
	}
	r.Runner.KillAll(s)
	r.Calls.PauseRegardless(calls.StopPodSandbox, sub)
	r.EndSandbox(s)
	return nil
}

// EndSandbox makes a sandbox NOTREADY, with its network torn down. It may be called again for one
// that has ended, and then finds nothing to do.
func (r *Machine) EndSandbox(s *records.Sandbox) {
	r.Runner.KillAll(s) // what was started meanwhile
	if s.IP.IsValid() {
		// Only now may another pod get the address.
		r.Net.IPs.Free(s.IP)
		s.IP = netip.Addr{}
	}
	s.NetUp = false
	// Only then can it have namespaces.
	if r.Kernel.Machine != nil {
		r.Kernel.DropPod(s)
	}
	if s.Listed {
		r.SetSandboxState(s, records.SandboxNotReady)
	}
}

// SetSandboxState is the only place where a sandbox that was made changes its state,
// so that its process is booked and its event told exactly once. SandboxChanged moves the
// generation on, by which listings are found to be out of date.
func (r *Machine) SetSandboxState(s *records.Sandbox, state runtimeapi.PodSandboxState) {
	stopped := s.State == records.SandboxReady && state != records.SandboxReady
	if stopped {
		r.Accounts.SandboxStopped(s)
	}
	s.State = state
	// The status that was kept shows the state before.
	s.Status = nil
	r.Records.SandboxChanged(s)
	if stopped {
		r.Event(records.EventStopped, s.ID, s)
	}
}

// RemovePodSandbox is the call RemovePodSandbox once faults have acted. A sandbox
// that is READY takes the time of a stop besides. An unknown sandbox is no error, as for
// containerd.
func (r *Machine) RemovePodSandbox(sub *calls.Subject, id string) error {
	s, err := r.Records.LookupSandbox(id)
	if s == nil {
		return err
	}
	if s.State == records.SandboxReady {
		r.Runner.KillAll(s)
		r.Calls.PauseRegardless(calls.StopPodSandbox, sub)
		r.EndSandbox(s)
	}
	r.Calls.PauseRegardless(calls.RemovePodSandbox, sub)
	r.RemoveSandbox(s)
	return nil
}

// RemoveSandbox forgets a sandbox and its containers, if it is still there. Its containers'
// layers, logs and images' holds go with them.
func (r *Machine) RemoveSandbox(s *records.Sandbox) {
	if !s.Listed {
		return
	}
	r.EndSandbox(s)
	// Backwards, since removal takes them out of the list; those that are still being
	// created undo themselves.
	for i := len(s.Containers) - 1; i >= 0; i-- {
		if c := s.Containers[i]; c.Listed {
			r.RemoveContainer(c)
		}
	}
	r.Records.UnlistSandbox(s)
	// The files are written for interpreted containers only, and outlive a power cut.
	if r.Kernel.HadKernel {
		r.Kernel.RemoveSandboxFiles(s)
	}
	r.Records.SandboxChanged(s)
	r.Event(records.EventDeleted, s.ID, s)
}
