package scheduler

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// candidate is a node that takes the pod once its victims are gone. Of equally
// good candidates the first is taken, so their order is part of the outcome.
type candidate struct {
	node    *nodeInfo
	victims []*v1.Pod // the most important first
	// violations: victims whose disruption budget allows none.
	violations int
}

// preempt is the PostFilter of DynamicResources and of DefaultPreemption, as far as the profile
// has them: it sets what is to be done in r and returns what there is to say of it.
func (cy *cycle) preempt(r *result, refused []*nodeInfo, seen []verdict) string {
	prefix := "preemption: "
	if cy.c.profile.deallocates {
		text := cy.postFilterClaims()
		if !cy.c.profile.preempts {
			return text
		}
		prefix = text + ", preemption: "
	}
	if !cy.c.profile.preempts {
		return ""
	}
	if why := cy.ineligible(refused, seen); why != "" {
		return prefix + why
	}
	r.nominate = true
	candidates, looked := cy.candidates(refused, seen)
	if len(candidates) == 0 {
		return prefix + fitError(cy.c, len(cy.s.table.tree.nodes()), looked, "Preemption is not helpful for scheduling", "", "")
	}
	best := pickCandidate(candidates, cy.s.l.Now())
	r.victims, r.nominated = &best, best.node.name
	return ""
}

// ineligible says why the pod may evict none (PodEligibleToPreemptOthers). A pod
// whose victims still terminate on its node waits for them rather than evicting
// more elsewhere.
func (cy *cycle) ineligible(refused []*nodeInfo, seen []verdict) string {
	if p := cy.pod.Spec.PreemptionPolicy; p != nil && *p == v1.PreemptNever {
		return "not eligible due to preemptionPolicy=Never."
	}
	n := cy.q.nominated
	if n == nil || n.node == nil {
		return ""
	}
	if i := slices.Index(refused, n); i >= 0 && seen[i]&unresolvable != 0 {
		return ""
	}
	for _, p := range cy.s.podsOn(n) {
		if corev1helper.PodPriority(p) < cy.q.priority && evictedByPreemption(p) {
			return "not eligible due to a terminating pod on the nominated node."
		}
	}
	return ""
}

// evictedByPreemption reports whether a pod ends because a scheduler evicted it.
func evictedByPreemption(p *v1.Pod) bool {
	if p.DeletionTimestamp == nil {
		return false
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.DisruptionTarget {
			return c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// candidates tries the nodes where evictions could help (DryRunPreemption). It
// returns also the verdicts on those where they don't. It begins at an offset
// drawn by lot and stops when there are enough, but not before one was found that
// violates no budget.
func (cy *cycle) candidates(refused []*nodeInfo, seen []verdict) ([]candidate, []verdict) {
	s := cy.s
	var potential []*nodeInfo
	for i, n := range refused {
		if seen[i]&unresolvable == 0 {
			potential = append(potential, n)
		}
	}
	if len(potential) == 0 {
		return nil, nil
	}
	// Nobody is less important: the outcome of trying each node is known.
	if low, ok := s.lowest(); !ok || low >= cy.q.priority {
		return nil, slices.Repeat([]verdict{whyNoVictims | unresolvable}, len(potential))
	}
	want := min(max(len(potential)*cy.c.profile.minCandidatePercent/100, cy.c.profile.minCandidates), len(potential))
	offset := int(s.l.Uint64("scheduler/preemption", string(cy.q.uid), uint64(cy.q.attempts)) % uint64(len(potential)))
	budgets := budgetsIn(s.store)
	var kind, violating []candidate
	var looked []verdict
	for i := range potential {
		n := potential[(offset+i)%len(potential)]
		c, v := cy.victims(n, budgets)
		switch {
		case v != 0:
			looked = append(looked, v)
			continue
		case c.violations == 0:
			kind = append(kind, c)
		default:
			violating = append(violating, c)
		}
		if len(kind) > 0 && len(kind)+len(violating) >= want {
			break
		}
	}
	return append(kind, violating...), looked
}

// victims finds the fewest pods that must leave a node (SelectVictimsOnNode).
// What it moves is back in its place when it returns. First all pods of lower
// priority are taken off; if the pod fits then, they are put back one by one, the
// most important first and those with budgets before the others, as long as it
// still fits. Who can't be put back is a victim.
func (cy *cycle) victims(n *nodeInfo, budgets []budget) (candidate, verdict) {
	s := cy.s
	potential := lists.Filter(s.podsOn(n), func(p *v1.Pod) bool {
		return corev1helper.PodPriority(p) < cy.q.priority
	})
	if len(potential) == 0 {
		return candidate{}, whyNoVictims | unresolvable
	}
	// All who may leave are taken off at once, to see whether it helps at all.
	for _, p := range potential {
		cy.move(p, n, -1)
	}
	out := candidate{node: n}
	restore := potential
	defer func() {
		for _, p := range restore {
			cy.move(p, n, 1)
		}
	}()
	if v := cy.filterNominated(n); v != 0 {
		return candidate{}, v
	}
	now := s.l.Now()
	slices.SortStableFunc(potential, func(a, b *v1.Pod) int { return byImportance(a, b, now) })
	violating, rest := splitByBudget(potential, budgets)
	// Put back, and taken off again if the pod does not fit beside it.
	reprieve := func(p *v1.Pod) bool {
		cy.move(p, n, 1)
		if cy.filterNominated(n) == 0 {
			return true
		}
		cy.move(p, n, -1)
		out.victims = append(out.victims, p)
		return false
	}
	for _, p := range violating {
		if !reprieve(p) {
			out.violations++
		}
	}
	for _, p := range rest {
		reprieve(p)
	}
	if len(violating) > 0 && len(rest) > 0 {
		slices.SortStableFunc(out.victims, func(a, b *v1.Pod) int { return byImportance(a, b, now) })
	}
	// The deferred function puts back what is off the node now.
	restore = out.victims
	return out, 0
}

// byImportance orders pods by priority, then by how long they have run
// (util.MoreImportantPod).
func byImportance(a, b *v1.Pod, now time.Time) int {
	if x, y := corev1helper.PodPriority(a), corev1helper.PodPriority(b); x != y {
		if x > y {
			return -1
		}
		return 1
	}
	return startOf(a, now).Compare(startOf(b, now))
}

// startOf returns when a pod started: now when it has not.
func startOf(p *v1.Pod, now time.Time) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return now
}

// pickCandidate is pickOneNodeForPreemption. The first of equals is taken. The
// criteria, each for those that the one before left equal: fewest violated
// budgets; lowest highest priority; lowest sum of priorities; fewest victims;
// victims that started last.
func pickCandidate(list []candidate, now time.Time) candidate {
	for _, score := range []func(c *candidate) int64{
		func(c *candidate) int64 { return -int64(c.violations) },
		func(c *candidate) int64 { return -int64(corev1helper.PodPriority(c.victims[0])) },
		func(c *candidate) int64 {
			var sum int64
			for _, p := range c.victims {
				sum -= int64(corev1helper.PodPriority(p)) + math.MaxInt32 + 1
			}
			return sum
		},
		func(c *candidate) int64 { return -int64(len(c.victims)) },
		func(c *candidate) int64 { return earliestStart(c.victims, now).UnixNano() },
	} {
		best := int64(math.MinInt64)
		var left []candidate
		for i := range list {
			v := score(&list[i])
			if v > best {
				best, left = v, left[:0]
			}
			if v == best {
				left = append(left, list[i])
			}
		}
		if list = left; len(list) == 1 {
			break
		}
	}
	return list[0]
}

// earliestStart returns when the first of the victims of the highest priority
// started (util.GetEarliestPodStartTime).
func earliestStart(victims []*v1.Pod, now time.Time) time.Time {
	most := corev1helper.PodPriority(victims[0])
	at := startOf(victims[0], now)
	for _, p := range victims[1:] {
		t := startOf(p, now)
		switch prio := corev1helper.PodPriority(p); {
		case prio > most:
			most, at = prio, t
		case prio == most && t.Before(at):
			at = t
		}
	}
	return at
}

// budget is a PodDisruptionBudget as preemption counts with it.
type budget struct {
	pdb      *policyv1.PodDisruptionBudget
	selector labels.Selector
	allowed  int32
}

// budgetsIn returns all budgets. Preemption crosses namespaces.
func budgetsIn(store *apiserver.Store) []budget {
	var out []budget
	for _, pdb := range apiserver.Objects[*policyv1.PodDisruptionBudget](store, apiserver.KindPodDisruptionBudget) {
		sel, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil || sel.Empty() {
			continue
		}
		out = append(out, budget{pdb, sel, pdb.Status.DisruptionsAllowed})
	}
	return out
}

// splitByBudget parts pods into those whose eviction would violate a budget and
// the others, each in their order (filterPodsWithPDBViolation).
func splitByBudget(pods []*v1.Pod, budgets []budget) (violating, rest []*v1.Pod) {
	left := slices.Clone(budgets)
	for _, p := range pods {
		bad := false
		for i := range left {
			b := &left[i]
			if len(p.Labels) == 0 || b.pdb.Namespace != p.Namespace || !b.selector.Matches(labels.Set(p.Labels)) {
				continue
			}
			if _, ok := b.pdb.Status.DisruptedPods[p.Name]; ok {
				continue
			}
			b.allowed--
			bad = bad || b.allowed < 0
		}
		if bad {
			violating = append(violating, p)
		} else {
			rest = append(rest, p)
		}
	}
	return violating, rest
}
