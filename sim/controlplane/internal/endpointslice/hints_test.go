package endpointslice

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zoned is a cluster of one node per zone, called as the zone, with so many CPUs.
type zoned map[string]int64

func (z zoned) nodes() []*v1.Node {
	var out []*v1.Node
	for _, name := range slices.Sorted(maps.Keys(z)) {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: name}}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(z[name], resource.DecimalSI)}
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		out = append(out, n)
	}
	return out
}

func (z zoned) node(name string) *v1.Node {
	for _, n := range z.nodes() {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// podsOn returns ready pods on the nodes named, and one that is not ready on the first.
func podsOn(nodes ...string) []*v1.Pod {
	var out []*v1.Pod
	for i, node := range append(nodes, nodes[0]) {
		pod := testPod(i, 80, i < len(nodes))
		pod.Spec.NodeName = node
		out = append(out, pod)
	}
	return out
}

// hintsText shows the endpoints' hints, in the order of their addresses.
func hintsText(slicesOf []*discoveryv1.EndpointSlice) string {
	byAddress := map[string]string{}
	for _, es := range slicesOf {
		for _, ep := range es.Endpoints {
			text := "-"
			if ep.Hints != nil {
				text = ""
				for _, z := range ep.Hints.ForZones {
					text += z.Name
				}
				for _, n := range ep.Hints.ForNodes {
					text += "@" + n.Name
				}
			}
			byAddress[ep.Addresses[0]] = text
		}
	}
	var out []string
	for _, a := range slices.Sorted(maps.Keys(byAddress)) {
		out = append(out, byAddress[a])
	}
	return strings.Join(out, " ")
}

func TestHints(t *testing.T) {
	auto := map[string]string{v1.AnnotationTopologyMode: "Auto"}
	tests := []struct {
		name         string
		distribution string
		annotations  map[string]string
		zones        zoned
		on           []string
		hints, event string
	}{
		{"none", "", nil, zoned{"a": 1, "b": 1}, []string{"a", "b"}, "- - -", ""},
		{"same zone", v1.ServiceTrafficDistributionPreferSameZone, nil, zoned{"a": 1, "b": 1}, []string{"a", "b"}, "a b -", ""},
		{"close is the same zone", v1.ServiceTrafficDistributionPreferClose, nil, zoned{"a": 1, "b": 1}, []string{"a", "b"}, "a b -", ""},
		{"same node", v1.ServiceTrafficDistributionPreferSameNode, nil, zoned{"a": 1, "b": 1}, []string{"a", "b"}, "a@a b@b -", ""},
		{"by CPU, as they are", "", auto, zoned{"a": 1, "b": 1}, []string{"a", "b", "a", "b"}, "a b a b -", "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"},
		{"the annotation comes first", v1.ServiceTrafficDistributionPreferSameNode, auto, zoned{"a": 1, "b": 1}, []string{"a", "b"}, "a b -", "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"},
		{"the deprecated one before the other", "", map[string]string{v1.DeprecatedAnnotationTopologyAwareHints: "Disabled", v1.AnnotationTopologyMode: "Auto"}, zoned{"a": 1, "b": 1}, []string{"a", "b"}, "- - -", ""},
		{"some are given away", "", auto, zoned{"a": 1, "b": 1, "c": 2}, []string{"a", "a", "a", "a"}, "b c c a -", "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"},
		{"too few", "", auto, zoned{"a": 1, "b": 1, "c": 1}, []string{"a", "b"}, "- - -", "Warning TopologyAwareHintsDisabled Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4"},
		{"overload", "", auto, zoned{"a": 5, "b": 5}, []string{"a", "b", "a"}, "- - - -", "Warning TopologyAwareHintsDisabled Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 2 zones), addressType: IPv4"},
		{"one zone", "", auto, zoned{"a": 1}, []string{"a", "a"}, "- - -", "Warning TopologyAwareHintsDisabled Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"},
		{"no CPUs", "", auto, zoned{"a": 1, "b": 0}, []string{"a", "b"}, "- - -", "Warning TopologyAwareHintsDisabled Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			svc, w, h := testService(), &world{}, &hinted{}
			svc.Annotations = tt.annotations
			if tt.distribution != "" {
				svc.Spec.TrafficDistribution = &tt.distribution
			}
			sync := func() plan {
				p := (&planner{svc: svc, max: 2, node: tt.zones.node, nodes: tt.zones.nodes, hints: h}).reconcile(podsOn(tt.on...), w.slices)
				w.apply(p)
				return p
			}
			p := sync()
			var events []string
			for _, e := range p.events {
				events = append(events, fmt.Sprint(e.typ, " ", e.reason, " ", e.message))
			}
			if got := hintsText(w.slices); got != tt.hints {
				t.Errorf("hints %q, want %q", got, tt.hints)
			}
			if got := strings.Join(events, "\n"); got != tt.event {
				t.Errorf("events %q, want %q", got, tt.event)
			}
			if p := sync(); len(p.create)+len(p.update)+len(p.remove) > 0 {
				t.Errorf("a second sync makes %d, changes %d and removes %d slices", len(p.create), len(p.update), len(p.remove))
			}
			// A service that no longer asks for hints loses them.
			had := h.populated
			svc.Annotations, svc.Spec.TrafficDistribution = nil, nil
			p = sync()
			if got := strings.Trim(hintsText(w.slices), "- "); got != "" {
				t.Errorf("hints left: %q", got)
			}
			if had != (len(p.events) == 1 && p.events[0].message == "Topology Aware Hints has been disabled, addressType: IPv4") {
				t.Errorf("events at the end: %v", p.events)
			}
			if h.populated || len(h.zones) > 0 {
				t.Errorf("the service is still remembered: %+v", h)
			}
		})
	}
}

func TestOverloaded(t *testing.T) {
	ratios := map[string]float64{"a": 0.5, "b": 0.5}
	tests := []struct {
		zones  zoneCount
		ratios map[string]float64
		want   bool
	}{
		{nil, ratios, false},
		{zoneCount{"a": 5, "b": 5}, ratios, false},
		{zoneCount{"a": 7, "b": 5}, ratios, false},
		{zoneCount{"a": 8, "b": 4}, ratios, true},
		{zoneCount{"a": 8}, ratios, true},
		{zoneCount{"a": 5, "b": 5}, nil, true},
	}
	for _, tt := range tests {
		h := hinted{}
		if tt.zones != nil {
			h.zones = map[discoveryv1.AddressType]zoneCount{discoveryv1.AddressTypeIPv4: tt.zones}
		}
		if got := h.overloaded(tt.ratios); got != tt.want {
			t.Errorf("%v with %v: %v", tt.zones, tt.ratios, got)
		}
	}
}

// TestOldServicesSlices has slices of an earlier service of the same name left to
// the garbage collector.
func TestOldServicesSlices(t *testing.T) {
	w, pods := &world{}, podsOn("a")
	w.sync(testService(), pods, 100)
	svc := testService()
	svc.UID = "another"
	p := w.sync(svc, pods, 100)
	if len(p.create) != 1 || len(p.update) != 0 || len(p.remove) != 1 {
		t.Errorf("made %d, changed %d, removed %d slices; want 1, 0, 1", len(p.create), len(p.update), len(p.remove))
	}
}
