package scenarios

import (
	"fmt"
	"slices"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// controlPlane checks which controllers there are.
func (v *validator) controlPlane() {
	c := v.s.Spec.ControlPlane
	if c == nil {
		return
	}
	names := controlplane.Names()
	for i, n := range c.Disable {
		if n != "*" && !slices.Contains(names, n) {
			v.errorf(fmt.Sprintf("spec.controlPlane.disable[%d]", i), "there is no controller %q%s", short(n), suggest.Suffix(n, names))
		}
	}
	for _, x := range []struct {
		field string
		of    *ControlPlaneComponent
	}{{"scheduler", c.Scheduler}, {"controllerManager", c.ControllerManager}} {
		if x.of == nil || x.of.ClientConnection == nil {
			continue
		}
		at := "spec.controlPlane." + x.field + ".clientConnection"
		if b := x.of.ClientConnection.Burst; b < 0 {
			v.errorf(at+".burst", "%d is negative", b)
		}
	}
}

// controlPlaneAction checks what a user asks of the control plane.
func (v *validator) controlPlaneAction(at string, a *Action) {
	kind := func(k string) string {
		if k == "" {
			return "Deployment"
		}
		return k
	}
	switch {
	case a.Scale != nil:
		s, at := a.Scale, at+".scale"
		s.Kind = kind(s.Kind)
		s.Namespace = v.namespace(at, s.Kind, s.Namespace)
		if n := s.Replicas; n != nil && (*n < 0 || *n > maxPods) {
			v.errorf(at+".replicas", "%d is not within 0 and %d", *n, maxPods)
		}
	case a.Rollout != nil:
		o, at := a.Rollout, at+".rollout"
		o.Kind = kind(o.Kind)
		o.Namespace = v.namespace(at, o.Kind, o.Namespace)
		if (o.Command == "pause" || o.Command == "resume") && o.Kind != "Deployment" {
			v.errorf(at+".command", "a %s cannot be %sd, only a Deployment can", o.Kind, o.Command)
		}
		switch {
		case o.ToRevision < 0:
			v.errorf(at+".toRevision", "%d is negative", o.ToRevision)
		case o.ToRevision > 0 && o.Command != "undo":
			v.errorf(at+".toRevision", "goes with undo only")
		}
	case a.Evict != nil:
		e, at := a.Evict, at+".evict"
		e.Namespace = v.namespace(at, "Pod", e.Namespace)
		v.grace(at, e.GracePeriodSeconds)
	case a.Drain != nil:
		at := at + ".drain"
		v.grace(at, a.Drain.GracePeriodSeconds)
		if t := a.Drain.Timeout; t < 0 {
			v.errorf(at+".timeout", "%v is negative", t)
		}
	case a.StopComponent != nil:
		if d := a.StopComponent.For; d < 0 {
			v.errorf(at+".stopComponent.for", "%v is negative", d)
		}
	}
}

func (v *validator) grace(at string, seconds *int64) {
	if seconds != nil && *seconds < 0 {
		v.errorf(at+".gracePeriodSeconds", "%d is negative", *seconds)
	}
}

// faultComponent checks which component of the control plane a fault hits.
func (v *validator) faultComponent(at string, f *Fault) {
	if f.Component == "" {
		return
	}
	names := append(controlplane.Names(), controlplane.ControllerManager)
	switch {
	case !slices.Contains(names, f.Component):
		v.errorf(at+".component", "there is no component %q%s", short(f.Component), suggest.Suffix(f.Component, names))
	case len(f.Node) > 0:
		v.errorf(at+".component", "a fault hits either nodes or a component")
	case f.CRI != nil:
		v.errorf(at+".component", "goes with api and partition only")
	}
}
