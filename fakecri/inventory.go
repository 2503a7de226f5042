package fakecri

import (
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

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
	// Alive reports whether it has a process.
	Alive                            bool
	CreatedAt, StartedAt, FinishedAt int64
	ExitCode                         int32
	// Resources are those it was made with or last updated to, not to be written to.
	Resources *runtimeapi.LinuxContainerResources
}

// Sandboxes tells of every sandbox, in the order in which they were asked for.
// It is no call and takes no time.
func (r *Runtime) Sandboxes() []SandboxInfo {
	out := make([]SandboxInfo, 0, len(r.recs.Sandboxes))
	for _, s := range r.recs.Sandboxes {
		md := s.Metadata
		out = append(out, SandboxInfo{ID: s.ID, Namespace: md.Namespace, Pod: md.Name, UID: md.Uid, Attempt: md.Attempt, Ready: s.State == records.SandboxReady})
	}
	return out
}

// Containers tells of every container, in the order in which they were asked
// for. It is no call and takes no time.
func (r *Runtime) Containers() []ContainerInfo {
	out := make([]ContainerInfo, 0, len(r.recs.Containers))
	for _, c := range r.recs.Containers {
		md := c.Sandbox.Metadata
		out = append(out, ContainerInfo{
			ID: c.ID, SandboxID: c.Sandbox.ID, Namespace: md.Namespace, Pod: md.Name, UID: md.Uid, Name: c.Config.Metadata.Name,
			Attempt: c.Config.Metadata.Attempt, Alive: c.Alive(),
			CreatedAt: c.CreatedAt, StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, ExitCode: c.ExitCode, Resources: c.LinuxResources(),
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
	for _, s := range r.recs.Sandboxes {
		if s.Metadata.Uid != uid {
			continue
		}
		there = true
		if s.State == records.SandboxReady {
			u.Processes++
		}
		for _, c := range s.Containers {
			if c.Process != nil && c.Alive() {
				u.Memory += r.use.MemoryNow(c, now)
				u.Processes += r.use.ProcessesOf(c)
			}
		}
	}
	return u, there
}

// ContainerUsage is what a running container uses.
type ContainerUsage struct {
	Name    string
	Started time.Time
	// Memory is the working set in bytes, CoreNanos the processor time since the
	// start in core-nanoseconds.
	Memory, CoreNanos int64
}

// ContainerUsages returns what the running containers of a pod use, by its UID. It
// is no call, takes no time and changes nothing.
func (r *Runtime) ContainerUsages(uid string) []ContainerUsage {
	var out []ContainerUsage
	now := r.l.UnixNano()
	for _, s := range r.recs.Sandboxes {
		if s.Metadata.Uid != uid {
			continue
		}
		for _, c := range s.Containers {
			p := c.Process
			if p == nil || !c.Alive() {
				continue
			}
			u := ContainerUsage{Name: c.Config.Metadata.Name, Started: time.Unix(0, p.StartedAt).UTC(), Memory: r.use.MemoryNow(c, now)}
			switch {
			case p.Interpreted != nil:
				u.CoreNanos = p.Interpreted.CoreNanos()
			case p.Behaviour.CPU != nil:
				u.CoreNanos = r.use.CpuTotal(p, now)
			}
			out = append(out, u)
		}
	}
	return out
}
