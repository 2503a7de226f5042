package eviction

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/sim/loop"
)

// machine is a node whose files have the sizes that a test says.
type machine struct {
	l      *loop.Loop
	m      *Manager
	pods   []*v1.Pod
	sizes  map[string]int64 // by path
	layers map[string]int64 // by container
	log    []string
	took   time.Duration // to kill a pod
}

func (n *machine) ReadDir(name string) ([]fs.DirEntry, error) {
	dir := fstest.MapFS{}
	for path := range n.sizes { //drydock:unordered fills a map
		if rest, ok := strings.CutPrefix(path, name+"/"); ok {
			dir[rest] = &fstest.MapFile{Mode: fs.ModeDir}
		}
	}
	return dir.ReadDir(".")
}

func (n *machine) Usage(name string) (bytes, inodes int64) { return n.sizes[name], 1 }

func (n *machine) ListContainerStats(_ context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	var out []*runtimeapi.ContainerStats
	for _, p := range n.pods {
		if string(p.UID) != f.LabelSelector[labelPodUID] {
			continue
		}
		for _, c := range p.Spec.Containers {
			out = append(out, &runtimeapi.ContainerStats{
				Attributes:    &runtimeapi.ContainerAttributes{Labels: map[string]string{labelContainerName: c.Name}},
				WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: uint64(n.layers[c.Name])}},
			})
		}
	}
	return out, nil
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	n := &machine{l: loop.New(loop.Options{}), sizes: map[string]int64{}, layers: map[string]int64{}}
	t.Cleanup(n.l.Close)
	at := func() string { return fmt.Sprintf("%.0fs ", n.l.Since(start).Seconds()) }
	n.m = New(Options{
		Loop: n.l, Group: n.l.Root(), FS: n, Stats: n,
		PodDir:     func(uid types.UID) string { return "/pods/" + string(uid) },
		LogDir:     func(p *v1.Pod) string { return "/log/" + p.Name },
		ActivePods: func() []*v1.Pod { return slices.Clone(n.pods) },
		Kill: func(ctx context.Context, p *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			var s v1.PodStatus
			fn(&s)
			n.log = append(n.log, at()+fmt.Sprintf("kill %s grace=%d %s %s conditions=%d", p.Name, grace, s.Phase, s.Reason, len(s.Conditions)))
			err := n.l.Sleep(ctx, n.took)
			n.pods = slices.DeleteFunc(n.pods, func(o *v1.Pod) bool { return o == p })
			return err
		},
		Finished: func(uid types.UID) bool { return true },
		Event: func(p *v1.Pod, eventtype, reason, message string) {
			n.log = append(n.log, at()+fmt.Sprintf("%s %s %s: %s", eventtype, reason, p.Name, message))
		},
	})
	n.m.Start()
	return n
}

// start is when loops begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (n *machine) add(p *v1.Pod) {
	n.pods = append(n.pods, p)
	n.m.AddPod(p)
}

func pod(name string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []v1.Container{{Name: name + "-c"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func emptyDir(limit string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		q := resource.MustParse(limit)
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &q}}})
	}
}

func storage(limit string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
	}
}

func (n *machine) run(d time.Duration) { n.l.RunUntil(n.l.Now().Add(d)) }

// TestEmptyDir: a volume is looked at when the pod is first noticed, by the
// minute, and then every one to two minutes; pods are judged every 10 s.
func TestEmptyDir(t *testing.T) {
	n := newMachine(t)
	n.run(58 * time.Second)
	n.add(pod("a", emptyDir("5Mi")))
	n.sizes["/pods/a/volumes/kubernetes.io~empty-dir/d"] = 1 << 20
	n.run(4 * time.Second) // the first look was at 60 s
	n.sizes["/pods/a/volumes/kubernetes.io~empty-dir/d"] = 20 << 20
	n.run(57 * time.Second)
	if len(n.log) != 0 {
		t.Errorf("evicted before the next look: %v", n.log)
	}
	n.run(75 * time.Second)
	if len(n.log) != 2 || !strings.HasSuffix(n.log[0], `Warning Evicted a: Usage of EmptyDir volume "d" exceeds the limit "5Mi". `) ||
		!strings.HasSuffix(n.log[1], "kill a grace=1 Failed Evicted conditions=0") {
		t.Errorf("got %q", n.log)
	}
}

func TestEphemeralStorage(t *testing.T) {
	for _, tc := range []struct {
		name        string
		layer, logs int64
		dir         int64
		want        string
	}{
		{name: "within", layer: 5 << 20, logs: 5 << 20},
		{name: "layer", layer: 11 << 20, want: "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "},
		{name: "layer and logs", layer: 5 << 20, logs: 6 << 20, want: "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "},
		{name: "volumes count for the pod", layer: 5 << 20, dir: 6 << 20, want: "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newMachine(t)
			n.add(pod("a", storage("10Mi"), emptyDir("1Gi")))
			n.layers["a-c"], n.sizes["/log/a/a-c"] = tc.layer, tc.logs
			n.sizes["/pods/a/volumes/kubernetes.io~empty-dir/d"] = tc.dir
			n.run(75 * time.Second)
			if got := strings.Join(n.log, "\n"); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestContainerLimit: with one container without a limit the pod has the other
// one's, which the container alone may be within.
func TestContainerLimit(t *testing.T) {
	n := newMachine(t)
	n.add(pod("a", storage("10Mi"), func(p *v1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("100Mi")}}})
	}))
	n.layers["a-c"] = 11 << 20
	n.run(15 * time.Second)
	if len(n.log) == 0 || n.log[0] != `10s Warning Evicted a: Container a-c exceeded its local ephemeral storage limit "10Mi". ` {
		t.Errorf("got %q", n.log)
	}
}

// TestNoLimitNoTimer: pods without a limit cost nothing, and a critical pod is
// not evicted.
func TestNoLimitNoTimer(t *testing.T) {
	n := newMachine(t)
	n.add(pod("plain", func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	}))
	before := n.l.Steps()
	n.run(time.Hour)
	if n.l.Steps() != before || n.m.timer.Set() {
		t.Errorf("%d steps for pods without a limit", n.l.Steps()-before)
	}
	high := int32(2000000000)
	n.add(pod("critical", storage("1Mi"), func(p *v1.Pod) { p.Spec.Priority = &high }))
	n.layers["critical-c"] = 2 << 20
	n.run(time.Minute)
	if len(n.log) != 0 {
		t.Errorf("got %q", n.log)
	}
	n.m.RemovePod("critical")
	if n.m.timer.Set() {
		t.Error("a timer without a pod")
	}
}

// TestAgainAtOnce: after an eviction the next pass does not wait, and the grid
// begins anew.
func TestAgainAtOnce(t *testing.T) {
	n := newMachine(t)
	n.took = 3 * time.Second
	n.add(pod("a", storage("1Mi")))
	n.add(pod("b", storage("1Mi")))
	n.layers["a-c"] = 2 << 20
	n.run(13500 * time.Millisecond)
	n.layers["b-c"] = 2 << 20
	n.run(10 * time.Second)
	var kills []string
	for _, line := range n.log {
		if strings.Contains(line, "kill") {
			kills = append(kills, strings.Fields(line)[2])
		}
	}
	if !slices.Equal(kills, []string{"a", "b"}) || !strings.HasPrefix(n.log[2], "14") {
		t.Errorf("got %q", n.log)
	}
}

func TestJudge(t *testing.T) {
	burstable := func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	}
	tolerant := func(p *v1.Pod) {
		p.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}
	}
	high := int32(2000000000)
	critical := func(p *v1.Pod) { p.Spec.Priority = &high }
	memory, disk := v1.NodeMemoryPressure, v1.NodeDiskPressure
	for _, tc := range []struct {
		name       string
		pod        *v1.Pod
		conditions []v1.NodeConditionType
		want       string
	}{
		{"no pressure", pod("a"), nil, ""},
		{"best effort and memory", pod("a"), []v1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		{"burstable and memory", pod("a", burstable), []v1.NodeConditionType{memory}, ""},
		{"tolerant and memory", pod("a", tolerant), []v1.NodeConditionType{memory}, ""},
		{"burstable and disk", pod("a", burstable), []v1.NodeConditionType{disk}, "The node had condition: [DiskPressure]. "},
		{"burstable and both", pod("a", burstable), []v1.NodeConditionType{memory, disk}, "The node had condition: [MemoryPressure DiskPressure]. "},
		{"critical", pod("a", critical), []v1.NodeConditionType{memory, disk}, ""},
	} {
		r := judge(tc.pod, tc.conditions)
		if r.Admit != (tc.want == "") || r.Message != tc.want || !r.Admit && r.Reason != "Evicted" {
			t.Errorf("%s: %+v", tc.name, r)
		}
	}
}
