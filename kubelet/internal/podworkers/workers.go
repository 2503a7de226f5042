package podworkers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
)

// The intervals after which a pod is synced again (pkg/kubelet/pod_workers.go).
// They are upstream's backOffPeriod, backOffOnTransientErrorPeriod and the jitter
// of both, a factor. killPodMinTimeout is killPodNow's: a kill is waited for at
// least so long.
const (
	workerBackOff        = 10 * time.Second
	networkBackOff       = time.Second
	workerJitter         = 0.5
	killPodMinTimeout    = 10 * time.Second
	NetworkNotReadyError = "network is not ready"
)

// Syncer does the work of the workers.
type Syncer interface {
	// SyncPod brings a pod nearer to its wanted state.
	SyncPod(ctx context.Context, updateType kubetypes.SyncPodType, pod, mirror *v1.Pod, status *kubecontainer.PodStatus) (SyncResult, error)
	SyncTerminatingPod(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus, grace *int64, statusFn PodStatusFunc) error
	SyncTerminatingRuntimePod(ctx context.Context, running *kubecontainer.Pod) error
	SyncTerminatedPod(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus) error
}

// SyncResult is what a sync came to.
type SyncResult struct {
	// Terminal: the pod has ended by itself.
	Terminal bool
	// Acted: the runtime was changed.
	Acted bool
	// Settled: another sync over the same would do nothing at all: it would make
	// no call, no event and trigger no probe.
	Settled bool
}

// podCache is where workers read the runtime's picture of a pod; Notify calls
// fn at once or once the picture is newer than t.
type podCache interface {
	Get(uid types.UID) (*kubecontainer.PodStatus, error)
	// TryGetNewerThan is Get if ok: if the picture is newer than t.
	TryGetNewerThan(uid types.UID, t time.Time) (status *kubecontainer.PodStatus, err error, ok bool)
	Notify(uid types.UID, t time.Time, fn func(*kubecontainer.PodStatus, error)) *kubecontainer.CacheWaiter
}

// Options are what Workers need.
type Options struct {
	Group    *loop.Group
	Syncer   Syncer
	Cache    podCache
	Queue    *queue.WorkQueue
	Recorder interface {
		Event(ref *v1.ObjectReference, eventtype, reason, message string)
	}
	// Metrics counts; nil: nobody does.
	Metrics *metrics.Kubelet
	// Resync is syncFrequency.
	Resync time.Duration
	// RequestRelist asks the PLEG for a relist of one pod; may be nil.
	RequestRelist func(types.UID)
	Log           func(format string, args ...any)
	// Cancelled is told when the sync of a pod is to be given up, since the pod
	// begins to terminate, and at later updates of it; may be nil.
	Cancelled func(types.UID)
	// Changed is told when records come, go or get further; may be nil.
	Changed func()
	// FirstSeen returns what is kept of a pod's first version; may be nil.
	FirstSeen func(types.UID, types.NamespacedName) *config.FirstSeen
}

// launcher begins the run of a worker, whose picture of the pod is status, or err
// if there is none.
type launcher interface {
	launch(s *record, run *UpdatePodOptions, status *kubecontainer.PodStatus, err error)
}

// Workers holds one record per pod, and runs at most one sync method per
// pod at a time. A worker that has nothing to do, or waits for a newer picture
// of its pod, is its record alone; only a run is a task.
type Workers struct {
	Options
	l *loop.Loop
	launcher
	records records
	statics staticStarts
	// woken are the workers that look at their pending update when whoever
	// woke them gives way: what comes with the same messages is one update.
	woken  []*record
	waking *loop.Timer
	runs   uint64 // counts the runs
}

func New(o Options) *Workers {
	w := &Workers{Options: o, l: o.Group.Loop(), records: newRecords(o.Changed), statics: newStaticStarts()}
	w.waking = o.Group.NewTimer("pod workers", w.startWoken)
	w.launcher = taskLauncher{w}
	return w
}

func (w *Workers) logf(format string, args ...any) {
	if w.Log != nil {
		w.Log(format, args...)
	}
}

// UpdatePod tells a pod's worker what is wanted, or changed, or asked for. It
// never waits.
func (w *Workers) UpdatePod(o UpdatePodOptions) {
	if o.Pod == nil && (o.RunningPod == nil || o.UpdateType != kubetypes.SyncPodKill) {
		w.logf("Pod update is ignored, runtime pods can only be killed")
		return
	}
	uid := optionsUID(&o)
	s := w.records.get(uid)
	if s == nil {
		s = newRecord(w.l.UnixNano(), &o, w.wasTerminal(o.Pod))
		s.item.Owner = s
		w.Queue.Join(&s.item)
		w.records.add(s)
	}
	if s.first == nil && o.Pod != nil && w.FirstSeen != nil {
		s.first = w.FirstSeen(uid, types.NamespacedName{Namespace: o.Pod.Namespace, Name: o.Pod.Name})
	}
	r := w.records.update(s, o)
	if w.Cancelled != nil && s.terminationRequested() {
		w.Cancelled(uid)
	}
	if r.changed && s.terminationRequested() {
		w.logf("Pod is marked for graceful deletion, begin teardown pod=%s_%s podUID=%s updateType=%s", s.name, s.namespace, uid, o.UpdateType)
	}
	if !r.accepted {
		return
	}
	if r.newWorker && o.Pod != nil && kubetypes.IsStaticPod(o.Pod) {
		w.statics.add(s.fullName(), uid)
	}
	w.wake(s)
}

func optionsUID(o *UpdatePodOptions) types.UID {
	if o.Pod != nil {
		return o.Pod.UID
	}
	return o.RunningPod.ID
}

// wasTerminal reports whether the API has the pod as ended and the runtime agrees.
func (w *Workers) wasTerminal(pod *v1.Pod) bool {
	if pod == nil || !kubetypes.IsTerminalPhase(pod.Status.Phase) {
		return false
	}
	status, err := w.Cache.Get(pod.UID)
	return err == nil && runtimeTerminal(status)
}

// wake has an idle worker look at its pending update.
func (w *Workers) wake(s *record) {
	if s.working || s.removed || s.pending == nil {
		return
	}
	s.working = true
	w.woken = append(w.woken, s)
	if !w.waking.Set() {
		w.waking.Reset(0)
	}
}

// startWoken has the woken workers look at what is pending, in the order in
// which they were woken.
func (w *Workers) startWoken() {
	woken := w.woken
	w.woken = nil
	for _, s := range woken {
		w.next(s)
	}
	if w.woken == nil && cap(woken) <= keptWoken {
		clear(woken)
		w.woken = woken[:0]
	}
}

// keptWoken is for how many workers the list of those that were woken keeps room.
const keptWoken = 4

// next takes the pending update of a working record and runs it, at once or
// when the pod cache is new enough; without one the worker goes idle.
func (w *Workers) next(s *record) {
	s.cancelled = false
	s.run = nil
	if s.pending == nil || s.removed {
		s.working = false
		return
	}
	run := s.pending
	run.work = s.workType()
	s.pending = nil
	if !s.started() && !(run.RunningPod != nil && run.work == terminatingWork) && !w.start(s, run) {
		s.working = false
		return
	}
	s.run = run
	s.merge(run)
	if run.RunningPod != nil {
		w.launch(s, run, nil, nil)
		return
	}
	since := s.lastRunTime()
	if status, err, ok := w.Cache.TryGetNewerThan(s.uid(), since); ok {
		w.launch(s, run, status, err)
		return
	}
	s.waiter = w.Cache.Notify(s.uid(), since, func(status *kubecontainer.PodStatus, err error) {
		s.waiter = nil
		w.launch(s, run, status, err)
	})
}

// start decides whether a pod that has not started may do so now.
func (w *Workers) start(s *record, run *UpdatePodOptions) bool {
	pod := run.Pod
	switch {
	case pod == nil:
		w.logf("Running pod cannot start ever, programmer error podUID=%s", s.uid())
		return false
	case !kubetypes.IsStaticPod(pod):
	case s.terminationRequested():
		// Housekeeping may forget it, and its name is free.
		w.logf("Pod cannot start ever pod=%s", kubecontainer.PodDesc(pod))
		w.records.closeUnstarted(s)
		w.statics.release(s.fullName(), s.uid())
		return false
	case !w.statics.allow(s.fullName(), s.uid(), w.neverStarts):
		s.pending = run
		w.enqueue(s, w.jitter(s, workerBackOff))
		return false
	}
	w.records.start(s)
	return true
}

func (w *Workers) neverStarts(uid types.UID) bool {
	s := w.records.get(uid)
	return s == nil || s.terminationRequested() || s.terminated()
}

// taskLauncher starts a task for each run.
type taskLauncher struct{ w *Workers }

func (t taskLauncher) launch(s *record, run *UpdatePodOptions, status *kubecontainer.PodStatus, err error) {
	w := t.w
	w.runs++
	w.Group.Start(taskName(s), func(ctx context.Context) {
		w.run(ctx, s, run, status, err)
	})
}

func taskName(s *record) string { return "sync/" + s.namespace + "/" + s.name }

// run does one run and what follows from it.
func (w *Workers) run(ctx context.Context, s *record, run *UpdatePodOptions, status *kubecontainer.PodStatus, err error) {
	runtimeOnly := run.RunningPod != nil
	var result SyncResult
	if err != nil {
		w.Recorder.Event(kubecontainer.PodRef(run.Pod), v1.EventTypeWarning, events.FailedSync, fmt.Sprintf("error determining status: %v", err))
	} else {
		result, err = w.runMethod(ctx, s, run, status)
		s.lastRun = w.l.UnixNano()
		if result.Acted && err == nil && w.RequestRelist != nil {
			w.RequestRelist(s.uid())
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		w.logf("Error syncing pod, skipping pod=%s_%s podUID=%s: %v", s.name, s.namespace, s.uid(), err)
	}
	if s.removed {
		s.working = false
		return
	}
	switch w.records.complete(s, run.work, runtimeOnly, result.Terminal, err) {
	case workerDone:
		s.working = false
		w.statics.release(s.fullName(), s.uid())
		return
	case recordGone:
		w.remove(s)
		return
	case phaseTransition:
		w.enqueue(s, 0)
	case runAgainLater:
		w.enqueue(s, w.requeueDelay(s, err))
	}
	w.next(s)
}

func (w *Workers) runMethod(ctx context.Context, s *record, run *UpdatePodOptions, status *kubecontainer.PodStatus) (SyncResult, error) {
	pod := s.active.Pod
	switch run.work {
	case terminatedWork:
		return SyncResult{}, w.Syncer.SyncTerminatedPod(ctx, pod, status)
	case terminatingWork:
		w.records.beginTerminating(s)
		if run.RunningPod != nil {
			return SyncResult{}, w.Syncer.SyncTerminatingRuntimePod(ctx, run.RunningPod)
		}
		var grace *int64
		if k := run.KillPodOptions; k != nil {
			grace = k.GracePeriodSecondsOverride
		}
		return SyncResult{}, w.Syncer.SyncTerminatingPod(ctx, pod, status, grace, s.statusFn())
	}
	return w.Syncer.SyncPod(ctx, run.UpdateType, pod, run.MirrorPod, status)
}

// enqueue has the pod due after d.
func (w *Workers) enqueue(s *record, d time.Duration) {
	w.Queue.Enqueue(&s.item, w.l.UnixNano()+int64(d))
}

func (w *Workers) jitter(s *record, d time.Duration) time.Duration {
	s.draws++
	return w.l.Jitter(d, workerJitter, "requeue", string(s.uid()), uint64(s.draws))
}

// requeueDelay is how long until the pod is synced again without another
// cause.
func (w *Workers) requeueDelay(s *record, err error) time.Duration {
	return w.jitter(s, requeueBase(err, w.l.Now(), w.Resync))
}

// requeueBase is the delay before jitter.
func requeueBase(err error, now time.Time, resync time.Duration) time.Duration {
	if err == nil {
		return resync
	}
	if strings.Contains(err.Error(), NetworkNotReadyError) {
		return networkBackOff
	}
	if expiry, ok := earliestExpiry(err); ok {
		return min(max(expiry.Sub(now), 0), resync)
	}
	return min(workerBackOff, resync)
}

// earliestExpiry finds the back-off errors in the tree of err.
func earliestExpiry(err error) (time.Time, bool) {
	var first time.Time
	found := false
	var walk func(error)
	walk = func(err error) {
		if b, ok := err.(*kubecontainer.BackoffError); ok { //nolint:errorlint // each node of the tree is looked at
			if !found || b.Expiry.Before(first) {
				first, found = b.Expiry, true
			}
		}
		switch u := err.(type) { //nolint:errorlint // walks the tree itself
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				walk(e)
			}
		case interface{ Errors() []error }:
			for _, e := range u.Errors() {
				walk(e)
			}
		case interface{ Unwrap() error }:
			if e := u.Unwrap(); e != nil {
				walk(e)
			}
		}
	}
	walk(err)
	return first, found
}

func (w *Workers) remove(s *record) {
	s.removed, s.working = true, false
	s.waiter.Stop()
	s.waiter = nil
	s.pending, s.run = nil, nil
	w.Queue.Leave(&s.item)
	w.records.remove(s)
	w.statics.release(s.fullName(), s.uid())
}

// restarted counts a pod that came again before it had ended.
func (w *Workers) restarted(s *record) {
	if w.Metrics == nil {
		return
	}
	i := 0
	if s.active.Pod != nil && kubetypes.IsStaticPod(s.active.Pod) {
		i = 1
	}
	w.Metrics.Restarted[i]++
}

// SyncKnownPods tells the workers which pods the sources have. Records of
// others are driven to their end and removed. It reports whether it did anything,
// and whether such a record is left.
func (w *Workers) SyncKnownPods(desired func(types.UID) bool) (orphans, acted bool) {
	w.records.setSynced()
	for _, s := range w.records.sorted(func(s *record) bool { return s.restartRequested || !desired(s.uid()) }) {
		orphan := !desired(s.uid())
		switch w.records.syncKnown(s, orphan) {
		case removeRecord:
			acted = true
			if s.restartRequested && !orphan {
				w.restarted(s)
			}
			w.remove(s)
			continue
		case replayRecord:
			acted = true
			w.wake(s)
		case keepRecord:
		}
		orphans = orphans || orphan
	}
	return orphans, acted
}

// Working counts the workers by how far they have come.
func (w *Workers) Working(desired func(types.UID) bool) map[metrics.Working]int {
	out := map[metrics.Working]int{}
	for uid, s := range w.records.byUID { //drydock:unordered counts
		at := metrics.Working{Config: "desired", Lifecycle: s.workType().String()}
		pod := s.active.Pod
		if s.pending != nil && s.pending.Pod != nil {
			pod = s.pending.Pod
		}
		switch {
		case pod == nil:
			at.Config, at.Static = "runtime_only", "unknown"
		case !desired(uid):
			at.Config = "orphan"
		}
		if pod != nil && kubetypes.IsStaticPod(pod) {
			at.Static = "true"
		}
		out[at]++
	}
	return out
}

// Known reports whether there is a record of the UID.
func (w *Workers) Known(uid types.UID) bool { return w.records.get(uid) != nil }

// First is what is kept of the first version of a pod that has a worker; nil if
// there is nothing to keep.
func (w *Workers) First(uid types.UID) *config.FirstSeen {
	if s := w.records.get(uid); s != nil {
		return s.first
	}
	return nil
}

// Started returns the pods that have been started and are not cleaned up yet, as
// their workers know them, by UID.
func (w *Workers) Started() []*v1.Pod {
	return lists.Map(w.records.sorted(func(s *record) bool { return s.active.Pod != nil && s.started() && !s.finished }), func(s *record) *v1.Pod {
		return s.active.Pod
	})
}

// Runs returns how often a sync method was run.
func (w *Workers) Runs() uint64 { return w.runs }

// ReplacePod puts the next version of an object, which differs in its status
// alone, in the place of the old one, where the worker of the UID has it.
func (w *Workers) ReplacePod(uid types.UID, old, pod *v1.Pod) {
	if s := w.records.get(uid); s != nil {
		s.replacePod(old, pod)
	}
}

// ReplaceStatus is ReplacePod for the pod's cached status.
func (w *Workers) ReplaceStatus(uid types.UID, old, status *v1.PodStatus) {
	if s := w.records.get(uid); s != nil {
		s.replaceStatus(old, status)
	}
}

// Since is when the first update of a pod came, in ns; now, if none did.
func (w *Workers) Since(uid types.UID) int64 {
	if s := w.records.get(uid); s != nil {
		return s.syncedAt
	}
	return w.l.UnixNano()
}

// errKillTimeout is what KillPodNow returns when the pod outlives its time.
var errKillTimeout = errors.New("timeout waiting to kill pod")

// KillPodNow kills a pod and waits until its containers are stopped, at most
// max(10 s, 1.5 × its grace period).
func (w *Workers) KillPodNow(ctx context.Context, pod *v1.Pod, evict bool, grace *int64, fn PodStatusFunc) error {
	seconds := int64(0)
	if grace != nil {
		seconds = *grace
	} else if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	timeout := max(killPodMinTimeout, time.Duration(seconds+seconds/2)*time.Second)
	done := &loop.Event{}
	w.UpdatePod(UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodKill, KillPodOptions: &KillPodOptions{
		Completed: done, Evict: evict, PodStatusFunc: fn, GracePeriodSecondsOverride: grace,
	}})
	wctx, cancel := loop.WithTimeout(ctx, timeout)
	defer cancel()
	if err := done.Wait(wctx); err != nil {
		w.Recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.ExceededGracePeriod, "Container runtime did not kill the pod within specified grace period.")
		return errKillTimeout
	}
	return nil
}
