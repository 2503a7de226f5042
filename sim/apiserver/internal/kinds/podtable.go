package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// podTable are the columns of kubectl get pods (printPod of
// pkg/printers/internalversion).
func podTable() []kind.Column[v1.Pod] {
	meta, spec, status := metav1.ObjectMeta{}.SwaggerDoc(), v1.PodSpec{}.SwaggerDoc(), v1.PodStatus{}.SwaggerDoc()
	col := func(name, doc string, priority int32, cell func(p *v1.Pod, now time.Time) any) kind.Column[v1.Pod] {
		return kind.Column[v1.Pod]{Name: name, Type: "string", Description: doc, Priority: priority, Cell: cell}
	}
	return []kind.Column[v1.Pod]{
		kind.NameColumn[v1.Pod](),
		col("Ready", "The aggregate readiness state of this pod for accepting traffic.", 0, func(p *v1.Pod, _ time.Time) any {
			s := summarize(p)
			return fmt.Sprintf("%d/%d", s.ready, s.containers)
		}),
		col("Status", "The aggregate status of the containers in this pod.", 0, func(p *v1.Pod, _ time.Time) any { return summarize(p).reason }),
		col("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.", 0, func(p *v1.Pod, now time.Time) any {
			s := summarize(p)
			if s.restarts == 0 || s.last.IsZero() {
				return strconv.Itoa(int(s.restarts))
			}
			return fmt.Sprintf("%d (%s ago)", s.restarts, kind.Age(s.last, now))
		}),
		col("Age", meta["creationTimestamp"], 0, func(p *v1.Pod, now time.Time) any { return kind.Age(p.CreationTimestamp, now) }),
		col("IP", status["podIP"], 1, func(p *v1.Pod, _ time.Time) any {
			if len(p.Status.PodIPs) == 0 {
				return noneCell
			}
			return cmp.Or(p.Status.PodIPs[0].IP, noneCell)
		}),
		col("Node", spec["nodeName"], 1, func(p *v1.Pod, _ time.Time) any { return cmp.Or(p.Spec.NodeName, noneCell) }),
		col("Nominated Node", status["nominatedNodeName"], 1, func(p *v1.Pod, _ time.Time) any { return cmp.Or(p.Status.NominatedNodeName, noneCell) }),
		col("Readiness Gates", spec["readinessGates"], 1, func(p *v1.Pod, _ time.Time) any { return openGates(p) }),
	}
}

// noneCell stands in a cell where there is nothing.
const noneCell = "<none>"

// podRowState says of a pod that has ended that it is done with: kubectl get has an
// option that leaves such rows out.
func podRowState(p *v1.Pod) []metav1.TableRowCondition {
	text := map[v1.PodPhase]string{v1.PodSucceeded: "The pod has completed successfully.", v1.PodFailed: "The pod failed."}[p.Status.Phase]
	if text == "" {
		return nil
	}
	return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(p.Status.Phase), Message: text}}
}

// openGates counts the readiness gates whose condition is true.
func openGates(p *v1.Pod) string {
	gates := p.Spec.ReadinessGates
	if len(gates) == 0 {
		return noneCell
	}
	n := 0
	for _, g := range gates {
		i := slices.IndexFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == g.ConditionType })
		if i >= 0 && p.Status.Conditions[i].Status == v1.ConditionTrue {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(gates))
}

// podSummary is what a row says of a pod's containers in sum.
type podSummary struct {
	reason            string
	ready, containers int
	restarts          int32
	last              metav1.Time // when a container ended that was restarted
}

// count adds a container's restarts.
func (s *podSummary) count(c *v1.ContainerStatus) {
	s.restarts += c.RestartCount
	if t := c.LastTerminationState.Terminated; t != nil && s.last.Before(&t.FinishedAt) {
		s.last = t.FinishedAt
	}
}

// summarize finds the one word for the state of a pod: of the init container at which it
// stands, else of its containers, of which an earlier one's word wins.
func summarize(p *v1.Pod) podSummary {
	s := podSummary{reason: cmp.Or(p.Status.Reason, string(p.Status.Phase)), containers: len(p.Spec.Containers)}
	is := func(t v1.PodConditionType) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == t && c.Status == v1.ConditionTrue })
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Reason == v1.PodReasonSchedulingGated {
			s.reason = c.Reason
		}
	}
	sidecars := podSummary{} // their restarts count on when the others are over
	standing := s.initialize(p, &sidecars)
	if !standing || is(v1.PodInitialized) {
		s.restarts, s.last = sidecars.restarts, sidecars.last
		s.run(p, is(v1.PodReady))
	}
	switch terminal := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed; {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.reason = "Unknown"
	case !terminal:
		s.reason = "Terminating"
	}
	return s
}

// initialize looks at the init containers, and reports whether the pod stands at one.
func (s *podSummary) initialize(p *v1.Pod, sidecars *podSummary) bool {
	restartable := func(name string) bool {
		return slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool {
			return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		})
	}
	for i := range p.Spec.InitContainers {
		if restartable(p.Spec.InitContainers[i].Name) {
			s.containers++
		}
	}
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		s.count(c)
		sidecar := restartable(c.Name)
		if sidecar {
			sidecars.count(c)
		}
		switch end, wait := c.State.Terminated, c.State.Waiting; {
		case end != nil && end.ExitCode == 0:
			continue
		case sidecar && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case end != nil:
			s.reason = "Init:" + endReason(end)
		case wait != nil && wait.Reason != "" && wait.Reason != "PodInitializing":
			s.reason = "Init:" + wait.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

// run looks at the containers. One that has completed is not the word for a pod in which
// others run, or have failed.
func (s *podSummary) run(p *v1.Pod, ready bool) {
	running, failed := false, ""
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.count(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = endReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failed = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	switch {
	case s.reason != "Completed":
	case running && ready:
		s.reason = "Running"
	case failed != "":
		s.reason = failed
	case running:
		s.reason = "NotReady"
	}
}

// endReason is why a container ended, if only by a number.
func endReason(end *v1.ContainerStateTerminated) string {
	switch {
	case end.Reason != "":
		return end.Reason
	case end.Signal != 0:
		return fmt.Sprintf("Signal:%d", end.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", end.ExitCode)
}
