package endpointslice

import (
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// overloadThreshold is by how much the endpoints of a zone may be busier than the
// mean (topologycache/topologycache.go). 20 % over the mean is what a zone's endpoints may carry
// before hints do more harm than good (KEP-2433).
const overloadThreshold = 0.2

// zoneRatios returns the share of each zone in the CPUs of the nodes that are
// ready; nil when a node's zone or CPUs are unknown, or when there are fewer than
// two zones (SetNodes). Control-plane nodes don't count: their CPUs don't serve.
func zoneRatios(nodes []*v1.Node) map[string]float64 {
	cpus := map[string]int64{}
	var total int64
	for _, n := range nodes {
		_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
		_, master := n.Labels["node-role.kubernetes.io/master"]
		if controlPlane || master || !nodeReady(n) {
			continue
		}
		cpu, zone := n.Status.Allocatable.Cpu().MilliValue(), n.Labels[v1.LabelTopologyZone]
		if zone == "" || cpu == 0 {
			return nil
		}
		cpus[zone] += cpu
		total += cpu
	}
	if len(cpus) < 2 {
		return nil
	}
	out := make(map[string]float64, len(cpus))
	for zone, cpu := range cpus { //drydock:unordered each by itself
		out[zone] = float64(cpu) / float64(total)
	}
	return out
}

// nodeReady reports whether a node's CPUs count.
func nodeReady(n *v1.Node) bool {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == v1.NodeReady {
			return n.Status.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

// sortedZones are the zones of a map, by name.
func sortedZones[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) } //drydock:unordered sorted

// allocation is how many endpoints a zone should get. minimum keeps a zone from
// overload, maximum is what it needs at most, desired its share. Numbers are of endpoints.
type allocation struct {
	minimum, maximum int
	desired          float64
}

// allocate shares endpoints out by the zones' CPUs; problem is why it can't be
// done (getAllocations). With fewer endpoints than zones, or CPUs spread too
// unevenly, no hints are better than bad ones. The texts stand in events, so they are upstream's.
func allocate(ratios map[string]float64, endpoints int) (out map[string]allocation, problem string) {
	switch {
	case ratios == nil:
		return nil, "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
	case len(ratios) > endpoints:
		return nil, fmt.Sprintf("Insufficient number of endpoints (%d endpoints, %d zones)", endpoints, len(ratios))
	}
	out = make(map[string]allocation, len(ratios))
	least := 0
	for zone, ratio := range ratios { //drydock:unordered sums
		desired := ratio * float64(endpoints)
		a := allocation{minimum: int(math.Ceil(desired / (1 + overloadThreshold)))}
		// With few endpoints a zone's minimum can be more than its share.
		a.desired = max(desired, float64(a.minimum))
		least += a.minimum
		out[zone] = a
	}
	if least > endpoints {
		return nil, fmt.Sprintf("Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (%d endpoints, %d zones)", endpoints, len(ratios))
	}
	for zone, a := range out { //drydock:unordered each by itself
		a.maximum = a.minimum + endpoints - least
		out[zone] = a
	}
	return out, ""
}

// hintByCPU gives each zone as many endpoints as its share of the CPUs calls for,
// its own ones first (TopologyCache.AddHints). Slices whose hints may stay are left alone, as far
// as they go: a change of one endpoint must not rewrite the slices of all.
func (p *planner) hintByCPU(family discoveryv1.AddressType, unchanged []*discoveryv1.EndpointSlice, out *plan) {
	ready := 0
	for _, list := range [][]*discoveryv1.EndpointSlice{out.create, out.update, unchanged} {
		for _, es := range list {
			for i := range es.Endpoints {
				if isReady(&es.Endpoints[i]) {
					ready++
				}
			}
		}
	}
	allocations, problem := allocate(zoneRatios(p.nodes()), ready)
	if problem != "" {
		p.noHints(family, unchanged, out, problem)
		return
	}
	counts := zoneCount{}
	var kept []*discoveryv1.EndpointSlice
	for _, es := range unchanged {
		if hints := hintsOf(es, counts, allocations); hints != nil {
			for zone, n := range hints { //drydock:unordered sums
				counts[zone] += n
			}
			kept = append(kept, es)
		} else {
			out.update = append(out.update, p.copied(es))
		}
	}
	changed := slices.Concat(out.create, out.update)
	for _, es := range changed {
		for i := range es.Endpoints {
			ep := &es.Endpoints[i]
			ep.Hints = nil
			switch {
			case !isReady(ep):
			// Without a zone somebody would be left without endpoints, so hints are all or
			// nothing.
			case ep.Zone == nil || *ep.Zone == "":
				p.noHints(family, kept, out, "One or more endpoints do not have a zone specified")
				return
			default:
				counts[*ep.Zone]++
				ep.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *ep.Zone}}}
			}
		}
	}
	redistribute(changed, counts, allocations)
	if len(counts) == 0 {
		p.noHints(family, kept, out, "No hints allocated for zones")
		return
	}
	if !p.populated() {
		p.tell(family, v1.EventTypeNormal, hintsEnabled, "Topology Aware Hints has been enabled")
	}
	p.setZones(family, counts)
}

// noHints takes a family's hints away. What was to be created or updated anyway loses its hints
// in the same request.
func (p *planner) noHints(family discoveryv1.AddressType, unchanged []*discoveryv1.EndpointSlice, out *plan, why string) {
	p.tell(family, v1.EventTypeWarning, hintsDisabled, why)
	p.setZones(family, nil)
	for _, es := range unchanged {
		if slices.ContainsFunc(es.Endpoints, func(ep discoveryv1.Endpoint) bool { return ep.Hints != nil }) {
			out.update = append(out.update, p.copied(es))
		}
	}
	for _, es := range slices.Concat(out.create, out.update) {
		for i := range es.Endpoints {
			es.Endpoints[i].Hints = nil
		}
	}
}

// hintsOf counts a slice's hints; nil when they can't stay as they are: one is
// missing, or for a zone that has enough (getHintsByZone). counts are those of the slices before
// it.
func hintsOf(es *discoveryv1.EndpointSlice, counts zoneCount, allocations map[string]allocation) zoneCount {
	out := zoneCount{}
	for i := range es.Endpoints {
		ep := &es.Endpoints[i]
		if !isReady(ep) {
			continue
		}
		if ep.Hints == nil || len(ep.Hints.ForZones) == 0 {
			return nil
		}
		for _, z := range ep.Hints.ForZones {
			out[z.Name]++
		}
	}
	for zone, n := range out { //drydock:unordered any of them decides
		if a, ok := allocations[zone]; !ok || n+counts[zone] > a.maximum {
			return nil
		}
	}
	return out
}

// redistribute hands endpoints of zones that have too many to zones that have too
// few (getGivingAndReceivingZones, redistributeHints). Where upstream takes a map's
// order, it is that of the zones' names. Only slices that are written anyway are touched.
func redistribute(list []*discoveryv1.EndpointSlice, counts zoneCount, allocations map[string]allocation) {
	surplus, want := map[string]float64{}, map[string]float64{}
	for zone, a := range allocations { //drydock:unordered each by itself
		if d := float64(counts[zone]) - a.desired; d > 0 {
			surplus[zone] = d
		} else if d < 0 {
			want[zone] = -d
		}
	}
	give, take := zoneCount{}, zoneCount{}
	for {
		// Whole endpoints are moved while either side has a whole one to move, and halves are
		// rounded.
		from, n := most(surplus)
		to, m := most(want)
		if n < 1 && m < 1 || n < 0.5 || m < 0.5 {
			break
		}
		give[from]++
		surplus[from]--
		take[to]++
		want[to]--
	}
	receivers := sortedZones(take)
	for _, es := range list {
		for i := range es.Endpoints {
			ep := &es.Endpoints[i]
			if len(receivers) == 0 {
				return
			}
			if !isReady(ep) || give[*ep.Zone] == 0 {
				continue
			}
			to := receivers[0]
			ep.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: to}}}
			give[*ep.Zone]--
			counts[*ep.Zone]--
			counts[to]++
			if take[to]--; take[to] == 0 {
				receivers = receivers[1:]
			}
		}
	}
}

// most returns the zone with the greatest number above 0; of equals, the first by
// name.
func most(zones map[string]float64) (zone string, n float64) {
	for _, z := range sortedZones(zones) {
		if zones[z] > n {
			zone, n = z, zones[z]
		}
	}
	return zone, n
}

// overloaded reports whether a zone has fewer endpoints than its share of the CPUs
// calls for (serviceOverloaded). Without ratios every hint is wrong.
func (h *hinted) overloaded(ratios map[string]float64) bool {
	for _, counts := range h.zones { //drydock:unordered any of them decides
		if len(counts) == 0 {
			continue
		}
		if len(ratios) == 0 {
			return true
		}
		total := 0
		for _, n := range counts { //drydock:unordered sums
			total += n
		}
		for zone, ratio := range ratios { //drydock:unordered any of them decides
			if n, ok := counts[zone]; !ok || n < int(math.Ceil(float64(total)*ratio/(1+overloadThreshold))) {
				return true
			}
		}
	}
	return false
}
