package fakecri

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	sandboxReady    = runtimeapi.PodSandboxState_SANDBOX_READY
	sandboxNotReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

// lifecycle takes sandboxes and containers through their states.
type lifecycle struct {
	l                *loop.Loop
	noUserNamespaces bool
	handlers         []*runtimeapi.RuntimeHandler
	calls            *callDaemon
	recs             *recordStore
	images           *imageStore
	files            *nodeFiles
	disks            *layerStore
	kern             *nodeKernel
	use              *accounts
	net              *podNet
	run              *runner
	event            func(kind runtimeapi.ContainerEventType, id string, s *sandbox)
}

// handlersOf are the runtime handlers of those names and the default one.
func handlersOf(names []string, noUserNamespaces bool) (handlers []*runtimeapi.RuntimeHandler) {
	features := &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: !noUserNamespaces}
	for _, h := range append([]string{""}, names...) {
		handlers = append(handlers, &runtimeapi.RuntimeHandler{Name: h, Features: features})
	}
	return handlers
}

// sandbox is the record of a pod sandbox. Before RunPodSandbox is done it only
// holds the name and isn't listed.
type sandbox struct {
	id        string
	config    *runtimeapi.PodSandboxConfig // the request's, or what replicas share of it: see whole
	metadata  *runtimeapi.PodSandboxMetadata
	own       SandboxConfig // nil: config is the whole
	handler   string
	pod       *podRecords
	createdAt int64
	state     runtimeapi.PodSandboxState
	listed    bool
	// netUp says that the network is still there, so that the status shows
	// the IP; the IP stays taken until StopPodSandbox either way.
	netUp bool
	ip    netip.Addr // invalid without a network of its own

	// containers are in order of their requests, those being created included.
	containers []*container

	status *runtimeapi.PodSandboxStatus // what PodSandboxStatus shows; nil after a change
}

func (s *sandbox) subject() subject {
	md := s.metadata
	return subject{namespace: md.Namespace, pod: md.Name, attempt: md.Attempt, timeout: -1}
}

func (s *sandbox) hostNetwork() bool {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}

// RunPodSandbox makes a sandbox and returns its id; it is READY then.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, runtimeHandler string) (string, error) {
	return c.r.life.runSandbox(ctx, &c.by, &sandbox{config: config, metadata: config.GetMetadata(), handler: runtimeHandler})
}

// runSandbox runs what has its configuration and handler only.
func (r *lifecycle) runSandbox(ctx context.Context, by *caller, s *sandbox) (string, error) {
	md := s.metadata
	sub := subject{namespace: md.GetNamespace(), pod: md.GetName(), attempt: md.GetAttempt(), timeout: -1}
	return by.act(ctx, mRunPodSandbox, &sandboxRun{acting: acting{sub: sub}, r: r, s: s})
}

// sandboxRun is a RunPodSandbox.
type sandboxRun struct {
	acting
	r        *lifecycle
	s        *sandbox
	reserved bool
}

func (a *sandboxRun) begin() error {
	r, s, md := a.r, a.s, a.s.metadata
	if err := r.checkSandboxConfig(s); err != nil {
		return err
	}
	p := r.recs.pods[md.Uid]
	if p == nil {
		p = newPodRecords()
		r.recs.pods[md.Uid] = p
	}
	for _, o := range p.sandboxes {
		if om := o.metadata; om.Attempt == md.Attempt && om.Name == md.Name && om.Namespace == md.Namespace {
			return status.Errorf(codes.AlreadyExists, "failed to reserve sandbox name %q: name is reserved for %q", sandboxName(md), o.id)
		}
	}
	s.id, s.pod, s.state = r.recs.newID("sandbox"), p, sandboxNotReady
	a.reserved = true
	p.sandboxes = append(p.sandboxes, s)
	return nil
}

func (a *sandboxRun) admit() error { return nil }

func (a *sandboxRun) undo() {
	if a.reserved && !a.s.listed {
		a.r.recs.dropSandbox(a.s)
	}
}

func (a *sandboxRun) end() (string, time.Duration, error) {
	r, s := a.r, a.s
	if err := r.disks.rootDirFits("sandbox", s.id); err != nil {
		return "", 0, status.Errorf(codes.Unknown, "failed to start sandbox %q: %v", s.id, err)
	}
	if !s.hostNetwork() {
		ip, ok := r.net.ips.take()
		if !ok {
			return "", 0, status.Errorf(codes.Unknown, `failed to setup network for sandbox %q: plugin type="bridge" failed (add): no IP addresses available in range set: %s`, s.id, r.net.ips.prefix)
		}
		s.ip, s.netUp = ip, true
	}
	s.state = sandboxReady
	r.use.pauses++
	r.use.lowPIDs.grown(false)
	s.createdAt = r.l.UnixNano()
	s.listed = true
	r.recs.sandboxByID.add(s)
	r.recs.sandboxes = append(r.recs.sandboxes, s)
	if n := len(s.pod.sandboxes); s.pod.sandboxes[n-1] != s { // listings are in order of creation
		s.pod.sandboxes = append(deleteItem(s.pod.sandboxes, s), s)
	}
	r.recs.countLabel(s, s.metadata.Uid, 1)
	r.recs.sandboxChanged(s)
	r.event(eventCreated, s.id, s)
	r.event(eventStarted, s.id, s)
	return s.id, 0, nil
}

func sandboxName(md *runtimeapi.PodSandboxMetadata) string {
	return md.Name + "_" + md.Namespace + "_" + md.Uid + "_" + itoa(md.Attempt)
}

func (r *lifecycle) checkHandler(name string) error {
	for _, h := range r.handlers {
		if h.Name == name {
			return nil
		}
	}
	return status.Errorf(codes.InvalidArgument, "failed to get sandbox runtime: no runtime for %q is configured", name)
}

// dropSandbox forgets a sandbox that was never listed.
func (r *recordStore) dropSandbox(s *sandbox) {
	s.pod.sandboxes = deleteItem(s.pod.sandboxes, s)
	r.dropPod(s)
}

// dropPod forgets the pod of s if nothing of it is left.
func (r *recordStore) dropPod(s *sandbox) {
	if len(s.pod.sandboxes) == 0 && len(s.pod.containers) == 0 {
		delete(r.pods, s.metadata.Uid)
	}
}

// StopPodSandbox kills what runs in the sandbox and makes it NOTREADY. It may
// be repeated, and unknown ids succeed.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	sub := c.r.recs.sandboxSubject(id)
	_, err := change(ctx, &c.by, mStopPodSandbox, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.r.life.stopPodSandbox(ctx, &sub, id)
	})
	return err
}

func (r *recordStore) sandboxSubject(id string) subject {
	if s := r.sandboxFor(id); s != nil {
		return s.subject()
	}
	return subject{timeout: -1}
}

func (r *lifecycle) stopPodSandbox(ctx context.Context, sub *subject, id string) error {
	s, err := r.recs.lookupSandbox(id)
	if s == nil {
		return err
	}
	if s.state != sandboxReady && !s.ip.IsValid() {
		return r.calls.shortPause(ctx, mStopPodSandbox, sub)
	}
	r.run.killAll(s)
	r.calls.pauseRegardless(mStopPodSandbox, sub)
	r.endSandbox(s)
	return nil
}

// killAll kills every running container of the sandbox.
func (r *runner) killAll(s *sandbox) {
	for _, c := range s.containers {
		if c.alive() {
			r.exit(c, exitBySignal(sigKILL))
		}
	}
}

// endSandbox makes a sandbox NOTREADY, with its network torn down.
func (r *lifecycle) endSandbox(s *sandbox) {
	r.run.killAll(s) // what was started meanwhile
	if s.ip.IsValid() {
		r.net.ips.free(s.ip)
		s.ip = netip.Addr{}
	}
	s.netUp = false
	r.net.networkDown(s)
	if r.kern.machine != nil {
		r.kern.dropPodKernel(s)
	}
	if s.listed {
		r.setSandboxState(s, sandboxNotReady)
	}
}

func (r *lifecycle) setSandboxState(s *sandbox, state runtimeapi.PodSandboxState) {
	stopped := s.state == sandboxReady && state != sandboxReady
	if stopped {
		r.use.pauses--
		r.use.dropUse(s)
	}
	s.state = state
	s.status = nil
	r.recs.sandboxChanged(s)
	if stopped {
		r.event(eventStopped, s.id, s)
	}
}

// RemovePodSandbox removes a sandbox with all its containers, stopping it
// first. It may be repeated, and unknown ids succeed.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	r, sub := c.r, c.r.recs.sandboxSubject(id)
	_, err := change(ctx, &c.by, mRemovePodSandbox, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.life.removePodSandbox(&sub, id)
	})
	return err
}

func (r *lifecycle) removePodSandbox(sub *subject, id string) error {
	s, err := r.recs.lookupSandbox(id)
	if s == nil {
		return err
	}
	if s.state == sandboxReady {
		r.run.killAll(s)
		r.calls.pauseRegardless(mStopPodSandbox, sub)
		r.endSandbox(s)
	}
	r.calls.pauseRegardless(mRemovePodSandbox, sub)
	r.removeSandbox(s)
	return nil
}

// removeSandbox forgets a sandbox and its containers, if it is still there.
func (r *lifecycle) removeSandbox(s *sandbox) {
	if !s.listed {
		return
	}
	r.endSandbox(s)
	for i := len(s.containers) - 1; i >= 0; i-- {
		if c := s.containers[i]; c.listed {
			r.removeContainer(c)
		}
	}
	s.listed = false
	r.recs.sandboxByID.drop(s)
	r.recs.sandboxes = deleteItem(r.recs.sandboxes, s)
	s.pod.sandboxes = deleteItem(s.pod.sandboxes, s)
	r.recs.countLabel(s, s.metadata.Uid, -1)
	r.recs.dropPod(s)
	if r.kern.hadKernel {
		r.kern.removeSandboxFiles(s)
	}
	r.recs.sandboxChanged(s)
	r.event(eventDeleted, s.id, s)
}

// countLabel keeps count of what is listed without its pod's uid as its label.
func (r *recordStore) countLabel(of labelled, uid string, n int) {
	if v, _ := of.label(labelPodUID); v != uid {
		r.mislabelled += n
	}
}

// PodSandboxStatus returns a sandbox's status; NotFound if there is none.
func (c *Client) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := c.readSandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.PodSandboxStatusResponse{Status: c.r.view.sandboxStatus(s)}
	if verbose {
		resp.Info = c.r.view.sandboxInfo(s)
	}
	return resp, nil
}

// readSandbox makes the call PodSandboxStatus and finds the sandbox.
func (c *Client) readSandbox(ctx context.Context, id string) (*sandbox, error) {
	if err := c.by.read(ctx, mPodSandboxStatus, c.r.recs.sandboxSubject(id)); err != nil {
		return nil, err
	}
	return c.r.recs.needSandbox(id)
}

func (r *viewer) sandboxStatus(s *sandbox) *runtimeapi.PodSandboxStatus {
	lean := r.leanSandboxStatus(s)
	if s.own == nil {
		return lean
	}
	whole := s.whole()
	return &runtimeapi.PodSandboxStatus{
		Id: lean.Id, Metadata: lean.Metadata, State: lean.State, CreatedAt: lean.CreatedAt, Network: lean.Network, Linux: lean.Linux,
		Labels: whole.Labels, Annotations: whole.Annotations, RuntimeHandler: lean.RuntimeHandler,
	}
}

// leanStatus is the status with the labels and annotations of config. It is kept.
func (r *viewer) leanSandboxStatus(s *sandbox) *runtimeapi.PodSandboxStatus {
	if s.status != nil {
		return s.status
	}
	st := &runtimeapi.PodSandboxStatus{
		Id:             s.id,
		Metadata:       s.metadata,
		State:          s.state,
		CreatedAt:      s.createdAt,
		Network:        &runtimeapi.PodSandboxNetworkStatus{},
		Labels:         s.config.Labels,
		Annotations:    s.config.Annotations,
		RuntimeHandler: s.handler,
	}
	if s.netUp {
		st.Network.Ip = s.ip.String()
	}
	o := s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if o == nil {
		o = &runtimeapi.NamespaceOption{}
	}
	if !sameNamespaces(o, r.linux.Namespaces.Options) {
		r.linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: o}}
	}
	st.Linux = r.linux
	s.status = st
	return st
}

// sameNamespaces tells whether a and b are the same; false of those with a user
// namespace, whose mappings are their own.
func sameNamespaces(a, b *runtimeapi.NamespaceOption) bool {
	plain := func(u *runtimeapi.UserNamespace) bool { return len(u.GetUids()) == 0 && len(u.GetGids()) == 0 }
	return a.Network == b.Network && a.Pid == b.Pid && a.Ipc == b.Ipc && a.TargetId == b.TargetId &&
		(a.UsernsOptions == nil) == (b.UsernsOptions == nil) && a.UsernsOptions.GetMode() == b.UsernsOptions.GetMode() &&
		plain(a.UsernsOptions) && plain(b.UsernsOptions)
}

// UpdatePodSandboxResources changes the pod's memory limit.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	r, id := c.r, req.GetPodSandboxId()
	sub := r.recs.sandboxSubject(id)
	err := c.by.update(ctx, mUpdatePodSandboxResources, &sub, func() error {
		s, err := r.recs.needSandbox(id)
		if err == nil && req.GetResources() != nil {
			r.use.setPodLimit(s, req.Resources, req.Overhead)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}

// deleteItem removes the first v from s, in place.
func deleteItem[T comparable](s []T, v T) []T {
	if i := slices.Index(s, v); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}
