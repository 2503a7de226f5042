package endpointslice

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// hint gives the endpoints of a family their hints (trafficDistribution, or the
// annotation topology-mode, which comes first), or takes them away. unchanged are
// the slices that have no other reason to change; those that get other hints are
// updated. It runs after slices were planned, so what it changes is part of the same requests.
func (p *planner) hint(family discoveryv1.AddressType, unchanged []*discoveryv1.EndpointSlice, out *plan) {
	if autoTopology(p.svc) {
		p.hintByCPU(family, unchanged, out)
		return
	}
	// A service that no longer asks for hints by CPU is told once.
	if p.populated() {
		p.tell(family, v1.EventTypeWarning, hintsDisabled, "Topology Aware Hints has been disabled")
	}
	p.setZones(family, nil)
	zones, nodes := preferred(p.svc)
	hint := func(ep *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
		if !zones || !isReady(ep) {
			return nil
		}
		h := &discoveryv1.EndpointHints{}
		if ep.Zone != nil {
			h.ForZones = []discoveryv1.ForZone{{Name: *ep.Zone}}
		}
		if nodes && ep.NodeName != nil {
			h.ForNodes = []discoveryv1.ForNode{{Name: *ep.NodeName}}
		}
		if h.ForZones == nil && h.ForNodes == nil {
			return nil
		}
		return h
	}
	// A slice whose hints alone are stale becomes an update.
	for _, es := range unchanged {
		// Of an endpoint that is not ready upstream doesn't mind the hints here.
		stale := slices.ContainsFunc(es.Endpoints, func(ep discoveryv1.Endpoint) bool {
			return (!zones || isReady(&ep)) && !sameHints(ep.Hints, hint(&ep))
		})
		if stale {
			out.update = append(out.update, p.copied(es))
		}
	}
	for _, list := range [][]*discoveryv1.EndpointSlice{out.create, out.update} {
		for _, es := range list {
			for i := range es.Endpoints {
				es.Endpoints[i].Hints = hint(&es.Endpoints[i])
			}
		}
	}
}

// preferred tells what a service's trafficDistribution asks for
// (k8s.io/endpointslice/trafficdist). PreferClose is the older name of PreferSameZone (KEP-3015).
func preferred(svc *v1.Service) (zones, nodes bool) {
	if svc.Spec.TrafficDistribution == nil {
		return false, false
	}
	switch *svc.Spec.TrafficDistribution {
	case v1.ServiceTrafficDistributionPreferClose, v1.ServiceTrafficDistributionPreferSameZone:
		return true, false
	case v1.ServiceTrafficDistributionPreferSameNode:
		return true, true
	}
	return false, false
}

// autoTopology reports whether a service asks for hints in proportion to the zones'
// CPUs (utils.go hintsEnabled). The annotation topology-mode replaced topology-aware-hints, which
// still wins.
func autoTopology(svc *v1.Service) bool {
	mode, ok := svc.Annotations[v1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		mode = svc.Annotations[v1.AnnotationTopologyMode]
	}
	return mode == "Auto" || mode == "auto"
}

// isReady reports whether an endpoint says that it takes traffic.
func isReady(ep *discoveryv1.Endpoint) bool {
	return ep.Conditions.Ready != nil && *ep.Conditions.Ready
}

// sameHints compares zones and nodes in their order. Upstream compares them with
// reflect.DeepEqual, so order counts.
func sameHints(a, b *discoveryv1.EndpointHints) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.ForZones, b.ForZones) && slices.Equal(a.ForNodes, b.ForNodes)
}

// copied returns a copy of a slice whose endpoints can be written to. The stored slice is shared
// and must not be written to.
func (p *planner) copied(es *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	c := *es
	c.ObjectMeta, _ = p.meta(es)
	c.Endpoints = slices.Clone(es.Endpoints)
	return &c
}

// zoneCount is how many endpoints a zone is hinted to (EndpointZoneInfo). It is what overload is
// judged by when nodes change.
type zoneCount map[string]int

// hinted is what is remembered of a service with hints by CPU (TopologyCache).
type hinted struct {
	zones map[discoveryv1.AddressType]zoneCount
	// populated is that a family has got hints since they were last taken away.
	populated bool
}

// populated reports whether hints are in use.
func (p *planner) populated() bool { return p.hints != nil && p.hints.populated }

// setZones remembers how many endpoints of a family each zone has been hinted; nil
// is that they have no hints (SetHints, RemoveHints).
func (p *planner) setZones(family discoveryv1.AddressType, zones zoneCount) {
	if p.hints == nil {
		return
	}
	p.hints.populated = zones != nil
	if zones == nil {
		delete(p.hints.zones, family)
		return
	}
	if p.hints.zones == nil {
		p.hints.zones = map[discoveryv1.AddressType]zoneCount{}
	}
	p.hints.zones[family] = zones
}

// Reasons of the events about hints by CPU (topologycache/event.go).
const (
	hintsEnabled  = "TopologyAwareHintsEnabled"
	hintsDisabled = "TopologyAwareHintsDisabled"
)

// event is what the service's users are told of its hints.
type event struct{ typ, reason, message string }

// tell adds an event to the plan. The events are recorded by the controller after the plan was
// carried out.
func (p *planner) tell(family discoveryv1.AddressType, typ, reason, message string) {
	p.events = append(p.events, event{typ, reason, fmt.Sprintf("%s, addressType: %s", message, family)})
}
