package scheduler

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// maxRequests bounds how many requests are under way, or wait for the client's
// rate limit, as tasks. The others wait in their order.
const maxRequests = 2000

// noteLimit is how long an event's note can be (truncateMessage).
const noteLimit = 1024

// pump makes requests in the order in which they were given, many at a time.
// Order matters where rate limits do: the pod that was placed first is bound
// first.
type pump struct {
	group   *loop.Group
	name    string
	waiting []func(context.Context)
	running int
}

// add starts another task as long as there are few. They end when nothing is
// waiting.
func (p *pump) add(fn func(context.Context)) {
	p.waiting = append(p.waiting, fn)
	if p.running < maxRequests {
		p.running++
		p.group.Go(p.name, p.work)
	}
}

// work makes requests until none is left.
func (p *pump) work(ctx context.Context) {
	defer func() { p.running-- }()
	for len(p.waiting) > 0 {
		fn := p.waiting[0]
		p.waiting[0] = nil
		if p.waiting = p.waiting[1:]; len(p.waiting) == 0 {
			p.waiting = nil
		}
		fn(ctx)
	}
}

// binding is a pod that was placed, until it is bound (bindingCycle). The pod stays pending until the
// API's change tells that it has a node.
type binding struct {
	s *Scheduler
	q *queued
	a *assumption
}

// start begins it. A pod that waits for volumes or devices first holds up no other.
func (b binding) start() {
	if b.a.volumes == nil && b.a.reserved == nil {
		b.s.requests.add(b.bind)
		return
	}
	b.s.opts.Group.Go("kube-scheduler binding", func(ctx context.Context) {
		b.expect(ctx)
		if err := b.wait(ctx); err != nil {
			b.failed(ctx, err.Error())
			return
		}
		b.bind(ctx)
	})
}

// expect notes on a pod that will be bound after a while where that is going to be
// (NominatedNodeNameForExpectation). Whether it could is of no importance.
func (b binding) expect(ctx context.Context) {
	pod := b.a.pod
	if pod.Status.NominatedNodeName == b.a.node.name {
		return
	}
	status := pod.Status
	status.NominatedNodeName = b.a.node.name
	_ = controller.PatchPodStatus(ctx, b.s.opts.API, pod, &status)
}

// wait is the PreBind plugins. Until they are through the pod can be preempted without being deleted.
func (b binding) wait(ctx context.Context) error {
	s, a := b.s, b.a
	ctx, a.giveUp = loop.WithCancel(ctx)
	defer func() {
		a.giveUp()
		a.giveUp = nil
	}()
	if a.volumes != nil {
		err := s.volumes.preBindVolumes(ctx, a)
		s.volumes.unreserveVolumes(a.volumes) // the objects say it now, or it is not so
		if err != nil {
			return fmt.Errorf("running PreBind plugin %q: %w", "VolumeBinding", cause(err))
		}
	}
	if a.reserved != nil {
		if err := s.preBindClaims(ctx, a); err != nil {
			return fmt.Errorf("running PreBind plugin %q: %w", "DynamicResources", cause(err))
		}
	}
	return nil
}

// errPreempted is why a pod gave up its waiting.
var errPreempted = errors.New("preempted by DefaultPreemption")

// cause is why a plugin failed: nothing but a preemption ends its context (context.Cause).
func cause(err error) error {
	if errors.Is(err, context.Canceled) {
		return errPreempted
	}
	return err
}

// bind asks the API to bind the pod where it was placed (DefaultBinder).
func (b binding) bind(ctx context.Context) {
	q, node := b.q, b.a.node.name
	req := apiserver.Request{Verb: "create", Resource: "pods/binding", Namespace: q.namespace, Name: q.name}
	err := b.s.opts.API.Do(ctx, req, func(srv *apiserver.Server) error {
		_, err := srv.Bind(q.namespace, q.name, node, metav1.ObjectMeta{UID: q.uid})
		return err
	})
	if err != nil {
		b.failed(ctx, fmt.Sprintf("running Bind plugin %q: %v", "DefaultBinder", err))
		return
	}
	b.s.recorder.event(b.a.pod, v1.EventTypeNormal, "Scheduled", "Binding", fmt.Sprintf("Successfully assigned %s/%s to %s", q.namespace, q.name, node))
}

// failed has the pod tried again (handleBindingCycleError). Of one that is gone, or bound after all,
// there is only the event.
func (b binding) failed(ctx context.Context, message string) {
	s, q, a := b.s, b.q, b.a
	if a.reserved != nil {
		s.unreserve(ctx, a)
	}
	// If not, the pod was bound after all, is being deleted, or is gone, and was taken off by the
	// hook.
	if s.assumed[q.uid] == a {
		s.unassume(a)
	}
	pod := s.podOf(q)
	if pod == nil || s.pending[q.uid] != q {
		s.failedScheduling(a.pod, message)
		return
	}
	q.timestamp = s.l.UnixNano()
	q.rejectors = 0
	q.errors++
	s.queue.put(q, errorBackoff)
	s.tell(pod, v1.PodReasonSchedulerError, message, true, "")
	s.wake(backoffWindow)
}

// failedScheduling records the event that a pod was not scheduled.
func (s *Scheduler) failedScheduling(pod *v1.Pod, message string) {
	if len(message) > noteLimit {
		const more = " ..."
		message = message[:noteLimit-len(more)] + more
	}
	s.recorder.event(pod, v1.EventTypeWarning, "FailedScheduling", "Scheduling", message)
}

// tell says why a pod has no node: an event, and its condition and nominated node
// when they change. An equal condition is not written again, so a pod that stays
// unschedulable costs an event a try and no status.
func (s *Scheduler) tell(pod *v1.Pod, reason, message string, nominate bool, nominated string) {
	s.failedScheduling(pod, message)
	cond := v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: pod.Generation,
	}
	status, changed := controller.WithPodCondition(&pod.Status, cond, s.l.Now())
	if !changed && (!nominate || status.NominatedNodeName == nominated) {
		return
	}
	if nominate {
		status.NominatedNodeName = nominated
	}
	s.requests.add(func(ctx context.Context) {
		// A pod that is gone needs no status; one that is bound keeps the server's.
		_ = controller.PatchPodStatus(ctx, s.opts.API, pod, &status)
	})
}

// evict deletes the victims behind the cycle, the last when the others are
// deleted (preemption.Executor). The last victim waits for the others because its
// deletion is what wakes the pod: by then all room is on its way. If something
// failed the pod is tried again at once.
func (s *Scheduler) evict(q *queued, pod *v1.Pod, c *candidate) {
	victims := lists.Filter(c.victims, func(p *v1.Pod) bool { return p.DeletionTimestamp == nil })
	// Found before anything is sent: later there may be others.
	lower := s.lowerNominated(q, c.node)
	if len(victims) == 0 {
		return
	}
	q.preempting, q.lastVictim = true, nil
	s.opts.Group.Go("kube-scheduler preemption", func(ctx context.Context) {
		failed := s.denominate(ctx, lower) != nil // goes on all the same
		lost := false
		var done loop.WaitGroup
		for _, v := range victims[:len(victims)-1] {
			done.Add(1)
			s.opts.Group.Go("kube-scheduler eviction", func(ctx context.Context) {
				defer done.Done()
				lost = s.evictPod(ctx, pod, v, c.node.name) != nil || lost
			})
		}
		if done.Wait(ctx) == nil && !lost {
			q.lastVictim = victims[len(victims)-1]
			lost = s.evictPod(ctx, pod, q.lastVictim, c.node.name) != nil
		}
		q.preempting, q.lastVictim = false, nil
		if (failed || lost) && q.place == unschedulable {
			s.queue.put(q, active)
			s.wake(0)
		}
	})
}

// preempting reports whether a pod's evictions are under way. It is over when the
// last victim is being deleted or gone, even if that was not answered yet
// (preemption.Executor.IsPodRunningPreemption).
func (s *Scheduler) preempting(q *queued) bool {
	if !q.preempting || q.lastVictim == nil {
		return q.preempting
	}
	p := s.server.Pod(q.lastVictim.Namespace, q.lastVictim.Name)
	return p != nil && p.DeletionTimestamp == nil
}

// denominate takes the nominated nodes of pods away. It returns the last error.
// They waited for room that is now another's, and are to look again elsewhere.
func (s *Scheduler) denominate(ctx context.Context, pods []*v1.Pod) error {
	var last error
	for _, p := range pods {
		if p.Status.NominatedNodeName == "" {
			continue
		}
		status := p.Status
		status.NominatedNodeName = ""
		if err := controller.PatchPodStatus(ctx, s.opts.API, p, &status); err != nil {
			last = err
		}
	}
	return last
}

// lowerNominated returns the pods of lower priority that wait for the same node.
func (s *Scheduler) lowerNominated(q *queued, n *nodeInfo) []*v1.Pod {
	var out []*v1.Pod
	for _, o := range n.nominated {
		if o.priority < q.priority {
			if p := s.podOf(o); p != nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// evictPod marks and deletes one victim. One that is gone needs nothing. The
// condition DisruptionTarget says why, and comes first so that the kubelet and
// the job controller see it before the deletion.
func (s *Scheduler) evictPod(ctx context.Context, preemptor, victim *v1.Pod, node string) error {
	said := fmt.Sprintf("Preempted by pod %v on node %v", preemptor.UID, node)
	if a := s.assumed[victim.UID]; a != nil {
		if a.giveUp != nil {
			a.giveUp() // it need not go: it isn't there
			s.recorder.related(victim, preemptor, v1.EventTypeNormal, "Preempted", "Preempting", said+" (in kube-scheduler memory).")
			return nil
		}
		victim = a.pod // still being bound: it is deleted by name all the same
	}
	status, changed := controller.WithPodCondition(&victim.Status, v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		Message:            fmt.Sprintf("%s: preempting to accommodate a higher priority pod", preemptor.Spec.SchedulerName),
		ObservedGeneration: victim.Generation,
	}, s.l.Now())
	if changed {
		if err := controller.PatchPodStatus(ctx, s.opts.API, victim, &status); err != nil {
			return ignoreGone(err)
		}
	}
	req := apiserver.Request{Verb: "delete", Resource: "pods", Namespace: victim.Namespace, Name: victim.Name}
	err := s.opts.API.Do(ctx, req, func(srv *apiserver.Server) error {
		return srv.Delete(apiserver.KindPod, victim.Namespace, victim.Name, metav1.DeleteOptions{})
	})
	if err != nil {
		return ignoreGone(err)
	}
	s.recorder.related(victim, preemptor, v1.EventTypeNormal, "Preempted", "Preempting", said)
	return nil
}

// ignoreGone drops the error that there is no such pod.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
