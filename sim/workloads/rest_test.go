package workloads

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// atRest judges what is there when nothing happens any more.
func (r *run) atRest() {
	r.nodesRest()
	r.podsRest()
	r.pendingRest()
	for _, rs := range apiserver.Objects[*appsv1.ReplicaSet](r.c.Store(), apiserver.KindReplicaSet) {
		r.replicaSetRests(rs)
	}
	for _, d := range apiserver.Objects[*appsv1.Deployment](r.c.Store(), apiserver.KindDeployment) {
		r.deploymentRests(d)
	}
	for _, s := range apiserver.Objects[*appsv1.StatefulSet](r.c.Store(), apiserver.KindStatefulSet) {
		r.statefulSetRests(s)
	}
	for _, d := range apiserver.Objects[*appsv1.DaemonSet](r.c.Store(), apiserver.KindDaemonSet) {
		r.daemonSetRests(d)
	}
	for _, j := range apiserver.Objects[*batchv1.Job](r.c.Store(), apiserver.KindJob) {
		r.jobRests(j)
	}
	for _, c := range apiserver.Objects[*batchv1.CronJob](r.c.Store(), apiserver.KindCronJob) {
		r.cronJobRests(c)
	}
	for _, b := range apiserver.Objects[*policyv1.PodDisruptionBudget](r.c.Store(), apiserver.KindPodDisruptionBudget) {
		r.budgetRests(b)
	}
	for _, h := range apiserver.Objects[*autoscalingv2.HorizontalPodAutoscaler](r.c.Store(), apiserver.KindHorizontalPodAutoscaler) {
		r.autoscalerRests(h)
	}
	for _, q := range apiserver.Objects[*v1.ResourceQuota](r.c.Store(), apiserver.KindResourceQuota) {
		for name := range q.Spec.Hard {
			used := q.Status.Used[name]
			if n := r.quotaUsed(q.Namespace, name); used.MilliValue() != n {
				r.fail("quota %s: %s %s used, of which there are %d thousandths", q.Name, name, used.String(), n)
			}
		}
	}
	for _, s := range apiserver.Objects[*v1.Service](r.c.Store(), apiserver.KindService) {
		if s.Spec.Selector != nil {
			r.serviceRests(s)
		}
	}
}

// owned are the pods that an object controls and that are not told to go.
func (r *run) owned(uid types.UID) (live, going []*v1.Pod) {
	for _, p := range r.c.API().Pods() {
		if ref := metav1.GetControllerOf(p); ref != nil && ref.UID == uid {
			if p.DeletionTimestamp == nil {
				live = append(live, p)
			} else {
				going = append(going, p)
			}
		}
	}
	return live, going
}

func active(pods []*v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), ended)
}

func (r *run) nodesRest() {
	for _, n := range r.c.API().Nodes() {
		has := func(key string) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == key && t.Effect == v1.TaintEffectNoExecute })
		}
		if has(v1.TaintNodeUnreachable) != r.dead[n.Name] || has(v1.TaintNodeNotReady) {
			r.fail("node %s: dead %v, taints %v", n.Name, r.dead[n.Name], n.Spec.Taints)
		}
	}
}

// podsRest judges where pods are and whose they are.
func (r *run) podsRest() {
	o := newOracle(r.c.API().Nodes(), r.c.API().Pods())
	for _, n := range o.nodes {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if has := n.Status.Allocatable[name]; o.used(n.Name, name) > has.MilliValue() {
				r.fail("node %s: %d thousandths of %s are used, of %s", n.Name, o.used(n.Name, name), name, has.String())
			}
		}
		if k := len(o.on[n.Name]); int64(k) > n.Status.Allocatable.Pods().Value() {
			r.fail("node %s has %d pods", n.Name, k)
		}
	}
	for _, p := range r.c.API().Pods() {
		name := p.Namespace + "/" + p.Name
		n := r.c.API().Node(p.Spec.NodeName)
		switch {
		case p.Spec.NodeName != "" && n == nil:
			r.fail("pod %s is on node %s, which is gone", name, p.Spec.NodeName)
			continue
		case p.DeletionTimestamp != nil && (n == nil || !r.dead[n.Name]) && !r.heldByJob(p):
			r.fail("pod %s is still there, told to go at %v", name, p.DeletionTimestamp)
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		for i := range p.OwnerReferences {
			ref := &p.OwnerReferences[i]
			if o := r.c.Store().Lookup(apiserver.Kind(ref.Kind), p.Namespace, ref.Name); o == nil || o.GetUID() != ref.UID {
				r.fail("pod %s is of %s %s, which is gone", name, ref.Kind, ref.Name)
			}
		}
		if n != nil && !ended(p) && !r.dead[n.Name] && keptOff(p, n, v1.TaintEffectNoExecute) {
			r.fail("pod %s is on node %s, whose taints %v it doesn't tolerate", name, n.Name, n.Spec.Taints)
		}
		if n != nil && r.dead[n.Name] && !ended(p) && keptOff(p, n, v1.TaintEffectNoExecute) {
			r.fail("pod %s is on node %s, which is dead", name, n.Name)
		}
		if t := p.Spec.Tolerations; n != nil && r.dead[n.Name] && !ended(p) && slices.ContainsFunc(t, func(t v1.Toleration) bool { return t.Key == v1.TaintNodeUnreachable && t.TolerationSeconds != nil }) {
			r.fail("pod %s is on node %s, which has been dead for longer than it tolerates", name, n.Name)
		}
	}
}

// pendingRest judges what is said of pods that are nowhere.
func (r *run) pendingRest() {
	o := newOracle(r.c.API().Nodes(), r.c.API().Pods())
	var nominated bool
	for _, p := range r.c.API().Pods() {
		nominated = nominated || p.Spec.NodeName == "" && p.Status.NominatedNodeName != ""
	}
	for _, p := range r.c.API().Pods() {
		if p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
			continue
		}
		var said *v1.PodCondition
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == v1.PodScheduled {
				said = &p.Status.Conditions[i]
			}
		}
		want, fits, helped := o.message(p)
		switch {
		case said == nil || said.Status != v1.ConditionFalse || said.Reason != v1.PodReasonUnschedulable:
			r.fail("pod %s/%s is nowhere, and nobody says why: %+v", p.Namespace, p.Name, said)
		case nominated: // a node is kept for somebody, which the oracle knows nothing of
		case len(fits) > 0:
			r.fail("pod %s/%s is nowhere and would fit on %v; said: %s", p.Namespace, p.Name, fits, said.Message)
		case len(helped) > 0 && (p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != v1.PreemptNever):
			r.fail("pod %s/%s is nowhere and could preempt others on %v; said: %s", p.Namespace, p.Name, helped, said.Message)
		case said.Message != want:
			r.fail("pod %s/%s: said: %s\n         true: %s", p.Namespace, p.Name, said.Message, want)
		default:
			r.count.messages++
		}
	}
}

// refusedByQuota reports whether a pod of a template is more than its namespace's quotas allow.
func (r *run) refusedByQuota(ns string, spec *v1.PodSpec) bool {
	p := &v1.Pod{Spec: *spec}
	for _, q := range apiserver.Objects[*v1.ResourceQuota](r.c.Store(), apiserver.KindResourceQuota) {
		for name, hard := range q.Spec.Hard {
			more := int64(1000)
			if name != v1.ResourcePods {
				more = asks(p, v1.ResourceCPU)
			}
			if q.Namespace == ns && r.quotaUsed(ns, name)+more > hard.MilliValue() {
				return true
			}
		}
	}
	return false
}

func (r *run) replicaSetRests(rs *appsv1.ReplicaSet) {
	name := fmt.Sprintf("ReplicaSet %s/%s", rs.Namespace, rs.Name)
	if rs.DeletionTimestamp != nil {
		r.waits(name, rs.UID)
		return
	}
	if ref := metav1.GetControllerOf(rs); ref != nil {
		if o := r.c.Store().Lookup(apiserver.KindDeployment, rs.Namespace, ref.Name); o == nil || o.GetUID() != ref.UID {
			r.fail("%s is of Deployment %s, which is gone", name, ref.Name)
		}
	}
	live, _ := r.owned(rs.UID)
	pods := active(live)
	n := int(*rs.Spec.Replicas)
	if len(pods) > n || len(pods) < n && !r.refusedByQuota(rs.Namespace, &rs.Spec.Template.Spec) {
		r.fail("%s has %d pods of %d", name, len(pods), n)
	}
	up := count(pods, ready)
	if st := rs.Status; int(st.Replicas) != len(pods) || int(st.ReadyReplicas) != up || int(st.AvailableReplicas) != up || st.ObservedGeneration != rs.Generation {
		r.fail("%s has %d pods, %d ready, and says %+v", name, len(pods), up, st)
	}
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// waits judges that what is told to go waits for pods of dead nodes.
func (r *run) waits(name string, uid types.UID) {
	if _, going := r.owned(uid); len(going) > 0 {
		return
	}
	for _, rs := range apiserver.Objects[*appsv1.ReplicaSet](r.c.Store(), apiserver.KindReplicaSet) {
		if ref := metav1.GetControllerOf(rs); ref != nil && ref.UID == uid && rs.DeletionTimestamp != nil {
			return // judged itself
		}
	}
	r.fail("%s is told to go and still there", name)
}

func (r *run) deploymentRests(d *appsv1.Deployment) {
	name := fmt.Sprintf("Deployment %s/%s", d.Namespace, d.Name)
	if d.DeletionTimestamp != nil {
		r.waits(name, d.UID)
		return
	}
	n := int(*d.Spec.Replicas)
	var total, news, pods, up, newUp, old int
	refused := r.refusedByQuota(d.Namespace, &d.Spec.Template.Spec)
	for _, rs := range apiserver.Objects[*appsv1.ReplicaSet](r.c.Store(), apiserver.KindReplicaSet) {
		if ref := metav1.GetControllerOf(rs); ref == nil || ref.UID != d.UID || rs.DeletionTimestamp != nil {
			continue
		}
		refused = refused || r.refusedByQuota(rs.Namespace, &rs.Spec.Template.Spec)
		live, _ := r.owned(rs.UID)
		live = active(live)
		k := count(live, ready)
		total, pods, up = total+int(*rs.Spec.Replicas), pods+len(live), up+k
		t := rs.Spec.Template.DeepCopy()
		delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		if equality.Semantic.DeepEqual(t, &d.Spec.Template) {
			news, newUp = news+int(*rs.Spec.Replicas), newUp+k
		} else {
			old += int(*rs.Spec.Replicas)
		}
	}
	st := d.Status
	if int(st.Replicas) != pods || int(st.ReadyReplicas) != up || int(st.AvailableReplicas) != up || st.ObservedGeneration != d.Generation {
		r.fail("%s has %d pods, %d ready, and says %+v", name, pods, up, st)
	}
	if d.Spec.Paused || refused {
		return
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		if news != n || old != 0 {
			// What is told to go holds up the new ones.
			if !r.goingOf(d) {
				r.fail("%s has %d new and %d old pods of %d", name, news, old, n)
			}
		}
		return
	}
	surge, short := bounds(d.Spec.Strategy.RollingUpdate.MaxSurge, n, true), bounds(d.Spec.Strategy.RollingUpdate.MaxUnavailable, n, false)
	if surge == 0 && short == 0 {
		short = 1
	}
	switch {
	case total > n+surge:
		r.fail("%s has %d pods of %d and %d more at most", name, total, n, surge)
	case news < n && total < n+surge:
		r.fail("%s has %d new pods of %d, and could have more: %d of %d and %d", name, news, n, total, n, surge)
	case up == total && (news != n || old != 0):
		r.fail("%s has %d new and %d old pods of %d, although all are ready", name, news, old, n)
	case old > 0 && total-(n-short)-(news-newUp) > 0 && up > n-short:
		r.fail("%s has %d old pods, and could have fewer: %d ready of %d, %d may be unavailable", name, old, up, n, short)
	}
	if done := progressing(d); up == total && news == n && done != "NewReplicaSetAvailable" {
		r.fail("%s is complete and says %q", name, done)
	}
}

// goingOf reports whether a Deployment has pods that are told to go.
func (r *run) goingOf(d *appsv1.Deployment) bool {
	for _, rs := range apiserver.Objects[*appsv1.ReplicaSet](r.c.Store(), apiserver.KindReplicaSet) {
		if ref := metav1.GetControllerOf(rs); ref != nil && ref.UID == d.UID {
			if _, going := r.owned(rs.UID); len(going) > 0 {
				return true
			}
		}
	}
	return false
}

func progressing(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.Reason
		}
	}
	return ""
}

func bounds(v *intstr.IntOrString, n int, up bool) int {
	k, err := intstr.GetScaledValueFromIntOrPercent(v, n, up)
	if err != nil {
		panic(err)
	}
	return k
}

func (r *run) statefulSetRests(s *appsv1.StatefulSet) {
	name := fmt.Sprintf("StatefulSet %s/%s", s.Namespace, s.Name)
	if s.DeletionTimestamp != nil {
		r.waits(name, s.UID)
		return
	}
	live, going := r.owned(s.UID)
	n := int(*s.Spec.Replicas)
	there, unready := map[int]*v1.Pod{}, len(going) > 0
	for _, p := range append(slices.Clone(live), going...) {
		k, err := strconv.Atoi(strings.TrimPrefix(p.Name, s.Name+"-"))
		if err != nil {
			r.fail("%s has pod %s", name, p.Name)
			continue
		}
		there[k] = p
		unready = unready || !ready(p)
	}
	ordered := s.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement
	blocked := r.refusedByQuota(s.Namespace, &s.Spec.Template.Spec)
	for k := range n {
		// A pod of the name may be somebody else's.
		if p := r.c.API().Pod(s.Namespace, fmt.Sprintf("%s-%d", s.Name, k)); p != nil && there[k] == nil {
			blocked = true
		}
		if p := there[k]; p == nil && !blocked {
			r.fail("%s has no pod %d of %d", name, k, n)
		} else if ordered && (p == nil || !ready(p) || p.DeletionTimestamp != nil) {
			blocked = true
		}
	}
	if unready || blocked {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(there)) {
		p := there[k]
		if k >= n {
			r.fail("%s has pod %d, of %d", name, k, n)
		}
		if rev := p.Labels[appsv1.StatefulSetRevisionLabel]; s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && rev != s.Status.UpdateRevision {
			r.fail("%s: pod %d is of revision %s, not %s", name, k, rev, s.Status.UpdateRevision)
		}
	}
	if st := s.Status; int(st.Replicas) != n || int(st.ReadyReplicas) != n || int(st.AvailableReplicas) != n || st.ObservedGeneration != s.Generation {
		r.fail("%s has %d ready pods and says %+v", name, n, st)
	}
}

// wake has the DaemonSets looked at that have two pods on a node and wait for minReadySeconds. Two
// waits for a set are one, the earlier: when another pod's time is up first, nobody looks at the set
// when the new pod's is, as upstream (client-go's delaying queue).
func (r *run) wake() (woken []types.UID) {
	r.woken = true
	for _, d := range r.forgotten {
		if !slices.Contains(woken, d.UID) {
			woken = append(woken, d.UID)
			r.patch(apiserver.KindDaemonSet, d.Namespace, d.Name, object{"metadata": object{"annotations": object{"woken": "yes"}}})
		}
	}
	return woken
}

func (r *run) daemonSetRests(d *appsv1.DaemonSet) {
	name := fmt.Sprintf("DaemonSet %s/%s", d.Namespace, d.Name)
	if d.DeletionTimestamp != nil {
		r.waits(name, d.UID)
		return
	}
	live, going := r.owned(d.UID)
	on := func(p *v1.Pod) string {
		if p.Spec.NodeName != "" {
			return p.Spec.NodeName
		}
		names, _ := named(p)
		return strings.Join(names, ",")
	}
	model := &v1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
	for _, t := range []struct {
		key    string
		effect v1.TaintEffect
	}{
		{v1.TaintNodeNotReady, v1.TaintEffectNoExecute}, {v1.TaintNodeUnreachable, v1.TaintEffectNoExecute}, {v1.TaintNodeDiskPressure, v1.TaintEffectNoSchedule},
		{v1.TaintNodeMemoryPressure, v1.TaintEffectNoSchedule}, {v1.TaintNodePIDPressure, v1.TaintEffectNoSchedule}, {v1.TaintNodeUnschedulable, v1.TaintEffectNoSchedule},
	} {
		model.Spec.Tolerations = append(model.Spec.Tolerations, v1.Toleration{Key: t.key, Effect: t.effect, Operator: v1.TolerationOpExists})
	}
	pods, want, stay := active(live), 0, 0
	for _, n := range r.c.API().Nodes() {
		should := nodeChosen(model, n) && !keptOff(model, n, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute)
		may := nodeChosen(model, n) && !keptOff(model, n, v1.TaintEffectNoExecute)
		if should {
			want++
		}
		here := func(p *v1.Pod) bool { return on(p) == n.Name }
		k := count(pods, here)
		switch {
		case k == 2 && d.Spec.MinReadySeconds > 0 && count(pods, ready) == len(pods) && !r.woken:
			r.forgotten = append(r.forgotten, d)
		case k > 1 && count(pods, ready) == len(pods), k > 2:
			r.fail("%s has %d pods on %s", name, k, n.Name)
		case k == 0 && should && count(going, here) == 0 && !r.refusedByQuota(d.Namespace, &model.Spec):
			r.fail("%s has no pod on %s", name, n.Name)
		case k > 0 && !may:
			r.fail("%s has a pod on %s, where it may not be", name, n.Name)
		}
		if !should && k+count(going, here) > 0 {
			stay++
		}
	}
	// As upstream, no set is looked at for a taint with which its pod may stay, nor when a node goes:
	// its status may still count the node, and a pod that waits for one that is gone is still there.
	stay += count(pods, func(p *v1.Pod) bool { return r.c.API().Node(on(p)) == nil })
	if st := d.Status; int(st.DesiredNumberScheduled) < want || int(st.DesiredNumberScheduled) > want+stay || st.ObservedGeneration != d.Generation {
		r.fail("%s belongs on %d nodes and says %+v", name, want, st)
	}
	if count(pods, ready) == len(pods) && len(going) == 0 && len(pods) == want && int(d.Status.UpdatedNumberScheduled) != want {
		r.fail("%s has %d pods, all ready, and says %+v", name, len(pods), d.Status)
	}
}

// lastFailure reports whether a pod is the last failure of its index, of a job that counts them by
// index and can't make the next pod: it keeps its finalizer until there is that one, which takes
// the count over (podsWithDelayedDeletionPerIndex).
func (r *run) lastFailure(j *batchv1.Job, p *v1.Pod, live []*v1.Pod) bool {
	index := p.Annotations[batchv1.JobCompletionIndexAnnotation]
	return j.Spec.BackoffLimitPerIndex != nil && !finished(j) && p.Status.Phase == v1.PodFailed && r.refusedByQuota(j.Namespace, &j.Spec.Template.Spec) &&
		!slices.ContainsFunc(live, func(o *v1.Pod) bool {
			return o != p && o.Annotations[batchv1.JobCompletionIndexAnnotation] == index && !ended(o)
		})
}

// heldByJob is lastFailure of a pod's job, if it is of one.
func (r *run) heldByJob(p *v1.Pod) bool {
	ref := metav1.GetControllerOf(p)
	if ref == nil || ref.Kind != "Job" || len(p.Finalizers) == 0 {
		return false
	}
	j, ok := r.c.Store().Lookup(apiserver.KindJob, p.Namespace, ref.Name).(*batchv1.Job)
	if !ok || j.UID != ref.UID {
		return false
	}
	live, going := r.owned(j.UID)
	return r.lastFailure(j, p, append(live, going...))
}

func (r *run) jobRests(j *batchv1.Job) {
	name := fmt.Sprintf("Job %s/%s", j.Namespace, j.Name)
	if ref := metav1.GetControllerOf(j); ref != nil && j.DeletionTimestamp == nil {
		if o := r.c.Store().Lookup(apiserver.KindCronJob, j.Namespace, ref.Name); o == nil || o.GetUID() != ref.UID {
			r.fail("%s is of CronJob %s, which is gone", name, ref.Name)
		}
	}
	if j.DeletionTimestamp != nil {
		r.waits(name, j.UID)
		return
	}
	live, going := r.owned(j.UID)
	pods := active(live)
	for _, p := range live {
		if ended(p) && len(p.Finalizers) > 0 && !r.lastFailure(j, p, live) {
			r.fail("%s: pod %s has ended and still has %v", name, p.Name, p.Finalizers)
		}
	}
	if int(j.Status.Active) != len(pods) {
		r.fail("%s has %d pods that have not ended, and says %+v", name, len(pods), j.Status)
	}
	switch suspended := j.Spec.Suspend != nil && *j.Spec.Suspend; {
	case finished(j):
		if len(pods) > 0 {
			r.fail("%s has finished and has %d pods", name, len(pods))
		}
		complete := slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete })
		if complete && j.Status.Succeeded != *j.Spec.Completions {
			r.fail("%s is complete with %d of %d", name, j.Status.Succeeded, *j.Spec.Completions)
		}
	case suspended:
		if len(pods) > 0 {
			r.fail("%s is suspended and has %d pods", name, len(pods))
		}
	default:
		nowhere := count(pods, func(p *v1.Pod) bool { return p.Spec.NodeName == "" })
		if nowhere == 0 && len(going) == 0 && !r.refusedByQuota(j.Namespace, &j.Spec.Template.Spec) {
			r.fail("%s has neither finished nor a pod that waits: %+v", name, j.Status)
		}
		left := *j.Spec.Completions - j.Status.Succeeded
		if len(pods) > int(min(*j.Spec.Parallelism, left)) {
			r.fail("%s has %d pods, %d at a time, %d left", name, len(pods), *j.Spec.Parallelism, left)
		}
	}
}

func (r *run) cronJobRests(c *batchv1.CronJob) {
	name := fmt.Sprintf("CronJob %s/%s", c.Namespace, c.Name)
	var done, failed, running int
	for _, j := range apiserver.Objects[*batchv1.Job](r.c.Store(), apiserver.KindJob) {
		if ref := metav1.GetControllerOf(j); ref == nil || ref.UID != c.UID {
			continue
		}
		switch {
		case !finished(j):
			running++
		case slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailed }):
			failed++
		default:
			done++
		}
	}
	if done > int(*c.Spec.SuccessfulJobsHistoryLimit) || failed > int(*c.Spec.FailedJobsHistoryLimit) {
		r.fail("%s keeps %d jobs that succeeded of %d, %d that failed of %d", name, done, *c.Spec.SuccessfulJobsHistoryLimit, failed, *c.Spec.FailedJobsHistoryLimit)
	}
	if len(c.Status.Active) != running {
		r.fail("%s has %d jobs that run, and says %v", name, running, c.Status.Active)
	}
	if c.Spec.ConcurrencyPolicy != batchv1.AllowConcurrent && running > 1 {
		r.fail("%s has %d jobs that run", name, running)
	}
}

func (r *run) budgetRests(b *policyv1.PodDisruptionBudget) {
	healthy, expected, desired, known := r.budget(b, nil)
	st := b.Status
	allowed := max(healthy-desired, 0)
	if expected == 0 {
		allowed = 0
	}
	known = known && r.looked(b)
	if known && (int(st.CurrentHealthy) != healthy || int(st.ExpectedPods) != expected || int(st.DesiredHealthy) != desired || int(st.DisruptionsAllowed) != allowed || st.ObservedGeneration != b.Generation) {
		r.fail("budget %s/%s: %d healthy of %d, %d wanted, %d may go; it says %+v", b.Namespace, b.Name, healthy, expected, desired, allowed, st)
	}
}

func (r *run) autoscalerRests(h *autoscalingv2.HorizontalPodAutoscaler) {
	d, _ := r.c.Store().Lookup(apiserver.KindDeployment, h.Namespace, h.Spec.ScaleTargetRef.Name).(*appsv1.Deployment)
	if d == nil || *d.Spec.Replicas == 0 {
		return // which switches it off
	}
	lo, hi, n := int(*h.Spec.MinReplicas), int(h.Spec.MaxReplicas), int(*d.Spec.Replicas)
	if n < lo || n > hi {
		r.fail("autoscaler %s/%s: %d replicas of %d to %d", h.Namespace, h.Name, n, lo, hi)
	}
	c := &d.Spec.Template.Spec.Containers[0]
	uses := map[string]int64{"steady": 100, "slow": 200}[strings.Split(c.Image, ":")[0]]
	if uses == 0 || int(d.Status.ReadyReplicas) != n || int(d.Status.UpdatedReplicas) != n || int(d.Status.Replicas) != n {
		return
	}
	request := c.Resources.Requests[v1.ResourceCPU]
	target := int64(*h.Spec.Metrics[0].Resource.Target.AverageUtilization)
	ratio := float64(uses*100/request.MilliValue()) / float64(target)
	if want := min(max(int(math.Ceil(ratio*float64(n))), lo), hi); math.Abs(ratio-1) > 0.1 && want != n {
		r.fail("autoscaler %s/%s: %d replicas, wanted %d (%.2f)", h.Namespace, h.Name, n, want, ratio)
	}
}

func (r *run) serviceRests(s *v1.Service) {
	want, got := map[string]bool{}, map[string]bool{}
	for _, p := range r.c.API().Pods() {
		if p.Namespace == s.Namespace && p.Labels["app"] == s.Spec.Selector["app"] && !ended(p) && p.Status.PodIP != "" && p.Spec.NodeName != "" {
			want[p.Name] = s.Spec.PublishNotReadyAddresses || ready(p) && p.DeletionTimestamp == nil
		}
	}
	for _, e := range apiserver.Objects[*discoveryv1.EndpointSlice](r.c.Store(), apiserver.KindEndpointSlice) {
		if e.Namespace != s.Namespace || e.Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		for _, x := range e.Endpoints {
			got[x.TargetRef.Name] = *x.Conditions.Ready
		}
	}
	if !maps.Equal(want, got) {
		r.fail("service %s/%s: endpoints %v, not %v", s.Namespace, s.Name, got, want)
	}
}
