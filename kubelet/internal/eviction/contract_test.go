package eviction

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func hard(signal, value string) Config { return Config{Hard: map[string]string{signal: value}} }

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
