// Package merge applies a kubelet's status patch: the difference between two
// structs, to a third, with the semantics of a strategic merge patch. Lists with a
// merge key are merged by it, everything else that differs is replaced. A merge of
// JSON documents would cost a hundred times as much, and pods' statuses are what
// the API mostly writes; TestMergeAgreesWithStrategicPatch holds the two against
// each other.
//
// What does not change is shared with the stored object, down to single lists:
// 150,000 pods have their conditions once, not once in the API and once in the
// kubelet.
package merge

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
)

// A kubelet's status patch is the difference between two structs, applied to a
// third with the semantics of a strategic merge patch: lists with a merge key
// are merged by it, everything else that differs is replaced.

// PodStatus applies the difference base -> status to cur, in wire form.
// It reports whether anything of cur changed. base is what the kubelet last saw, status what it
// wants: the patch is what differs between the two, so a field that both have alike is not
// touched, whatever the server has by now. cur is not written to.
func PodStatus(cur, base, status *v1.PodStatus) (v1.PodStatus, bool) {
	out := *cur
	changed := false
	set(&out.ObservedGeneration, base.ObservedGeneration, status.ObservedGeneration, &changed)
	set(&out.Phase, base.Phase, status.Phase, &changed)
	set(&out.Message, base.Message, status.Message, &changed)
	set(&out.Reason, base.Reason, status.Reason, &changed)
	set(&out.NominatedNodeName, base.NominatedNodeName, status.NominatedNodeName, &changed)
	set(&out.HostIP, base.HostIP, status.HostIP, &changed)
	set(&out.PodIP, base.PodIP, status.PodIP, &changed)
	set(&out.Resize, base.Resize, status.Resize, &changed)
	set(&out.QOSClass, base.QOSClass, status.QOSClass, &changed)
	// A kubelet that does not say the class does not take it away.
	out.QOSClass = cmp.Or(out.QOSClass, cur.QOSClass)
	setList(&out.HostIPs, base.HostIPs, status.HostIPs, func(a, b *v1.HostIP) bool { return *a == *b }, &changed)
	setList(&out.PodIPs, base.PodIPs, status.PodIPs, func(a, b *v1.PodIP) bool { return *a == *b }, &changed)
	if !sameTimePtr(base.StartTime, status.StartTime) && !sameTimePtr(out.StartTime, status.StartTime) {
		out.StartTime = asjson.TimePtr(status.StartTime)
		changed = true
	}
	mergeList(&out.Conditions, base.Conditions, status.Conditions,
		func(c *v1.PodCondition) v1.PodConditionType { return c.Type }, SamePodCondition, asjson.PodCondition, &changed)
	// Lists of container statuses have no merge key: one that differs is replaced.
	for _, l := range []struct{ out, base, status *[]v1.ContainerStatus }{
		{&out.InitContainerStatuses, &base.InitContainerStatuses, &status.InitContainerStatuses},
		{&out.ContainerStatuses, &base.ContainerStatuses, &status.ContainerStatuses},
		{&out.EphemeralContainerStatuses, &base.EphemeralContainerStatuses, &status.EphemeralContainerStatuses},
	} {
		was := changed
		changed = false
		setList(l.out, *l.base, *l.status, sameContainerStatus, &changed)
		if changed {
			*l.out = asjson.ContainerStatuses(*l.out)
		}
		changed = changed || was
	}
	setDeepList(&out.ResourceClaimStatuses, base.ResourceClaimStatuses, status.ResourceClaimStatuses, &changed)
	setDeep(&out.ExtendedResourceClaimStatus, base.ExtendedResourceClaimStatus, status.ExtendedResourceClaimStatus, &changed)
	setResources(&out.AllocatedResources, base.AllocatedResources, status.AllocatedResources, &changed)
	setDeep(&out.Resources, base.Resources, status.Resources, &changed)
	setDeepList(&out.NodeAllocatableResourceClaimStatuses, base.NodeAllocatableResourceClaimStatuses, status.NodeAllocatableResourceClaimStatuses, &changed)
	return out, changed
}

// NodeStatus is mergePodStatus for a node. It is what a kubelet's heartbeat costs the API: most
// of them change times only.
func NodeStatus(cur, base, status *v1.NodeStatus) (v1.NodeStatus, bool) {
	out := *cur
	changed := false
	mergeList(&out.Conditions, base.Conditions, status.Conditions,
		func(c *v1.NodeCondition) v1.NodeConditionType { return c.Type }, sameNodeCondition, asjson.NodeCondition, &changed)
	setList(&out.Addresses, base.Addresses, status.Addresses, func(a, b *v1.NodeAddress) bool { return *a == *b }, &changed)
	setResources(&out.Capacity, base.Capacity, status.Capacity, &changed)
	setResources(&out.Allocatable, base.Allocatable, status.Allocatable, &changed)
	set(&out.Phase, base.Phase, status.Phase, &changed)
	set(&out.DaemonEndpoints, base.DaemonEndpoints, status.DaemonEndpoints, &changed)
	setDeep(&out.NodeInfo, base.NodeInfo, status.NodeInfo, &changed)
	setList(&out.Images, base.Images, status.Images, sameImage, &changed)
	setList(&out.VolumesInUse, base.VolumesInUse, status.VolumesInUse, func(a, b *v1.UniqueVolumeName) bool { return *a == *b }, &changed)
	setList(&out.VolumesAttached, base.VolumesAttached, status.VolumesAttached, func(a, b *v1.AttachedVolume) bool { return *a == *b }, &changed)
	setDeep(&out.Config, base.Config, status.Config, &changed)
	setDeepList(&out.RuntimeHandlers, base.RuntimeHandlers, status.RuntimeHandlers, &changed)
	setDeep(&out.Features, base.Features, status.Features, &changed)
	setList(&out.DeclaredFeatures, base.DeclaredFeatures, status.DeclaredFeatures, func(a, b *string) bool { return *a == *b }, &changed)
	return out, changed
}

// StringMap applies the difference base -> want to cur. The map returned
// is cur itself when nothing changes. A patch sets the keys that differ between base and want,
// and removes those that want lacks; keys of others stay.
func StringMap(cur, base, want map[string]string) (map[string]string, bool) {
	var out map[string]string
	edit := func() map[string]string {
		if out == nil {
			out = make(map[string]string, len(cur)+1)
			maps.Copy(out, cur)
		}
		return out
	}
	for k, v := range want { //drydock:unordered fills a map
		if b, ok := base[k]; ok && b == v {
			continue
		}
		if c, ok := cur[k]; !ok || c != v {
			edit()[k] = v
		}
	}
	for k := range base { //drydock:unordered deletes from a map
		if _, ok := want[k]; ok {
			continue
		}
		if _, ok := cur[k]; ok {
			delete(edit(), k)
		}
	}
	if out == nil {
		return cur, false
	}
	return out, true
}

// set replaces a field that the patch touches. A field on which the server agrees already is no
// change, so that such a patch writes nothing.
func set[T comparable](out *T, base, v T, changed *bool) {
	if base != v && *out != v {
		*out = v
		*changed = true
	}
}

// setDeep is set for what is rarely there or mostly the same pointers, so that
// comparing may be slow. Pointers and interfaces are compared first by identity.
func setDeep[T comparable](out *T, base, v T, changed *bool) {
	if base != v && *out != v && !equality.Semantic.DeepEqual(base, v) && !equality.Semantic.DeepEqual(*out, v) {
		*out = v
		*changed = true
	}
}

// setDeepList is setDeep for a list.
func setDeepList[T any](out *[]T, base, v []T, changed *bool) {
	setList(out, base, v, func(a, b *T) bool { return equality.Semantic.DeepEqual(a, b) }, changed)
}

// setResources replaces a list of quantities that differs from base's. A list that is replaced is
// the patch's own: nobody changes it afterwards.
func setResources(out *v1.ResourceList, base, v v1.ResourceList, changed *bool) {
	if !sameResources(base, v) && !sameResources(*out, v) {
		*out = v
		*changed = true
	}
}

// sameResources compares quantities by value: "1000m" is "1". The loop doesn't stop at the first
// difference, so that its order has no effect; lists are short.
func sameResources(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	same := true
	for name, q := range a { //drydock:unordered all must hold
		o, ok := b[name]
		same = same && ok && q.Cmp(o) == 0
	}
	return same
}

// SameList compares two lists; lists that share their memory are the same. It is the shortcut
// that most comparisons end with, since versions of an object share what did not change.
func SameList[T any](a, b []T, same func(a, b *T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if !same(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

// setList replaces a list without a merge key, as a whole. An empty list becomes nil, as JSON
// leaves it out.
func setList[T any](out *[]T, base, v []T, same func(a, b *T) bool, changed *bool) {
	if !SameList(base, v, same) && !SameList(*out, v, same) {
		*out = v
		if len(v) == 0 {
			*out = nil
		}
		*changed = true
	}
}

// mergeList merges a list by key, in the order that strategic merge gives it:
// the patch's order, with what only the server has kept in its place. Conditions are the lists
// that are merged so: those of other owners, such as the scheduler's on a pod, must survive a
// kubelet's patch.
//
// The cost is quadratic in the list's length; lists of conditions have a handful of entries.
func mergeList[T, K comparable](out *[]T, base, v []T, key func(*T) K, same func(a, b *T) bool, clean func(T) T, changed *bool) {
	cur := *out
	if SameList(base, v, same) || SameList(cur, v, same) {
		return
	}
	if len(v) == 0 { // JSON leaves an empty list out: the patch says null
		*out = nil
		*changed = *changed || len(cur) > 0
		return
	}
	at := func(list []T, k K) int {
		for i := range list {
			if key(&list[i]) == k {
				return i
			}
		}
		return -1
	}
	if mergesToItself(cur, base, v, key, same, clean) {
		*out = slices.Clip(v)
		*changed = true
		return
	}
	var ours, theirs []T // the patch's items as they will be; the server's own
	for i := range v {
		k := key(&v[i])
		if b := at(base, k); b >= 0 && same(&base[b], &v[i]) {
			// untouched by the patch: the server's value, if it still has one
			if c := at(cur, k); c >= 0 {
				ours = append(ours, cur[c])
			}
			continue
		}
		ours = append(ours, clean(v[i]))
	}
	for i := range cur {
		if k := key(&cur[i]); at(v, k) < 0 && at(base, k) < 0 {
			theirs = append(theirs, cur[i])
		}
	}
	// The two lists are merged as apimachinery's strategicpatch does it (mergeSortedSlice): the
	// server's own items keep their places relative to those that it has in common with the
	// patch.
	merged := make([]T, 0, len(ours)+len(theirs))
	for len(ours) > 0 || len(theirs) > 0 {
		takeTheirs := len(ours) == 0
		if !takeTheirs && len(theirs) > 0 {
			l, r := at(cur, key(&theirs[0])), at(cur, key(&ours[0]))
			takeTheirs = r >= 0 && l < r
		}
		if takeTheirs {
			merged, theirs = append(merged, theirs[0]), theirs[1:]
		} else {
			merged, ours = append(merged, ours[0]), ours[1:]
		}
	}
	if SameList(cur, merged, same) {
		return
	}
	*out = merged
	*changed = true
}

// mergesToItself reports whether what v makes of cur is v, so that it need not be
// copied: the server has nothing of its own, and nothing that v leaves alone is
// otherwise there. That is the common case, in which the kubelet's own list becomes the stored
// one.
func mergesToItself[T, K comparable](cur, base, v []T, key func(*T) K, same func(a, b *T) bool, clean func(T) T) bool {
	find := func(list []T, k K) *T {
		for i := range list {
			if key(&list[i]) == k {
				return &list[i]
			}
		}
		return nil
	}
	for i := range v {
		k := key(&v[i])
		if b := find(base, k); b != nil && same(b, &v[i]) {
			if c := find(cur, k); c == nil || !same(c, &v[i]) {
				return false
			}
		}
		if clean(v[i]) != v[i] {
			return false
		}
	}
	for i := range cur {
		if k := key(&cur[i]); find(v, k) == nil && find(base, k) == nil {
			return false
		}
	}
	return true
}

// sameTime compares times as they are on the wire: in seconds. metav1.Time is written to the
// second.
func sameTime(a, b metav1.Time) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() == b.IsZero()
	}
	return a.Unix() == b.Unix()
}

// sameTimePtr compares optional times by the instant.
func sameTimePtr(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameTime(*a, *b)
}

// samePtr compares optional values.
func samePtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// SamePodCondition compares conditions as they would read in JSON.
func SamePodCondition(a, b *v1.PodCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration &&
		sameTime(a.LastTransitionTime, b.LastTransitionTime) && sameTime(a.LastProbeTime, b.LastProbeTime)
}

// sameNodeCondition is SamePodCondition for nodes: a new heartbeat is a difference.
func sameNodeCondition(a, b *v1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		sameTime(a.LastTransitionTime, b.LastTransitionTime) && sameTime(a.LastHeartbeatTime, b.LastHeartbeatTime)
}

// sameImage compares what a node says of an image. The names of one are told in one
// order.
func sameImage(a, b *v1.ContainerImage) bool {
	return a.SizeBytes == b.SizeBytes && SameList(a.Names, b.Names, func(x, y *string) bool { return *x == *y })
}

// sameContainerStatus compares what differs most often first; what few containers
// have is sameRare's. Statuses of containers are compared for each pod that a kubelet writes.
func sameContainerStatus(a, b *v1.ContainerStatus) bool {
	return a.Name == b.Name && a.Ready == b.Ready && a.RestartCount == b.RestartCount &&
		a.Image == b.Image && a.ImageID == b.ImageID && a.ContainerID == b.ContainerID &&
		samePtr(a.Started, b.Started) && samePtr(a.StopSignal, b.StopSignal) &&
		sameState(&a.State, &b.State) && sameState(&a.LastTerminationState, &b.LastTerminationState) &&
		sameRare(a, b)
}

// sameRare compares what most container statuses don't have.
func sameRare(a, b *v1.ContainerStatus) bool {
	return sameResources(a.AllocatedResources, b.AllocatedResources) &&
		(a.Resources == b.Resources || equality.Semantic.DeepEqual(a.Resources, b.Resources)) &&
		(a.User == b.User || equality.Semantic.DeepEqual(a.User, b.User)) &&
		SameList(a.VolumeMounts, b.VolumeMounts, func(x, y *v1.VolumeMountStatus) bool { return equality.Semantic.DeepEqual(x, y) }) &&
		SameList(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus, func(x, y *v1.ResourceStatus) bool { return equality.Semantic.DeepEqual(x, y) })
}

// sameState compares states, of which one of three is set.
func sameState(a, b *v1.ContainerState) bool {
	if (a.Waiting == nil) != (b.Waiting == nil) || (a.Running == nil) != (b.Running == nil) || (a.Terminated == nil) != (b.Terminated == nil) {
		return false
	}
	switch {
	case a.Waiting != nil:
		return a.Waiting == b.Waiting || *a.Waiting == *b.Waiting
	case a.Running != nil:
		return a.Running == b.Running || sameTime(a.Running.StartedAt, b.Running.StartedAt)
	case a.Terminated != nil:
		x, y := a.Terminated, b.Terminated
		return x == y || x.ExitCode == y.ExitCode && x.Signal == y.Signal && x.Reason == y.Reason && x.Message == y.Message &&
			x.ContainerID == y.ContainerID && sameTime(x.StartedAt, y.StartedAt) && sameTime(x.FinishedAt, y.FinishedAt)
	}
	return true
}

// OnePodStatus reports whether two statuses are the same down to the memory of
// their lists and maps, so that either may be dropped for the other. Equal content in other
// memory counts as different: the caller wants to save the memory.
func OnePodStatus(a, b *v1.PodStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Phase == b.Phase && a.Message == b.Message && a.Reason == b.Reason &&
		a.NominatedNodeName == b.NominatedNodeName && a.HostIP == b.HostIP && a.PodIP == b.PodIP && a.Resize == b.Resize && a.QOSClass == b.QOSClass &&
		(a.StartTime == b.StartTime || a.StartTime != nil && b.StartTime != nil && *a.StartTime == *b.StartTime) &&
		oneList(a.Conditions, b.Conditions) && oneList(a.HostIPs, b.HostIPs) && oneList(a.PodIPs, b.PodIPs) &&
		oneList(a.InitContainerStatuses, b.InitContainerStatuses) && oneList(a.ContainerStatuses, b.ContainerStatuses) &&
		oneList(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses) &&
		oneList(a.ResourceClaimStatuses, b.ResourceClaimStatuses) && a.ExtendedResourceClaimStatus == b.ExtendedResourceClaimStatus &&
		oneList(a.NodeAllocatableResourceClaimStatuses, b.NodeAllocatableResourceClaimStatuses) &&
		a.Resources == b.Resources && reflect.ValueOf(a.AllocatedResources).Pointer() == reflect.ValueOf(b.AllocatedResources).Pointer()
}

// oneList reports whether two lists are one: the same memory, or both nil, or both
// empty. nil and empty differ in JSON for some fields.
func oneList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 && (a == nil) == (b == nil) || len(a) > 0 && &a[0] == &b[0])
}
