package scheduler

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// term says which pods are meant, by namespace and labels, and the topology key.
type term struct {
	key        string
	namespaces []string // sorted
	nsSelector labels.Selector
	selector   labels.Selector
	// id: the same for terms that mean the same pods.
	id string
}

// weighted is a count that a score takes part of; below 0 it keeps pods away.
type weighted struct {
	*tally
	weight int64
}

// itoa is for identifiers that have a weight.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// newTerm returns a term with its identifier: terms that mean the same pods share
// one count.
func newTerm(key string, namespaces []string, nsSelector, selector labels.Selector) *term {
	t := &term{key: key, namespaces: namespaces, nsSelector: nsSelector, selector: selector}
	t.id = strings.Join(namespaces, ",") + "\x01" + selector.String()
	if selector.Empty() {
		t.id += "*" // Everything and Nothing print alike
	}
	if nsSelector != nil {
		t.id += "\x01" + nsSelector.String()
	}
	return t
}

// affinityTerm builds what a pod's term means (framework.newAffinityTerm).
// Terms were validated at admission: one that can't be read matches nothing.
func affinityTerm(p *v1.Pod, t *v1.PodAffinityTerm) *term {
	namespaces := slices.Clone(t.Namespaces)
	if len(namespaces) == 0 && t.NamespaceSelector == nil {
		namespaces = []string{p.Namespace}
	}
	slices.Sort(namespaces)
	var nsSelector labels.Selector
	if t.NamespaceSelector != nil {
		nsSelector = selectorOf(t.NamespaceSelector)
	}
	// The API server has completed it by matchLabelKeys and mismatchLabelKeys.
	return newTerm(t.TopologyKey, namespaces, nsSelector, selectorOf(t.LabelSelector))
}

// selectorOf is a selector as admission has left it; none matches nothing.
func selectorOf(ls *metav1.LabelSelector) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(ls)
	if err != nil {
		return labels.Nothing()
	}
	return sel
}

// withKeys adds what matchLabelKeys mean for a pod: the API server has done so
// for the labels that it was created with.
func withKeys(sel labels.Selector, have labels.Set, keys []string) labels.Selector {
	for _, k := range keys {
		v, ok := have[k]
		if !ok {
			continue
		}
		if r, err := labels.NewRequirement(k, selection.In, []string{v}); err == nil {
			sel = sel.Add(*r)
		}
	}
	return sel
}

// matches reports whether pods with these labels are meant.
func (t *term) matches(store *apiserver.Store, ls *labelSet) bool {
	if !slices.Contains(t.namespaces, ls.namespace) {
		if t.nsSelector == nil {
			return false
		}
		ns := store.Lookup(apiserver.KindNamespace, "", ls.namespace)
		if ns == nil || !t.nsSelector.Matches(labels.Set(ns.GetLabels())) {
			return false
		}
	}
	return t.selector.Matches(ls.labels)
}

// setAffinity reads a class's pod affinity and anti-affinity.
func (cs *classTable) setAffinity(c *class, p *v1.Pod, ls *labelSet) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if pa := a.PodAffinity; pa != nil {
		c.selfAll = true
		for i := range pa.RequiredDuringSchedulingIgnoredDuringExecution {
			t := affinityTerm(p, &pa.RequiredDuringSchedulingIgnoredDuringExecution[i])
			c.required = append(c.required, t)
			c.selfAll = c.selfAll && t.matches(cs.store, ls)
			c.carries = append(c.carries, cs.labels.carrier(carriesAffinity, t, 1))
		}
		for _, t := range c.required {
			c.together = append(c.together, cs.labels.tally(t.key, c.required, false))
		}
		for i := range pa.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &pa.PreferredDuringSchedulingIgnoredDuringExecution[i]
			cs.prefer(c, affinityTerm(p, &w.PodAffinityTerm), int64(w.Weight))
		}
	}
	if pa := a.PodAntiAffinity; pa != nil {
		for i := range pa.RequiredDuringSchedulingIgnoredDuringExecution {
			t := affinityTerm(p, &pa.RequiredDuringSchedulingIgnoredDuringExecution[i])
			c.anti = append(c.anti, cs.labels.tally(t.key, []*term{t}, false))
			c.carries = append(c.carries, cs.labels.carrier(carriesAnti, t, 0))
		}
		for i := range pa.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &pa.PreferredDuringSchedulingIgnoredDuringExecution[i]
			cs.prefer(c, affinityTerm(p, &w.PodAffinityTerm), -int64(w.Weight))
		}
	}
}

// prefer adds a preference: it is scored when a pod of the class is placed, and,
// the other way round, when one that the term means is.
func (cs *classTable) prefer(c *class, t *term, weight int64) {
	c.preferring = append(c.preferring, weighted{cs.labels.tally(t.key, []*term{t}, false), weight})
	c.carries = append(c.carries, cs.labels.carrier(carriesPreferred, t, weight))
}

// affinityState is what InterPodAffinity knows in a cycle.
type affinityState struct {
	// existing: of required anti-affinity, that match the pod.
	existing []*carrier
	scores   []weightedCounts
}

// weightedCounts is one part of the score: pods in a node's domain times weight.
type weightedCounts struct {
	*counts
	weight int64
}

// setAffinityState is the plugin's PreFilter; scores are those of its PreScore.
// Only what counts for the pod and is not empty is kept, so a pod without
// affinity in a cluster without any costs nothing.
func (cy *cycle) setAffinityState() {
	p := cy.c.profile
	filters, scores := p.runs(interPodAffinity), p.weights.podAffinity != 0 && (!p.ownPreferencesOnly || len(cy.c.preferring) > 0)
	for _, k := range cy.s.labels.carriersOf(cy.labels) {
		switch {
		case k.kind == carriesAnti && filters:
			cy.affinity.existing = append(cy.affinity.existing, k)
		case k.kind == carriesAnti || k.total == 0 || !scores:
		case k.kind == carriesPreferred:
			cy.affinity.scores = append(cy.affinity.scores, weightedCounts{&k.counts, k.weight})
		case p.hardPodAffinityWeight != 0:
			cy.affinity.scores = append(cy.affinity.scores, weightedCounts{&k.counts, p.hardPodAffinityWeight})
		}
	}
	if !scores {
		return
	}
	for _, w := range cy.c.preferring {
		if w.total != 0 {
			cy.affinity.scores = append(cy.affinity.scores, weightedCounts{&w.counts, w.weight})
		}
	}
}

// filterAffinity is InterPodAffinity.Filter. Required affinity that is not met
// can't be mended by evictions; the others can.
func (cy *cycle) filterAffinity(n *nodeInfo) verdict {
	if len(cy.c.required) > 0 && !cy.satisfiesAffinity(n) {
		return whyAffinity | unresolvable
	}
	for _, t := range cy.c.anti {
		if pods, _ := t.of(n); pods > 0 {
			return whyAnti
		}
	}
	for _, k := range cy.affinity.existing {
		if pods, _ := k.of(n); pods > 0 {
			return whyExistingAnti
		}
	}
	return 0
}

// satisfiesAffinity reports whether each required term finds pods in its domain.
func (cy *cycle) satisfiesAffinity(n *nodeInfo) bool {
	exist, none := true, true
	for _, t := range cy.c.together {
		pods, ok := t.of(n)
		if !ok {
			return false
		}
		exist = exist && pods > 0
		none = none && t.total == 0
	}
	// The first of a group that wants to be together goes anywhere.
	return exist || none && cy.c.selfAll
}

// scoreAffinity is InterPodAffinity.Score.
func (cy *cycle) scoreAffinity(n *nodeInfo) int64 {
	var sum int64
	for _, w := range cy.affinity.scores {
		pods, _ := w.of(n)
		sum += w.weight * int64(pods)
	}
	return sum
}
