package fakecri

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// viewer makes what calls answer of the records.
type viewer struct {
	l      *loop.Loop
	opts   *Options
	calls  *callDaemon
	images *imageStore
	recs   *recordStore
	files  *nodeFiles
	kern   *nodeKernel
	disks  *layerStore
	use    *accounts
	run    *runner
	life   *lifecycle

	listeners       watchers[*runtimeapi.ContainerEventResponse]
	networkNotReady *runtimeapi.RuntimeCondition
	// linux is shared by the statuses of sandboxes with the same namespaces.
	linux *runtimeapi.LinuxPodSandboxStatus
}

func newViewer(r *Runtime) *viewer {
	return &viewer{
		l: r.l, opts: &r.opts, calls: r.calls, images: r.images, recs: r.recs, files: r.files, kern: r.kern, disks: r.disks, use: r.use, run: r.run, life: r.life,
		linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}},
	}
}

// ContainerStatus returns a container's status; NotFound if there is none.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	ctr, err := c.readContainer(ctx, id)
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: c.r.view.containerStatus(ctr)}
	if verbose {
		resp.Info = c.r.view.containerInfo(ctr)
	}
	return resp, nil
}

// readContainer makes the call ContainerStatus and finds the container.
func (c *Client) readContainer(ctx context.Context, id string) (*container, error) {
	if err := c.by.read(ctx, mContainerStatus, c.r.recs.containerSubject(id)); err != nil {
		return nil, err
	}
	return c.r.recs.needContainer(id)
}

func (r *viewer) containerStatus(c *container) *runtimeapi.ContainerStatus {
	st := r.leanContainerStatus(c)
	st.Labels, st.LogPath = c.labels(), c.logPath()
	return st
}

// leanStatus is a new status with the labels of config, and without the log's
// path until the container has exited.
func (r *viewer) leanContainerStatus(c *container) *runtimeapi.ContainerStatus {
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
		User:        r.containerUser(c),
		StopSignal:  c.config.StopSignal,
	}
	if st.StopSignal == runtimeapi.Signal_RUNTIME_DEFAULT {
		st.StopSignal = signalNamed(c.stopSignal())
	}
	if c.state == stateExited {
		st.LogPath = c.logPath()
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
func (r *viewer) containerUser(c *container) *runtimeapi.ContainerUser {
	if p := c.process; p != nil && p.in != nil {
		return userOf(p.in.cred)
	}
	if users := r.images.imageUsers(c.image.source); users != nil {
		if cred, err := users.cred(c.id, c.config.GetLinux().GetSecurityContext(), c.image.source.User); err == nil {
			return userOf(cred)
		}
	}
	sc := c.config.GetLinux().GetSecurityContext()
	uid, gid := c.image.uid, c.image.gid
	if v := sc.GetRunAsUser(); v != nil {
		uid, gid = v.Value, 0
	}
	if v := sc.GetRunAsGroup(); v != nil {
		gid = v.Value
	}
	alone := len(sc.GetSupplementalGroups()) == 0
	if last := c.image.user; alone && last != nil && last.Linux.Uid == uid && last.Linux.Gid == gid {
		return last
	}
	u := &runtimeapi.LinuxContainerUser{Uid: uid, Gid: gid}
	u.SupplementalGroups = append([]int64{gid}, sc.GetSupplementalGroups()...)
	slices.Sort(u.SupplementalGroups) // as containerd hands them over
	u.SupplementalGroups = slices.Compact(u.SupplementalGroups)
	out := &runtimeapi.ContainerUser{Linux: u}
	if alone {
		c.image.user = out
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

// imageUsers returns the users of an image, nil if its files are not known.
func (r *imageStore) imageUsers(src *imageSource) *users {
	if src.users == nil && src.filesKnown() {
		u := usersOf(memfs.NewFrom(memfs.Options{Loop: r.l}, r.treeOf(src)))
		src.users = &u
	}
	return src.users
}
