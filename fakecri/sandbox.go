package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// RunPodSandbox makes a sandbox and returns its id; it is READY then.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, runtimeHandler string) (string, error) {
	c.r.assumeUsers(config.GetMetadata())
	return c.r.life.RunSandbox(ctx, &c.by, &records.Sandbox{Config: config, Metadata: config.GetMetadata(), Handler: runtimeHandler})
}

// assumeUsers gives the images of a pod the users that Options.NonRoot asks for: before anybody
// asks for their status, whether or not they have to be pulled.
func (r *Runtime) assumeUsers(pod *runtimeapi.PodSandboxMetadata) {
	if r.opts.NonRoot == nil || pod == nil {
		return
	}
	for _, image := range r.opts.NonRoot(pod) {
		if name, err := r.images.Canonical(image); err == nil {
			r.images.AssumeUser(name)
		}
	}
}

// StopPodSandbox kills what runs in the sandbox and makes it NOTREADY. It may
// be repeated, and unknown ids succeed.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	sub := c.r.recs.SandboxSubject(id)
	_, err := calls.Change(ctx, &c.by, calls.StopPodSandbox, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.r.life.StopPodSandbox(ctx, &sub, id)
	})
	return err
}

// RemovePodSandbox removes a sandbox with all its containers, stopping it
// first. It may be repeated, and unknown ids succeed.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	r, sub := c.r, c.r.recs.SandboxSubject(id)
	_, err := calls.Change(ctx, &c.by, calls.RemovePodSandbox, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.life.RemovePodSandbox(&sub, id)
	})
	return err
}

// PodSandboxStatus returns a sandbox's status; NotFound if there is none.
func (c *Client) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := c.readSandbox(ctx, calls.PodSandboxStatus, id)
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.PodSandboxStatusResponse{Status: c.r.view.sandboxStatus(s)}
	if verbose {
		resp.Info = c.r.view.sandboxInfo(s)
	}
	return resp, nil
}

// readSandbox makes a call about one sandbox and finds it.
func (c *Client) readSandbox(ctx context.Context, m calls.Method, id string) (*records.Sandbox, error) {
	if err := c.by.Read(ctx, m, c.r.recs.SandboxSubject(id)); err != nil {
		return nil, err
	}
	return c.r.recs.NeedSandbox(id)
}

func (r *viewer) sandboxStatus(s *records.Sandbox) *runtimeapi.PodSandboxStatus {
	lean := r.leanSandboxStatus(s)
	if s.Own == nil {
		return lean
	}
	whole := s.Whole()
	return &runtimeapi.PodSandboxStatus{
		Id: lean.Id, Metadata: lean.Metadata, State: lean.State, CreatedAt: lean.CreatedAt, Network: lean.Network, Linux: lean.Linux,
		Labels: whole.Labels, Annotations: whole.Annotations, RuntimeHandler: lean.RuntimeHandler,
	}
}

// leanStatus is the status with the labels and annotations of config. It is kept.
func (r *viewer) leanSandboxStatus(s *records.Sandbox) *runtimeapi.PodSandboxStatus {
	if s.Status != nil {
		return s.Status
	}
	st := &runtimeapi.PodSandboxStatus{
		Id:             s.ID,
		Metadata:       s.Metadata,
		State:          s.State,
		CreatedAt:      s.CreatedAt,
		Network:        &runtimeapi.PodSandboxNetworkStatus{},
		Labels:         s.Config.Labels,
		Annotations:    s.Config.Annotations,
		RuntimeHandler: s.Handler,
	}
	if s.NetUp {
		st.Network.Ip = s.IP.String()
	}
	o := s.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if o == nil {
		o = &runtimeapi.NamespaceOption{}
	}
	if r.linux == nil || !sameNamespaces(o, r.linux.Namespaces.Options) {
		r.linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: o}}
	}
	st.Linux = r.linux
	s.Status = st
	return st
}

// sameNamespaces reports whether a and b are the same; false of those with a user
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
	sub := r.recs.SandboxSubject(id)
	err := c.by.Update(ctx, calls.UpdatePodSandboxResources, &sub, func() error {
		s, err := r.recs.NeedSandbox(id)
		if err == nil && req.GetResources() != nil {
			r.use.SetPodLimit(s, req.Resources, req.Overhead)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
