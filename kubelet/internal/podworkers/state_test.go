package podworkers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

func i64(n int64) *int64 { return &n }

func testPod(change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Name, p.Namespace = "u", "web", "default"
	p.Spec.TerminationGracePeriodSeconds = i64(30)
	for _, f := range change {
		f(p)
	}
	return p
}

func deleted(grace int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: loop.Epoch()}, &grace
	}
}

func phase(ph v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = ph } }

func TestUpdateTransitions(t *testing.T) {
	running := &kubecontainer.Pod{ID: "u", Name: "web", Namespace: "default"}
	evict := &KillPodOptions{Evict: true, GracePeriodSecondsOverride: i64(0)}
	for _, tc := range []struct {
		name     string
		prepare  func(*record)
		update   UpdatePodOptions
		accepted bool
		work     workType
		want     func(*record) bool
	}{
		{name: "a plain update stays in sync", update: UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodUpdate},
			accepted: true, work: syncWork},
		{name: "deletion", update: UpdatePodOptions{Pod: testPod(deleted(10)), UpdateType: kubetypes.SyncPodUpdate},
			accepted: true, work: terminatingWork,
			want: func(s *record) bool { return s.deleted && !s.evicted && s.gracePeriod == 10 && s.cancelled }},
		{name: "terminal phase", update: UpdatePodOptions{Pod: testPod(phase(v1.PodFailed))},
			accepted: true, work: terminatingWork, want: func(s *record) bool { return !s.deleted && s.gracePeriod == 30 }},
		{name: "eviction with override 0", update: UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodKill, KillPodOptions: evict},
			accepted: true, work: terminatingWork, want: func(s *record) bool { return s.evicted && s.gracePeriod == 1 }},
		{name: "deletion goes before eviction", update: UpdatePodOptions{Pod: testPod(deleted(5)), UpdateType: kubetypes.SyncPodKill, KillPodOptions: evict},
			accepted: true, work: terminatingWork, want: func(s *record) bool { return s.deleted && !s.evicted }},
		{name: "runtime only", update: UpdatePodOptions{RunningPod: running, UpdateType: kubetypes.SyncPodKill},
			accepted: true, work: terminatingWork, want: func(s *record) bool { return s.deleted && s.observedRuntime && s.pending.Pod == nil }},
		{name: "runtime only of a known pod is an ordinary kill",
			prepare:  func(s *record) { s.active, s.hasActive = activeUpdate{Pod: testPod()}, true },
			update:   UpdatePodOptions{RunningPod: running, UpdateType: kubetypes.SyncPodKill},
			accepted: true, work: terminatingWork,
			want: func(s *record) bool { return !s.deleted && s.pending.Pod != nil && s.pending.RunningPod == nil }},
		{name: "a create while terminating asks for a restart", prepare: func(s *record) { s.isTerminating, s.hasWorker = true, true },
			update: UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodCreate},
			work:   terminatingWork, want: func(s *record) bool { return s.restartRequested && s.pending == nil }},
		{name: "the first create of a pod that has ended finishes it", prepare: func(s *record) { s.isTerminating, s.isTerminated, s.startedTerminating = true, true, true },
			update:   UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodCreate},
			accepted: true, work: terminatedWork, want: func(s *record) bool { return !s.restartRequested }},
		{name: "finished drops everything", prepare: func(s *record) { s.isTerminating, s.isTerminated, s.finished = true, true, true },
			update: UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodUpdate}, work: terminatedWork,
			want: func(s *record) bool { return s.pending == nil }},
		{name: "terminated ignores the runtime", prepare: func(s *record) { s.isTerminating, s.isTerminated = true, true },
			update: UpdatePodOptions{RunningPod: running, UpdateType: kubetypes.SyncPodKill}, work: terminatedWork},
		{name: "a shorter grace period cancels", prepare: func(s *record) { s.isTerminating, s.gracePeriod = true, 30 },
			update:   UpdatePodOptions{Pod: testPod(deleted(5)), UpdateType: kubetypes.SyncPodUpdate},
			accepted: true, work: terminatingWork, want: func(s *record) bool { return s.gracePeriod == 5 && s.cancelled }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newRecord(1, &UpdatePodOptions{Pod: testPod()}, false)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			r := s.update(tc.update)
			if r.accepted != tc.accepted || s.workType() != tc.work {
				t.Errorf("accepted %t in state %s, want %t in %s", r.accepted, s.workType(), tc.accepted, tc.work)
			}
			if tc.want != nil && !tc.want(s) {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestCompletionListeners(t *testing.T) {
	kill := func() (UpdatePodOptions, *loop.Event) {
		e := &loop.Event{}
		return UpdatePodOptions{Pod: testPod(), UpdateType: kubetypes.SyncPodKill, KillPodOptions: &KillPodOptions{Completed: e}}, e
	}
	s := newRecord(1, &UpdatePodOptions{Pod: testPod()}, false)
	o, first := kill()
	s.update(o)
	o, second := kill()
	s.update(o) // coalesces with the first, whose listener must not be lost
	if first.Fired() || second.Fired() {
		t.Fatal("told before the containers are stopped")
	}
	s.merge(s.pending)
	s.pending = nil
	if got := s.complete(terminatingWork, false, false, nil); got != phaseTransition || !first.Fired() || !second.Fired() {
		t.Errorf("outcome %d, listeners %t %t", got, first.Fired(), second.Fired())
	}
	if s.pending == nil || s.workType() != terminatedWork {
		t.Error("the active update was not replayed for the terminated run")
	}
	o, third := kill()
	s.update(o)
	if !third.Fired() {
		t.Error("a terminated pod's listener is told at once")
	}
}

func TestEffectiveGracePeriod(t *testing.T) {
	for _, tc := range []struct {
		name      string
		previous  int64
		pod       *v1.Pod
		override  *int64
		want      int64
		shortened bool
	}{
		{"spec", 0, testPod(), nil, 30, false},
		{"no spec", 0, testPod(func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }), nil, 1, false},
		{"deletion wins over spec, also when longer", 0, testPod(deleted(60)), nil, 60, false},
		{"override lowers deletion", 0, testPod(deleted(60)), i64(5), 5, false},
		{"a greater override does nothing", 0, testPod(deleted(4)), i64(5), 4, false},
		{"later values only lower", 10, testPod(deleted(60)), i64(20), 10, false},
		{"override 0 of a terminating pod", 10, testPod(), i64(0), 1, true},
		{"deletion 0 counts as unset for the override", 0, testPod(deleted(0)), i64(7), 7, false},
	} {
		grace, shortened := effectiveGracePeriod(tc.previous, tc.pod, &KillPodOptions{GracePeriodSecondsOverride: tc.override})
		if grace != tc.want || shortened != tc.shortened {
			t.Errorf("%s: %d, %t; want %d, %t", tc.name, grace, shortened, tc.want, tc.shortened)
		}
	}
}

func TestComplete(t *testing.T) {
	for _, tc := range []struct {
		name        string
		work        workType
		runtimeOnly bool
		isTerminal  bool
		err         error
		want        runOutcome
		state       workType
	}{
		{"sync", syncWork, false, false, nil, runAgainLater, syncWork},
		{"sync that ended by itself", syncWork, false, true, nil, phaseTransition, terminatingWork},
		{"an error is tried again", terminatingWork, false, false, errors.New("x"), runAgainLater, syncWork},
		{"terminating", terminatingWork, false, false, nil, phaseTransition, terminatedWork},
		{"terminating, runtime only", terminatingWork, true, false, nil, recordGone, terminatedWork},
		{"terminated", terminatedWork, false, false, nil, workerDone, syncWork},
	} {
		s := newRecord(1, &UpdatePodOptions{Pod: testPod()}, false)
		if got := s.complete(tc.work, tc.runtimeOnly, tc.isTerminal, tc.err); got != tc.want || s.workType() != tc.state {
			t.Errorf("%s: outcome %d in state %s, want %d in %s", tc.name, got, s.workType(), tc.want, tc.state)
		}
	}
}

func TestSyncKnown(t *testing.T) {
	for _, tc := range []struct {
		name   string
		state  record
		orphan bool
		want   knownResult
	}{
		{"finished goes", record{finished: true}, true, removeRecord},
		{"finished with a wish to restart goes", record{finished: true, restartRequested: true}, false, removeRecord},
		{"one that is to restart but not finished stays", record{restartRequested: true}, false, keepRecord},
		{"an orphan that never started goes", record{}, true, removeRecord},
		{"an orphan that the runtime has stays", record{observedRuntime: true, isTerminating: true}, true, replayRecord},
		{"a started orphan is told to end", record{isStarted: true}, true, replayRecord},
	} {
		s := tc.state
		s.active, s.hasActive = activeUpdate{Pod: testPod()}, true
		if got := s.syncKnown(tc.orphan); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
		if tc.want == replayRecord && (!s.isTerminating || s.pending == nil || !s.deleted) {
			t.Errorf("%s: not told to end: %+v", tc.name, s)
		}
	}
}

func TestRequeueBase(t *testing.T) {
	now := loop.Epoch()
	backoff := func(d time.Duration) error {
		return fmt.Errorf("failed to start: %w", &kubecontainer.BackoffError{Err: kubecontainer.ErrCrashLoopBackOff, Expiry: now.Add(d)})
	}
	for _, tc := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"success", nil, time.Minute},
		{"network", errors.New("network is not ready: container runtime network not ready"), time.Second},
		{"any other error", errors.New("x"), 10 * time.Second},
		{"back-off", backoff(20 * time.Second), 20 * time.Second},
		{"the earliest back-off", utilerrors.NewAggregate([]error{errors.New("x"), backoff(40 * time.Second), backoff(15 * time.Second)}), 15 * time.Second},
		{"a back-off over the resync", backoff(5 * time.Minute), time.Minute},
		{"a back-off that is over", backoff(-time.Second), 0},
	} {
		if got := requeueBase(tc.err, now, time.Minute); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestStaticStarts(t *testing.T) {
	s := newStaticStarts()
	name := types.NamespacedName{Namespace: "default", Name: "web"}
	s.add(name, "a")
	s.add(name, "b")
	s.add(name, "c")
	none := func(string) bool { return false }
	gone := func(dead ...string) func(string) bool {
		return func(uid string) bool {
			for _, d := range dead {
				if d == uid {
					return true
				}
			}
			return false
		}
	}
	allow := func(uid string, f func(string) bool) bool {
		return s.allow(name, types.UID(uid), func(u types.UID) bool { return f(string(u)) })
	}
	if allow("b", none) {
		t.Error("b started before a")
	}
	if !allow("a", none) || allow("b", none) {
		t.Error("a may start, b not while a is the started one")
	}
	s.release(name, "a")
	if allow("c", none) {
		t.Error("c started before b")
	}
	if !allow("c", gone("b")) {
		t.Error("c may start: b never will")
	}
	s.release(name, "c")
	if !allow("d", none) || len(s.waiting) != 0 {
		t.Error("nobody waits, so d may start")
	}
}
