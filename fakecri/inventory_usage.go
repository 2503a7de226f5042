package fakecri

import "time"

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
