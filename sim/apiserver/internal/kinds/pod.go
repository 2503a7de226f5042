package kinds

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet/qos"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// Pod is the kind of pods. It has more subresources than others, and a generation
// from the first write on, which the kubelet reports as observed.
const Pod kind.Kind = "Pod"

// pod returns the row of Pod (pkg/registry/core/pod/strategy.go). The rules of its
// spec are package podspec.
func pod(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: Pod, Version: "v1", Resource: "pods", ShortNames: []string{"po"}, Categories: []string{"all"}, Subresources: []string{"ephemeralcontainers", "resize"}, ReturnsDeleted: true, Namespaced: true, Meta: kind.MetaAgain, Watch: kind.ByNode,
		StatusKeeps: kind.KeepsOwners,
		Strategy: &kind.Typed[v1.Pod, *v1.Pod]{
			Defaults: podspec.SetDefaults,
			Admitted: func(p *v1.Pod) {
				fields.Default(&p.Spec.ServiceAccountName, "default")
				podspec.DropDisabled(&p.Spec, on) // which nobody checks
			},
			Reset: func(p *v1.Pod) {
				p.Generation = 1
				p.Status = v1.PodStatus{Phase: v1.PodPending, QOSClass: qos.Compute(p)}
				podspec.DropDisabled(&p.Spec, on)
				podspec.MergeLabelKeys(p)
			},
			Stored:      stampGates,
			Keep:        func(p, old *v1.Pod, sub string) bool { return keepPod(p, old, sub, on) },
			Generation:  func(p, old *v1.Pod, _ string) bool { return !equality.Semantic.DeepEqual(p.Spec, old.Spec) },
			Check:       podspec.Validate,
			CheckUpdate: podspec.ValidateUpdate,
			Warn: func(p, old *v1.Pod, sub string) []string {
				if old != nil || sub != "" { // people don't update pods
					return nil
				}
				return podspec.Warnings(p)
			},
			Fields:   podFields,
			Node:     func(p *v1.Pod) string { return p.Spec.NodeName },
			Entry:    podEntry,
			Table:    podTable(),
			RowState: podRowState,
		},
	}
}

// stampGates shows that a pod's gates keep it from being scheduled
// (applySchedulingGatedCondition).
func stampGates(now time.Time, p *v1.Pod) {
	if len(p.Spec.SchedulingGates) == 0 {
		return
	}
	p.Status.Conditions = []v1.PodCondition{{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, LastTransitionTime: asjson.Time(now),
		Reason: v1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
	}}
}

// keepPod puts back what the strategies of pods and of their subresources keep.
func keepPod(p, old *v1.Pod, sub string, on features.Gates) bool {
	switch sub {
	case "":
		p.Status = old.Status
		podspec.DropDisabled(&p.Spec, on)
	// Owners are the spec's side: no status update adopts a pod.
	case "status":
		p.Spec = old.Spec
		p.OwnerReferences, p.DeletionTimestamp = old.OwnerReferences, old.DeletionTimestamp
		fields.Default(&p.Status.QOSClass, old.Status.QOSClass)
		keepObserved(&p.Status, &old.Status)
	// All of the pod is the old one's but for resources, so that nothing else can
	// slip in.
	case "resize":
		spec := p.Spec
		keepAll(p, old)
		p.Spec = podspec.Resized(&old.Spec, &spec)
		podspec.DefaultResize(&p.Spec)
	// The same, but for the list that the subresource is for.
	case "ephemeralcontainers":
		added := p.Spec.EphemeralContainers
		keepAll(p, old)
		p.Spec.EphemeralContainers = added
		podspec.DefaultEphemeral(&p.Spec)
		podspec.DropDisabled(&p.Spec, on)
	default:
		return false
	}
	return true
}

// keepAll puts all of a pod back but who has written what of it.
func keepAll(p, old *v1.Pod) {
	managed := p.ManagedFields
	*p = *old
	p.ManagedFields = managed
}

// keepObserved keeps the generations that a kubelet has reported, if a status comes
// without (preserveOldObservedGeneration).
func keepObserved(now, was *v1.PodStatus) {
	fields.Default(&now.ObservedGeneration, was.ObservedGeneration)
	for i := range now.Conditions {
		c := &now.Conditions[i]
		for j := range was.Conditions {
			if was.Conditions[j].Type == c.Type {
				fields.Default(&c.ObservedGeneration, was.Conditions[j].ObservedGeneration)
				break
			}
		}
	}
}

// podEntry shows a status that a kubelet patched, which is what most of a trace is
// read for, in a record of its own kind. Of other writes it shows where the pod is
// to run and how long it has to end.
func podEntry(n *kind.Notes, c kind.Change, p *v1.Pod) {
	switch {
	case c.Type == watch.Modified && c.Verb == "patch" && c.Subresource == "status":
		n.Kind, n.Verb = trace.KindPod, "status"
		podStatus(n, &p.Status)
	case (c.Verb == "create" || c.Verb == "bind") && p.Spec.NodeName != "":
		n.Add("node", p.Spec.NodeName)
	case c.Verb == "delete" && p.DeletionGracePeriodSeconds != nil:
		n.AddInt("grace", *p.DeletionGracePeriodSeconds)
	}
}

// PodStatus returns the fields that a record of a pod's status has.
func PodStatus(p *v1.Pod) []trace.Field {
	n := kind.NewNotes(nil)
	podStatus(n, &p.Status)
	return n.Fields
}

// podStatus is a pod's status as a record has it.
func podStatus(n *kind.Notes, st *v1.PodStatus) {
	n.Add("phase", string(st.Phase))
	if st.Reason != "" {
		n.Add("reason", st.Reason)
	}
	if st.Message != "" {
		n.Add("message", st.Message)
	}
	n.AddWritten("conditions", true, func(b []byte) []byte {
		for i := range st.Conditions {
			c := &st.Conditions[i]
			b = appendWord(b, string(c.Type))
			b = append(b, '=')
			b = append(b, c.Status...)
			if c.Reason != "" {
				b = append(b, '/')
				b = append(b, c.Reason...)
			}
		}
		return b
	})
	n.AddWritten("containers", false, func(b []byte) []byte {
		for _, list := range [...][]v1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses, st.EphemeralContainerStatuses} {
			for i := range list {
				b = appendContainer(b, &list[i])
			}
		}
		return b
	})
	if st.PodIP != "" {
		n.Add("podIP", st.PodIP)
	}
}

// appendWord appends a word to a list of words.
func appendWord(b []byte, w string) []byte {
	if len(b) > 0 {
		b = append(b, ' ')
	}
	return append(b, w...)
}

// appendContainer appends "main=running/ready" or "main=Error(1) restarts=2".
func appendContainer(b []byte, c *v1.ContainerStatus) []byte {
	b = appendWord(b, c.Name)
	b = append(b, '=')
	switch {
	case c.State.Running != nil:
		b = append(b, "running"...)
	case c.State.Terminated != nil:
		b = append(b, c.State.Terminated.Reason...)
		b = append(b, '(')
		b = strconv.AppendInt(b, int64(c.State.Terminated.ExitCode), 10)
		b = append(b, ')')
	case c.State.Waiting != nil:
		b = append(b, c.State.Waiting.Reason...)
	}
	if c.Ready {
		b = append(b, "/ready"...)
	}
	if c.RestartCount > 0 {
		b = append(b, " restarts="...)
		b = strconv.AppendInt(b, int64(c.RestartCount), 10)
	}
	return b
}

// podFields are those of ToSelectableFields (pkg/registry/core/pod/strategy.go).
func podFields(p *v1.Pod) selectable.Set {
	return selectable.Set{
		"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy), "spec.schedulerName": p.Spec.SchedulerName,
		"spec.serviceAccountName": p.Spec.ServiceAccountName, "spec.hostNetwork": strconv.FormatBool(p.Spec.HostNetwork),
		"status.phase": string(p.Status.Phase), "status.podIP": p.Status.PodIP, "status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}
