package report

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestWidening runs a series far beyond its intervals: nothing counted is lost, and
// a gauge stays with its time.
func TestWidening(t *testing.T) {
	s := series{width: firstInterval}
	const end = 3 * maxIntervals
	for sec := range end {
		s.at(time.Duration(sec) * time.Second)
		s.now.Started++
		s.now.Pods[Running] = int64(sec)
	}
	s.at(end*time.Second - 1)
	if s.width != 4*time.Second {
		t.Errorf("intervals of %v", s.width)
	}
	all := append(slices.Clone(s.done), s.now)
	var sum uint64
	for i, x := range all {
		sum += x.Started
		if want := int64(min(4*(i+1), end) - 1); x.Pods[Running] != want {
			t.Fatalf("interval %d ends with %d, not %d", i, x.Pods[Running], want)
		}
		if x.Started != 4 {
			t.Fatalf("interval %d has %d starts", i, x.Started)
		}
	}
	if sum != end {
		t.Errorf("%d of %d starts", sum, end)
	}
}

// TestSample keeps every second, fourth, ... start, from the first on.
func TestSample(t *testing.T) {
	if n := unsafe.Sizeof(start{}); n != 32 {
		t.Errorf("a start takes %d bytes", n)
	}
	s := starts{limit: 100, stride: 1}
	for i := range 1000 {
		s.add(start{created: uint32(i)})
	}
	if s.seen != 1000 || s.stride != 16 || len(s.list) != 63 {
		t.Errorf("%d of %d with a stride of %d", len(s.list), s.seen, s.stride)
	}
	for i, x := range s.list {
		if int(x.created) != i*s.stride {
			t.Fatalf("number %d is of %d", i, x.created)
		}
	}
}

// TestIntervalsUntil ends a report within an interval, and just when one ends.
func TestIntervalsUntil(t *testing.T) {
	for _, tt := range []struct {
		until time.Duration
		want  []uint64
	}{{2500 * time.Millisecond, []uint64{1, 1, 1}}, {2 * time.Second, []uint64{1, 2}}, {0, []uint64{1}}} {
		s := series{width: firstInterval}
		for at := time.Duration(0); at <= tt.until; at += time.Second {
			s.at(at)
			s.now.Started++
			s.now.Pods[Running]++
		}
		s.at(tt.until)
		got := s.until(tt.until)
		var starts []uint64
		for _, x := range got {
			starts = append(starts, x.Started)
		}
		if !slices.Equal(starts, tt.want) || got[len(got)-1].Pods[Running] != s.now.Pods[Running] {
			t.Errorf("until %v: %+v", tt.until, got)
		}
	}
}

// TestStartsOfLongRuns keeps the times of pods that are created years after the
// beginning.
func TestStartsOfLongRuns(t *testing.T) {
	const hour = time.Hour
	for _, at := range []time.Duration{0, tick, 100 * hour, 200 * hour, 5 * 365 * 24 * hour} {
		if s := startOf(1<<nodeBits-1, at, stateful|untold); s.at() != at || s.on() != 1<<nodeBits-1 || s.node>>(nodeBits+createdBits) != 0b101 || s.counts() {
			t.Errorf("%v: at %v, on %d: %x", at, s.at(), s.on(), s.node)
		}
	}
	if s := startOf(3, 100*365*24*hour, 0); s.at() < 6*365*24*hour || s.on() != 3 || !s.counts() {
		t.Errorf("at %v on %d", s.at(), s.on())
	}
}

func TestPercentiles(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(200-i)*time.Millisecond)
	}
	got := percentilesOf(d)
	want := Percentiles{200, 100500 * time.Microsecond, 100 * time.Millisecond, 180 * time.Millisecond, 198 * time.Millisecond, 200 * time.Millisecond}
	if got != want {
		t.Errorf("%+v", got)
	}
	if one := percentilesOf([]time.Duration{3}); one.P50 != 3 || one.P99 != 3 {
		t.Errorf("of one: %+v", one)
	}
	if none := percentilesOf(nil); none != (Percentiles{}) {
		t.Errorf("of none: %+v", none)
	}
}

// TestEnds tells evictions apart, and counts each once.
func TestEnds(t *testing.T) {
	target := func(reason, message string) v1.PodStatus {
		return v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reason, Message: message}}}
	}
	failed := func(s v1.PodStatus, reason, message string) v1.PodStatus {
		s.Phase, s.Reason, s.Message = v1.PodFailed, reason, message
		return s
	}
	const low = "The node was low on resource: memory. "
	for _, c := range []struct {
		name     string
		statuses []v1.PodStatus
		want     map[Eviction]uint64
		rejected uint64
	}{
		{"memory", []v1.PodStatus{target(v1.PodReasonTerminationByKubelet, low), failed(target(v1.PodReasonTerminationByKubelet, low), "Evicted", low)}, map[Eviction]uint64{NodePressure: 1}, 0},
		{"an emptyDir's limit", []v1.PodStatus{failed(v1.PodStatus{}, "Evicted", "Usage of EmptyDir volume \"x\" exceeds the limit \"1Mi\". ")}, map[Eviction]uint64{NodePressure: 1}, 0},
		{"critical pod", []v1.PodStatus{failed(target(v1.PodReasonTerminationByKubelet, preemptedMessage), "Preempting", "Preempted in order to admit critical pod")}, map[Eviction]uint64{KubeletPreemption: 1}, 0},
		{"shutdown", []v1.PodStatus{failed(target(v1.PodReasonTerminationByKubelet, terminatedMessage), "Terminated", terminatedMessage)}, map[Eviction]uint64{NodeShutdown: 1}, 0},
		{"scheduler", []v1.PodStatus{target("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")}, map[Eviction]uint64{SchedulerPreemption: 1}, 0},
		{"taint", []v1.PodStatus{target("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"), target("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")}, map[Eviction]uint64{TaintManager: 1}, 0},
		{"eviction", []v1.PodStatus{target("EvictionByEvictionAPI", "Eviction API: evicting")}, map[Eviction]uint64{EvictionAPI: 1}, 0},
		{"pod GC", []v1.PodStatus{target("DeletionByPodGC", "PodGC: node no longer exists")}, map[Eviction]uint64{PodGC: 1}, 0},
		{"rejected", []v1.PodStatus{failed(v1.PodStatus{}, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu")}, nil, 1},
		{"failed by itself", []v1.PodStatus{failed(v1.PodStatus{}, "", "")}, nil, 0},
		{"deadline", []v1.PodStatus{failed(v1.PodStatus{}, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")}, nil, 0},
	} {
		k := &Collector{byName: map[string]int{}, over: series{width: time.Second}}
		old := &v1.Pod{Spec: v1.PodSpec{NodeName: "a"}}
		for _, st := range c.statuses {
			p := &v1.Pod{Spec: old.Spec, Status: st}
			k.ended(old, p)
			old = p
		}
		for e := range evictions {
			if got := k.over.now.Evictions[e]; got != c.want[e] {
				t.Errorf("%s: %v %d times", c.name, e, got)
			}
		}
		if k.over.now.Rejected != c.rejected {
			t.Errorf("%s: %d rejected", c.name, k.over.now.Rejected)
		}
	}
}

// TestOutages follows a node that is not Ready at first, then fails twice.
func TestOutages(t *testing.T) {
	k := &Collector{byName: map[string]int{}, over: series{width: time.Second}}
	node := func(ready v1.ConditionStatus) *v1.Node {
		n := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}}}
		n.Name = "a"
		return n
	}
	var old *v1.Node
	for _, step := range []struct {
		at    time.Duration
		ready v1.ConditionStatus
		state NodeState
	}{
		{1, v1.ConditionFalse, NotReady}, {10, v1.ConditionTrue, Ready}, {100, v1.ConditionUnknown, ReadyUnknown}, {140, v1.ConditionFalse, NotReady},
		{150, v1.ConditionTrue, Ready}, {200, v1.ConditionFalse, NotReady}, {201, v1.ConditionTrue, Ready},
	} {
		n := node(step.ready)
		k.node(old, n, false, step.at)
		old = n
		var want Gauges
		want.Nodes[step.state] = 1
		if k.over.now.Gauges != want {
			t.Errorf("at %d: %+v", step.at, k.over.now.Gauges)
		}
	}
	if x := k.nodes[0]; x.outages != 2 || x.down != 51 {
		t.Errorf("%d outages, %d long", x.outages, x.down)
	}
	k.node(old, old, true, 300)
	if k.over.now.Gauges != (Gauges{}) || k.nodes[0].outages != 2 {
		t.Errorf("after its deletion: %+v, %+v", k.over.now.Gauges, k.nodes[0])
	}
}

func TestSLOs(t *testing.T) {
	call := func(user, verb, resource string, n int, took time.Duration) apiserver.RequestStats {
		q := apiserver.RequestStats{User: user, Verb: verb, Resource: resource, Total: uint64(n), Codes: []apiserver.CodeCount{{Code: 200, Count: uint64(n)}}}
		for range n {
			q.Latency.Observe(took)
		}
		return q
	}
	r := &Report{API: &apiserver.Stats{Requests: []apiserver.RequestStats{
		call("kubelet", "patch", "nodes/status", 100, 100*time.Millisecond),
		call("kubelet", "update", "leases", 9999, time.Millisecond),
		call("kubelet", "create", "pods", 99, time.Millisecond), call("kube-scheduler", "create", "pods", 2, 2*time.Second), // together 2 of 101 are slow
		call("kubelet", "get", "pods", 10, 900*time.Millisecond),
		call("kubelet", "list", "pods", 10, 20*time.Second),
		call("kubelet", "watch", "pods", 10, time.Hour),
	}}}
	r.Startup.SLI = Percentiles{Count: 7, P99: 5 * time.Second}
	want := []struct{ verdict, worst string }{{"met", ""}, {"missed", "CREATE pods"}, {"met", "GET pods"}, {"met", "LIST pods"}}
	for i, s := range slos(r) {
		if s.Verdict() != want[i].verdict || i > 0 && s.Worst != want[i].worst {
			t.Errorf("%s: %s, the worst is %s with %v", s.Name, s.Verdict(), s.Worst, s.P99)
		}
	}
	r.API.Requests = []apiserver.RequestStats{call("kubelet", "get", "pods", 10, 0)}
	if s := slos(r)[2]; s.Verdict() != "not modelled" {
		t.Errorf("calls that take no time: %s", s.Verdict())
	}
	r.API.Levels = []apiserver.LevelStats{{Name: "system"}}
	if s := slos(r)[2]; s.Verdict() != "met" {
		t.Errorf("calls that take no time with a model: %s", s.Verdict())
	}
	r.Startup.SLI.P99++
	r.API.Requests = nil
	for i, s := range slos(r) {
		if w := []string{"missed", "no data", "no data", "no data"}[i]; s.Verdict() != w {
			t.Errorf("%s: %s, not %s", s.Name, s.Verdict(), w)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.2: "0.2", 0.05: "0.05", 1: "1", 2.5: "2.5", 99.96: "100", 120: "120", 1234: "1234", 9999: "9999", 10000: "10k", 150000: "150k", 152300: "152k", 2.5e6: "2.5M", 0.00123: "0.00123", -5: "-5", 1e9: "1G",
	} {
		if got := short(v); got != want {
			t.Errorf("%v is written %s, not %s", v, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		min, max float64
		want     string
	}{
		{0, 5.3, "0 1 2 3 4 5"}, {0, 180, "0 20 40 60 80 100 120 140 160 180"}, {0, 1, "0 0.2 0.4 0.6 0.8 1"}, {0, 159000, "0 20k 40k 60k 80k 100k 120k 140k"}, {0, 20.9, "0 5 10 15 20"},
	} {
		var got []string
		for _, x := range shortTicks(c.min, c.max) {
			got = append(got, x.label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("from %v to %v: %s, not %s", c.min, c.max, s, c.want)
		}
	}
}

// TestDocumented holds docs/report.md to the files and their columns.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range (&Report{API: &apiserver.Stats{}}).tables() {
		_, part, ok := strings.Cut(string(doc), "### "+table.File+"\n")
		if !ok {
			t.Errorf("docs/report.md has no part ### %s", table.File)
			continue
		}
		part, _, _ = strings.Cut(part, "\n#")
		for _, c := range table.Columns {
			if !strings.Contains(part, "`"+c.Name+"`") {
				t.Errorf("docs/report.md, %s: no column `%s`", table.File, c.Name)
			}
		}
	}
}
