package cluster

import (
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// objectRow is what is seen of an object, as recordings have it: counts that are zero are left out.
// nil for a kind that isn't watched.
func (o *observer) objectRow(obj apiserver.Object) object {
	row := object{}
	switch x := obj.(type) {
	case *appsv1.Deployment:
		st := &x.Status
		row["spec.replicas"] = replicas(x.Spec.Replicas)
		setTrue(row, "paused", x.Spec.Paused)
		row["observed"] = st.ObservedGeneration == x.Generation
		counts(row, map[string]int32{"replicas": st.Replicas, "updatedReplicas": st.UpdatedReplicas, "readyReplicas": st.ReadyReplicas, "availableReplicas": st.AvailableReplicas, "unavailableReplicas": st.UnavailableReplicas, "terminatingReplicas": ptr.Deref(st.TerminatingReplicas, 0)})
		conds := object{}
		for _, c := range st.Conditions {
			conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
		annotations(row, x.Annotations)
	case *appsv1.ReplicaSet:
		st := &x.Status
		row["spec.replicas"] = replicas(x.Spec.Replicas)
		row["observed"] = st.ObservedGeneration == x.Generation
		counts(row, map[string]int32{"replicas": st.Replicas, "fullyLabeledReplicas": st.FullyLabeledReplicas, "readyReplicas": st.ReadyReplicas, "availableReplicas": st.AvailableReplicas, "terminatingReplicas": ptr.Deref(st.TerminatingReplicas, 0)})
		conds := object{}
		for _, c := range st.Conditions {
			conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
		annotations(row, x.Annotations)
	case *appsv1.StatefulSet:
		st := &x.Status
		row["spec.replicas"] = replicas(x.Spec.Replicas)
		row["observed"] = st.ObservedGeneration == x.Generation
		counts(row, map[string]int32{"replicas": st.Replicas, "readyReplicas": st.ReadyReplicas, "currentReplicas": st.CurrentReplicas, "updatedReplicas": st.UpdatedReplicas, "availableReplicas": st.AvailableReplicas})
		for k, v := range map[string]string{"currentRevision": st.CurrentRevision, "updateRevision": st.UpdateRevision} { //drydock:unordered fills a map
			if v != "" {
				row[k] = o.names.text(v)
			}
		}
		conds := object{}
		for _, c := range st.Conditions {
			conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
	case *appsv1.DaemonSet:
		st := &x.Status
		row["observed"] = st.ObservedGeneration == x.Generation
		counts(row, map[string]int32{"currentNumberScheduled": st.CurrentNumberScheduled, "numberMisscheduled": st.NumberMisscheduled, "desiredNumberScheduled": st.DesiredNumberScheduled, "numberReady": st.NumberReady, "updatedNumberScheduled": st.UpdatedNumberScheduled, "numberAvailable": st.NumberAvailable, "numberUnavailable": st.NumberUnavailable})
		conds := object{}
		for _, c := range st.Conditions {
			conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
	case *batchv1.Job:
		o.jobRow(row, x)
	case *batchv1.CronJob:
		active := []any{}
		for _, r := range x.Status.Active {
			active = append(active, o.names.of(r.UID, r.Name))
		}
		row["active"], row["suspend"] = active, ptr.Deref(x.Spec.Suspend, false)
		row["lastSchedule"], row["lastSuccessful"] = nil, x.Status.LastSuccessfulTime != nil
		if t := x.Status.LastScheduleTime; t != nil {
			row["lastSchedule"] = math.Round(t.Sub(o.zero).Seconds())
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		st := &x.Status
		counts(row, map[string]int32{"currentReplicas": st.CurrentReplicas, "desiredReplicas": st.DesiredReplicas})
		conds := object{}
		for _, c := range st.Conditions {
			conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
	case *policyv1.PodDisruptionBudget:
		st := &x.Status
		row["disruptionsAllowed"], row["currentHealthy"], row["desiredHealthy"], row["expectedPods"] = st.DisruptionsAllowed, st.CurrentHealthy, st.DesiredHealthy, st.ExpectedPods
		row["observed"] = st.ObservedGeneration == x.Generation
		var disrupted []any
		for name := range st.DisruptedPods { //drydock:unordered sorted below
			disrupted = append(disrupted, o.podName(x.Namespace, name))
		}
		if len(disrupted) > 0 {
			slices.SortFunc(disrupted, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			row["disruptedPods"] = disrupted
		}
		conds := object{}
		for _, c := range st.Conditions {
			conds[c.Type] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
	case *v1.ResourceQuota:
		row["hard"], row["used"] = amounts(x.Status.Hard), amounts(x.Status.Used)
	case *v1.Namespace:
		row["phase"] = string(x.Status.Phase)
		conds := object{}
		for _, c := range x.Status.Conditions {
			conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
		}
		row["conditions"] = conds
	case *v1.ServiceAccount:
		row["uid"] = o.uid(obj)
	case *v1.ConfigMap:
		data := object{}
		for k, v := range x.Data { //drydock:unordered fills a map
			if strings.HasPrefix(v, "-----BEGIN CERTIFICATE") {
				v = "CERTIFICATE"
			}
			data[k] = v
		}
		row["uid"], row["data"] = o.uid(obj), data
	default:
		return nil
	}
	o.metaRow(row, obj)
	return row
}

// jobRow is what is seen of a Job.
func (o *observer) jobRow(row object, j *batchv1.Job) {
	st := &j.Status
	row["spec.parallelism"], row["spec.completions"] = replicas(j.Spec.Parallelism), replicas(j.Spec.Completions)
	setTrue(row, "suspend", ptr.Deref(j.Spec.Suspend, false))
	counts(row, map[string]int32{"active": st.Active, "ready": ptr.Deref(st.Ready, 0), "succeeded": st.Succeeded, "failed": st.Failed, "terminating": ptr.Deref(st.Terminating, 0)})
	if st.CompletedIndexes != "" {
		row["completedIndexes"] = st.CompletedIndexes
	}
	if f := ptr.Deref(st.FailedIndexes, ""); f != "" {
		row["failedIndexes"] = f
	}
	row["started"], row["completed"] = st.StartTime != nil, st.CompletionTime != nil
	conds := object{}
	for _, c := range st.Conditions {
		conds[string(c.Type)] = o.condition(string(c.Status), c.Reason, c.Message)
	}
	row["conditions"] = conds
}

// metaRow adds what is seen of an object's metadata.
func (o *observer) metaRow(row object, obj apiserver.Object) {
	setTrue(row, "deleting", obj.GetDeletionTimestamp() != nil)
	if f := obj.GetFinalizers(); len(f) > 0 {
		l := make([]any, len(f))
		for i := range f {
			l[i] = f[i]
		}
		row["finalizers"] = l
	}
	if refs := obj.GetOwnerReferences(); len(refs) > 0 {
		l := make([]any, len(refs))
		for i := range refs {
			l[i] = o.names.of(refs[i].UID, refs[i].Name)
		}
		row["owners"] = l
	}
}

// condition is status, reason and message of a condition.
func (o *observer) condition(status, reason, message string) []any {
	return []any{status, reason, o.names.text(message)}
}

// podName is what stands for the name of a pod.
func (o *observer) podName(ns, name string) string {
	if pod := o.c.API().Pod(ns, name); pod != nil {
		return o.names.of(pod.UID, name)
	}
	return o.names.text(name)
}

// uid numbers the objects of a name as they appear.
func (o *observer) uid(obj apiserver.Object) string {
	key := string(o.c.Store().Kinds().Of(obj).Kind) + " " + obj.GetNamespace() + "/" + obj.GetName()
	i := slices.Index(o.uids[key], obj.GetUID())
	if i < 0 {
		i = len(o.uids[key])
		o.uids[key] = append(o.uids[key], obj.GetUID())
	}
	return "uid-" + string(rune('1'+i))
}

// nodeRow is what is seen of a node.
func nodeRow(n *v1.Node) object {
	taints := []any{}
	for i := range n.Spec.Taints {
		taints = append(taints, n.Spec.Taints[i].ToString())
	}
	slices.SortFunc(taints, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	conds := object{}
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady || c.Status != v1.ConditionFalse {
			conds[string(c.Type)] = []any{string(c.Status), c.Reason, c.Message}
		}
	}
	return object{"taints": taints, "unschedulable": n.Spec.Unschedulable, "conditions": conds}
}

// endpointsRow is what is seen of an endpoint slice.
func (o *observer) endpointsRow(s *discoveryv1.EndpointSlice) object {
	endpoints := []any{}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		x := object{"ready": ptr.Deref(e.Conditions.Ready, false), "serving": ptr.Deref(e.Conditions.Serving, false), "terminating": ptr.Deref(e.Conditions.Terminating, false)}
		if e.TargetRef != nil {
			x["pod"] = o.names.of(types.UID(e.TargetRef.UID), e.TargetRef.Name)
		}
		if e.NodeName != nil {
			x["node"] = *e.NodeName
		}
		if e.Zone != nil {
			x["zone"] = *e.Zone
		}
		endpoints = append(endpoints, x)
	}
	ports := []any{}
	for _, p := range s.Ports {
		ports = append(ports, []any{ptr.Deref(p.Name, ""), ptr.Deref(p.Port, 0), string(ptr.Deref(p.Protocol, ""))})
	}
	return object{"endpoints": endpoints, "ports": ports}
}

// replicas is a number that may be absent.
func replicas(n *int32) any {
	if n == nil {
		return nil
	}
	return *n
}

// counts adds the counts that are not zero.
func counts(row object, all map[string]int32) {
	for k, n := range all { //drydock:unordered fills a map
		if n != 0 {
			row[k] = n
		}
	}
}

func setTrue(row object, key string, is bool) {
	if is {
		row[key] = true
	}
}

// annotations adds those by which the deployment controller speaks to itself.
func annotations(row object, all map[string]string) {
	for _, k := range decode.SortedKeys(all) {
		if name, ours := strings.CutPrefix(k, "deployment.kubernetes.io/"); ours {
			row[name] = all[k]
		}
	}
}

// amounts are resources as texts; null before anybody counted them.
func amounts(l v1.ResourceList) any {
	if l == nil {
		return nil
	}
	out := object{}
	for k, q := range l { //drydock:unordered fills a map
		out[string(k)] = q.String()
	}
	return out
}
