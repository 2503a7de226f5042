package lifecycle

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// CreateContainer is CreateContainer; lean says that the labels are the kubelet's. The kubelet calls
// it for each container of a pod, once the image is there.
func (r *Machine) CreateContainer(ctx context.Context, by *calls.Caller, podSandboxID string, config *runtimeapi.ContainerConfig, lean bool) (string, error) {
	sub := r.Records.SandboxSubject(podSandboxID)
	sub.Container, sub.Attempt = config.GetMetadata().GetName(), config.GetMetadata().GetAttempt()
	sub.Resources = config.GetLinux().GetResources()
	return by.Act(ctx, calls.CreateContainer, &containerCreation{Acting: calls.Acting{Subject: sub}, r: r, sandboxID: podSandboxID, config: config, lean: lean})
}

// containerCreation is a CreateContainer. Act calls its methods in the order Begin, Admit, End,
// with the call's latency in between, and Undo in the end.
type containerCreation struct {
	calls.Acting
	r         *Machine
	sandboxID string
	config    *runtimeapi.ContainerConfig
	lean      bool
	c         *records.Container
}

// Begin reserves the name, so that of two calls at once one fails at once. The
// sandbox is looked at here and again at the end, since it may stop in between. The errors and
// their order are containerd's (internal/cri/server/container_create.go).
func (a *containerCreation) Begin() error {
	r, config := a.r, a.config
	if err := checkContainerConfig(config); err != nil {
		return err
	}
	s, err := r.Records.LookupSandbox(a.sandboxID)
	switch {
	case err != nil:
		return err
	case s == nil:
		return status.Errorf(codes.NotFound, "failed to find sandbox id %q: not found", a.sandboxID)
	}
	if s.State != records.SandboxReady {
		return notReady(s)
	}
	if err := r.checkInSandbox(s, config); err != nil {
		return err
	}
	md := config.Metadata
	// The name is reserved by those being created too.
	for _, o := range s.Containers {
		if om := o.Config.Metadata; om.Attempt == md.Attempt && om.Name == md.Name {
			return status.Errorf(codes.AlreadyExists, "failed to reserve container name %q: name is reserved for %q",
				md.Name+"_"+records.SandboxName(s.Metadata)+"_"+records.Itoa(md.Attempt), o.ID)
		}
	}
	// It is in the sandbox's list from here on, so the name is taken; listings show it once it is
	// Listed.
	a.c = &records.Container{ID: r.Records.NewID("container"), Sandbox: s, Config: config, Lean: a.lean}
	s.Containers = append(s.Containers, a.c)
	return nil
}

// Undo frees the name of a container that was not created. It is called in any case: a container
// that was created is left alone.
func (a *containerCreation) Undo() {
	if c := a.c; c != nil && !c.Listed {
		c.Sandbox.Containers = records.DeleteItem(c.Sandbox.Containers, c)
	}
}

// Admit resolves the image, which from then on is the container's even if it is
// removed meanwhile. It comes when faults have acted and before the latency.
func (a *containerCreation) Admit() error {
	img := a.r.Images.Find(a.config.Image.GetImage())
	if img == nil {
		return status.Errorf(codes.NotFound, "failed to resolve image %q: not found", a.config.Image.GetImage())
	}
	a.c.Image = img
	return nil
}

// End makes the container CREATED. Nothing of what it checks may wait: between the
// checks and the change nobody else may run. The duration is how long the call takes yet, after
// the state has changed.
func (a *containerCreation) End() (string, time.Duration, error) {
	r, c, s := a.r, a.c, a.c.Sandbox
	if err := r.checkCreation(c); err != nil {
		return "", 0, err
	}
	c.CreatedAt = r.Loop.UnixNano()
	c.State = records.StateCreated
	// The image's files stay while a container uses them, as containerd's snapshots do.
	r.Images.HoldImage(c.Image.Source)
	r.Records.ListContainer(c)
	r.Event(records.EventCreated, c.ID, s)
	return c.ID, 0, nil
}

// checkCreation finds out whether a container can be created, after the latency. Whatever fails
// here has made nothing, but for mount sources: those stay, as with containerd.
func (r *Machine) checkCreation(c *records.Container) error {
	s, config := c.Sandbox, c.Config
	// The sandbox may have stopped, or gone, during the latency.
	if s.State != records.SandboxReady || !s.Listed {
		return notReady(s)
	}
	if err := r.Layers.RootDirFits("container", c.ID); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	// A host path that is missing is made as a directory, which containerd does, too.
	if err := r.Files.MakeMountSources(config.Mounts); err != nil {
		return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to generate spec: %v", c.ID, err)
	}
	// From here on the order is containerd's when it makes the container's spec.
	if err := r.Runner.CheckImageMounts(config.Mounts); err != nil {
		return err
	}
	if err := r.Runner.CheckDevices(c.ID, config.Devices); err != nil {
		return err
	}
	if err := r.injectCDI(c); err != nil {
		return err
	}
	if err := r.Runner.CheckProfile(config.GetLinux().GetSecurityContext()); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	if err := r.Runner.CheckUser(c); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	if c.Image.Source.Commandless(config) {
		return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to generate spec: no command specified", c.ID)
	}
	return nil
}

// notReady is containerd's error for a sandbox that is not READY.
func notReady(s *records.Sandbox) error {
	return status.Errorf(codes.FailedPrecondition, "sandbox container %q is not running", s.ID)
}

// StartContainer makes the call StartContainer. Its errors end up in the kubelet's event Failed.
func (r *Machine) StartContainer(ctx context.Context, by *calls.Caller, id string) error {
	_, err := by.Act(ctx, calls.StartContainer, &containerStart{Acting: calls.Acting{Subject: r.Records.ContainerSubject(id)}, r: r, id: id})
	return err
}

// containerStart is a StartContainer.
type containerStart struct {
	calls.Acting
	r  *Machine
	id string
	c  *records.Container
}

// Begin notes that a start is under way: it excludes another, and a removal. It does not start
// anything: the program begins at the end of the latency.
func (a *containerStart) Begin() error {
	c, err := a.r.Records.NeedContainer(a.id)
	if err != nil {
		return err
	}
	if err := a.r.checkStart(c); err != nil {
		return err
	}
	// Of two starts at once the second is refused, not queued.
	if c.Starting {
		return status.Errorf(codes.FailedPrecondition, "failed to set starting state for container %q: container is already in starting state", a.id)
	}
	c.Starting = true
	a.c = c
	return nil
}

// Admit has nothing to do: a start depends on nothing that faults delay.
func (a *containerStart) Admit() error { return nil }

// Undo ends the exclusion, however the start went.
func (a *containerStart) Undo() {
	if a.c != nil {
		a.c.Starting = false
	}
}

// End starts the program. With processes the answer comes a while after them, so
// that a command that follows finds the program running, as it would in reality. The container is
// RUNNING when the call returns, or EXITED if its program could not be started.
func (a *containerStart) End() (string, time.Duration, error) {
	r, c := a.r, a.c
	// It may have been removed behind the caller's back during the latency.
	if !c.Listed {
		return "", 0, records.ContainerNotFound(a.id)
	}
	if err := r.checkStart(c); err != nil {
		return "", 0, err
	}
	if err := r.Runner.Start(c); err != nil {
		return "", 0, err
	}
	if c.Process != nil && c.Process.Interpreted != nil {
		// By the time that the call returns the program has been running for
		// a while.
		return "", r.Loop.Between(settleMin, settleMax, "settle", a.Subject.Pod, a.Subject.Key()), nil
	}
	return "", 0, nil
}

// What runc and containerd still do after a container's process has begun.
const (
	settleMin = 8 * time.Millisecond
	settleMax = 16 * time.Millisecond
)

// checkStart is what containerd refuses a start for. It is asked at both ends of the latency.
func (r *Machine) checkStart(c *records.Container) error {
	switch {
	case c.Removing:
		return status.Errorf(codes.FailedPrecondition, "failed to set starting state for container %q: container is in removing state, can't be started", c.ID)
	case c.State != records.StateCreated:
		return status.Errorf(codes.FailedPrecondition, "failed to set starting state for container %q: container is in %s state", c.ID, c.State)
	case c.Sandbox.State != records.SandboxReady:
		return notReady(c.Sandbox)
	}
	return nil
}

// StopContainer is the call StopContainer once faults have acted: the signal, the
// wait and the kill. If ctx ends during the wait, the signal has been sent and no
// SIGKILL follows. The latency passes last, after the process has ended. The kubelet gives the
// pod's grace period as the timeout. A container that has ended already is no error: the call is
// idempotent.
func (r *Machine) StopContainer(ctx context.Context, sub *calls.Subject, id string) error {
	c, err := r.Records.LookupContainer(id)
	if c == nil {
		// NotFound is no error here, as LookupContainer says.
		return err
	}
	if !c.Alive() {
		return r.Calls.ShortPause(ctx, calls.StopContainer, sub)
	}
	// A container that is UNKNOWN gets no signal: there is nobody to send it.
	if sub.Timeout > 0 && c.State == records.StateRunning {
		r.Runner.Signal(c, c.StopSignal())
		if err := r.waitExit(ctx, c, time.Duration(sub.Timeout)*time.Second); err != nil {
			return err
		}
	}
	switch {
	case c.State == records.StateUnknown:
		r.Runner.Exit(c, records.ExitStatus{Code: records.UnknownExitCode, Reason: records.UnknownReason})
	case c.Alive():
		r.Runner.Exit(c, records.ExitBySignal(records.SigKILL))
	}
	return r.Calls.Pause(ctx, calls.StopContainer, sub)
}

// waitExit waits until c has exited or d has passed; only the end of ctx is an
// error. d is loop time.
func (r *Machine) waitExit(ctx context.Context, c *records.Container, d time.Duration) error {
	if !c.Alive() {
		return nil
	}
	// Made by the first who waits: most containers are never waited for.
	if c.Exited == nil {
		c.Exited = &loop.Event{}
	}
	tctx, cancel := loop.WithTimeout(ctx, d)
	defer cancel()
	if err := c.Exited.Wait(tctx); err != nil {
		return ctx.Err()
	}
	return nil
}

// RemoveContainerCall is the call RemoveContainer once faults have acted. It
// completes even if it is cancelled, as containerd's does. A running container is killed first,
// as the kubelet may ask for.
func (r *Machine) RemoveContainerCall(ctx context.Context, sub *calls.Subject, id string) error {
	c, err := r.Records.LookupContainer(id)
	switch {
	case c == nil:
		return err
	// The errors have no code of their own in containerd, hence Unknown.
	case c.Starting:
		return status.Errorf(codes.Unknown, "failed to set removing state for container %q: container is in starting state, can't be removed", id)
	case c.Removing:
		return status.Errorf(codes.Unknown, "failed to set removing state for container %q: container is already in removing state", id)
	}
	// It excludes starts and other removals for the time of the call.
	c.Removing = true
	defer func() { c.Removing = false }()
	if c.Alive() {
		r.Runner.Exit(c, records.ExitBySignal(records.SigKILL))
	}
	r.Calls.PauseRegardless(calls.RemoveContainer, sub)
	r.RemoveContainer(c)
	return nil
}

// RemoveContainer forgets a container, if it is still there. It is also how a sandbox's removal
// takes its containers along.
func (r *Machine) RemoveContainer(c *records.Container) {
	if !c.Listed {
		return
	}
	if c.Alive() {
		r.Runner.Exit(c, records.ExitBySignal(records.SigKILL))
	}
	s := c.Sandbox
	// The layer goes before the image's files, of which it may be the last holder.
	r.Layers.Drop(c)
	r.Images.ReleaseImage(c.Image.Source)
	r.Records.UnlistContainer(c)
	r.Event(records.EventDeleted, c.ID, s)
}

// UpdateContainer gives a container other resources; those that lin leaves open
// stay. The kubelet's in-place resize (KEP-1287) and the CPU manager call it. It acts at once.
func (r *Machine) UpdateContainer(id string, lin *runtimeapi.LinuxContainerResources) error {
	// What is asked for must be valid by itself, and again together with what it
	// leaves as it is.
	if err := checkResources(lin); err != nil {
		return err
	}
	c, err := r.Records.NeedContainer(id)
	switch {
	case err != nil:
		return err
	case c.State != records.StateRunning && c.State != records.StateCreated:
		return status.Errorf(codes.FailedPrecondition, "failed to update resources: container %q is in %s state", id, c.State)
	}
	if lin != nil {
		merged := mergeResources(c.LinuxResources(), lin)
		// What is valid by itself may not be together with the rest: swap below memory.
		if err := checkResources(merged); err != nil {
			return err
		}
		c.Resources = merged
		if c.Process != nil {
			r.Runner.LimitChanged(c.Process)
		}
	}
	return nil
}

// mergeResources lays what is set in change over old, as containerd does. 0 means not set for
// numbers, as in the proto.
func mergeResources(old, change *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{
		CpuPeriod:              cmp.Or(change.CpuPeriod, old.GetCpuPeriod()),
		CpuQuota:               cmp.Or(change.CpuQuota, old.GetCpuQuota()),
		CpuShares:              cmp.Or(change.CpuShares, old.GetCpuShares()),
		MemoryLimitInBytes:     cmp.Or(change.MemoryLimitInBytes, old.GetMemoryLimitInBytes()),
		OomScoreAdj:            cmp.Or(change.OomScoreAdj, old.GetOomScoreAdj()),
		CpusetCpus:             cmp.Or(change.CpusetCpus, old.GetCpusetCpus()),
		CpusetMems:             cmp.Or(change.CpusetMems, old.GetCpusetMems()),
		MemorySwapLimitInBytes: cmp.Or(change.MemorySwapLimitInBytes, old.GetMemorySwapLimitInBytes()),
		// Lists replace as a whole.
		HugepageLimits: old.GetHugepageLimits(),
		Unified:        old.GetUnified(),
	}
	if change.HugepageLimits != nil {
		out.HugepageLimits = change.HugepageLimits
	}
	if change.Unified != nil {
		out.Unified = change.Unified
	}
	return out
}
