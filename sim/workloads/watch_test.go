package workloads

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// late is how old what a controller or the scheduler decided by may be: the decision travels to the
// API, and waits for its client's rate limit.
const late = 2 * time.Second

// past is what changed lately. What was decided by it is not held against who decided.
type past struct {
	// changed is when a pod was last bound, told to go, relabelled, became ready or unready, or ended.
	changed map[types.UID]time.Duration
	// ghosts are pods that are gone, nodes former states of nodes, with when they were.
	ghosts []ghost[*v1.Pod]
	nodes  []ghost[*v1.Node]
	// pod is when a pod of a workload last changed, size when the workload or its budget did.
	pod, size map[string]time.Duration
	// scaled is when a workload's size last changed, or a budget or quota.
	scaled time.Duration
}

type ghost[T any] struct {
	at time.Duration
	is T
}

// lately are those that were until a short time ago.
func lately[T any](r *run, list []ghost[T]) []ghost[T] {
	return slices.DeleteFunc(list, func(g ghost[T]) bool { return r.now()-g.at > late })
}

// now is the time on the API's loop, where changes are heard of.
func (r *run) now() time.Duration { return r.c.API().Loop().Now().Sub(r.c.Start()) }

// recent reports whether a pod changed lately.
func (r *run) recent(p *v1.Pod) bool {
	at, ok := r.past.changed[p.UID]
	return ok && r.now()-at <= late
}

// watch has every change judged.
func (r *run) watch() {
	r.past.changed, r.past.pod, r.past.size = map[types.UID]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}
	api := r.c.API()
	api.OnChange(r.podChanged, apiserver.KindPod)
	api.OnChange(func(ch apiserver.Change) {
		n := ch.New.(*v1.Node)
		if ch.Old != nil {
			n = ch.Old.(*v1.Node)
			if now := ch.New.(*v1.Node); ch.Type == watch.Modified && maps.Equal(n.Labels, now.Labels) && n.Spec.Unschedulable == now.Spec.Unschedulable && slices.EqualFunc(n.Spec.Taints, now.Spec.Taints, func(a, b v1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }) {
				return // its status
			}
		}
		r.past.nodes = append(lately(r, r.past.nodes), ghost[*v1.Node]{r.now(), n})
	}, apiserver.KindNode)
	api.OnChange(func(ch apiserver.Change) {
		if ch.Old == nil || ch.Type == watch.Deleted || ch.Old.GetGeneration() != ch.New.GetGeneration() {
			r.past.scaled = r.now()
			r.past.size[ch.New.GetNamespace()+"/"+ch.New.GetName()] = r.now()
		}
	}, apiserver.KindDeployment, apiserver.KindReplicaSet, apiserver.KindStatefulSet, apiserver.KindPodDisruptionBudget, apiserver.KindResourceQuota)
	api.OnChange(r.jobChanged, apiserver.KindJob)
}

func ready(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
}

// evictedByAPI reports whether a pod's eviction was granted.
func evictedByAPI(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	})
}

func preempted(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Reason == v1.PodReasonPreemptionByScheduler
	})
}

func (r *run) podChanged(ch apiserver.Change) {
	p := ch.New.(*v1.Pod)
	switch ch.Type {
	case watch.Added:
		r.count.pods++
		r.past.pod[p.Namespace+"/"+p.Labels["app"]] = r.now()
		r.quotasHold(p)
		return
	case watch.Deleted:
		r.past.ghosts = append(lately(r, r.past.ghosts), ghost[*v1.Pod]{r.now(), ch.Old.(*v1.Pod)})
		return
	}
	old := ch.Old.(*v1.Pod)
	if ready(old) != ready(p) || (old.DeletionTimestamp == nil) != (p.DeletionTimestamp == nil) || !maps.Equal(old.Labels, p.Labels) {
		r.past.pod[p.Namespace+"/"+p.Labels["app"]] = r.now()
	}
	if was := old.Labels["app"]; was != p.Labels["app"] {
		// As upstream's, the budget that a pod belonged to is not looked at.
		r.past.size[p.Namespace+"/"+was] = r.now()
	}
	switch {
	case !preempted(old) && preempted(p):
		r.count.preemptions++
	case old.Spec.NodeName == "" && p.Spec.NodeName != "":
		r.count.bindings++
		r.boundWell(p)
	case !evictedByAPI(old) && evictedByAPI(p):
		r.evictedWell(old)
	}
	if old.Spec.NodeName != p.Spec.NodeName || (old.DeletionTimestamp == nil) != (p.DeletionTimestamp == nil) || !maps.Equal(old.Labels, p.Labels) || ready(old) != ready(p) || ended(old) != ended(p) {
		r.past.changed[p.UID] = r.now()
	}
}

// boundWell judges a binding as it comes.
func (r *run) boundWell(p *v1.Pod) {
	o := newOracle(r.c.API().Nodes(), r.c.API().Pods()).without(func(q *v1.Pod) bool { return q.UID == p.UID })
	n := r.c.API().Node(p.Spec.NodeName)
	if n == nil {
		return // it went meanwhile
	}
	for _, w := range o.room(p, n) {
		r.fail("pod %s is bound to %s: %s", p.Name, n.Name, w.text)
	}
	if w := o.ports(p, n); len(w) > 0 {
		r.fail("pod %s is bound to %s: %s", p.Name, n.Name, w[0].text)
	}
	nodes := []*v1.Node{n}
	for _, g := range lately(r, r.past.nodes) {
		if g.is.Name == n.Name {
			nodes = append(nodes, g.is)
		}
	}
	if !slices.ContainsFunc(nodes, func(n *v1.Node) bool {
		return len(o.cordoned(p, n))+len(o.tainted(p, n))+len(o.unwanted(p, n)) == 0
	}) {
		r.fail("pod %s is bound to %s, which its rules forbid: %v%v%v", p.Name, n.Name, o.cordoned(p, n), o.tainted(p, n), o.unwanted(p, n))
	}
	// What was decided just before may reach the API just after.
	r.c.At(r.now()+late/4, func() { r.keepsCompany(p, n) })
}

// keepsCompany judges a binding by the pods that there are on all nodes, a little later.
func (r *run) keepsCompany(p *v1.Pod, n *v1.Node) {
	if len(lately(r, r.past.nodes)) > 0 {
		return // topologies may be others
	}
	o := newOracle(r.c.API().Nodes(), r.c.API().Pods()).without(func(q *v1.Pod) bool { return q.UID == p.UID })
	// Those that changed lately may have been there or not when it was decided.
	if w := o.without(r.recent).apart(p, n); w != "" {
		r.fail("pod %s is bound to %s: %s", p.Name, n.Name, w)
	}
	both := o.without(func(*v1.Pod) bool { return false })
	for _, q := range r.c.API().Pods() {
		if ended(q) && r.recent(q) {
			both.on[q.Spec.NodeName] = append(both.on[q.Spec.NodeName], q)
		}
	}
	for _, g := range lately(r, r.past.ghosts) {
		both.on[g.is.Spec.NodeName] = append(both.on[g.is.Spec.NodeName], g.is)
	}
	if with, _ := affine(p); len(with) > 0 && !o.accompanied(p, n, with) && !both.accompanied(p, n, with) && !o.without(r.recent).accompanied(p, n, with) {
		r.fail("pod %s is bound to %s: node(s) didn't match pod affinity rules", p.Name, n.Name)
	}
	for _, c := range hard(p) {
		sure, most := o.without(r.recent).domains(p, &c), both.everyDomain(p, &c)
		v, least := n.Labels[c.TopologyKey], 1<<30
		for value, k := range most {
			if value != v {
				least = min(least, k)
			}
		}
		here := sure[v]
		least = min(least, here)
		if c.MinDomains != nil && len(most) < int(*c.MinDomains) {
			least = 0
		}
		if chosenBy(c.LabelSelector, p) {
			here++
		}
		if here-least > int(c.MaxSkew) {
			r.fail("pod %s is bound to %s: skew %d over %s: %v", p.Name, n.Name, here-least, c.TopologyKey, sure)
		}
	}
}

// apart says whether a pod's anti-affinity or another's keeps it off a node.
func (o *oracle) apart(p *v1.Pod, n *v1.Node) string {
	q := *p
	if a := p.Spec.Affinity; a != nil {
		q.Spec.Affinity = &v1.Affinity{PodAntiAffinity: a.PodAntiAffinity}
	}
	if w := o.company(&q, n); len(w) > 0 {
		return w[0].text
	}
	return ""
}

// everyDomain is domains with the pods that are told to go.
func (o *oracle) everyDomain(p *v1.Pod, c *v1.TopologySpreadConstraint) map[string]int {
	all := &oracle{nodes: o.nodes, on: map[string][]*v1.Pod{}}
	for n, pods := range o.on {
		for _, q := range pods {
			live := *q
			live.DeletionTimestamp = nil
			all.on[n] = append(all.on[n], &live)
		}
	}
	return all.domains(p, c)
}

// looked reports whether a budget was looked at since its workload's size changed, or a pod left it
// by its labels. It is when a pod becomes ready or unready, is told to go, or is relabelled to it.
// Upstream's is at any write of a pod, which may be sooner.
func (r *run) looked(b *policyv1.PodDisruptionBudget) bool {
	name := b.Namespace + "/" + b.Name
	return r.past.pod[name] > r.past.size[name]
}

// evictedWell judges an eviction that was granted, of the pod as it was before.
func (r *run) evictedWell(p *v1.Pod) {
	r.count.evictions++
	if p.Status.Phase == v1.PodPending || ended(p) || p.DeletionTimestamp != nil {
		return // it costs no budget
	}
	for _, b := range apiserver.Objects[*policyv1.PodDisruptionBudget](r.c.Store(), apiserver.KindPodDisruptionBudget) {
		if b.Namespace != p.Namespace || !chosenBy(b.Spec.Selector, p) || r.now()-r.past.scaled <= late {
			continue
		}
		if !ready(p) && b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow {
			continue
		}
		if !r.looked(b) {
			continue
		}
		healthy, _, desired, ok := r.budget(b, p)
		if !ready(p) {
			if healthy < desired {
				r.fail("pod %s/%s, not ready, is evicted: budget %s has %d healthy pods of %d", p.Namespace, p.Name, b.Name, healthy, desired)
			}
			continue
		}
		if ok && healthy < desired {
			r.fail("pod %s/%s is evicted: budget %s has %d healthy pods left of %d", p.Namespace, p.Name, b.Name, healthy, desired)
		}
	}
}

// budget counts a budget's pods: those that are healthy beside one, or became unhealthy lately, how
// many there should be, and how many healthy. It is not known of pods with controllers that have no
// scale.
func (r *run) budget(b *policyv1.PodDisruptionBudget, but *v1.Pod) (healthy, expected, desired int, known bool) {
	owners := map[types.UID]int{}
	count := 0
	known = true
	for _, p := range r.c.API().Pods() {
		if p.Namespace != b.Namespace || !chosenBy(b.Spec.Selector, p) {
			continue
		}
		count++
		if n, uid, ok := r.scaleOf(p); ok {
			owners[uid] = n
		} else if metav1.GetControllerOf(p) != nil {
			known = false
		}
		if but != nil && p.UID == but.UID {
			continue
		}
		if p.DeletionTimestamp == nil && ready(p) || but != nil && r.recent(p) && !evictedByAPI(p) {
			healthy++
		}
	}
	for _, n := range owners {
		expected += n
	}
	up := func(v *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, expected, true)
		if err != nil {
			r.t.Fatal(err)
		}
		return n
	}
	switch {
	case b.Spec.MaxUnavailable != nil:
		desired = max(expected-up(b.Spec.MaxUnavailable), 0)
	case b.Spec.MinAvailable.Type == intstr.Int:
		expected, desired = count, b.Spec.MinAvailable.IntValue()
		known = true
	default:
		desired = up(b.Spec.MinAvailable)
	}
	return healthy, expected, desired, known
}

// scaleOf is the size of what a pod belongs to.
func (r *run) scaleOf(p *v1.Pod) (int, types.UID, bool) {
	ref := metav1.GetControllerOf(p)
	if ref == nil {
		return 0, "", false
	}
	s := r.c.Store()
	switch ref.Kind {
	case "ReplicaSet":
		rs, _ := s.Lookup(apiserver.KindReplicaSet, p.Namespace, ref.Name).(*appsv1.ReplicaSet)
		if rs == nil || rs.UID != ref.UID {
			return 0, "", false
		}
		if up := metav1.GetControllerOf(rs); up != nil {
			d, _ := s.Lookup(apiserver.KindDeployment, p.Namespace, up.Name).(*appsv1.Deployment)
			if d == nil || d.UID != up.UID {
				return 0, "", false
			}
			return int(*d.Spec.Replicas), d.UID, true
		}
		return int(*rs.Spec.Replicas), rs.UID, true
	case "StatefulSet":
		set, _ := s.Lookup(apiserver.KindStatefulSet, p.Namespace, ref.Name).(*appsv1.StatefulSet)
		if set == nil || set.UID != ref.UID {
			return 0, "", false
		}
		return int(*set.Spec.Replicas), set.UID, true
	}
	return 0, "", false
}

// quotasHold judges a new pod by its namespace's quotas.
func (r *run) quotasHold(p *v1.Pod) {
	if r.now()-r.past.scaled <= late {
		return
	}
	for _, q := range apiserver.Objects[*v1.ResourceQuota](r.c.Store(), apiserver.KindResourceQuota) {
		if q.Namespace != p.Namespace {
			continue
		}
		for name, hard := range q.Spec.Hard {
			if used := r.quotaUsed(q.Namespace, name); used > hard.MilliValue() {
				r.fail("pod %s/%s is created: %s used of the quota are %d, of %d thousandths", p.Namespace, p.Name, name, used, hard.MilliValue())
			}
		}
	}
}

// quotaUsed is how much of what a quota bounds there is in a namespace, in thousandths.
func (r *run) quotaUsed(ns string, name v1.ResourceName) (sum int64) {
	for _, p := range r.c.API().Pods() {
		switch {
		case p.Namespace != ns || ended(p):
		case p.DeletionTimestamp != nil && r.c.API().Loop().Now().After(p.DeletionTimestamp.Add(time.Duration(*p.DeletionGracePeriodSeconds)*time.Second)):
			// Nobody answers for it any more (pkg/quota/v1/evaluator/core QuotaV1Pod).
		case name == v1.ResourcePods:
			sum += 1000
		default:
			sum += asks(p, v1.ResourceCPU)
		}
	}
	return sum
}

func finished(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue
	})
}

// jobChanged judges a CronJob's new job: that no other runs where that is forbidden, and that none
// has its time.
func (r *run) jobChanged(ch apiserver.Change) {
	j := ch.New.(*batchv1.Job)
	ref := metav1.GetControllerOf(j)
	if ch.Type != watch.Added || ref == nil {
		return
	}
	cj, _ := r.c.Store().Lookup(apiserver.KindCronJob, j.Namespace, ref.Name).(*batchv1.CronJob)
	if cj == nil || cj.UID != ref.UID {
		return
	}
	for _, o := range apiserver.Objects[*batchv1.Job](r.c.Store(), apiserver.KindJob) {
		if up := metav1.GetControllerOf(o); up == nil || up.UID != cj.UID || o.UID == j.UID {
			continue
		}
		if at := batchv1.CronJobScheduledTimestampAnnotation; o.Annotations[at] == j.Annotations[at] {
			r.fail("jobs %s and %s are both of %s", o.Name, j.Name, j.Annotations[at])
		}
		if cj.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && !finished(o) && o.DeletionTimestamp == nil {
			r.fail("job %s begins while %s runs, which is forbidden", j.Name, o.Name)
		}
	}
}
