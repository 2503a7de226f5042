package status

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessageBytes is what the termination messages of a pod's containers may
// take together (upstream kubecontainer.MaxPodTerminationMessageLogLength).
const maxMessageBytes = 12 * 1024

// managedTransition reports whether the manager sets the transition time of
// conditions of a type; others keep what they came with.
func managedTransition(t v1.PodConditionType) bool {
	switch t {
	case v1.ContainersReady, v1.PodReady, v1.PodInitialized, v1.PodReadyToStartContainers, v1.PodScheduled,
		v1.DisruptionTarget, v1.AllContainersRestarting:
		return true
	}
	return false
}

// normalize brings a status into the form of the API: times in whole seconds,
// termination messages cut to their share, container statuses in order. What
// it changes it copies first.
func normalize(pod *v1.Pod, s *v1.PodStatus) {
	if s.StartTime != nil && !whole(s.StartTime) {
		s.StartTime = new(apiTime(s.StartTime.Time))
	}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; !whole(&c.LastProbeTime) || !whole(&c.LastTransitionTime) {
			s.Conditions = slices.Clone(s.Conditions)
			for j := range s.Conditions {
				s.Conditions[j].LastProbeTime = apiTime(s.Conditions[j].LastProbeTime.Time)
				s.Conditions[j].LastTransitionTime = apiTime(s.Conditions[j].LastTransitionTime.Time)
			}
			break
		}
	}
	spec := &pod.Spec
	limit := maxMessageBytes
	if n := len(spec.Containers) + len(spec.InitContainers) + len(spec.EphemeralContainers); n > 0 {
		limit /= n
	}
	s.ContainerStatuses = byName(normalizeList(s.ContainerStatuses, limit))
	s.InitContainerStatuses = inSpecOrder(normalizeList(s.InitContainerStatuses, limit), spec.InitContainers)
	s.EphemeralContainerStatuses = byName(normalizeList(s.EphemeralContainerStatuses, limit))
}

// whole reports whether a time is as the API keeps it.
func whole(t *metav1.Time) bool {
	return t.IsZero() || t.Nanosecond() == 0 && t.Location() == time.UTC
}

// normalizeList is normalize for one kind of containers; it copies the list if
// it has to change an element.
func normalizeList(list []v1.ContainerStatus, limit int) []v1.ContainerStatus {
	copied := false
	for i := range list {
		if stateNormal(&list[i].State, limit) && stateNormal(&list[i].LastTerminationState, limit) {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		list[i].State = normalState(list[i].State, limit)
		list[i].LastTerminationState = normalState(list[i].LastTerminationState, limit)
	}
	return list
}

// stateNormal reports whether normalState would change nothing.
func stateNormal(s *v1.ContainerState, limit int) bool {
	if s.Running != nil && !whole(&s.Running.StartedAt) {
		return false
	}
	t := s.Terminated
	return t == nil || whole(&t.StartedAt) && whole(&t.FinishedAt) && len(t.Message) <= limit
}

// normalState returns a state in the form of the API. limit is how many bytes a
// message may have, the rest is cut, from its end.
func normalState(s v1.ContainerState, limit int) v1.ContainerState {
	if s.Running != nil {
		s.Running = &v1.ContainerStateRunning{StartedAt: apiTime(s.Running.StartedAt.Time)}
	}
	if s.Terminated != nil {
		t := *s.Terminated
		t.StartedAt, t.FinishedAt = apiTime(t.StartedAt.Time), apiTime(t.FinishedAt.Time)
		if len(t.Message) > limit {
			t.Message = t.Message[:limit]
		}
		s.Terminated = &t
	}
	return s
}

// byName sorts statuses by name: the runtime's order, by time, would make equal
// statuses differ.
func byName(list []v1.ContainerStatus) []v1.ContainerStatus {
	less := func(a, b v1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) }
	for i := 1; i < len(list); i++ {
		if list[i-1].Name > list[i].Name {
			list = slices.Clone(list)
			slices.SortStableFunc(list, less)
			break
		}
	}
	return list
}

// inSpecOrder sorts init container statuses as upstream's
// SortInitContainerStatuses does: those of no container of the spec last.
func inSpecOrder(list []v1.ContainerStatus, spec []v1.Container) []v1.ContainerStatus {
	inOrder := len(list) <= len(spec)
	for i := 0; inOrder && i < len(list); i++ {
		inOrder = list[i].Name == spec[i].Name
	}
	if inOrder {
		return list
	}
	at := func(name string) int {
		for i := range spec {
			if spec[i].Name == name {
				return i
			}
		}
		return len(spec)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b v1.ContainerStatus) int { return at(a.Name) - at(b.Name) })
	return list
}
