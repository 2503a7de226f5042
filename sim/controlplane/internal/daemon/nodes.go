package daemon

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/ground/loop"
)

// fit says whether a set's pod is to run on a node, and whether one that is there
// may stay. A pod that may stay need not be wanted: one that is there when a NoSchedule taint
// comes stays.
type fit struct{ run, stay bool }

// placement is where one generation of a set runs. Its pods' tolerations and the parsed affinity
// are worked out once for all nodes.
type placement struct {
	generation  int64
	tolerations []v1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
	nodes       map[string]fit
}

// fit is NodeShouldRunDaemonPod. The answer is remembered: it changes only with
// the set's generation and the node's labels and taints, and forgetNode drops the
// latter. A map by names of nodes: ten thousand nodes and ten sets are a hundred thousand small
// entries, against a match of selectors and taints in each sync.
func (c *Controller) fit(ds *appsv1.DaemonSet, node *v1.Node) fit {
	p := c.fits[ds.UID]
	if p == nil || p.generation != ds.Generation {
		p = &placement{
			generation: ds.Generation, tolerations: tolerationsOf(&ds.Spec.Template.Spec),
			affinity: nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: ds.Spec.Template.Spec}), nodes: map[string]fit{},
		}
		c.fits[ds.UID] = p
	}
	if f, ok := p.nodes[node.Name]; ok {
		return f
	}
	f := p.judge(ds, node)
	p.nodes[node.Name] = f
	return f
}

// judge finds out whether a set runs on a node: by name, by selector and
// affinity, by taints. A NoSchedule taint keeps new pods off and lets those stay
// that are there. The node's resources don't count: whether the pod fits is the scheduler's
// matter.
func (p *placement) judge(ds *appsv1.DaemonSet, node *v1.Node) fit {
	if n := ds.Spec.Template.Spec.NodeName; n != "" && n != node.Name {
		return fit{}
	}
	// The node selector is in it, as in GetRequiredNodeAffinity.
	if ok, err := p.affinity.Match(node); err != nil || !ok {
		return fit{}
	}
	bars := func(effects ...v1.TaintEffect) bool {
		_, barred := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, p.tolerations, func(t *v1.Taint) bool {
			return slices.Contains(effects, t.Effect)
		}, false)
		return barred
	}
	if bars(v1.TaintEffectNoExecute, v1.TaintEffectNoSchedule) {
		return fit{stay: !bars(v1.TaintEffectNoExecute)}
	}
	return fit{run: true, stay: true}
}

// tolerationsOf returns a template's tolerations and those that all pods of
// DaemonSets have (AddOrUpdateDaemonPodTolerations). They let a daemon start on a
// node that is not ready yet, as network plugins must. Existing tolerations of the same key and
// effect are replaced, not doubled.
func tolerationsOf(spec *v1.PodSpec) []v1.Toleration {
	out := slices.Clone(spec.Tolerations)
	add := func(key string, effect v1.TaintEffect) {
		t := v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: effect}
		for i := range out {
			if out[i].MatchToleration(&t) {
				out[i] = t
				return
			}
		}
		out = append(out, t)
	}
	add(v1.TaintNodeNotReady, v1.TaintEffectNoExecute)
	add(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute)
	add(v1.TaintNodeDiskPressure, v1.TaintEffectNoSchedule)
	add(v1.TaintNodeMemoryPressure, v1.TaintEffectNoSchedule)
	add(v1.TaintNodePIDPressure, v1.TaintEffectNoSchedule)
	add(v1.TaintNodeUnschedulable, v1.TaintEffectNoSchedule)
	// Such a pod needs no pod network.
	if spec.HostNetwork {
		add(v1.TaintNodeNetworkUnavailable, v1.TaintEffectNoSchedule)
	}
	return out
}

// affinityTo is a template's affinity with the one node required
// (ReplaceDaemonSetPodNodeNameNodeAffinity). The required terms of the template are replaced: the
// controller has judged them already, and one term with one field is what the scheduler's fast
// path takes. Preferred terms stay.
func affinityTo(a *v1.Affinity, node string) *v1.Affinity {
	out := v1.Affinity{}
	if a != nil {
		out = *a
	}
	na := v1.NodeAffinity{}
	if out.NodeAffinity != nil {
		na = *out.NodeAffinity
	}
	na.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	out.NodeAffinity = &na
	return &out
}

// targetOf is the node that a pod is on or is meant for; "" when it names none. It reads the
// affinity that affinityTo has written; an unbound pod has no other sign of its node.
func targetOf(p *v1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == v1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// Back-off of pods that fail (cmd/kube-controller-manager/app/apps.go).
const (
	// From the first failure on it doubles up to lastBackoff; an entry is over
	// after twice that without another failure. They are those of kube-controller-manager's
	// daemonSet back-off, NewBackOff(1s, 15m).
	firstBackoff = time.Second
	lastBackoff  = 15 * time.Minute
)

// backoffKey is what fails together: a set of one generation on one node. A
// change of the set starts anew.
type backoffKey struct {
	ds         types.UID
	generation int64
	node       string
}

// backoffEntry is how long the back-off is, and since when it counts.
type backoffEntry struct {
	wait time.Duration
	last time.Time
}

// backoff is client-go's flowcontrol.Backoff for pods that fail on a node. The clock is the
// loop's. Entries are few: one for each node on which a set's pod fails.
type backoff struct {
	l       *loop.Loop
	entries map[backoffKey]backoffEntry
	// most: entries from which on those that are over are dropped (Backoff.GC).
	most int
}

// over reports whether an entry has no effect any more.
func (b *backoff) over(e backoffEntry) bool { return b.l.Since(e.last) > 2*lastBackoff }

// left reports whether the last failure is too recent, and how long a back-off
// lasts. A key that was never in back-off has none.
func (b *backoff) left(k backoffKey) (time.Duration, bool) {
	e, ok := b.entries[k]
	if !ok || b.over(e) {
		return 0, false
	}
	return e.wait, b.l.Since(e.last) < e.wait
}

// next doubles the back-off. Entries that are over are dropped when the map has
// doubled, which costs O(1) for each call on average. An entry that has been quiet for twice the
// maximum begins anew (Backoff.Next).
func (b *backoff) next(k backoffKey) {
	if b.entries == nil {
		b.entries = map[backoffKey]backoffEntry{}
	}
	if len(b.entries) >= max(b.most, 64) {
		for k, e := range b.entries { //drydock:unordered deletes
			if b.over(e) {
				delete(b.entries, k)
			}
		}
		b.most = 2 * len(b.entries)
	}
	e, ok := b.entries[k]
	if !ok || b.over(e) {
		e.wait = firstBackoff
	} else {
		e.wait = min(2*e.wait, lastBackoff)
	}
	e.last = b.l.Now()
	b.entries[k] = e
}

// forget drops the entries of a set that is gone. A walk over the entries: sets are rarely
// deleted.
func (b *backoff) forget(ds types.UID) {
	for k := range b.entries { //drydock:unordered deletes
		if k.ds == ds {
			delete(b.entries, k)
		}
	}
}
