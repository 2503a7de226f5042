package scheduler

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"
)

// eventKind is what happened to the cluster.
type eventKind uint8

const (
	nodeChange          eventKind = iota // a node came or changed
	nodeDelete                           // a node went
	podGone                              // a pod on a node ended or went
	podShrunk                            // a pod on a node asks for less
	podPlaced                            // a pod was bound to a node
	podRelabel                           // a pod on a node changed its labels
	denominated                          // a pod without a node lost the one it was nominated to
	claimChange                          // a claim of a volume came or was bound
	resourceClaimChange                  // a claim of devices came or changed
	deviceChange                         // devices, or a class of them, came or changed
	volumeChange                         // a volume came or changed
	storageClassChange                   // a class of volumes came, or allows other nodes
	volumeLimitChange                    // a node can have more of a driver's volumes, or has fewer
	volumeSpaceChange                    // there is more room for volumes
)

// event is a change that may make pods schedulable.
type event struct {
	kind    eventKind
	node    *nodeInfo
	oldNode *v1.Node // nil: the node is new
	pod     *v1.Pod
	oldPod  *v1.Pod // of a change of labels
	// claim and oldClaim: of resourceClaimChange.
	claim, oldClaim *resourcev1.ResourceClaim
	// class and oldClass: of deviceChange, if it is a class that came or changed.
	class, oldClass *resourcev1.DeviceClass
	// volumeClaim: of claimChange.
	volumeClaim *v1.PersistentVolumeClaim
	// freed: of podShrunk: what the pod asks for less than before.
	freed request
}

// hintMemo is a class's answer to an event.
type hintMemo struct {
	event     uint64
	rejectors plugins
	queue     bool
}

// moved puts the pods back that an event may help, as the plugins' queueing
// hints say (MoveAllToActiveOrBackoffQueue).
func (s *Scheduler) moved(ev event) {
	if len(s.queue.unschedulable) == 0 {
		return
	}
	s.events++
	now, woken := s.l.UnixNano(), false
	for i := len(s.queue.unschedulable) - 1; i >= 0; i-- {
		q := s.queue.unschedulable[i]
		if s.preempting(q) || ev.kind == podPlaced && q.rejectors&(podTopologySpread|interPodAffinity) == 0 {
			continue
		}
		// Only pods of no higher priority made room for the nominated one
		// (getLEPriorityPreCheck).
		if ev.kind == denominated && q.priority > corev1helper.PodPriority(ev.pod) {
			continue
		}
		if ev.kind == resourceClaimChange && q.rejectors&dynamicResources == 0 || ev.kind == deviceChange && q.rejectors&(dynamicResources|nodeResourcesFit) == 0 {
			continue
		}
		p := s.podOf(q)
		if p == nil {
			continue
		}
		if ev.kind == claimChange {
			if q.rejectors&(volumeBinding|volumeRestrictions|nodeVolumeLimits|volumeZone) != 0 && usesClaim(p, ev.volumeClaim) {
				s.queue.requeue(q, now)
				woken = true
			}
			continue
		}
		// Claims are the pod's own: no class knows.
		if ev.kind == resourceClaimChange {
			if s.claimHelps(&ev, p) {
				s.queue.requeue(q, now)
				woken = true
			}
			continue
		}
		ls := s.labels.of(p)
		c := s.classes.of(p, ls)
		s.classes.setDefaultSpread(c, p)
		if c.hint.event != s.events || c.hint.rejectors != q.rejectors {
			c.hint = hintMemo{s.events, q.rejectors, s.helps(&ev, q.rejectors, p, c, ls)}
		}
		if c.hint.queue {
			s.queue.requeue(q, now)
			woken = true
		}
	}
	if woken {
		s.wake(s.delivery())
	}
}

// helps reports whether an event may undo one of the rejections.
func (s *Scheduler) helps(ev *event, by plugins, p *v1.Pod, c *class, ls *labelSet) bool {
	if by == 0 {
		return true
	}
	switch ev.kind {
	case volumeChange:
		return by&(volumeBinding|volumeZone) != 0
	case storageClassChange:
		return by&(volumeBinding|volumeZone) != 0
	case volumeLimitChange:
		return by&nodeVolumeLimits != 0
	case volumeSpaceChange:
		return by&volumeBinding != 0
	case deviceChange:
		return by&dynamicResources != 0 || by&nodeResourcesFit != 0 && ev.class != nil && classHelps(&c.request, ev.class, ev.oldClass)
	case nodeChange:
		return s.nodeHelps(ev, by, c)
	case nodeDelete:
		return by&podTopologySpread != 0 && hasKeyLabels(c.hard, ev.oldNode)
	case podShrunk:
		return by&nodeResourcesFit != 0 && c.request.overlaps(&ev.freed)
	case podGone, denominated:
		if by&nodeResourcesFit != 0 || ev.kind == podGone && by&(volumeRestrictions|nodeVolumeLimits) != 0 && len(ev.pod.Spec.Volumes) > 0 {
			return true
		}
		if by&nodePorts != 0 && conflict(c.ports, s.classes.of(ev.pod, s.labels.of(ev.pod)).ports) {
			return true
		}
		if ev.kind == denominated {
			return false // it counted for no topology
		}
	}
	if by&podTopologySpread != 0 && s.spreadHelps(ev, p, c) {
		return true
	}
	return by&interPodAffinity != 0 && s.affinityHelps(ev, c, ls)
}

func conflict(a, b []hostPort) bool {
	return slices.ContainsFunc(a, func(x hostPort) bool {
		return slices.ContainsFunc(b, func(y hostPort) bool { return x.conflicts(y) })
	})
}

// blindToTaints are the plugins that register for nodes that come and not for changes of taints. To
// these upstream adds the event with a hint that says yes whatever the taints are
// (pkg/scheduler/scheduler.go, buildQueueingHintMap), so any change of a node's taints has their
// pods tried again (recorded: sched-requeue-node-added).
const blindToTaints = nodeAffinity | nodePorts | nodeResourcesFit | interPodAffinity | volumeBinding | dynamicResources | volumeRestrictions | volumeZone | nodeDeclaredFeatures

// taintsChanged reports whether a change of a node is one of its taints (framework/events.go,
// NodeSchedulingPropertiesChange): that it may be used again counts as one.
func taintsChanged(old, node *v1.Node) bool {
	return old.Spec.Unschedulable && !node.Spec.Unschedulable || !equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints)
}

// nodeHelps is the hints of a node that came or changed.
func (s *Scheduler) nodeHelps(ev *event, by plugins, c *class) bool {
	n, old := ev.node, ev.oldNode
	if by&blindToTaints != 0 && old != nil && taintsChanged(old, n.node) {
		return true
	}
	tol := c.pod.Spec.Tolerations
	if by&nodeUnschedulable != 0 && !n.node.Spec.Unschedulable && (old == nil || old.Spec.Unschedulable) {
		return true
	}
	if by&taintToleration != 0 && !untolerated(n.node.Spec.Taints, tol) && (old == nil || untolerated(old.Spec.Taints, tol)) {
		return true
	}
	if by&nodeAffinity != 0 && (c.profile.required == nil || c.profile.required.Match(n.node)) && affinityMatches(c, n.node) && (old == nil || !affinityMatches(c, old)) {
		return true
	}
	if by&nodeDeclaredFeatures != 0 && (old == nil || !slices.Equal(old.Status.DeclaredFeatures, n.node.Status.DeclaredFeatures)) {
		return true
	}
	if by&(nodePorts|volumeRestrictions) != 0 && old == nil {
		return true
	}
	if by&(volumeBinding|volumeZone) != 0 && (old == nil || !sameLabels(old.Labels, n.node.Labels)) {
		return true
	}
	if by&nodeResourcesFit != 0 && fitsEmpty(c, n) && (old == nil || c.delegated(n) != 0 || grew(&c.request, old, n)) {
		return true
	}
	if by&podTopologySpread != 0 && domainsChanged(c.hard, old, n.node) {
		return true
	}
	if by&dynamicResources != 0 && (old == nil || !sameLabels(old.Labels, n.node.Labels) ||
		!equality.Semantic.DeepEqual(old.Status.Allocatable, n.node.Status.Allocatable)) {
		return true
	}
	return by&interPodAffinity != 0 && (old == nil || !sameLabels(old.Labels, n.node.Labels))
}

// fitsEmpty reports whether the node would do if nothing else ran there: that is
// all that the hint asks (noderesources/fit.go, isFit).
func fitsEmpty(c *class, n *nodeInfo) bool {
	return fits(&c.request, &nodeInfo{alloc: n.alloc, allocExt: n.allocExt, maxPods: n.maxPods}, c.delegated(n)) == 0
}

// domainsChanged reports whether a node that came or changed is another one for
// topology spread constraints (podtopologyspread/plugin.go,
// isSchedulableAfterNodeChange).
func domainsChanged(list []constraint, old, node *v1.Node) bool {
	was, is := hasKeyLabels(list, old), hasKeyLabels(list, node)
	if was != is || !is {
		return was != is
	}
	for i := range list {
		if key := list[i].key.name; old.Labels[key] != node.Labels[key] {
			return true
		}
	}
	return !sameTaints(old.Spec.Taints, node.Spec.Taints)
}

func affinityMatches(c *class, node *v1.Node) bool {
	ok, err := c.affinity.Match(node)
	return err == nil && ok
}

// grew reports whether a node has more than before of something that is requested.
func grew(r *request, old *v1.Node, n *nodeInfo) bool {
	was := amountsOf(old.Status.Allocatable)
	if n.maxPods > old.Status.Allocatable.Pods().Value() ||
		r.cpu > 0 && n.alloc.cpu > was.cpu || r.memory > 0 && n.alloc.memory > was.memory || r.storage > 0 && n.alloc.storage > was.storage {
		return true
	}
	ext := extendedOf(old.Status.Allocatable)
	return slices.ContainsFunc(r.ext, func(e extended) bool {
		return amountOf(n.allocExt, e.name) > amountOf(ext, e.name)
	})
}

// hasKeyLabels is hasKeys of an object; nil has none.
func hasKeyLabels(list []constraint, node *v1.Node) bool {
	if node == nil {
		return false
	}
	for i := range list {
		if _, ok := node.Labels[list[i].key.name]; !ok {
			return false
		}
	}
	return true
}

// spreadHelps: a pod that counts for a constraint came, went or changed.
func (s *Scheduler) spreadHelps(ev *event, p *v1.Pod, c *class) bool {
	if ev.pod == nil || ev.pod.Namespace != p.Namespace {
		return false
	}
	counts := func(o *v1.Pod) bool {
		if o == nil {
			return false
		}
		ls := s.labels.of(o)
		for i := range c.hard {
			if c.hard[i].tally.matches(s.store, ls) {
				return true
			}
		}
		return false
	}
	return counts(ev.pod) || counts(ev.oldPod)
}

// affinityHelps: a pod that affinity wants came, or one that keeps off went.
func (s *Scheduler) affinityHelps(ev *event, c *class, ls *labelSet) bool {
	matched := func(o *v1.Pod, terms []*term) bool {
		if o == nil {
			return false
		}
		of := s.labels.of(o)
		if slices.ContainsFunc(terms, func(t *term) bool { return !t.matches(s.store, of) }) {
			return false
		}
		return len(terms) > 0
	}
	for _, t := range c.anti {
		if ev.kind == podGone && matched(ev.pod, t.terms) || ev.kind == podRelabel && matched(ev.oldPod, t.terms) && !matched(ev.pod, t.terms) {
			return true
		}
	}
	if ev.kind != podGone {
		return matched(ev.pod, c.required) && !matched(ev.oldPod, c.required)
	}
	return slices.ContainsFunc(s.classes.of(ev.pod, s.labels.of(ev.pod)).carries, func(k *carrier) bool {
		return k.kind == carriesAnti && k.term.matches(s.store, ls)
	})
}

// updated reports whether a change of a pending pod may make it schedulable; what
// it asks for is read anew in any case.
func (s *Scheduler) updated(q *queued, p, old *v1.Pod) bool {
	if prio := corev1helper.PodPriority(p); prio != q.priority {
		at := q.place
		s.queue.put(q, nowhere)
		q.priority = prio
		s.queue.put(q, at)
	}
	if p.Status.NominatedNodeName != old.Status.NominatedNodeName {
		s.nominate(q, p.Status.NominatedNodeName)
	}
	c := s.classes.of(p, s.labels.of(p))
	if !sameLabels(p.Labels, old.Labels) &&
		(q.rejectors&interPodAffinity != 0 || q.rejectors&podTopologySpread != 0 && selfChanged(c.hard, p.Labels, old.Labels)) {
		return true
	}
	if q.rejectors&dynamicResources != 0 && claimNamesChanged(p, old) {
		_, _, err := podClaims(s.store, p)
		return err == nil
	}
	if len(p.Spec.Tolerations) != len(old.Spec.Tolerations) && tolerationHelps(q.rejectors, c) {
		return true
	}
	return &p.Spec.Containers[0] != &old.Spec.Containers[0] && q.rejectors&nodeResourcesFit != 0
}

// selfChanged reports whether a pod matches one of its own constraints that it did
// not match before, or the other way round.
func selfChanged(list []constraint, is, was labels.Set) bool {
	return slices.ContainsFunc(list, func(k constraint) bool { return k.selector.Matches(is) != k.selector.Matches(was) })
}

// tolerationHelps reports whether a new toleration may undo one of the rejections.
func tolerationHelps(by plugins, c *class) bool {
	switch {
	case by&taintToleration != 0:
		return true
	case by&nodeUnschedulable != 0 && tolerates(c.pod.Spec.Tolerations, &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}):
		return true
	}
	return by&podTopologySpread != 0 && slices.ContainsFunc(c.hard, func(k constraint) bool { return k.honorTaints })
}
