package fakecri

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// SandboxInfo is a sandbox as [Runtime.Sandboxes] tells of it.
type SandboxInfo struct {
	ID, Namespace, Pod, UID string
	Attempt                 uint32
	Ready                   bool
}

// ContainerInfo is a container as [Runtime.Containers] tells of it. Times are
// nanoseconds since the Unix epoch, 0 for "not yet".
type ContainerInfo struct {
	ID, SandboxID, Namespace, Pod, UID, Name string
	Attempt                                  uint32
	// Alive tells whether it has a process.
	Alive                            bool
	CreatedAt, StartedAt, FinishedAt int64
	ExitCode                         int32
	// Resources are those it was made with or last updated to, not to be written to.
	Resources *runtimeapi.LinuxContainerResources
}

// Sandboxes tells of every sandbox, in the order in which they were asked for.
// It is no call and takes no time.
func (r *Runtime) Sandboxes() []SandboxInfo {
	out := make([]SandboxInfo, 0, len(r.recs.sandboxes))
	for _, s := range r.recs.sandboxes {
		md := s.metadata
		out = append(out, SandboxInfo{ID: s.id, Namespace: md.Namespace, Pod: md.Name, UID: md.Uid, Attempt: md.Attempt, Ready: s.state == sandboxReady})
	}
	return out
}

// Containers tells of every container, in the order in which they were asked
// for. It is no call and takes no time.
func (r *Runtime) Containers() []ContainerInfo {
	out := make([]ContainerInfo, 0, len(r.recs.containers))
	for _, c := range r.recs.containers {
		md := c.sandbox.metadata
		out = append(out, ContainerInfo{
			ID: c.id, SandboxID: c.sandbox.id, Namespace: md.Namespace, Pod: md.Name, UID: md.Uid, Name: c.config.Metadata.Name,
			Attempt: c.config.Metadata.Attempt, Alive: c.alive(),
			CreatedAt: c.createdAt, StartedAt: c.startedAt, FinishedAt: c.finishedAt, ExitCode: c.exitCode, Resources: c.linuxResources(),
		})
	}
	return out
}

// PodUsage is what the containers of a pod use.
type PodUsage struct {
	Memory    int64 // bytes
	Processes int64 // with those of sandboxes
}

// PodUsage returns what a pod uses, by its UID, and whether it has a sandbox. It
// is no call and takes no time.
func (r *Runtime) PodUsage(uid string) (PodUsage, bool) {
	u, there, now := PodUsage{}, false, r.l.UnixNano()
	for _, s := range r.recs.sandboxes {
		if s.metadata.Uid != uid {
			continue
		}
		there = true
		if s.state == sandboxReady {
			u.Processes++
		}
		for _, c := range s.containers {
			if c.process != nil && c.alive() {
				u.Memory += r.use.memoryNow(c, now)
				u.Processes += r.use.processesOf(c)
			}
		}
	}
	return u, there
}
