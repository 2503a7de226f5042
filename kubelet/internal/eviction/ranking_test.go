package eviction

import (
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/kubelet/internal/eviction/api"
)

// podLevel gives a pod resources of its own.
func podLevel(memory string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}
	}
}

func overhead(name v1.ResourceName, q string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Overhead = v1.ResourceList{name: resource.MustParse(q)} }
}

func initContainer(name v1.ResourceName, q string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "init", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{name: resource.MustParse(q)}}}}
	}
}

// ranked is a pod with what it uses.
type ranked struct {
	pod *v1.Pod
	use use
}

// TestRank: the order in which pods are evicted, also the worked example.
func TestRank(t *testing.T) {
	const memory, disk = v1.ResourceMemory, v1.ResourceEphemeralStorage
	example := []ranked{
		{pod("A", requests(memory, "1Gi")), use{memory: 900 * mi}},
		{pod("B", priority(1000), requests(memory, "200Mi")), use{memory: 700 * mi}},
		{pod("C"), use{memory: 300 * mi}},
		{pod("D", requests(memory, "100Mi")), use{memory: 600 * mi}},
		{pod("E", priority(-10), requests(memory, "500Mi")), use{memory: 100 * mi}},
	}
	dedicated, split := Layout{Dedicated: true}, Layout{Dedicated: true, Split: true}
	parts := []ranked{
		{pod("layer", emptyDir("")), use{layer: 3 * mi}},
		{pod("logs", emptyDir("")), use{logs: 2 * mi}},
		{pod("dir", emptyDir("")), use{dir: 1 * mi}},
	}
	for _, tc := range []struct {
		name   string
		s      Signal
		layout Layout
		pods   []ranked
		want   string
	}{
		{name: "the worked example", s: MemoryAvailable, pods: example, want: "D C B E A"},
		{name: "a pod without statistics", s: MemoryAvailable, pods: append(example[:5:5], ranked{pod("F", priority(5000)), use{unknown: true}}), want: "F D C B E A"},
		{name: "allocatable memory", s: AllocatableMemoryAvailable, pods: example, want: "D C B E A"},
		{name: "as much as asked for is not too much", s: MemoryAvailable, want: "b a", pods: []ranked{
			{pod("a", requests(memory, "100Mi")), use{memory: 100 * mi}}, {pod("b", requests(memory, "1Mi")), use{memory: mi + 1}},
		}},
		{name: "no usage exceeds nothing", s: MemoryAvailable, want: "b a", pods: []ranked{{pod("a"), use{}}, {pod("b"), use{memory: 1}}}},
		{name: "pod-level requests alone count", s: MemoryAvailable, want: "a b", pods: []ranked{
			{pod("a", requests(memory, "1Gi"), podLevel("100Mi")), use{memory: 200 * mi}}, {pod("b"), use{memory: 50 * mi}},
		}},
		{name: "overhead counts on top of a request", s: MemoryAvailable, want: "c b a", pods: []ranked{
			{pod("a", requests(memory, "100Mi"), overhead(memory, "50Mi")), use{memory: 140 * mi}},
			{pod("b", overhead(memory, "50Mi")), use{memory: 40 * mi}},
			{pod("c", requests(memory, "100Mi")), use{memory: 141 * mi}},
		}},
		{name: "init containers count", s: MemoryAvailable, want: "b a", pods: []ranked{
			{pod("a", initContainer(memory, "1Gi")), use{memory: 900 * mi}}, {pod("b"), use{memory: 1}},
		}},
		{name: "ties: the younger, then the name", s: MemoryAvailable, want: "c a b", pods: []ranked{
			{pod("b", created(5)), use{memory: 1}}, {pod("a", created(5)), use{memory: 1}}, {pod("c", created(9)), use{memory: 1}},
		}},
		{name: "both without statistics: priority", s: MemoryAvailable, want: "b a", pods: []ranked{
			{pod("a", priority(1)), use{unknown: true}}, {pod("b"), use{unknown: true}},
		}},
		{name: "processes: priority, then how many", s: PIDAvailable, want: "c b a", pods: []ranked{
			{pod("a", priority(1)), use{processes: 900}}, {pod("b"), use{processes: 1}}, {pod("c"), use{processes: 2}},
		}},
		{name: "processes: no statistics after the priority", s: PIDAvailable, want: "c a b", pods: []ranked{
			{pod("a"), use{processes: 900}}, {pod("b", priority(1)), use{unknown: true}}, {pod("c"), use{unknown: true}},
		}},
		{name: "disk: all parts on one disk", s: NodeFsAvailable, pods: parts, want: "layer logs dir"},
		{name: "disk: logs and volumes beside the images", s: NodeFsAvailable, layout: dedicated, pods: parts, want: "logs dir layer"},
		{name: "disk: the layers where images are", s: ImageFsAvailable, layout: dedicated, pods: parts, want: "layer dir logs"},
		{name: "disk: the layers where containers are", s: ContainerFsAvailable, layout: dedicated, pods: parts, want: "layer dir logs"},
		{name: "disk: split, the root's", s: ContainerFsAvailable, layout: split, pods: parts, want: "layer logs dir"},
		{name: "disk: split, images are no pod's", s: ImageFsAvailable, layout: split, pods: parts, want: "dir layer logs"},
		{name: "disk: requests", s: NodeFsAvailable, want: "b a", pods: []ranked{
			{pod("a", requests(disk, "10Mi")), use{layer: 9 * mi}}, {pod("b", requests(disk, "1Mi")), use{layer: 2 * mi}},
		}},
		{name: "inodes: any is too many, bytes asked for are subtracted", s: NodeFsInodesFree, want: "b a", pods: []ranked{
			{pod("a", requests(disk, "10Mi")), use{layerInodes: 900}}, {pod("b"), use{layerInodes: 2}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newMachine(t, Config{})
			var pods []*v1.Pod
			for _, r := range tc.pods {
				n.add(r.pod, r.use)
				pods = append(pods, r.pod)
			}
			list, _ := n.Pods(t.Context(), pods)
			for i := range list {
				dir := n.uses[list[i].PodRef.Name].dir
				list[i].VolumeStats = []statsapi.VolumeStats{{Name: "d", FsStats: statsapi.FsStats{UsedBytes: amount(dir)}}}
			}
			for seed := range uint64(5) {
				rand.New(rand.NewPCG(seed, 0)).Shuffle(len(pods), func(i, k int) { pods[i], pods[k] = pods[k], pods[i] })
				rank(pods, tc.s, tc.layout, statsOf(list))
				var got []string
				for _, p := range pods {
					got = append(got, p.Name)
				}
				if strings.Join(got, " ") != tc.want {
					t.Fatalf("got %q, want %s", got, tc.want)
				}
			}
		})
	}
}

// TestLocalVolumes: which volumes count as local.
func TestLocalVolumes(t *testing.T) {
	for _, tc := range []struct {
		v    v1.VolumeSource
		want bool
	}{
		{v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, true},
		{v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}, false},
		{v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}, true},
		{v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}, true},
		{v1.VolumeSource{GitRepo: &v1.GitRepoVolumeSource{}}, true},
		{v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}, false},
		{v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}, false},
	} {
		if got := local(&v1.Volume{VolumeSource: tc.v}); got != tc.want {
			t.Errorf("%+v: %v", tc.v, got)
		}
	}
}

// TestMessage: what a pod and its event say.
func TestMessage(t *testing.T) {
	low := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. "
	main := func(memory int64) statsapi.PodStats {
		return statsapi.PodStats{Memory: &statsapi.MemoryStats{WorkingSetBytes: amount(memory)}, Containers: []statsapi.ContainerStats{
			{Name: "main", Memory: &statsapi.MemoryStats{WorkingSetBytes: amount(memory)}},
			{Name: "gone", Memory: &statsapi.MemoryStats{WorkingSetBytes: amount(gi)}},
			{Name: "side", Memory: &statsapi.MemoryStats{WorkingSetBytes: amount(memory)}},
		}}
	}
	two := func(p *v1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "side"})
	}
	for _, tc := range []struct {
		name  string
		pod   *v1.Pod
		stats *statsapi.PodStats
		want  string
		marks map[string]string
	}{
		{name: "the worked example", pod: pod("D", requests(v1.ResourceMemory, "100Mi")), stats: new(main(600 * mi)),
			want:  low + "Container main was using 600Mi, request is 100Mi, has larger consumption of memory. ",
			marks: map[string]string{"offending_containers": "main", "offending_containers_usage": "600Mi", "starved_resource": "memory"}},
		{name: "two", pod: pod("D", two), stats: new(main(mi)),
			want: low + "Container main was using 1Mi, request is 0, has larger consumption of memory. " +
				"Container side was using 1Mi, request is 0, has larger consumption of memory. ",
			marks: map[string]string{"offending_containers": "main,side", "offending_containers_usage": "1Mi,1Mi", "starved_resource": "memory"}},
		{name: "within", pod: pod("D", requests(v1.ResourceMemory, "100Mi")), stats: new(main(100 * mi)), want: low,
			marks: map[string]string{"offending_containers": "", "offending_containers_usage": "", "starved_resource": "memory"}},
		{name: "no statistics", pod: pod("D"), want: low, marks: map[string]string{}},
		{name: "resources of the pod", pod: pod("D", podLevel("1Gi"), requests(v1.ResourceMemory, "100Mi")), stats: new(main(600 * mi)),
			want: low + "Pod D was using 600Mi, request is 1Gi, has larger consumption of memory. " +
				"Container main was using 600Mi, request is 100Mi, has larger consumption of memory. ",
			marks: map[string]string{"offending_pod": "D", "offending_pod_usage": "600Mi", "offending_containers": "main", "offending_containers_usage": "600Mi", "starved_resource": "memory"}},
	} {
		hundred := resource.MustParse("100Mi")
		thresholds := []Threshold{{Signal: PIDAvailable, Value: api.ThresholdValue{Quantity: &hundred}}, {Signal: MemoryAvailable, Value: api.ThresholdValue{Quantity: &hundred}}}
		seen := observations{{MemoryAvailable, observation{available: 80 * mi, capacity: 8 * gi}}, {PIDAvailable, observation{available: 1}}}
		got, marks := evictionMessage(v1.ResourceMemory, tc.pod, tc.stats, thresholds, seen)
		if got != tc.want {
			t.Errorf("%s: got %q", tc.name, got)
		}
		if len(marks) != len(tc.marks) {
			t.Errorf("%s: annotations %v", tc.name, marks)
		}
		for k, v := range tc.marks {
			if marks[k] != v {
				t.Errorf("%s: annotation %s is %q, want %q", tc.name, k, marks[k], v)
			}
		}
	}
}
