package process

import (
	"slices"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// Unserved is a port of a pod that one of its containers was to answer on, and that none
// of them listens on at any time.
type Unserved struct {
	UID, Namespace, Pod, Container, Image string

	Port int
	// Serves are the ports that the pod's containers listen on, sorted, and Running is how
	// many of them run.
	Serves  []int
	Running int
}

// TellUnserved says that a container asked its pod in vain, unless its program is stated:
// then somebody has thought of it.
func (r *Runner) TellUnserved(c *records.Container, port int) {
	if p := r.programOf(c); p != nil && !p.Beside && !p.BesideKnown {
		return
	}
	md := c.Sandbox.Metadata
	u := Unserved{UID: md.Uid, Namespace: md.Namespace, Pod: md.Name, Container: c.Config.Metadata.Name, Image: c.ImageName(), Port: port}
	for _, o := range c.Sandbox.Containers {
		if o.Process == nil || !o.Alive() {
			continue
		}
		u.Running++
		b := o.Process.Behaviour
		for i := range b.Ports {
			u.Serves = append(u.Serves, b.Ports[i].Port)
		}
		for _, n := range o.DeclaredPorts() {
			if b.AnswersUnlisted(n) {
				u.Serves = append(u.Serves, n)
			}
		}
	}
	slices.Sort(u.Serves)
	if u.Serves = slices.Compact(u.Serves); !slices.Contains(u.Serves, port) {
		r.Options.Unserved(u)
	}
}
