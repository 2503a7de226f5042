package fakecri

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/internal/watch"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// viewer makes what calls answer of the runtime's records: statuses, stats,
// metrics, events. It changes nothing but what it keeps for the next who asks.
type viewer struct {
	*Runtime

	listeners       watch.Watchers[*runtimeapi.ContainerEventResponse]
	networkNotReady *runtimeapi.RuntimeCondition
	// linux is shared by the statuses of sandboxes with the same namespaces.
	linux *runtimeapi.LinuxPodSandboxStatus
}

// ContainerStatus returns a container's status; NotFound if there is none.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	ctr, err := c.readContainer(ctx, calls.ContainerStatus, id)
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: c.r.view.containerStatus(ctr)}
	if verbose {
		resp.Info = c.r.view.containerInfo(ctr)
	}
	return resp, nil
}

// readContainer makes a call about one container and finds it.
func (c *Client) readContainer(ctx context.Context, m calls.Method, id string) (*records.Container, error) {
	if err := c.by.Read(ctx, m, c.r.recs.ContainerSubject(id)); err != nil {
		return nil, err
	}
	return c.r.recs.NeedContainer(id)
}

func (r *viewer) containerStatus(c *records.Container) *runtimeapi.ContainerStatus {
	st := r.leanContainerStatus(c)
	st.Labels, st.LogPath = c.Labels(), c.LogPath()
	return st
}

// leanStatus is a new status with the labels of config, and without the log's
// path until the container has exited.
func (r *viewer) leanContainerStatus(c *records.Container) *runtimeapi.ContainerStatus {
	st := &runtimeapi.ContainerStatus{
		Id:          c.ID,
		Metadata:    c.Config.Metadata,
		State:       c.State,
		CreatedAt:   c.CreatedAt,
		StartedAt:   c.StartedAt,
		FinishedAt:  c.FinishedAt,
		ExitCode:    c.ExitCode,
		Reason:      c.Reason,
		Message:     c.Message,
		Image:       c.Image.Spec,
		ImageRef:    c.Image.Ref,
		ImageId:     c.Image.ID,
		Labels:      c.Config.Labels,
		Annotations: c.Config.Annotations,
		Mounts:      r.mountsShown(c),
		User:        r.containerUser(c),
		StopSignal:  c.Config.StopSignal,
	}
	if st.StopSignal == runtimeapi.Signal_RUNTIME_DEFAULT {
		st.StopSignal = records.SignalNamed(c.StopSignal())
	}
	if c.State == records.StateExited {
		st.LogPath = c.LogPath()
	}
	if lin := c.LinuxResources(); lin != nil {
		st.Resources = &runtimeapi.ContainerResources{Linux: lin}
	}
	if c.State == records.StateCreated { // containerd tells these once it has started
		st.Reason, st.Message = "", ""
	}
	return st
}

// user is whom the container runs as: its process, else what the request and
// the image's files come to.
func (r *viewer) containerUser(c *records.Container) *runtimeapi.ContainerUser {
	if p := c.Process; p != nil && p.Interpreted != nil {
		return userOf(p.Interpreted.Cred)
	}
	if users := r.images.ImageUsers(c.Image.Source); users != nil {
		if cred, err := users.Cred(c.ID, c.Config.GetLinux().GetSecurityContext(), c.Image.Source.User); err == nil {
			return userOf(cred)
		}
	}
	sc := c.Config.GetLinux().GetSecurityContext()
	uid, gid := c.Image.UID, c.Image.GID
	if v := sc.GetRunAsUser(); v != nil {
		uid, gid = v.Value, 0
	}
	if v := sc.GetRunAsGroup(); v != nil {
		gid = v.Value
	}
	alone := len(sc.GetSupplementalGroups()) == 0
	if last := c.Image.User; alone && last != nil && last.Linux.Uid == uid && last.Linux.Gid == gid {
		return last
	}
	u := &runtimeapi.LinuxContainerUser{Uid: uid, Gid: gid}
	u.SupplementalGroups = append([]int64{gid}, sc.GetSupplementalGroups()...)
	slices.Sort(u.SupplementalGroups) // as containerd hands them over
	u.SupplementalGroups = slices.Compact(u.SupplementalGroups)
	out := &runtimeapi.ContainerUser{Linux: u}
	if alone {
		c.Image.User = out
	}
	return out
}

func userOf(cred kernel.Cred) *runtimeapi.ContainerUser {
	u := &runtimeapi.LinuxContainerUser{Uid: int64(cred.UID), Gid: int64(cred.GID), SupplementalGroups: make([]int64, len(cred.Groups))}
	for i, g := range cred.Groups {
		u.SupplementalGroups[i] = int64(g)
	}
	return &runtimeapi.ContainerUser{Linux: u}
}

// mountsShown are the mounts as statuses show them: as in the request, with the
// id of an image volume's image.
func (r *viewer) mountsShown(c *records.Container) []*runtimeapi.Mount {
	mounts := c.Config.Mounts
	for i, m := range c.Config.Mounts {
		if m.GetImage() == nil {
			continue
		}
		if &mounts[0] == &c.Config.Mounts[0] {
			mounts = append([]*runtimeapi.Mount(nil), mounts...)
		}
		ref := m.Image.Image
		if im := r.images.Find(ref); im != nil {
			ref = im.ID
		}
		mounts[i] = &runtimeapi.Mount{
			ContainerPath: m.ContainerPath, HostPath: m.HostPath, Readonly: m.Readonly, SelinuxRelabel: m.SelinuxRelabel,
			Propagation: m.Propagation, UidMappings: m.UidMappings, GidMappings: m.GidMappings, RecursiveReadOnly: m.RecursiveReadOnly,
			Image: &runtimeapi.ImageSpec{
				Image: m.Image.Image, Annotations: m.Image.Annotations, UserSpecifiedImage: m.Image.UserSpecifiedImage,
				RuntimeHandler: m.Image.RuntimeHandler, ImageRef: ref,
			},
			ImageSubPath: m.ImageSubPath,
		}
	}
	return mounts
}
