package report

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Reasons and messages by which kubelets tell why they ended a pod
// (pkg/kubelet/{eviction,preemption,nodeshutdown}).
const (
	// A pod's status says in words why it ended; these are the kubelet's own
	// (pkg/kubelet at v1.36). They are for kubelets' statuses without the condition
	// DisruptionTarget.
	reasonEvicted     = "Evicted"
	reasonPreempting  = "Preempting"
	reasonTerminated  = "Terminated"
	rejectedPrefix    = "Pod was rejected"
	preemptedMessage  = "Pod was preempted by Kubelet to accommodate a critical pod."
	terminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// Reasons of the condition DisruptionTarget that k8s.io/api has no constants for:
// pkg/controller/tainteviction, pkg/registry/core/pod/storage, pkg/controller/podgc.
const (
	reasonTaintManager = "DeletionByTaintManager"
	reasonEvictionAPI  = "EvictionByEvictionAPI"
	reasonPodGC        = "DeletionByPodGC"
)

// ended counts what a pod's status newly tells of an end that it did not choose. The condition is
// looked at first: it is the API's own word for it (KEP-3329). Pods that a kubelet rejects have
// no such condition; those are not evictions but count apart.
func (k *Collector) ended(old, p *v1.Pod) {
	if old == nil {
		return
	}
	kind, evicted := newDisruption(old, p)
	// Only a change counts: a status is written many times.
	if !evicted && p.Status.Reason != old.Status.Reason && disruption(p) == nil {
		switch {
		case strings.HasPrefix(p.Status.Message, rejectedPrefix):
			k.over.now.Rejected++
			k.nodeOf(p).rejected++
		case p.Status.Reason == reasonEvicted:
			kind, evicted = NodePressure, true
		case p.Status.Reason == reasonPreempting:
			kind, evicted = KubeletPreemption, true
		case p.Status.Reason == reasonTerminated && p.Status.Message == terminatedMessage:
			kind, evicted = NodeShutdown, true
		}
	}
	if !evicted {
		return
	}
	k.over.now.Evictions[kind]++
	if p.Spec.NodeName != "" {
		k.nodeOf(p).evicted++
	}
}

// newDisruption reports whether the condition DisruptionTarget became True. The kubelet has one
// reason for its three causes (TerminationByKubelet); they differ by message.
func newDisruption(old, p *v1.Pod) (Eviction, bool) {
	now := disruption(p)
	if now == nil || disruption(old) != nil {
		return 0, false
	}
	switch now.Reason {
	case v1.PodReasonPreemptionByScheduler:
		return SchedulerPreemption, true
	case reasonTaintManager:
		return TaintManager, true
	case reasonEvictionAPI:
		return EvictionAPI, true
	case reasonPodGC:
		return PodGC, true
	case v1.PodReasonTerminationByKubelet:
		switch now.Message {
		case preemptedMessage:
			return KubeletPreemption, true
		case terminatedMessage:
			return NodeShutdown, true
		}
		return NodePressure, true
	}
	return OtherEviction, true
}

// disruption returns the condition DisruptionTarget if it is True.
func disruption(p *v1.Pod) *v1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue {
			return c
		}
	}
	return nil
}

// restartsBetween is by how much the containers' restart counts grew.
func restartsBetween(old, p *v1.Pod) uint64 {
	return restarts(old.Status.InitContainerStatuses, p.Status.InitContainerStatuses) + restarts(old.Status.ContainerStatuses, p.Status.ContainerStatuses)
}

// restarts is restartsBetween for one list. Lists of one version of a status are
// shared, so an equal address is an equal list. By name: a pod's list may grow while init
// containers are added to it.
func restarts(old, now []v1.ContainerStatus) (n uint64) {
	if len(old) > 0 && len(now) > 0 && &old[0] == &now[0] {
		return 0 // the same list
	}
	for i := range now {
		before := int32(0)
		for j := range old {
			if old[j].Name == now[i].Name {
				before = old[j].RestartCount
			}
		}
		n += uint64(max(now[i].RestartCount-before, 0))
	}
	return n
}
