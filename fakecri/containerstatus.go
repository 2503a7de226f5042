package fakecri

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/sim/memfs"
)

// ContainerStatus returns a container's status; NotFound if there is none.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	if err := c.read(ctx, mContainerStatus, c.r.containerSubject(id)); err != nil {
		return nil, err
	}
	ctr, err := c.r.needContainer(id)
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: ctr.status(c.r)}
	if verbose {
		resp.Info = c.r.containerInfo(ctr)
	}
	return resp, nil
}

func (c *container) status(r *Runtime) *runtimeapi.ContainerStatus {
	st := &runtimeapi.ContainerStatus{
		Id:          c.id,
		Metadata:    c.config.Metadata,
		State:       c.state,
		CreatedAt:   c.createdAt,
		StartedAt:   c.startedAt,
		FinishedAt:  c.finishedAt,
		ExitCode:    c.exitCode,
		Reason:      c.reason,
		Message:     c.message,
		Image:       c.image.spec,
		ImageRef:    c.image.ref,
		ImageId:     c.image.id,
		Labels:      c.config.Labels,
		Annotations: c.config.Annotations,
		Mounts:      r.mountsShown(c),
		LogPath:     c.logPath(),
		User:        c.user(r),
		StopSignal:  c.config.StopSignal,
	}
	if st.StopSignal == runtimeapi.Signal_RUNTIME_DEFAULT {
		st.StopSignal = signalNamed(c.stopSignal())
	}
	if lin := c.linuxResources(); lin != nil {
		st.Resources = &runtimeapi.ContainerResources{Linux: lin}
	}
	if c.state == stateCreated { // containerd tells these once it has started
		st.Reason, st.Message = "", ""
	}
	return st
}

// user is whom the container runs as: its process, else what the request and
// the image's files come to.
func (c *container) user(r *Runtime) *runtimeapi.ContainerUser {
	u := &runtimeapi.LinuxContainerUser{}
	set := func(cred kernel.Cred) {
		u.Uid, u.Gid = int64(cred.UID), int64(cred.GID)
		u.SupplementalGroups = make([]int64, len(cred.Groups))
		for i, g := range cred.Groups {
			u.SupplementalGroups[i] = int64(g)
		}
	}
	if p := c.process; p != nil && p.in != nil {
		set(p.in.cred)
		return &runtimeapi.ContainerUser{Linux: u}
	}
	if users := r.imageUsers(c.image.source); users != nil {
		if cred, err := users.cred(c); err == nil {
			set(cred)
			return &runtimeapi.ContainerUser{Linux: u}
		}
	}
	sc := c.config.GetLinux().GetSecurityContext()
	u.Uid, u.Gid = c.image.uid, c.image.gid
	if v := sc.GetRunAsUser(); v != nil {
		u.Uid, u.Gid = v.Value, 0
	}
	if v := sc.GetRunAsGroup(); v != nil {
		u.Gid = v.Value
	}
	u.SupplementalGroups = append([]int64{u.Gid}, sc.GetSupplementalGroups()...)
	slices.Sort(u.SupplementalGroups) // as containerd hands them over
	u.SupplementalGroups = slices.Compact(u.SupplementalGroups)
	return &runtimeapi.ContainerUser{Linux: u}
}

// imageUsers returns the users of an image, nil if its files are not known.
func (r *Runtime) imageUsers(src *imageSource) *users {
	if src.users == nil && src.filesKnown() {
		u := usersOf(memfs.NewFrom(memfs.Options{Loop: r.l}, r.treeOf(src)))
		src.users = &u
	}
	return src.users
}
