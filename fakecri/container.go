package fakecri

import (
	"cmp"
	"context"
	"path"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	stateCreated = runtimeapi.ContainerState_CONTAINER_CREATED
	stateRunning = runtimeapi.ContainerState_CONTAINER_RUNNING
	stateExited  = runtimeapi.ContainerState_CONTAINER_EXITED
	stateUnknown = runtimeapi.ContainerState_CONTAINER_UNKNOWN
)

// container is the record of a container. Before CreateContainer is done it
// only holds the name and isn't listed.
type container struct {
	id      string
	sandbox *sandbox
	config  *runtimeapi.ContainerConfig // the request's: see whole
	image   *image                      // what it was made of, still present or not

	createdAt, startedAt, finishedAt int64
	state                            runtimeapi.ContainerState
	listed, starting, removing       bool
	lean                             bool // config lacks the labels: see CreateContainerOf
	exitCode                         int32
	reason, message                  string
	resources                        *runtimeapi.LinuxContainerResources // nil: as in config

	process *process    // nil unless alive
	exited  *loop.Event // made by who waits for the exit
}

func (c *container) subject() subject {
	md := c.sandbox.metadata
	return subject{namespace: md.Namespace, pod: md.Name, container: c.config.Metadata.Name, attempt: c.config.Metadata.Attempt, timeout: -1}
}

// alive tells whether the container has a process.
func (c *container) alive() bool { return c.state == stateRunning || c.state == stateUnknown }

func (c *container) linuxResources() *runtimeapi.LinuxContainerResources {
	if c.resources != nil {
		return c.resources
	}
	return c.config.GetLinux().GetResources()
}

// logPath is the absolute path of the log, or "" when the requests named none.
func (c *container) logPath() string {
	if c.config.LogPath == "" {
		return ""
	}
	dir := c.sandbox.logDirectory()
	if dir == "" {
		return ""
	}
	return path.Clean(dir + "/" + c.config.LogPath)
}

func (r *recordStore) containerSubject(id string) subject {
	if c := r.containerFor(id); c != nil {
		return c.subject()
	}
	return subject{timeout: -1}
}

func containerNotFound(id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", id)
}

// CreateContainer makes a container in a READY sandbox, of an image that is
// present, and returns its id.
func (c *Client) CreateContainer(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	return c.r.life.createContainer(ctx, &c.by, podSandboxID, config, false)
}

// createContainer is CreateContainer; lean says that the labels are the kubelet's.
func (r *lifecycle) createContainer(ctx context.Context, by *caller, podSandboxID string, config *runtimeapi.ContainerConfig, lean bool) (string, error) {
	sub := r.recs.sandboxSubject(podSandboxID)
	sub.container, sub.attempt = config.GetMetadata().GetName(), config.GetMetadata().GetAttempt()
	sub.resources = config.GetLinux().GetResources()
	return by.act(ctx, mCreateContainer, &containerCreation{acting: acting{sub: sub}, r: r, sandboxID: podSandboxID, config: config, lean: lean})
}

// containerCreation is a CreateContainer.
type containerCreation struct {
	acting
	r         *lifecycle
	sandboxID string
	config    *runtimeapi.ContainerConfig
	lean      bool
	c         *container
}

func (a *containerCreation) begin() error {
	r, config := a.r, a.config
	if err := checkContainerConfig(config); err != nil {
		return err
	}
	s, err := r.recs.lookupSandbox(a.sandboxID)
	switch {
	case err != nil:
		return err
	case s == nil:
		return status.Errorf(codes.NotFound, "failed to find sandbox id %q: not found", a.sandboxID)
	}
	if s.state != sandboxReady {
		return notReady(s)
	}
	if err := r.checkInSandbox(s, config); err != nil {
		return err
	}
	md := config.Metadata
	for _, o := range s.containers {
		if om := o.config.Metadata; om.Attempt == md.Attempt && om.Name == md.Name {
			return status.Errorf(codes.AlreadyExists, "failed to reserve container name %q: name is reserved for %q",
				md.Name+"_"+sandboxName(s.metadata)+"_"+itoa(md.Attempt), o.id)
		}
	}
	a.c = &container{id: r.recs.newID("container"), sandbox: s, config: config, lean: a.lean}
	s.containers = append(s.containers, a.c)
	return nil
}

func (a *containerCreation) undo() {
	if c := a.c; c != nil && !c.listed {
		c.sandbox.containers = deleteItem(c.sandbox.containers, c)
	}
}

func (a *containerCreation) admit() error {
	img := a.r.images.find(a.config.Image.GetImage())
	if img == nil {
		return status.Errorf(codes.NotFound, "failed to resolve image %q: not found", a.config.Image.GetImage())
	}
	a.c.image = img
	return nil
}

func (a *containerCreation) end() (string, time.Duration, error) {
	r, c, s := a.r, a.c, a.c.sandbox
	if err := r.checkCreation(c); err != nil {
		return "", 0, err
	}
	c.createdAt = r.l.UnixNano()
	c.state = stateCreated
	c.listed = true
	r.images.holdImage(c.image.source)
	r.recs.containerGen++
	r.recs.containerByID.add(c)
	r.recs.containers = append(r.recs.containers, c)
	s.pod.containers = append(s.pod.containers, c)
	r.recs.countLabel(c, s.metadata.Uid, 1)
	r.recs.containerChanged(c)
	r.event(eventCreated, c.id, s)
	return c.id, 0, nil
}

// checkCreation finds out whether a container can be created, after the latency.
func (r *lifecycle) checkCreation(c *container) error {
	s, config := c.sandbox, c.config
	if s.state != sandboxReady || !s.listed {
		return notReady(s)
	}
	if err := r.disks.rootDirFits("container", c.id); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	if err := r.files.makeMountSources(config.Mounts); err != nil {
		return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to generate spec: %v", c.id, err)
	}
	if err := r.run.checkImageMounts(config.Mounts); err != nil {
		return err
	}
	if err := r.run.checkDevices(c.id, config.Devices); err != nil {
		return err
	}
	if err := r.run.checkProfile(config.GetLinux().GetSecurityContext()); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	if err := r.run.checkUser(c); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	if c.image.source.commandless(config) {
		return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to generate spec: no command specified", c.id)
	}
	return nil
}

func notReady(s *sandbox) error {
	return status.Errorf(codes.FailedPrecondition, "sandbox container %q is not running", s.id)
}

// StartContainer starts a container that is CREATED.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	return c.r.life.startContainer(ctx, &c.by, id)
}

func (r *lifecycle) startContainer(ctx context.Context, by *caller, id string) error {
	_, err := by.act(ctx, mStartContainer, &containerStart{acting: acting{sub: r.recs.containerSubject(id)}, r: r, id: id})
	return err
}

// containerStart is a StartContainer.
type containerStart struct {
	acting
	r  *lifecycle
	id string
	c  *container
}

func (a *containerStart) begin() error {
	c, err := a.r.recs.needContainer(a.id)
	if err != nil {
		return err
	}
	if err := a.r.checkStart(c); err != nil {
		return err
	}
	if c.starting {
		return status.Errorf(codes.FailedPrecondition, "failed to set starting state for container %q: container is already in starting state", a.id)
	}
	c.starting = true
	a.c = c
	return nil
}

func (a *containerStart) admit() error { return nil }

func (a *containerStart) undo() {
	if a.c != nil {
		a.c.starting = false
	}
}

func (a *containerStart) end() (string, time.Duration, error) {
	r, c := a.r, a.c
	if !c.listed {
		return "", 0, containerNotFound(a.id)
	}
	if err := r.checkStart(c); err != nil {
		return "", 0, err
	}
	if err := r.run.start(c); err != nil {
		return "", 0, err
	}
	if c.process != nil && c.process.in != nil {
		// By the time that the call returns the program has been running for
		// a while.
		return "", r.l.Between(settleMin, settleMax, "settle", a.sub.pod, a.sub.key()), nil
	}
	return "", 0, nil
}

// What runc and containerd still do after a container's process has begun.
const (
	settleMin = 8 * time.Millisecond
	settleMax = 16 * time.Millisecond
)

func (r *lifecycle) checkStart(c *container) error {
	switch {
	case c.removing:
		return status.Errorf(codes.FailedPrecondition, "failed to set starting state for container %q: container is in removing state, can't be started", c.id)
	case c.state != stateCreated:
		return status.Errorf(codes.FailedPrecondition, "failed to set starting state for container %q: container is in %s state", c.id, c.state)
	case c.sandbox.state != sandboxReady:
		return notReady(c.sandbox)
	}
	return nil
}

// StopContainer sends the stop signal, waits up to timeout seconds and kills
// what then still runs; a timeout of 0 kills at once. It returns when the
// process has ended. What is unknown or doesn't run is no error.
func (c *Client) StopContainer(ctx context.Context, id string, timeout int64) error {
	sub := c.r.recs.containerSubject(id)
	sub.timeout = max(timeout, 0)
	_, err := change(ctx, &c.by, mStopContainer, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.r.life.stopContainer(ctx, &sub, id)
	})
	return err
}

func (r *lifecycle) stopContainer(ctx context.Context, sub *subject, id string) error {
	c, err := r.recs.lookupContainer(id)
	if c == nil {
		return err
	}
	if !c.alive() {
		return r.calls.shortPause(ctx, mStopContainer, sub)
	}
	if sub.timeout > 0 && c.state == stateRunning {
		r.run.signal(c, c.stopSignal())
		if err := r.waitExit(ctx, c, time.Duration(sub.timeout)*time.Second); err != nil {
			return err
		}
	}
	switch {
	case c.state == stateUnknown:
		r.run.exit(c, exitStatus{code: unknownExitCode, reason: unknownReason})
	case c.alive():
		r.run.exit(c, exitBySignal(sigKILL))
	}
	return r.calls.pause(ctx, mStopContainer, sub)
}

// waitExit waits until c has exited or d has passed; only the end of ctx is an
// error.
func (r *lifecycle) waitExit(ctx context.Context, c *container, d time.Duration) error {
	if !c.alive() {
		return nil
	}
	if c.exited == nil {
		c.exited = &loop.Event{}
	}
	tctx, cancel := loop.WithTimeout(ctx, d)
	defer cancel()
	if err := c.exited.Wait(tctx); err != nil {
		return ctx.Err()
	}
	return nil
}

// RemoveContainer removes a container, killing it first if it runs. It may be
// repeated, and unknown ids succeed. A container that is being started or
// removed can't be removed.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	sub := c.r.recs.containerSubject(id)
	_, err := change(ctx, &c.by, mRemoveContainer, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.r.life.removeContainerCall(ctx, &sub, id)
	})
	return err
}

func (r *lifecycle) removeContainerCall(ctx context.Context, sub *subject, id string) error {
	c, err := r.recs.lookupContainer(id)
	switch {
	case c == nil:
		return err
	case c.starting:
		return status.Errorf(codes.Unknown, "failed to set removing state for container %q: container is in starting state, can't be removed", id)
	case c.removing:
		return status.Errorf(codes.Unknown, "failed to set removing state for container %q: container is already in removing state", id)
	}
	c.removing = true
	defer func() { c.removing = false }()
	if c.alive() {
		r.run.exit(c, exitBySignal(sigKILL))
	}
	r.calls.pauseRegardless(mRemoveContainer, sub)
	r.removeContainer(c)
	return nil
}

// removeContainer forgets a container, if it is still there.
func (r *lifecycle) removeContainer(c *container) {
	if !c.listed {
		return
	}
	if c.alive() {
		r.run.exit(c, exitBySignal(sigKILL))
	}
	s := c.sandbox
	c.listed = false
	r.disks.dropLayer(c)
	r.images.releaseImage(c.image.source)
	r.recs.containerGen++
	r.recs.containerByID.drop(c)
	r.recs.containers = deleteItem(r.recs.containers, c)
	s.containers = deleteItem(s.containers, c)
	s.pod.containers = deleteItem(s.pod.containers, c)
	r.recs.countLabel(c, s.metadata.Uid, -1)
	r.recs.dropPod(s)
	r.recs.containerChanged(c)
	r.event(eventDeleted, c.id, s)
}

// setContainerState makes a change of state visible.
func (r *recordStore) setContainerState(c *container, state runtimeapi.ContainerState) {
	c.state = state
	r.containerChanged(c)
}

// UpdateContainerResources takes over the resources that are set, all or, with
// InvalidArgument, none of them; a memory limit below what the program uses gets
// it killed.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	r, sub := c.r, c.r.recs.containerSubject(id)
	sub.resources = resources.GetLinux()
	return c.by.update(ctx, mUpdateContainerResources, &sub, func() error {
		return r.life.updateContainer(id, resources.GetLinux())
	})
}

// updateContainer gives a container other resources; those that lin leaves open
// stay.
func (r *lifecycle) updateContainer(id string, lin *runtimeapi.LinuxContainerResources) error {
	if err := checkResources(lin); err != nil {
		return err
	}
	c, err := r.recs.needContainer(id)
	switch {
	case err != nil:
		return err
	case c.state != stateRunning && c.state != stateCreated:
		return status.Errorf(codes.FailedPrecondition, "failed to update resources: container %q is in %s state", id, c.state)
	}
	if lin != nil {
		merged := mergeResources(c.linuxResources(), lin)
		if err := checkResources(merged); err != nil {
			return err
		}
		c.resources = merged
		if c.process != nil {
			r.run.limitChanged(c.process)
		}
	}
	return nil
}

// mergeResources lays what is set in change over old, as containerd does.
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
		HugepageLimits:         old.GetHugepageLimits(),
		Unified:                old.GetUnified(),
	}
	if change.HugepageLimits != nil {
		out.HugepageLimits = change.HugepageLimits
	}
	if change.Unified != nil {
		out.Unified = change.Unified
	}
	return out
}

// ReopenContainerLog makes the log file of a running container anew, after
// the caller has renamed it.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	r, sub := c.r, c.r.recs.containerSubject(id)
	return c.by.update(ctx, mReopenContainerLog, &sub, func() error {
		c, err := r.recs.needContainer(id)
		switch {
		case err != nil:
			return err
		case c.state != stateRunning:
			return status.Error(codes.FailedPrecondition, "container is not running")
		}
		if err := r.out.openLog(c); err != nil {
			return status.Error(codes.Unknown, err.Error())
		}
		return nil
	})
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
