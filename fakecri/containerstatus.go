package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus returns a container's status; NotFound if there is none.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	if err := c.read(ctx, mContainerStatus, c.r.containerSubject(id)); err != nil {
		return nil, err
	}
	ctr := c.r.containerByID[id]
	if ctr == nil {
		return nil, containerNotFound(id)
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: ctr.status()}
	if verbose {
		resp.Info = map[string]string{"info": `{"sandboxID":"` + ctr.sandbox.id + `"}`}
	}
	return resp, nil
}

func (c *container) status() *runtimeapi.ContainerStatus {
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
		Mounts:      c.config.Mounts,
		LogPath:     c.logPath(),
		User:        c.user(),
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

// user is whom the container runs as: the request's user, else the image's.
func (c *container) user() *runtimeapi.ContainerUser {
	sc := c.config.GetLinux().GetSecurityContext()
	u := &runtimeapi.LinuxContainerUser{Uid: c.image.uid, Gid: c.image.gid}
	if v := sc.GetRunAsUser(); v != nil {
		u.Uid, u.Gid = v.Value, 0
	}
	if v := sc.GetRunAsGroup(); v != nil {
		u.Gid = v.Value
	}
	u.SupplementalGroups = append([]int64{u.Gid}, sc.GetSupplementalGroups()...)
	return &runtimeapi.ContainerUser{Linux: u}
}
