package status

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// The reasons of pod conditions.
const (
	reasonUnknownStatuses  = "UnknownContainerStatuses"
	reasonNotInitialized   = "ContainersNotInitialized"
	reasonNotReady         = "ContainersNotReady"
	reasonGatesNotReady    = "ReadinessGatesNotReady"
	reasonPodCompleted     = "PodCompleted"
	reasonPodFailed        = "PodFailed"
	reasonRestartAllBegun  = "RestartAllContainersStarted"
	messageRestartAllBegun = "container exited with restart policy rule"
)

// ownedByKubelet reports whether the kubelet alone writes conditions of a type.
func ownedByKubelet(t v1.PodConditionType) bool {
	switch t {
	case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodResizeInProgress,
		v1.PodResizePending, v1.PodReadyToStartContainers, v1.AllContainersRestarting:
		return true
	}
	return false
}

// sharedWithKubelet reports whether the kubelet and others write them.
func sharedWithKubelet(t v1.PodConditionType) bool { return t == v1.DisruptionTarget }

// ownConditions is how many conditions the kubelet gives to every pod.
const ownConditions = 5

// conditions makes the pod's conditions, without times; g.old's are shared if
// they say the same. ready is ContainersReady.
// Others' conditions come first, as the API has them. DisruptionTarget is the
// cached status's, where the eviction put it: the API's may be older.
func (g *generation) conditions(s *v1.PodStatus, ready *v1.PodCondition) []v1.PodCondition {
	// Room for what an ordinary pod has, and no more, as with scratchSize.
	var room [6]v1.PodCondition
	list := room[:0]
	others := g.Pod.Status.Conditions
	for i := range others {
		if !ownedByKubelet(others[i].Type) {
			list = append(list, others[i])
		}
	}
	if !g.Terminal {
		list = append(list, g.ResizeConditions...)
	}
	if c := FindCondition(g.old.Conditions, v1.DisruptionTarget); c != nil {
		if have := FindCondition(list, v1.DisruptionTarget); have != nil {
			*have = *c
		} else {
			list = append(list, *c)
		}
	}
	n := len(list)
	list = slices.Grow(list, ownConditions)[:n+ownConditions]
	own := list[n:]
	g.readyToStart(&own[0])
	g.initializedCondition(&own[1], s)
	own[2] = readyCondition(&g.Pod.Spec, list[:n], ready)
	own[3] = *ready
	own[4].Type, own[4].Status = v1.PodScheduled, v1.ConditionTrue
	for i := range own {
		own[i].ObservedGeneration = g.Pod.Generation
	}
	if kubecontainer.HasRestartAllRule(g.Pod) {
		list = append(list, g.restartingCondition(s.Phase))
	}
	if conditionsSame(list, g.old.Conditions) {
		return g.old.Conditions
	}
	return append(make([]v1.PodCondition, 0, len(list)), list...)
}

// conditionsSame reports whether two lists differ by nothing but the transition
// times that the manager sets.
func conditionsSame(a, b []v1.PodCondition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Type != y.Type || x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message ||
			x.ObservedGeneration != y.ObservedGeneration || !x.LastProbeTime.Equal(&y.LastProbeTime) {
			return false
		}
		if !managedTransition(x.Type) && !x.LastTransitionTime.Equal(&y.LastTransitionTime) {
			return false
		}
	}
	return true
}

// readyToStart makes c PodReadyToStartContainers: a sync would need no new
// sandbox.
func (g *generation) readyToStart(c *v1.PodCondition) {
	c.Type, c.Status = v1.PodReadyToStartContainers, v1.ConditionFalse
	if changed, _, _ := kubecontainer.SandboxChanged(g.Pod, g.Runtime); !changed {
		c.Status = v1.ConditionTrue
	}
}

// initializedCondition makes c Initialized. Once true it stays true: the runtime
// may have removed the init containers meanwhile.
func (g *generation) initializedCondition(c *v1.PodCondition, s *v1.PodStatus) {
	c.Type, c.Status = v1.PodInitialized, v1.ConditionTrue
	spec := &g.Pod.Spec
	if len(spec.InitContainers) > 0 && len(s.InitContainerStatuses) == 0 && len(s.ContainerStatuses) == 0 {
		c.Status, c.Reason = v1.ConditionFalse, reasonUnknownStatuses
		return
	}
	var unknown, incomplete []string
	for i := range spec.InitContainers {
		ic := &spec.InitContainers[i]
		st := findStatus(s.InitContainerStatuses, ic.Name)
		switch {
		case st == nil:
			unknown = append(unknown, ic.Name)
		case kubecontainer.IsRestartableInit(ic) && (st.Started == nil || !*st.Started), !kubecontainer.IsRestartableInit(ic) && !st.Ready:
			incomplete = append(incomplete, ic.Name)
		}
	}
	if s.Phase == v1.PodSucceeded && len(unknown) == 0 {
		c.Reason = reasonPodCompleted
		return
	}
	if len(unknown)+len(incomplete) == 0 || anyStarted(s.ContainerStatuses) {
		return
	}
	if was := FindCondition(g.old.Conditions, v1.PodInitialized); was != nil && was.Status == v1.ConditionTrue {
		return
	}
	c.Status, c.Reason = v1.ConditionFalse, reasonNotInitialized
	c.Message = names("containers with unknown status", unknown, "containers with incomplete status", incomplete)
}

// anyStarted reports whether any container runs or has ended.
func anyStarted(list []v1.ContainerStatus) bool {
	for i := range list {
		if list[i].State.Running != nil || list[i].State.Terminated != nil {
			return true
		}
	}
	return false
}

// containersReady is ContainersReady.
// The room on the stack is for the names of an ordinary pod's containers; they
// are listed while a pod starts, which is when most statuses are made.
func containersReady(spec *v1.PodSpec, inits, containers []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	c := v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionFalse}
	if len(containers) == 0 && len(spec.Containers) > 0 && len(inits) == 0 {
		c.Reason = reasonUnknownStatuses
		return c
	}
	var room [2][4]string
	unknown, unready := room[0][:0], room[1][:0]
	look := func(name string, list []v1.ContainerStatus) {
		if st := findStatus(list, name); st == nil {
			unknown = append(unknown, name)
		} else if !st.Ready {
			unready = append(unready, name)
		}
	}
	for i := range spec.InitContainers {
		if kubecontainer.IsRestartableInit(&spec.InitContainers[i]) {
			look(spec.InitContainers[i].Name, inits)
		}
	}
	for i := range spec.Containers {
		look(spec.Containers[i].Name, containers)
	}
	switch {
	case phase == v1.PodSucceeded && len(unknown) == 0:
		c.Reason = reasonPodCompleted
	case phase == v1.PodFailed:
		c.Reason = reasonPodFailed
	case len(unknown)+len(unready) == 0:
		c.Status = v1.ConditionTrue
	default:
		c.Reason = reasonNotReady
		c.Message = names("containers with unknown status", unknown, "containers with unready status", unready)
	}
	return c
}

// readyCondition is Ready: ContainersReady and the pod's readiness gates.
// A gate's condition is written by others, in the API's status (KEP-580).
func readyCondition(spec *v1.PodSpec, conditions []v1.PodCondition, containers *v1.PodCondition) v1.PodCondition {
	c := *containers
	c.Type = v1.PodReady
	if c.Status != v1.ConditionTrue {
		return c
	}
	var messages []string
	for _, gate := range spec.ReadinessGates {
		have := FindCondition(conditions, gate.ConditionType)
		switch {
		case have == nil:
			messages = append(messages, `corresponding condition of pod readiness gate "`+string(gate.ConditionType)+`" does not exist.`)
		case have.Status != v1.ConditionTrue:
			messages = append(messages, `the status of pod readiness gate "`+string(gate.ConditionType)+`" is not "True", but `+string(have.Status))
		}
	}
	if len(messages) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, reasonGatesNotReady, strings.Join(messages, ", ")
	}
	return c
}

// restartingCondition is AllContainersRestarting.
// It is false again once the runtime has none of the old containers (KEP-5532).
func (g *generation) restartingCondition(phase v1.PodPhase) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	switch {
	case phase == v1.PodSucceeded:
		c.Reason = reasonPodCompleted
	case phase == v1.PodFailed:
		c.Reason = reasonPodFailed
	case g.restartingAll && len(g.Runtime.ContainerStatuses) > 0:
		c.Status, c.Reason, c.Message = v1.ConditionTrue, reasonRestartAllBegun, messageRestartAllBegun
	}
	return c
}

// names lists containers as Go prints slices of strings.
func names(aWhat string, a []string, bWhat string, b []string) string {
	var s string
	if len(a) > 0 {
		s = aWhat + ": [" + strings.Join(a, " ") + "]"
	}
	if len(b) > 0 {
		if s != "" {
			s += ", "
		}
		s += bWhat + ": [" + strings.Join(b, " ") + "]"
	}
	return s
}
