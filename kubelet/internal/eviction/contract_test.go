package eviction

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func hard(signal, value string) Config { return Config{Hard: map[string]string{signal: value}} }

// TestStrictlyLess: a threshold is met when there is less, not when there is as
// much; then the condition and the eviction come in the same pass.
func TestStrictlyLess(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	u := n.add(pod("a"), use{memory: 8*gi - 100*mi})
	n.run(5 * time.Second)
	if n.expect(); n.m.Under(v1.NodeMemoryPressure) {
		t.Error("pressure with as much as the threshold")
	}
	u.memory++
	n.run(10 * time.Second)
	n.expect("10s Warning EvictionThresholdMet: Attempting to reclaim memory",
		"10s Warning Evicted a: The node was low on resource: memory. Threshold quantity: 100Mi, available: 104857599. "+
			"Container main was using 8485076993, request is 0, has larger consumption of memory. "+
			"map[offending_containers:main offending_containers_usage:8485076993 starved_resource:memory]",
		"10s kill a grace=1 Failed Evicted DisruptionTarget=True/TerminationByKubelet")
	if !n.m.Under(v1.NodeMemoryPressure) || n.m.Evictions()[MemoryAvailable] != 1 {
		t.Errorf("pressure %v, evictions %v", n.m.pressure.reported, n.m.Evictions())
	}
}

// TestSoft: a soft threshold sets the condition at once and evicts when it has
// been met in every pass of its grace period.
func TestSoft(t *testing.T) {
	c := Config{
		Soft: map[string]string{"memory.available": "200Mi"}, SoftGracePeriod: map[string]string{"memory.available": "90s"},
		MaxPodGracePeriod: 20,
	}
	for _, recovers := range []bool{false, true} {
		t.Run(fmt.Sprintf("recovers=%v", recovers), func(t *testing.T) {
			n := newMachine(t, c)
			u := n.add(pod("a"), use{memory: 8*gi - 150*mi})
			n.run(time.Second)
			if !n.m.Under(v1.NodeMemoryPressure) {
				t.Error("no pressure before the grace period is over")
			}
			want := "90s a"
			if recovers {
				n.run(45 * time.Second) // 46 s
				u.memory -= 100 * mi
				n.run(10 * time.Second) // the pass at 50 s saw it
				u.memory += 100 * mi
				want = "150s a"
			}
			n.run(2 * time.Minute)
			n.log = slices.DeleteFunc(n.log, func(s string) bool { return strings.Contains(s, "aiting") })
			if got := n.kills(); !slices.Equal(got, []string{want}) {
				t.Errorf("killed %q, want %s", got, want)
			}
			if last := n.log[len(n.log)-1]; !strings.Contains(last, "grace=20 ") {
				t.Errorf("got %s", last)
			}
		})
	}
}

// TestSoftGrace: a soft eviction gives at most the pod's own grace period.
func TestSoftGrace(t *testing.T) {
	m := Manager{o: Options{Config: Config{MaxPodGracePeriod: 60}}}
	soft, hard := &Threshold{Grace: time.Second}, &Threshold{}
	p, own, more := pod("a"), pod("b"), pod("c")
	short, long := int64(30), int64(120)
	own.Spec.TerminationGracePeriodSeconds, more.Spec.TerminationGracePeriodSeconds = &short, &long
	for _, tc := range []struct {
		t    *Threshold
		p    *v1.Pod
		want int64
	}{{soft, p, 60}, {soft, own, 30}, {soft, more, 60}, {hard, own, 1}, {hard, p, 1}} {
		if got := m.gracePeriod(tc.t, tc.p); got != tc.want {
			t.Errorf("grace period %d, want %d", got, tc.want)
		}
	}
}

// TestTransition: a condition stays for the transition period after it was last
// seen.
func TestTransition(t *testing.T) {
	n := newMachine(t, Config{
		Soft: map[string]string{"memory.available": "200Mi"}, SoftGracePeriod: map[string]string{"memory.available": "1h"},
	})
	u := n.add(pod("a"), use{memory: 8*gi - 150*mi})
	n.run(105 * time.Second) // last seen at 100 s
	u.memory = 0
	n.run(294 * time.Second) // 399 s
	if !n.m.Under(v1.NodeMemoryPressure) {
		t.Error("the condition is gone before its time")
	}
	n.run(2 * time.Second)
	if n.m.Under(v1.NodeMemoryPressure) {
		t.Error("the condition stays after its time")
	}
}

// TestMinimumReclaim: once pods were evicted, more has to be free than the
// threshold says.
func TestMinimumReclaim(t *testing.T) {
	n := newMachine(t, Config{Hard: map[string]string{"memory.available": "100Mi"}, MinimumReclaim: map[string]string{"memory.available": "50Mi"}})
	n.otherMemory = 8*gi - 180*mi
	n.add(pod("a"), use{memory: 60 * mi})
	n.add(pod("b"), use{memory: 31 * mi})
	n.add(pod("c"), use{memory: 29 * mi})
	n.run(5 * time.Second) // 60 free; 120 after a; 151 after b
	if got := n.kills(); !slices.Equal(got, []string{"0s a", "1s b"}) {
		t.Errorf("killed %q", got)
	}
}

// TestFrozenStatistics: one statistic evicts once.
func TestFrozenStatistics(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	n.frozen = start.Add(time.Second)
	n.otherMemory = 8 * gi
	n.add(pod("a"), use{memory: 2})
	n.add(pod("b"), use{memory: 1})
	n.run(35 * time.Second)
	if got := n.kills(); !slices.Equal(got, []string{"0s a"}) {
		t.Errorf("killed %q", got)
	}
	n.frozen = start.Add(2 * time.Second)
	n.run(10 * time.Second)
	if got := n.kills(); !slices.Equal(got, []string{"0s a", "41s b"}) {
		t.Errorf("killed %q", got)
	}
}

// TestReclaim: what nobody needs goes first, and pods only if that and a fresh
// look at everything don't help. An error of a deletion decides nothing.
func TestReclaim(t *testing.T) {
	met, images, containers := "Warning EvictionThresholdMet: Attempting to reclaim ephemeral-storage", "delete unused images", "delete unused containers"
	for _, tc := range []struct {
		name   string
		change func(n *machine)
		want   []string
		kills  bool
	}{
		{name: "images suffice", change: func(n *machine) { n.freeImages = func() { n.otherDisk -= gi } }, want: []string{met, containers, images}},
		{name: "nothing helps", change: func(*machine) {}, want: []string{met, containers, images}, kills: true},
		{name: "errors, and still enough", change: func(n *machine) {
			n.freeContainers = func() { n.otherDisk -= gi }
			n.containersError, n.imagesError = errors.New("in use"), errors.New("in use")
		}, want: []string{met, containers, images}},
		{name: "something else is low", change: func(n *machine) {
			n.freeImages = func() { n.otherDisk -= gi; n.otherMemory = 8 * gi }
		}, want: []string{met, containers, images}, kills: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newMachine(t, Config{Hard: map[string]string{"nodefs.available": "10Gi"}, Soft: map[string]string{"memory.available": "1Gi"}, SoftGracePeriod: map[string]string{"memory.available": "1h"}})
			n.otherDisk = 90*gi + 100*mi
			tc.change(n)
			n.add(pod("a"), use{layer: mi})
			n.run(500 * time.Millisecond)
			if killed := len(n.kills()) == 1; killed != tc.kills {
				t.Errorf("killed: %v", n.kills())
			}
			got := n.log[:min(len(n.log), len(tc.want))]
			for i := range got {
				if !strings.HasSuffix(got[i], tc.want[i]) {
					t.Errorf("got %q", n.log)
				}
			}
		})
	}
}

// TestReclaimLayouts: what is deleted, by signal and layout.
func TestReclaimLayouts(t *testing.T) {
	single, dedicated, split := Layout{}, Layout{Dedicated: true}, Layout{Dedicated: true, Split: true}
	for _, tc := range []struct {
		l                  Layout
		s                  Signal
		containers, images bool
		m                  measured
	}{
		{single, NodeFsAvailable, true, true, measured{true, true, true}},
		{single, ImageFsInodesFree, true, true, measured{true, true, true}},
		{single, ContainerFsAvailable, true, true, measured{true, true, true}},
		{dedicated, NodeFsInodesFree, false, false, measured{false, true, true}},
		{dedicated, ImageFsAvailable, true, true, measured{true, false, false}},
		{dedicated, ContainerFsAvailable, true, true, measured{true, false, false}},
		{split, ImageFsAvailable, false, true, measured{}},
		{split, NodeFsAvailable, true, false, measured{true, true, true}},
		{split, ContainerFsInodesFree, true, false, measured{true, true, true}},
		{single, MemoryAvailable, false, false, measured{true, true, true}},
		{split, PIDAvailable, false, false, measured{true, true, true}},
	} {
		if c, i := tc.l.reclaims(tc.s); c != tc.containers || i != tc.images {
			t.Errorf("%+v %s: containers %v, images %v", tc.l, tc.s, c, i)
		}
		if m := tc.l.measured(tc.s); m != tc.m {
			t.Errorf("%+v %s: measured %+v", tc.l, tc.s, m)
		}
	}
}

// TestAgainAtOnce: after an eviction the next pass comes when the pod is
// finished, at most 30 s later, and the grid of passes begins anew.
func TestAgainAtOnce(t *testing.T) {
	for _, tc := range []struct {
		cleanup time.Duration
		want    string
	}{{1500 * time.Millisecond, "2s b"}, {10 * time.Minute, "30s b"}} {
		n := newMachine(t, hard("memory.available", "100Mi"))
		n.cleanup, n.otherMemory = tc.cleanup, 8*gi
		n.add(pod("a"), use{memory: 2})
		n.add(pod("b"), use{memory: 1})
		n.run(31 * time.Second)
		if got := n.kills(); !slices.Equal(got, []string{"0s a", tc.want}) {
			t.Errorf("finished after %v: killed %q", tc.cleanup, got)
		}
	}
}

// TestCritical: the first pod that can be evicted goes.
func TestCritical(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	n.otherMemory = 8 * gi
	static := pod("static")
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	n.add(pod("critical", priority(2000000000)), use{memory: 9, unknown: true})
	n.add(static, use{memory: 8})
	n.add(pod("a"), use{memory: 1})
	n.run(500 * time.Millisecond)
	if got := n.kills(); !slices.Equal(got, []string{"0s a"}) {
		t.Errorf("killed %q", got)
	}
}

// TestKillFails: an eviction whose kill comes to no end in time counts.
func TestKillFails(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	n.otherMemory, n.fails = 8*gi, errors.New("timeout waiting to kill pod")
	n.add(pod("a"), use{memory: 2})
	n.add(pod("b"), use{memory: 1})
	n.run(500 * time.Millisecond)
	if got := n.kills(); !slices.Equal(got, []string{"0s a"}) {
		t.Errorf("killed %q in one pass", got)
	}
}

// TestStatisticsFail: without statistics a pass changes nothing.
func TestStatisticsFail(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	n.otherMemory = 8 * gi
	n.run(5 * time.Second)
	n.log = nil
	n.statsError = errors.New("no answer")
	n.add(pod("a"), use{})
	n.run(10 * time.Minute)
	if !n.m.Under(v1.NodeMemoryPressure) || len(n.log) > 0 {
		t.Errorf("pressure %v, %q", n.m.pressure.reported, n.log)
	}
	n.statsError = nil
	n.run(10 * time.Second)
	if len(n.kills()) != 1 {
		t.Errorf("got %q", n.log)
	}
}

// TestLayoutFails: as long as it is not known how images lie, there is no pass.
func TestLayoutFails(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	n.otherMemory, n.fsErrors = 8*gi, errors.New("no image filesystem found")
	n.add(pod("a"), use{})
	n.run(15 * time.Second)
	n.expect()
	n.fsErrors = nil
	n.run(10 * time.Second)
	if got := n.kills(); !slices.Equal(got, []string{"20s a"}) {
		t.Errorf("killed %q", got)
	}
}

// TestContainerFsFromTheSecondPass: thresholds on the file system of writable
// layers are copies, which the first pass has not.
func TestContainerFsFromTheSecondPass(t *testing.T) {
	n := newMachine(t, hard("imagefs.available", "10Gi"))
	n.imageDisk, n.otherImages = 100*gi, 95*gi
	n.run(time.Second)
	if len(n.m.since) != 1 || n.m.since[0].Signal != ImageFsAvailable {
		t.Errorf("met in the first pass: %+v", n.m.since)
	}
	n.run(10 * time.Second)
	if len(n.m.since) != 2 || n.m.since[1].Signal != ContainerFsAvailable {
		t.Errorf("met in the second pass: %+v", n.m.since)
	}
	list := []string{}
	for _, th := range n.m.thresholds {
		list = append(list, fmt.Sprintf("%s %v", th.Signal, th.Inert))
	}
	if want := []string{"imagefs.available false", "containerfs.available false", "containerfs.available true", "containerfs.inodesFree true", "containerfs.inodesFree true"}; !slices.Equal(list, want) {
		t.Errorf("got %q", list)
	}
}

// TestPids: processes are counted down from what there can be.
func TestPids(t *testing.T) {
	n := newMachine(t, hard("pid.available", "1k"))
	n.otherPids = 30000
	n.add(pod("a"), use{processes: 1500})
	n.add(pod("b", priority(5)), use{processes: 1600})
	n.run(500 * time.Millisecond)
	n.expect("0s Warning EvictionThresholdMet: Attempting to reclaim pids",
		"0s Warning Evicted a: The node was low on resource: pids. Threshold quantity: 1k, available: -332. "+
			"map[offending_containers: offending_containers_usage: starved_resource:pids]",
		"0s kill a grace=1 Failed Evicted DisruptionTarget=True/TerminationByKubelet")
	if !n.m.Under(v1.NodePIDPressure) {
		t.Error("no pressure")
	}
}

// TestAllocatable: what is left of the pods' cgroup counts as memory does.
func TestAllocatable(t *testing.T) {
	c := hard("memory.available", "100Mi")
	c.Allocatable = true
	n := newMachine(t, c)
	n.add(pod("a"), use{memory: 7*gi - 50*mi})
	n.run(500 * time.Millisecond)
	if got := n.kills(); len(got) != 1 || !strings.Contains(n.log[1], "Threshold quantity: 100Mi, available: 50Mi. ") || n.m.Evictions()[AllocatableMemoryAvailable] != 1 {
		t.Errorf("got %q, %v", n.log, n.m.Evictions())
	}
}

// TestMemoryGoesFirst: with several things low memory is acted on.
func TestMemoryGoesFirst(t *testing.T) {
	n := newMachine(t, Config{Hard: map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "pid.available": "40k"}})
	n.otherMemory, n.otherDisk = 8*gi, 95*gi
	n.add(pod("a"), use{})
	n.run(500 * time.Millisecond)
	if len(n.log) == 0 || !strings.HasSuffix(n.log[0], "Attempting to reclaim memory") {
		t.Errorf("got %q", n.log)
	}
	if got := fmt.Sprint(n.m.pressure.reported); got != "[MemoryPressure DiskPressure PIDPressure]" {
		t.Errorf("under %s", got)
	}
}
