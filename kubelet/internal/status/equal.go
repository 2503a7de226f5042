package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// equalByKubelet reports whether two normalised statuses say the same about what
// the kubelet owns: its conditions by status, reason and message, whatever
// their times, and every other field but the claims' (upstream
// isPodStatusByKubeletEqual).
func equalByKubelet(a, b *v1.PodStatus) bool {
	return fieldsEqual(a, b) && conditionsEqual(a.Conditions, b.Conditions)
}

// identical reports whether a patch from a to b would be empty.
func identical(a, b *v1.PodStatus) bool {
	if !fieldsEqual(a, b) || len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		x, y := &a.Conditions[i], &b.Conditions[i]
		if x.Type != y.Type || x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message ||
			x.ObservedGeneration != y.ObservedGeneration ||
			!x.LastProbeTime.Equal(&y.LastProbeTime) || !x.LastTransitionTime.Equal(&y.LastTransitionTime) {
			return false
		}
	}
	return true
}

// fieldsEqual compares everything but conditions and claim statuses.
func fieldsEqual(a, b *v1.PodStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration &&
		a.Phase == b.Phase &&
		a.Reason == b.Reason &&
		a.Message == b.Message &&
		a.NominatedNodeName == b.NominatedNodeName &&
		a.HostIP == b.HostIP &&
		a.PodIP == b.PodIP &&
		a.QOSClass == b.QOSClass &&
		a.Resize == b.Resize &&
		a.StartTime.Equal(b.StartTime) &&
		slices.Equal(a.HostIPs, b.HostIPs) &&
		slices.Equal(a.PodIPs, b.PodIPs) &&
		containerStatusesEqual(a.ContainerStatuses, b.ContainerStatuses) &&
		containerStatusesEqual(a.InitContainerStatuses, b.InitContainerStatuses) &&
		containerStatusesEqual(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses) &&
		resourceListEqual(a.AllocatedResources, b.AllocatedResources) &&
		resourcesEqual(a.Resources, b.Resources)
}

// conditionsEqual compares the conditions that the kubelet owns or shares, in
// any order.
func conditionsEqual(a, b []v1.PodCondition) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return kubeletConditions(a) == kubeletConditions(b) && conditionsWithin(a, b)
}

// kubeletConditions counts those that the kubelet owns or shares.
func kubeletConditions(list []v1.PodCondition) int {
	n := 0
	for i := range list {
		if ownedByKubelet(list[i].Type) || sharedWithKubelet(list[i].Type) {
			n++
		}
	}
	return n
}

// conditionsWithin reports whether all of a's of these are in b. With equal
// counts that makes the two equal.
func conditionsWithin(a, b []v1.PodCondition) bool {
	for i := range a {
		x := &a[i]
		if !ownedByKubelet(x.Type) && !sharedWithKubelet(x.Type) {
			continue
		}
		y := FindCondition(b, x.Type)
		if y == nil || x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message {
			return false
		}
	}
	return true
}

// containerStatusesEqual compares lists in their order, which normalize has
// set. Lists that are the same memory need no look.
func containerStatusesEqual(a, b []v1.ContainerStatus) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if !containerStatusEqual(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

// containerStatusEqual compares every field; a test changes each in turn, so
// that one that is new in the API can't be forgotten.
func containerStatusEqual(a, b *v1.ContainerStatus) bool {
	return a.Name == b.Name &&
		a.Ready == b.Ready &&
		a.RestartCount == b.RestartCount &&
		a.Image == b.Image &&
		a.ImageID == b.ImageID &&
		a.ContainerID == b.ContainerID &&
		boolEqual(a.Started, b.Started) &&
		stateEqual(&a.State, &b.State) &&
		stateEqual(&a.LastTerminationState, &b.LastTerminationState) &&
		resourceListEqual(a.AllocatedResources, b.AllocatedResources) &&
		resourcesEqual(a.Resources, b.Resources) &&
		mountsEqual(a.VolumeMounts, b.VolumeMounts) &&
		rareEqual(a, b)
}

// rareEqual compares what few containers have.
func rareEqual(a, b *v1.ContainerStatus) bool {
	if a.User != b.User && !apiequality.Semantic.DeepEqual(a.User, b.User) {
		return false
	}
	if (len(a.AllocatedResourcesStatus) > 0 || len(b.AllocatedResourcesStatus) > 0) &&
		!apiequality.Semantic.DeepEqual(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus) {
		return false
	}
	return a.StopSignal == b.StopSignal || a.StopSignal != nil && b.StopSignal != nil && *a.StopSignal == *b.StopSignal
}

// boolEqual compares values, and whether there are any.
func boolEqual(a, b *bool) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// stateEqual compares which state it is, and its fields.
func stateEqual(a, b *v1.ContainerState) bool {
	if x, y := a.Waiting, b.Waiting; x != y && (x == nil || y == nil || *x != *y) {
		return false
	}
	if x, y := a.Running, b.Running; x != y && (x == nil || y == nil || !x.StartedAt.Equal(&y.StartedAt)) {
		return false
	}
	x, y := a.Terminated, b.Terminated
	return x == y || x != nil && y != nil && terminatedEqual(x, y)
}

// terminatedEqual takes two nils for equal.
func terminatedEqual(a, b *v1.ContainerStateTerminated) bool {
	return a.ExitCode == b.ExitCode &&
		a.Signal == b.Signal &&
		a.Reason == b.Reason &&
		a.Message == b.Message &&
		a.ContainerID == b.ContainerID &&
		a.StartedAt.Equal(&b.StartedAt) &&
		a.FinishedAt.Equal(&b.FinishedAt)
}

// mountsEqual compares lists in their order, which is the spec's.
func mountsEqual(a, b []v1.VolumeMountStatus) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Name != y.Name || x.MountPath != y.MountPath || x.ReadOnly != y.ReadOnly {
			return false
		}
		p, q := x.RecursiveReadOnly, y.RecursiveReadOnly
		if p != q && (p == nil || q == nil || *p != *q) {
			return false
		}
		if x.VolumeStatus != y.VolumeStatus && !apiequality.Semantic.DeepEqual(x.VolumeStatus, y.VolumeStatus) {
			return false
		}
	}
	return true
}

// resourcesEqual takes two nils for equal, but not nil for empty: the API shows
// the difference.
func resourcesEqual(a, b *v1.ResourceRequirements) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	if !resourceListEqual(a.Requests, b.Requests) || !resourceListEqual(a.Limits, b.Limits) || len(a.Claims) != len(b.Claims) {
		return false
	}
	for i := range a.Claims {
		if a.Claims[i] != b.Claims[i] {
			return false
		}
	}
	return true
}

// resourceListEqual compares quantities by value: 1 is 1000m.
func resourceListEqual(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for k, x := range a { //drydock:unordered compares sets
		y, ok := b[k]
		if !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}
