package fakecri

import (
	"iter"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/ground/paths"
)

// foresight is what a client knows without a call: whether answers would be others
// than before, and whether there would be any. Nothing of it takes time.
type foresight struct {
	r  *Runtime
	by calls.Caller
}

// Generation grows with every change that a listing of sandboxes or containers
// could show. While listings fail or take time (the daemon is down, a fault
// touches them, they have a latency) no two answers are equal. It is no call
// and takes no time.
func (c *foresight) Generation() uint64 { return c.r.generation() }

// OnChange has fn called, on the loop, whenever Generation or StatusGeneration
// has changed, or begins to change with each call, until the client's group
// dies. fn must not wait.
func (c *foresight) OnChange(fn func()) { c.r.recs.Watchers.Add(c.by.Group, func(uint64) { fn() }) }

// StatusGeneration reports whether Version and Status, called now, would be
// answered at once, as they were when it last returned the same number. 0: that
// cannot be told, since the daemon is down, a fault touches them, they take time
// or calls that only read are traced. It is no call and takes no time.
func (c *foresight) StatusGeneration() uint64 {
	if !c.r.calls.Prompt(calls.Version) || !c.r.calls.Prompt(calls.Status) {
		return 0
	}
	return c.r.recs.Gen
}

// ImageListGeneration is StatusGeneration for ListImages.
func (c *foresight) ImageListGeneration() uint64 {
	if !c.r.calls.Prompt(calls.ListImages) {
		return 0
	}
	return c.r.images.Gen
}

// Untroubled reports whether calls of these methods, made now, would be answered by
// what they ask for, if late: the daemon is up, and no fault touches them. It is no
// call and takes no time. OnChange tells when that may have changed.
func (c *foresight) Untroubled(methods ...string) bool {
	return c.r.calls.Faultless() || !slices.ContainsFunc(methods, func(name string) bool {
		m, ok := calls.MethodByName(name)
		return !ok || !c.r.calls.Untroubled(m)
	})
}

// RunningLogs are the log files of the containers that run, as their statuses name
// them, if logs are kept: those in sandboxes whose directory of logs is at, below or above a
// path. It is no call and takes no time.
func (c *foresight) RunningLogs(at string) iter.Seq[string] {
	return func(yield func(path string) bool) {
		if c.r.out.Logs == nil {
			return
		}
		for _, ctr := range c.r.recs.Containers {
			if ctr.State != runtimeapi.ContainerState_CONTAINER_RUNNING || !paths.Related(ctr.Sandbox.LogDirectory(), at) {
				continue
			}
			if path := ctr.LogPath(); path != "" && !yield(path) {
				return
			}
		}
	}
}

// ImageGeneration grows with every change of the images that are present.
func (c *foresight) ImageGeneration() uint64 { return c.r.images.Gen }

// ImageUseGeneration is StatusGeneration for what garbage collection of images
// asks: which images there are, and which containers have or mount them, dead or
// alive. The use of the file system is no part of it.
func (c *foresight) ImageUseGeneration() uint64 {
	for _, m := range [...]calls.Method{calls.ListImages, calls.ListPodSandbox, calls.ListContainers, calls.ContainerStatus, calls.ImageFsInfo} {
		if !c.r.calls.Prompt(m) {
			return 0
		}
	}
	return c.r.images.Gen + c.r.recs.ContainerGen
}

// MountedImages returns the ids of the images that a container mounts, as its
// status says. ok is false if that has to be asked for, as when a call would
// take time, or fail.
func (c *foresight) MountedImages(containerID string) (ids []string, ok bool) {
	ctr, _ := c.r.recs.LookupContainer(containerID)
	if ctr == nil || c.by.Group.Dead() || !c.r.calls.Prompt(calls.ContainerStatus) {
		return nil, false
	}
	for _, m := range ctr.Config.Mounts {
		if id := m.GetImage().GetImage(); id != "" {
			ids = append(ids, id)
		}
	}
	return ids, true
}
