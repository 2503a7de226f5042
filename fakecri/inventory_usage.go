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
	for _, s := range r.recs.sandboxes {
		if s.metadata.Uid != uid {
			continue
		}
		for _, c := range s.containers {
			p := c.process
			if p == nil || !c.alive() {
				continue
			}
			u := ContainerUsage{Name: c.config.Metadata.Name, Started: time.Unix(0, p.startedAt).UTC(), Memory: r.use.memoryNow(c, now)}
			switch {
			case p.in != nil:
				u.CoreNanos = p.in.coreNanos()
			case p.b.CPU != nil:
				u.CoreNanos = r.use.cpuTotal(p, now)
			}
			out = append(out, u)
		}
	}
	return out
}
