package eviction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/eviction/api"
)

type m = map[string]string

// TestThresholds: what configurations mean, and what is wrong with others.
func TestThresholds(t *testing.T) {
	for _, tc := range []struct {
		name string
		c    Config
		want string // signal=value/grace+reclaim, or the error
	}{
		{"none", Config{}, ""},
		{"in the order of signals", Config{Hard: m{"pid.available": "10%", "nodefs.available": "10%", "memory.available": "100Mi"}},
			"memory.available=100Mi nodefs.available=0.1 pid.available=0.1"},
		{"hard, soft, allocatable", Config{
			Hard: m{"memory.available": "100Mi"}, Soft: m{"memory.available": "1Gi"}, SoftGracePeriod: m{"memory.available": "1m"},
			MinimumReclaim: m{"memory.available": "10%"}, Allocatable: true,
		}, "memory.available=100Mi+0.1 memory.available=1Gi/1m0s+0.1 allocatableMemory.available=100Mi+0.1"},
		{"0% and 100% switch off", Config{Hard: m{"memory.available": "0%", "nodefs.available": "100%"}}, ""},
		{"0.0% does not", Config{Hard: m{"memory.available": "0.0%"}}, "memory.available=0"},
		{"a reclaim of nothing", Config{Hard: m{"nodefs.inodesFree": "5"}, MinimumReclaim: m{"nodefs.inodesFree": "0"}}, "nodefs.inodesFree=5+0"},
		{"unknown", Config{Hard: m{"memory.avail": "1"}}, "unsupported eviction signal memory.avail"},
		{"below 0%", Config{Hard: m{"memory.available": "-1%"}}, "eviction percentage threshold memory.available must be >= 0%: -1%"},
		{"above 100%", Config{Hard: m{"memory.available": "101%"}}, "eviction percentage threshold memory.available must be <= 100%: 101%"},
		{"not positive", Config{Hard: m{"memory.available": "0"}}, "eviction threshold memory.available must be positive: 0"},
		{"no grace period", Config{Soft: m{"memory.available": "1"}}, "grace period must be specified for the soft eviction threshold memory.available"},
		{"a negative one", Config{Soft: m{"memory.available": "1"}, SoftGracePeriod: m{"memory.available": "-1s"}}, "invalid eviction grace period specified: -1s, must be a positive value"},
		{"none that can be read", Config{Soft: m{"memory.available": "1"}, SoftGracePeriod: m{"memory.available": "soon"}}, `time: invalid duration "soon"`},
		{"reclaim 0%", Config{Hard: m{"memory.available": "1"}, MinimumReclaim: m{"memory.available": "0%"}}, "eviction percentage minimum reclaim memory.available must be positive: 0%"},
		{"reclaim below 0", Config{Hard: m{"memory.available": "1"}, MinimumReclaim: m{"memory.available": "-1"}}, "negative eviction minimum reclaim specified for memory.available"},
	} {
		list, err := tc.c.Thresholds()
		got := describe(list)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func describe(list []Threshold) string {
	value := func(v *api.ThresholdValue) string {
		if v.Quantity != nil {
			return v.Quantity.String()
		}
		return fmt.Sprint(v.Percentage)
	}
	var out []string
	for i := range list {
		t := &list[i]
		s := string(t.Signal) + "=" + value(&t.Value)
		if t.Inert {
			s = string(t.Signal) + " inert"
		}
		if t.Grace > 0 {
			s += "/" + t.Grace.String()
		}
		if t.MinReclaim != nil {
			s += "+" + value(t.MinReclaim)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// TestPercentage: a share is a 32-bit number, and what it is of a capacity is
// cut off.
func TestPercentage(t *testing.T) {
	for _, tc := range []struct {
		text     string
		capacity int64
		want     string
	}{
		{"10%", 8 * gi, "858993472"}, {"15%", 1001, "150"}, {"50%", 4 * gi, "2Gi"}, {"33.3%", 1000, "333"},
	} {
		th, ok, err := parseStatement("nodefs.available", tc.text)
		if err != nil || !ok {
			t.Fatal(err)
		}
		if got := th.Value.Of(tc.capacity); got.String() != tc.want {
			t.Errorf("%s of %d: %s, want %s", tc.text, tc.capacity, got.String(), tc.want)
		}
	}
}

// TestContainerFs: thresholds on the file system of writable layers are copies,
// whatever was configured.
func TestContainerFs(t *testing.T) {
	base := Config{
		Hard: m{"nodefs.available": "1Gi", "imagefs.available": "2Gi"},
		Soft: m{"nodefs.inodesFree": "3k"}, SoftGracePeriod: m{"nodefs.inodesFree": "1s"},
	}
	before := "nodefs.available=1Gi imagefs.available=2Gi nodefs.inodesFree=3k/1s"
	mine := base
	mine.Hard = m{"containerfs.available": "7Gi", "nodefs.available": "1Gi"}
	for _, tc := range []struct {
		name   string
		c      Config
		l      Layout
		want   string
		ignore string
	}{
		{"single", base, Layout{}, before + " containerfs.available=1Gi containerfs.available inert containerfs.inodesFree inert containerfs.inodesFree=3k/1s", ""},
		{"split", base, Layout{Dedicated: true, Split: true}, before + " containerfs.available=1Gi containerfs.available inert containerfs.inodesFree inert containerfs.inodesFree=3k/1s", ""},
		{"dedicated", base, Layout{Dedicated: true}, before + " containerfs.available=2Gi containerfs.available inert containerfs.inodesFree inert containerfs.inodesFree inert", ""},
		{"configured in vain", mine, Layout{}, "nodefs.available=1Gi containerfs.available=1Gi nodefs.inodesFree=3k/1s containerfs.available inert containerfs.inodesFree inert containerfs.inodesFree=3k/1s",
			"found containerfs.available for hard eviction. ignoring"},
	} {
		list, err := tc.c.Thresholds()
		if err != nil {
			t.Fatal(err)
		}
		out, ignored := withContainerFs(list, tc.l)
		if got := describe(out); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if got := strings.Join(ignored, "; "); got != tc.ignore {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// TestMet: what is met, with and without minimum reclaim, and of what there is
// no observation.
func TestMet(t *testing.T) {
	list, err := (&Config{
		Hard:           m{"memory.available": "100Mi", "nodefs.available": "10%", "pid.available": "10"},
		MinimumReclaim: m{"memory.available": "50Mi", "nodefs.available": "5%"},
	}).Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		memory, disk int64
		reclaim      bool
		want         string
	}{
		{100 * mi, 100, false, ""},
		{100*mi - 1, 99, false, "memory.available nodefs.available"},
		{150*mi - 1, 149, true, "memory.available nodefs.available"},
		{150 * mi, 150, true, ""},
	} {
		seen := observations{{MemoryAvailable, observation{available: tc.memory, capacity: gi}}, {NodeFsAvailable, observation{available: tc.disk, capacity: 1000}}}
		var got []string
		for _, th := range met(list, seen, tc.reclaim) {
			got = append(got, string(th.Signal))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

// TestBookkeeping: since when thresholds are met, whose grace is over, and which
// have news.
func TestBookkeeping(t *testing.T) {
	one, two := resource.MustParse("1Gi"), resource.MustParse("2Gi")
	hard := Threshold{Signal: MemoryAvailable, Value: api.ThresholdValue{Quantity: &one}}
	soft := Threshold{Signal: MemoryAvailable, Value: api.ThresholdValue{Quantity: &two}, Grace: time.Minute}
	s := int64(time.Second)
	first := since([]Threshold{soft}, nil, 10*s)
	first = since([]Threshold{hard, soft}, first, 69*s)
	if got := graceOver(first, 69*s); len(got) != 1 || !got[0].hard() {
		t.Errorf("at 69 s: %+v", got)
	}
	if got := graceOver(first, 70*s); len(got) != 2 {
		t.Errorf("at 70 s: %+v", got)
	}
	first = since([]Threshold{soft}, since([]Threshold{hard}, first, 71*s), 72*s)
	if got := graceOver(first, 75*s); len(got) != 0 {
		t.Errorf("a threshold that was met again: %+v", got)
	}
	now := start.UnixNano()
	memoryAt := func(t int64) observations { return observations{{MemoryAvailable, observation{at: t}}} }
	for _, tc := range []struct {
		seen, last observations
		want       int
	}{
		{observations{}, observations{}, 0},
		{memoryAt(now), observations{}, 1},
		{memoryAt(now), memoryAt(now), 0},
		{memoryAt(now + 1), memoryAt(now), 1},
		{memoryAt(0), memoryAt(now), 1},
	} {
		if got := updated([]Threshold{hard}, tc.seen, tc.last); len(got) != tc.want {
			t.Errorf("%v after %v: %d", tc.seen, tc.last, len(got))
		}
	}
}

// Spans of whole periods of the loop are over when the pass comes, though the
// steps before the pass in which they began took some nanoseconds more.
func TestSpansOfWholePeriods(t *testing.T) {
	const first, jitter = int64(10 * time.Second), int64(5)
	for _, tc := range []struct {
		after int64
		want  bool
	}{{30 * int64(time.Second), true}, {30*int64(time.Second) - jitter, true}, {29 * int64(time.Second), false}} {
		soft := []firstObserved{{Threshold{Signal: MemoryAvailable, Grace: 30 * time.Second}, first}}
		if got := len(graceOver(soft, first+tc.after)) == 1; got != tc.want {
			t.Errorf("grace period over after %v: %v", time.Duration(tc.after), got)
		}
		var p pressure
		p.update([]Threshold{{Signal: MemoryAvailable}}, first, 30*time.Second)
		p.update(nil, first+tc.after, 30*time.Second)
		if got := len(p.reported) == 0; got != tc.want {
			t.Errorf("condition gone after %v: %v", time.Duration(tc.after), got)
		}
	}
}
