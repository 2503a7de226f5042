package admission

import (
	"maps"
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// WithTopology returns a pod's labels with its node's zone and region, which win over the
// pod's own (plugin/pkg/admission/podtopologylabels). Where the node says neither, or
// isn't there, they are the labels that came in. What comes back is shared, as those are.
func (p *Plugins) WithTopology(labels map[string]string, node string) map[string]string {
	if node == "" || !p.cluster.Located() {
		return labels
	}
	n := p.cluster.Node(node)
	if n == nil {
		return labels
	}
	own := topology{n.Labels[v1.LabelTopologyZone], n.Labels[v1.LabelTopologyRegion]}
	if own.in(labels) {
		return labels
	}
	return p.labelled.with(labels, own)
}

// topology is where a node says that it is; "": it doesn't.
type topology struct{ zone, region string }

// in reports whether labels say so already.
func (t topology) in(labels map[string]string) bool {
	return (t.zone == "" || labels[v1.LabelTopologyZone] == t.zone) && (t.region == "" || labels[v1.LabelTopologyRegion] == t.region)
}

// add returns labels that say so, too.
func (t topology) add(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+2)
	maps.Copy(out, labels)
	if t.zone != "" {
		out[v1.LabelTopologyZone] = t.zone
	}
	if t.region != "" {
		out[v1.LabelTopologyRegion] = t.region
	}
	return out
}

// labelled are labels of pods with their node's topology. Pods of one template share
// their labels, and those of one zone share them still.
type labelled map[labelledKey]labelledPods

type labelledKey struct {
	labels uintptr // which map
	topology
}

// labelledPods holds on to the map that the key is of, so that no other takes its place.
type labelledPods struct{ labels, with map[string]string }

// labelledMost is how many are kept: more templates in more zones share less.
const labelledMost = 4096

func (l labelled) with(labels map[string]string, t topology) map[string]string {
	if len(labels) == 0 {
		return t.add(labels)
	}
	key := labelledKey{reflect.ValueOf(labels).Pointer(), t}
	known, ok := l[key]
	if !ok {
		if len(l) == labelledMost {
			clear(l)
		}
		known = labelledPods{labels, t.add(labels)}
		l[key] = known
	}
	return known.with
}

// labelTopology labels a pod that is created on a node. One that is bound later is
// labelled then.
func (p *Plugins) labelTopology(pod *v1.Pod) error {
	pod.Labels = p.WithTopology(pod.Labels, pod.Spec.NodeName)
	return nil
}
