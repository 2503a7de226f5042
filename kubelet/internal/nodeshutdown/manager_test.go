package nodeshutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

type period = kubeletconfig.ShutdownGracePeriodByPodPriority

func TestGracePeriods(t *testing.T) {
	duration := func(s int) metav1.Duration { return metav1.Duration{Duration: time.Duration(s) * time.Second} }
	byPriority := []period{{Priority: 100, ShutdownGracePeriodSeconds: 1}, {Priority: -1, ShutdownGracePeriodSeconds: 2}}
	for _, tc := range []struct {
		name            string
		total, critical int
		list            []period
		gates           map[string]bool
		want            []period
	}{
		{name: "off unless asked for"},
		{name: "two groups", total: 30, critical: 10, want: []period{{Priority: 0, ShutdownGracePeriodSeconds: 20}, {Priority: 2000000000, ShutdownGracePeriodSeconds: 10}}},
		{name: "nothing for critical pods", total: 30, want: []period{{Priority: 0, ShutdownGracePeriodSeconds: 30}, {Priority: 2000000000}}},
		{name: "by priority, sorted", list: byPriority, want: []period{{Priority: -1, ShutdownGracePeriodSeconds: 2}, {Priority: 100, ShutdownGracePeriodSeconds: 1}}},
		{name: "gate off", total: 30, gates: map[string]bool{features.GracefulNodeShutdown: false, features.GracefulNodeShutdownBasedOnPodPriority: false, "WindowsGracefulNodeShutdown": false}},
		{name: "priorities' gate off", total: 3, critical: 1, gates: map[string]bool{features.GracefulNodeShutdownBasedOnPodPriority: false},
			want: []period{{Priority: 0, ShutdownGracePeriodSeconds: 2}, {Priority: 2000000000, ShutdownGracePeriodSeconds: 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			gates, err := features.Resolve(tc.gates)
			if err != nil {
				t.Fatal(err)
			}
			got := GracePeriods(&kubeletconfig.KubeletConfiguration{
				ShutdownGracePeriod: duration(tc.total), ShutdownGracePeriodCriticalPods: duration(tc.critical), ShutdownGracePeriodByPodPriority: tc.list,
			}, gates)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func testPod(name string, priority *int32, grace int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Generation: 3},
		Spec:       v1.PodSpec{Priority: priority, TerminationGracePeriodSeconds: &grace},
	}
}

func TestGroups(t *testing.T) {
	periods := []period{{Priority: 0, ShutdownGracePeriodSeconds: 20}, {Priority: 10, ShutdownGracePeriodSeconds: 7}, {Priority: 2000000000, ShutdownGracePeriodSeconds: 10}}
	for _, tc := range []struct {
		priority *int32
		own      int64
		group    int
		grace    int64
	}{
		{nil, 30, 0, 20}, {ptr.To[int32](-2147483648), 5, 0, 5}, {ptr.To[int32](0), 20, 0, 20}, {ptr.To[int32](9), 60, 0, 20},
		{ptr.To[int32](10), 60, 1, 7}, {ptr.To[int32](1999999999), 1, 1, 1}, {ptr.To[int32](2000000000), 30, 2, 10}, {ptr.To[int32](2147483647), 0, 2, 0},
	} {
		groups := groupByPriority(periods, []*v1.Pod{testPod("a", tc.priority, tc.own)})
		for i, g := range groups {
			if (len(g.pods) == 1) != (i == tc.group) {
				t.Errorf("priority %v: %d pods in group %d", tc.priority, len(g.pods), i)
			}
		}
		if got := groups[tc.group].grace(testPod("a", tc.priority, tc.own)); got != tc.grace {
			t.Errorf("priority %v: grace period %d, want %d", tc.priority, got, tc.grace)
		}
	}
	g := group{period: 20 * time.Second}
	if got := g.grace(&v1.Pod{}); got != 20 {
		t.Errorf("without its own: grace period %d", got)
	}
}

// rig is a manager whose surroundings write down what it does.
type rig struct {
	l     *loop.Loop
	g     *loop.Group
	m     *Manager
	fs    *memfs.FS
	acts  []string
	delay time.Duration
	// granted is what logind makes of an override; reads counts looks after it.
	granted  time.Duration
	reads    int
	readsTo  int
	lockErr  error
	told     func(bool)
	ended    func(error)
	pods     []*v1.Pod
	kill     map[string]time.Duration // how long a pod takes to end
	unmount  time.Duration
	flush    time.Duration
	override bool
}

func newRig(t *testing.T, periods ...period) *rig {
	t.Helper()
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	r := &rig{l: l, g: l.NewGroup("kubelet"), fs: memfs.New(memfs.Options{Loop: l}), delay: time.Hour, kill: map[string]time.Duration{}}
	if err := r.fs.MkdirAll("/var/lib/kubelet", 0o750); err != nil {
		t.Fatal(err)
	}
	r.m = New(Options{
		Loop: l, Group: r.g, Logind: r, GracePeriods: periods,
		ActivePods: func() []*v1.Pod { return r.pods },
		KillPod: func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			r.act("kill %s %d", pod.Name, grace)
			err := l.Sleep(ctx, r.kill[pod.Name])
			s := &v1.PodStatus{Phase: v1.PodRunning}
			fn(s)
			if c := s.Conditions[0]; s.Phase != v1.PodFailed || s.Reason != "Terminated" || c.Message != s.Message || c.ObservedGeneration != 3 {
				t.Errorf("the pod's status is %+v", s)
			}
			return err
		},
		WaitForAllPodsUnmount: func(ctx context.Context, _ []*v1.Pod) error { return l.Sleep(ctx, r.unmount) },
		FlushStatuses: func(ctx context.Context, _ []types.UID) error {
			r.act("flush")
			return l.Sleep(ctx, r.flush)
		},
		SyncNodeStatus: func(context.Context) { r.act("status %v", r.m.ShutdownStatus()) },
		Event: func(_, reason, message string) {
			r.act("%s: %s", reason, strings.TrimPrefix(message, "Shutdown manager detected shutdown "))
		},
		FS: r.fs, StateFile: "/var/lib/kubelet/" + StateFile,
	})
	return r
}

func (r *rig) act(format string, args ...any) {
	at := r.l.Now().Sub(loop.Epoch()).Round(time.Millisecond)
	r.acts = append(r.acts, at.String()+" "+fmt.Sprintf(format, args...))
}

// run has fn called in a task and lets time pass.
func (r *rig) run(t *testing.T, d time.Duration, fn func(ctx context.Context)) {
	t.Helper()
	if fn != nil {
		r.g.Go("test", fn)
	}
	if err := r.l.RunUntil(r.l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) start(t *testing.T) {
	t.Helper()
	r.run(t, 10*time.Second, func(ctx context.Context) {
		if err := r.m.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	r.acts = nil
}

func (r *rig) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.acts, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(r.acts, "\n  "), strings.Join(want, "\n  "))
	}
}

func (r *rig) CurrentInhibitDelay(context.Context) (time.Duration, error) {
	if r.override {
		if r.reads++; r.reads >= r.readsTo {
			r.delay = r.granted
		}
	}
	r.act("delay?")
	return r.delay, nil
}

func (r *rig) OverrideInhibitDelay(_ context.Context, d time.Duration) error {
	r.act("override %v", d)
	return nil
}

func (r *rig) ReloadLogindConf(context.Context) error {
	r.act("reload")
	r.override = true
	return nil
}

func (r *rig) InhibitShutdown(context.Context) (func(), error) {
	if r.lockErr != nil {
		return nil, r.lockErr
	}
	r.act("lock")
	return func() { r.act("release") }, nil
}

func (r *rig) MonitorShutdown(_ context.Context, told func(bool), ended func(error)) error {
	r.act("watch")
	r.told, r.ended = told, ended
	return nil
}

var twoGroups = []period{{Priority: 0, ShutdownGracePeriodSeconds: 20}, {Priority: 2000000000, ShutdownGracePeriodSeconds: 10}}

func TestInactive(t *testing.T) {
	r := newRig(t)
	if r.m != nil {
		t.Fatal("there is a manager without grace periods")
	}
	if err := r.m.Start(context.Background()); err != nil || r.m.ShutdownStatus() != nil || !r.m.Admit(context.Background(), nil).Admit {
		t.Error("a node that does not care for shutdowns does something")
	}
	if New(Options{Loop: r.l, Group: r.g, GracePeriods: twoGroups}) != nil {
		t.Error("there is a manager without logind")
	}
}

func TestStart(t *testing.T) {
	for _, tc := range []struct {
		name           string
		delay, granted time.Duration
		readsTo        int
		want           []string
		err            string
	}{
		{name: "enough", delay: 30 * time.Second, want: []string{"0s delay?", "0s lock", "0s watch"}},
		{name: "too little", delay: 5 * time.Second, granted: 30 * time.Second, readsTo: 3,
			want: []string{"0s delay?", "0s override 30s", "0s reload", "0s delay?", "100ms delay?", "300ms delay?", "300ms lock", "300ms watch"}},
		{name: "too little still", delay: 5 * time.Second, granted: 10 * time.Second,
			want: []string{"0s delay?", "0s override 30s", "0s reload", "0s delay?", "100ms delay?", "300ms delay?", "700ms delay?", "1.5s delay?"},
			err:  "node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to 30s (ShutdownGracePeriod), current value is 10s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, twoGroups...)
			r.delay, r.granted, r.readsTo = tc.delay, tc.granted, tc.readsTo
			var err error
			r.run(t, time.Minute, func(ctx context.Context) { err = r.m.Start(ctx) })
			r.want(t, tc.want...)
			if (err != nil) != (tc.err != "") || err != nil && err.Error() != tc.err {
				t.Errorf("error: %v, want %q", err, tc.err)
			}
		})
	}
}

func TestWatchEnds(t *testing.T) {
	r := newRig(t, twoGroups...)
	r.start(t)
	r.lockErr = errors.New("no bus")
	r.run(t, 1500*time.Millisecond, func(context.Context) { r.ended(errors.New("connection closed")) })
	r.lockErr = nil
	r.run(t, 2*time.Second, nil)
	r.want(t, "11s delay?", "12s delay?", "12s lock", "12s release", "12s watch")
}

func TestShutdown(t *testing.T) {
	r := newRig(t, twoGroups...)
	r.pods = []*v1.Pod{testPod("web", nil, 30), testPod("batch", ptr.To[int32](-5), 5), testPod("dns", ptr.To[int32](2000000000), 30)}
	r.kill = map[string]time.Duration{"web": 3 * time.Second, "batch": time.Second, "dns": 2 * time.Second}
	r.unmount, r.flush = 4*time.Second, time.Second
	r.start(t)
	r.run(t, 500*time.Millisecond, func(context.Context) { r.told(true) })
	if a := r.m.Admit(context.Background(), nil); a.Admit || a.Reason != "NodeShutdown" || a.Message != "Pod was rejected as the node is shutting down." {
		t.Errorf("admitted: %+v", a)
	}
	state := func() string {
		data, err := r.fs.ReadFile("/var/lib/kubelet/graceful_node_shutdown_state")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := state(); !strings.HasPrefix(got, `{"startTime":"2026-01-01T00:00:10.`) || !strings.HasSuffix(got, `,"endTime":"0001-01-01T00:00:00Z"}`) {
		t.Errorf("state during the shutdown: %s", got)
	}
	r.run(t, time.Minute, nil)
	if got := state(); !strings.Contains(got, `"endTime":"2026-01-01T00:00:24.`) {
		t.Errorf("state after the shutdown: %s", got)
	}
	r.want(t, "10s Shutdown: event", "10s status node is shutting down", "10s kill web 20", "10s kill batch 5",
		"17s kill dns 10", "23s flush", "24s release")
}

func TestPodsThatDoNotEnd(t *testing.T) {
	r := newRig(t, twoGroups...)
	r.pods = []*v1.Pod{testPod("web", nil, 30), testPod("dns", ptr.To[int32](2000000000), 5)}
	r.kill = map[string]time.Duration{"web": time.Hour, "dns": time.Second}
	r.unmount, r.flush = 2*time.Hour, time.Hour
	r.start(t)
	r.run(t, time.Minute, func(context.Context) { r.told(true) })
	r.want(t, "10s Shutdown: event", "10s status node is shutting down", "10s kill web 20", "30s kill dns 5", "40s release")
}

func TestStatusesThatDoNotArrive(t *testing.T) {
	r := newRig(t, twoGroups...)
	r.pods = []*v1.Pod{testPod("web", nil, 30)}
	r.kill = map[string]time.Duration{"web": time.Second}
	r.flush = time.Hour
	r.start(t)
	r.run(t, time.Minute, func(context.Context) { r.told(true) })
	r.want(t, "10s Shutdown: event", "10s status node is shutting down", "10s kill web 20", "11s flush", "40s release")
}

func TestCancelled(t *testing.T) {
	r := newRig(t, twoGroups...)
	r.pods = []*v1.Pod{testPod("web", nil, 30)}
	r.kill = map[string]time.Duration{"web": 5 * time.Second}
	r.start(t)
	r.run(t, time.Second, func(context.Context) { r.told(true) })
	r.told(false)
	r.run(t, time.Minute, nil)
	if r.m.ShutdownStatus() != nil || !r.m.Admit(context.Background(), nil).Admit {
		t.Error("the node still says that it shuts down")
	}
	r.want(t, "10s Shutdown: event", "10s status node is shutting down", "10s kill web 20", "15s flush", "15s release",
		"15s Shutdown: cancellation", "15s lock")
}
