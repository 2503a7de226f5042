package resources

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

// onePod is a Burstable pod of a container with "cpu request/limit memory
// request/limit".
func onePod(class v1.PodQOSClass, resources string) *v1.Pod {
	pod := podtest.Sized(map[string]string{"a": resources})
	pod.Status.QOSClass = class
	return pod
}

// memory returns what of a container's memory is set beside limit and score.
func memory(n Options, pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	return New(n).Container(pod, &pod.Spec.Containers[0])
}

func TestOOMGroup(t *testing.T) {
	pod := onePod(v1.PodQOSBurstable, "-/- 1Gi/-")
	if got := memory(Options{MemoryOOMGroup: true}, pod).Unified; fmt.Sprint(got) != "map[memory.oom.group:1]" {
		t.Error(got)
	}
	if got := memory(Options{}, pod).Unified; got != nil {
		t.Error(got)
	}
}

func TestSwap(t *testing.T) {
	const giB = 1 << 30
	node := func(change func(*Swap)) Options {
		n := Options{MemoryCapacity: 16 * giB, Swap: Swap{Controller: true, Limited: true, Capacity: 8 * giB}}
		if change != nil {
			change(&n.Swap)
		}
		return n
	}
	critical := onePod(v1.PodQOSBurstable, "-/- 2Gi/-")
	priority := int32(2000000000)
	critical.Spec.Priority = &priority
	for _, tc := range []struct {
		name string
		node Options
		pod  *v1.Pod
		want string
		v1   int64
	}{
		{"a share of the node's", node(nil), onePod(v1.PodQOSBurstable, "-/- 2Gi/-"), "map[memory.swap.max:1073741824]", 0},
		{"a limit above the request", node(nil), onePod(v1.PodQOSBurstable, "-/- 2Gi/4Gi"), "map[memory.swap.max:1073741824]", 0},
		{"critical", node(nil), critical, "map[memory.swap.max:0]", 0},
		{"request is limit", node(nil), onePod(v1.PodQOSBurstable, "-/- 2Gi/2Gi"), "map[memory.swap.max:0]", 0},
		{"no memory is asked for", node(nil), onePod(v1.PodQOSBurstable, "1/- -/-"), "map[memory.swap.max:0]", 0},
		{"Guaranteed", node(nil), onePod(v1.PodQOSGuaranteed, "1/1 2Gi/2Gi"), "map[memory.swap.max:0]", 0},
		{"BestEffort", node(nil), onePod(v1.PodQOSBestEffort, "-/- -/-"), "map[memory.swap.max:0]", 0},
		{"NoSwap", node(func(s *Swap) { s.Limited = false }), onePod(v1.PodQOSBurstable, "-/- 2Gi/-"), "map[memory.swap.max:0]", 0},
		{"no controller", node(func(s *Swap) { s.Controller = false }), onePod(v1.PodQOSBurstable, "-/- 2Gi/-"), "map[]", 0},
		{"cgroup v1", node(func(s *Swap) { s.CgroupV1, s.Limited = true, false }), onePod(v1.PodQOSBurstable, "-/- 1Gi/2Gi"), "map[]", 2 * giB},
	} {
		r := memory(tc.node, tc.pod)
		if got := fmt.Sprint(r.Unified); got != tc.want || r.MemorySwapLimitInBytes != tc.v1 {
			t.Errorf("%s: %s, %d", tc.name, got, r.MemorySwapLimitInBytes)
		}
	}
}

func TestMemoryQoS(t *testing.T) {
	for _, tc := range []struct {
		class     v1.PodQOSClass
		resources string
		tiered    bool
		want      string
	}{
		{v1.PodQOSBurstable, "-/- 256Mi/512Mi", false, "map[memory.high:510025728 memory.low:0 memory.min:0]"},
		{v1.PodQOSBurstable, "-/- 256Mi/512Mi", true, "map[memory.high:510025728 memory.low:268435456 memory.min:0]"},
		// 256 MiB and 0.9 of what the node has beyond.
		{v1.PodQOSBurstable, "-/- 256Mi/-", false, "map[memory.high:993210368 memory.low:0 memory.min:0]"},
		{v1.PodQOSBurstable, "1/- -/-", false, "map[memory.low:0 memory.min:0]"},
		{v1.PodQOSGuaranteed, "1/1 256Mi/256Mi", true, "map[memory.low:0 memory.min:268435456]"},
		{v1.PodQOSBestEffort, "-/- -/-", true, "map[memory.low:0 memory.min:0]"},
	} {
		n := Options{MemoryQoS: &MemoryQoS{ThrottlingFactor: 0.9, Tiered: tc.tiered, Allocatable: 1 << 30}}
		if got := fmt.Sprint(memory(n, onePod(tc.class, tc.resources)).Unified); got != tc.want {
			t.Errorf("%s %s: %s", tc.class, tc.resources, got)
		}
	}
	n := New(Options{MemoryOOMGroup: true, MemoryQoS: &MemoryQoS{}})
	pod := onePod(v1.PodQOSBestEffort, "-/- -/-")
	n.Container(pod, &pod.Spec.Containers[0])
	if len(n.unified()) != 1 {
		t.Errorf("what is shared was written to: %v", n.unified())
	}
}

// TestOOMScore: the examples are of a node with 8 GiB.
func TestOOMScore(t *testing.T) {
	n := New(Options{MemoryCapacity: 8 << 30})
	score := func(name string, pod *v1.Pod, c *v1.Container, want int64) {
		t.Helper()
		if got := n.oomScore(pod, c); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for request, want := range map[string]int64{"4Gi": 500, "1Gi": 875, "100Mi": 988, "8181Mi": 3, "7Gi": 125, "8589934591": 3, "8Mi": 999, "9Mi": 999, "17Mi": 998} {
		pod := onePod(v1.PodQOSBurstable, "-/- "+request+"/-")
		score(request, pod, &pod.Spec.Containers[0], want)
	}
	pod := onePod(v1.PodQOSBurstable, "100m/- -/-")
	score("no memory request", pod, &pod.Spec.Containers[0], 999)
	pod.Status.QOSClass = v1.PodQOSGuaranteed
	score("Guaranteed", pod, &pod.Spec.Containers[0], -997)
	pod.Status.QOSClass = v1.PodQOSBestEffort
	score("BestEffort", pod, &pod.Spec.Containers[0], 1000)
	priority := int32(2000001000)
	pod.Spec.Priority = &priority
	score("critical", pod, &pod.Spec.Containers[0], 1000)
	pod.Spec.PriorityClassName = "system-node-critical"
	score("node-critical", pod, &pod.Spec.Containers[0], -997)
	pod.Spec.Priority = nil
	score("of the class, but without its priority", pod, &pod.Spec.Containers[0], 1000)
	pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	score("static", pod, &pod.Spec.Containers[0], -997)

	// A sidecar is not killed before the regular containers.
	always := v1.ContainerRestartPolicyAlways
	pod = podtest.Sized(map[string]string{"a": "-/- 1Gi/-", "b": "-/- 4Gi/-"})
	pod.Status.QOSClass = v1.PodQOSBurstable
	small, own := podtest.Resources("-/- 100Mi/-"), podtest.Resources("-/- 2Gi/-")
	pod.Spec.InitContainers = []v1.Container{{Name: "side", RestartPolicy: &always, Resources: small}, {Name: "init", Resources: small}, {Name: "big", RestartPolicy: &always, Resources: own}}
	score("a sidecar with a small request", pod, &pod.Spec.InitContainers[0], 875)
	score("an init container", pod, &pod.Spec.InitContainers[1], 988)
	score("a sidecar with a larger request", pod, &pod.Spec.InitContainers[2], 750)
}
