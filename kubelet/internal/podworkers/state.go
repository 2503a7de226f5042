package podworkers

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
)

// workType says which of the sync methods a worker runs.
type workType uint8

const (
	syncWork workType = iota
	terminatingWork
	terminatedWork
)

func (t workType) String() string { return [...]string{"sync", "terminating", "terminated"}[t] }

// PodStatusFunc changes the status of a pod that is being killed.
type PodStatusFunc func(*v1.PodStatus)

// KillPodOptions say how a pod is killed.
type KillPodOptions struct {
	// Completed, if given, fires when the pod's containers are stopped, or at
	// once if that is so already.
	Completed *loop.Event
	// Evict marks the pod as evicted: its dead containers may go.
	Evict bool
	// PodStatusFunc, if given, is applied to the status before the kill.
	PodStatusFunc PodStatusFunc
	// GracePeriodSecondsOverride, if given, may shorten the pod's own period.
	GracePeriodSecondsOverride *int64
}

// UpdatePodOptions is an update for a pod worker
// (pkg/kubelet/pod_workers.go).
type UpdatePodOptions struct {
	UpdateType kubetypes.SyncPodType
	// Pod is the pod as its source has it; nil if only the runtime knows it.
	Pod *v1.Pod
	// MirrorPod is the mirror of a static pod, if known.
	MirrorPod *v1.Pod
	// RunningPod is the runtime's picture of a pod that no source knows; only
	// with UpdateType kill.
	RunningPod *kubecontainer.Pod
	// KillPodOptions go with UpdateType kill.
	KillPodOptions *KillPodOptions
	// work is that of the run that took the update.
	work workType
}

// record is what is recorded of one pod from its first update until its
// record is removed. Its methods decide; Workers acts. Times are
// nanoseconds since the Unix epoch, 0 for "not yet".
type record struct {
	name, namespace string

	syncedAt int64
	// gracePeriod is the effective one in seconds once terminating.
	gracePeriod int64
	// lastRun is when the last run of a sync method ended.
	lastRun int64
	// first is what is kept of the pod's first version; nil if that is what its
	// object says, or the API never had it.
	first *config.FirstSeen

	isStarted, isTerminating, isTerminated bool

	startedTerminating bool
	deleted            bool
	evicted            bool
	finished           bool
	restartRequested   bool
	observedRuntime    bool
	// working: a run, or a wait for the pod cache before it, is in progress.
	working bool
	// cancelled: the run in progress was told to give up.
	cancelled bool
	removed   bool
	hasWorker bool
	// hasActive: active is what the last run went by.
	hasActive bool
	// probed: a probe's result, which a sync goes by, too, came since memo was made.
	probed bool
	// draws counts the jitters drawn.
	draws uint32

	// pending is the update that the worker is yet to look at; nil: none.
	pending *UpdatePodOptions
	// run is what the run in progress, or waited for, goes by; nil: there is none.
	run    *UpdatePodOptions
	active activeUpdate
	ending *ending // nil: nobody waits

	memo   syncMemo
	item   queue.Item // has the pod's UID
	waiter *kubecontainer.CacheWaiter
}

// activeUpdate is what remains of an update that a run took.
type activeUpdate struct {
	Pod, MirrorPod *v1.Pod
	RunningPod     *kubecontainer.Pod
	KillPodOptions *KillPodOptions
}

// ending is what kills have asked for beside the kill.
type ending struct {
	notify   []*loop.Event
	statusFn PodStatusFunc
}

// lastRunTime is lastRun; zero: there was none.
func (s *record) lastRunTime() time.Time {
	if s.lastRun == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.lastRun).UTC()
}

// statusFn is what the last kill with one wants done to the status.
func (s *record) statusFn() PodStatusFunc {
	if s.ending == nil {
		return nil
	}
	return s.ending.statusFn
}

// replacePod puts the next version of a pod's object, or its mirror's, in the
// place of the old one.
func (s *record) replacePod(old, pod *v1.Pod) {
	replace := func(p **v1.Pod) {
		if *p == old {
			*p = pod
		}
	}
	for _, o := range [...]*UpdatePodOptions{s.pending, s.run} {
		if o != nil {
			replace(&o.Pod)
			replace(&o.MirrorPod)
		}
	}
	replace(&s.active.Pod)
	replace(&s.active.MirrorPod)
	s.memo.replacePod(old, pod)
}

// replaceStatus is replacePod for the pod's cached status.
func (s *record) replaceStatus(old, status *v1.PodStatus) {
	s.memo.replaceStatus(old, status)
}

func (s *record) uid() types.UID { return s.item.UID }

func (s *record) fullName() types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: s.name}
}

func (s *record) started() bool              { return s.isStarted }
func (s *record) terminationRequested() bool { return s.isTerminating }
func (s *record) terminated() bool           { return s.isTerminated }

// workType goes by how far the pod has got, which never goes back.
func (s *record) workType() workType {
	switch {
	case s.terminated():
		return terminatedWork
	case s.terminationRequested():
		return terminatingWork
	}
	return syncWork
}

// newRecord makes the record of a pod's first update. wasTerminal says that
// the API has the pod as Succeeded or Failed and that nothing of it runs any
// more, as after a restart of the kubelet.
func newRecord(now int64, o *UpdatePodOptions, wasTerminal bool) *record {
	s := &record{syncedAt: now}
	if o.Pod != nil {
		s.item.UID, s.name, s.namespace = o.Pod.UID, o.Pod.Name, o.Pod.Namespace
	} else {
		s.item.UID, s.name, s.namespace = o.RunningPod.ID, o.RunningPod.Name, o.RunningPod.Namespace
	}
	if wasTerminal {
		s.isTerminating, s.isTerminated, s.startedTerminating = true, true, true
	}
	return s
}

// runtimeTerminal reports whether nothing of a pod runs.
func runtimeTerminal(status *kubecontainer.PodStatus) bool {
	for _, c := range status.ContainerStatuses {
		if c.State == kubecontainer.StateRunning {
			return false
		}
	}
	return !slices.ContainsFunc(status.SandboxStatuses, func(b *runtimeapi.PodSandboxStatus) bool {
		return b.State == runtimeapi.PodSandboxState_SANDBOX_READY
	})
}

// updateResult says what an update asks of Workers.
type updateResult struct {
	// accepted: the update is pending now, the worker has to look at it.
	accepted bool
	// newWorker: the pod got its worker with this update.
	newWorker bool
	// changed: the state changed, as housekeeping could see it.
	changed bool
}

// update applies an update to the record, in the order of the rules of
// upstream's UpdatePod.
func (s *record) update(o UpdatePodOptions) updateResult {
	isRuntimePod := o.Pod == nil
	if isRuntimePod {
		s.observedRuntime = true
		switch {
		// A pod that a source told of is killed by its spec, which has its grace
		// period and its hooks.
		case s.pending != nil && s.pending.Pod != nil:
			o.Pod, o.RunningPod, isRuntimePod = s.pending.Pod, nil, false
		case s.hasActive && s.active.Pod != nil:
			o.Pod, o.RunningPod, isRuntimePod = s.active.Pod, nil, false
		}
	} else {
		o.RunningPod = nil
	}
	// Not so at the first update: a pod that had ended before the kubelet was
	// started is still to be finished.
	if s.hasWorker && s.terminationRequested() && o.UpdateType == kubetypes.SyncPodCreate {
		s.restartRequested = true
		return updateResult{changed: true}
	}
	// Nothing is left to do for it but the removal of the record.
	if s.finished {
		return updateResult{}
	}
	became := s.beginTerminating(&o, isRuntimePod)
	shortened, drop := s.applyKillOptions(&o, isRuntimePod)
	if drop {
		return updateResult{changed: became}
	}
	r := updateResult{accepted: true, newWorker: !s.hasWorker, changed: became}
	s.hasWorker = true
	if s.pending == nil {
		s.pending = new(UpdatePodOptions)
	}
	*s.pending = o
	// The run in progress may wait for what a pod that ends no longer needs.
	if became || shortened {
		s.cancelled = true
	}
	return r
}

// beginTerminating decides whether an update ends the pod, as upstream's
// UpdatePod does: it is deleted, has ended by itself, is known to no source, or
// is to be killed. That is never taken back.
func (s *record) beginTerminating(o *UpdatePodOptions, isRuntimePod bool) bool {
	if s.terminationRequested() {
		return false
	}
	switch {
	case isRuntimePod, o.Pod.DeletionTimestamp != nil:
		s.deleted = true
	case kubetypes.IsTerminalPhase(o.Pod.Status.Phase):
	case o.UpdateType == kubetypes.SyncPodKill:
		if o.KillPodOptions != nil && o.KillPodOptions.Evict {
			s.evicted = true
		}
	default:
		return false
	}
	s.isTerminating = true
	return true
}

// applyKillOptions takes over what an update's kill options hold, by state.
// drop says that the update is done with that.
func (s *record) applyKillOptions(o *UpdatePodOptions, isRuntimePod bool) (shortened, drop bool) {
	k := o.KillPodOptions
	switch {
	case s.terminated():
		if isRuntimePod {
			// Housekeeping saw an older picture of the runtime.
			return false, true
		}
		notifyDone(k)
		o.KillPodOptions = nil
	case s.terminationRequested():
		if k == nil {
			k = &KillPodOptions{}
		}
		if s.ending == nil && (k.Completed != nil || k.PodStatusFunc != nil) {
			s.ending = &ending{}
		}
		if k.Completed != nil {
			s.ending.notify = append(s.ending.notify, k.Completed)
		}
		if k.PodStatusFunc != nil {
			s.ending.statusFn = k.PodStatusFunc
		}
		var grace int64
		grace, shortened = effectiveGracePeriod(s.gracePeriod, o.Pod, k)
		s.gracePeriod = grace
		// The grace period passed to the kill is never 0 and already decided.
		o.KillPodOptions = &KillPodOptions{Evict: k.Evict, GracePeriodSecondsOverride: &grace}
	default:
		notifyDone(k)
		o.KillPodOptions = nil
	}
	return shortened, false
}

// notifyDone is for a kill that has nothing to stop, for which no run would fire
// the event.
func notifyDone(k *KillPodOptions) {
	if k != nil && k.Completed != nil {
		k.Completed.Fire()
	}
}

// effectiveGracePeriod decides a terminating pod's grace period in seconds, at
// least 1, given the one decided before (0 for none): it can only shrink.
func effectiveGracePeriod(previous int64, pod *v1.Pod, k *KillPodOptions) (grace int64, shortened bool) {
	grace = previous
	overridden := false
	// The smallest of the overrides counts, as in upstream's
	// calculateEffectiveGracePeriod; the spec's period only without any.
	lower := func(p *int64) {
		if p != nil && (grace == 0 || *p < grace) {
			grace, overridden = *p, true
		}
	}
	if pod != nil {
		lower(pod.DeletionGracePeriodSeconds)
	}
	if k != nil {
		lower(k.GracePeriodSecondsOverride)
	}
	if !overridden && grace == 0 && pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	// With 0 a runtime kills at once, without a signal to end.
	grace = max(grace, 1)
	return grace, previous != 0 && grace != previous
}

// merge makes the update that a run took the active one.
func (s *record) merge(o *UpdatePodOptions) {
	a := &s.active
	if !s.hasActive {
		s.hasActive = true
		*a = activeUpdate{Pod: o.Pod, MirrorPod: o.MirrorPod, RunningPod: o.RunningPod, KillPodOptions: o.KillPodOptions}
	} else {
		if o.Pod != nil {
			a.Pod = o.Pod
		}
		if o.RunningPod != nil {
			a.RunningPod = o.RunningPod
		}
		if o.MirrorPod != nil {
			a.MirrorPod = o.MirrorPod
		}
		if k := o.KillPodOptions; k != nil {
			a.KillPodOptions = k
		}
	}
	// Events and functions have been taken over by ending; replaying them would
	// fire them twice.
	if k := a.KillPodOptions; k != nil {
		a.KillPodOptions = &KillPodOptions{Evict: k.Evict, GracePeriodSecondsOverride: k.GracePeriodSecondsOverride}
	}
}

// replay makes the active update pending again, as a plain sync, unless another one is pending
// or nothing was ever run. It reports whether something is pending now that was
// not before.
func (s *record) replay() bool {
	if s.pending != nil || !s.hasActive {
		return false
	}
	a := &s.active
	s.pending = &UpdatePodOptions{Pod: a.Pod, MirrorPod: a.MirrorPod, RunningPod: a.RunningPod, KillPodOptions: a.KillPodOptions}
	return true
}

// runOutcome says what a worker does after a run.
type runOutcome uint8

const (
	// runAgainLater: requeue by the result.
	runAgainLater runOutcome = iota
	// phaseTransition: the state moved on and the active update is replayed.
	phaseTransition
	// workerDone: the pod is finished.
	workerDone
	// recordGone: a pod that only the runtime knew is forgotten.
	recordGone
)

// complete notes the outcome of a run of the work type. runtimeOnly says that
// the run was for a pod that only the runtime knew.
func (s *record) complete(work workType, runtimeOnly, isTerminal bool, err error) runOutcome {
	switch {
	case err != nil:
		return runAgainLater
	case work == terminatedWork:
		s.finished = true
		s.pending = nil
		return workerDone
	case work == terminatingWork && runtimeOnly:
		s.isTerminated, s.finished = true, true
		s.fireAll()
		return recordGone
	case work == terminatingWork:
		s.isTerminated = true
		// Whoever asked for the kill may go on: the containers are stopped,
		// though volumes may still be mounted.
		s.fireAll()
		s.replay()
		return phaseTransition
	case isTerminal:
		s.isTerminating = true
		s.startedTerminating = true
		s.replay()
		return phaseTransition
	}
	return runAgainLater
}

// fireAll tells those who wait for the pod's containers to be stopped.
func (s *record) fireAll() {
	if s.ending == nil {
		return
	}
	for _, e := range s.ending.notify {
		e.Fire()
	}
	s.ending = nil
}

// closeUnstarted ends a static pod that may never start any more.
func (s *record) closeUnstarted() {
	s.finished = true
	s.isTerminated = true
	s.pending = nil
}

// knownResult says what SyncKnownPods does with a record.
type knownResult uint8

const (
	keepRecord knownResult = iota
	removeRecord
	// replayRecord: kept, and the worker is woken with the active update.
	replayRecord
)

// syncKnown decides on a record that is orphaned (no source has the pod) or
// whose restart was asked for.
func (s *record) syncKnown(orphan bool) knownResult {
	if s.finished {
		return removeRecord
	}
	if !orphan {
		return keepRecord
	}
	s.deleted = true
	switch {
	// Nothing of it was ever started, so nothing is to be stopped.
	case !s.started() && !s.observedRuntime:
		return removeRecord
	case !s.terminationRequested():
		s.isTerminating = true
		// Without a spec there is no period to grant.
		s.gracePeriod = 1
		if s.hasActive && s.active.Pod != nil {
			s.gracePeriod, _ = effectiveGracePeriod(0, s.active.Pod, nil)
		}
	}
	s.replay()
	return replayRecord
}
