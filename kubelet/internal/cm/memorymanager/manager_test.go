package memorymanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checkpointtest"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
)

type files = checkpointtest.Files

const gi = 1 << 30

// pod has containers with so much memory each, and huge pages after a "+"; "i"
// before the amount makes it an init container, "s" a sidecar.
func pod(uid string, sizes ...string) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.UID = uid, types.UID(uid)
	for i, s := range sizes {
		text, huge, _ := strings.Cut(strings.TrimLeft(s, "is"), "+")
		r := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse(text)}
		if huge != "" {
			r["hugepages-2Mi"] = resource.MustParse(huge)
		}
		c := v1.Container{Name: fmt.Sprintf("c%d", i), Resources: v1.ResourceRequirements{Requests: r, Limits: r}}
		switch s[0] {
		case 's':
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			fallthrough
		case 'i':
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

type rig struct {
	t      *testing.T
	m      *Manager
	active []*v1.Pod
	hint   topologymanager.Hint
	files  files
	config Config
}

func newRig(t *testing.T, nodes ...int64) *rig {
	t.Helper()
	topo, err := cm.Layout{Sockets: len(nodes)}.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		topo.Nodes[i].Memory = nodes[i] * gi
		topo.Nodes[i].HugePages = []cm.HugePages{{Size: 2 << 20, Count: 512}}
	}
	r := &rig{t: t, files: files{}}
	r.config = Config{
		Topology: topo, Policy: PolicyStatic, FS: r.files, Dir: "/k",
		ReservedMemory: []kubeletconfig.MemoryReservation{{NumaNode: 0, Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}},
		NodeReserved:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")},
		Affinity:       func(string) topologymanager.Hint { return r.hint },
		ActivePods:     func() []*v1.Pod { return slices.Clone(r.active) }, SourcesReady: func() bool { return true },
	}
	r.m = r.start(r.config, "")
	return r
}

func (r *rig) start(c Config, want string) *Manager {
	r.t.Helper()
	m, err := New(c)
	if err == nil {
		err = m.Start()
	}
	if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
		r.t.Errorf("got %s\nwant %s", got, want)
	}
	return m
}

// add has a pod's containers allocated; it returns their nodes, or the error.
func (r *rig) add(p *v1.Pod) string {
	r.active = append(r.active, p)
	var out []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if err := r.m.Allocate(r.t.Context(), p, &c); err != nil {
			r.active = r.active[:len(r.active)-1]
			return err.Error()
		}
		out = append(out, r.m.Nodes(p, &c))
	}
	return strings.Join(out, " ")
}

// free is what each node has left, in MiB, and the group it is in.
func (r *rig) free() string {
	var out []string
	for _, id := range r.m.state.Machine.Nodes() {
		n := r.m.state.Machine[id]
		out = append(out, fmt.Sprintf("%d%v", n.MemoryMap[v1.ResourceMemory].Free>>20, n.Cells))
	}
	return strings.Join(out, " ")
}

const none = "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"

func TestAllocate(t *testing.T) {
	for _, tc := range []struct {
		name       string
		nodes      []int64
		asks, want []string
		free       string
	}{
		// A GiB of each node is set aside for huge pages.
		{"the worked example", []int64{17, 17}, []string{"10Gi", "10Gi", "10Gi"}, []string{"0", "1", none}, "5120[0] 6144[1]"},
		{"over two nodes", []int64{17, 17}, []string{"20Gi", "4Gi", "8Gi"}, []string{"0,1", "0,1", none}, "0[0 1] 7168[0 1]"},
		{"a group is for itself", []int64{9, 9, 9}, []string{"12Gi", "6Gi", "12Gi"}, []string{"0,1", "2", none}, "0[0 1] 3072[0 1] 2048[2]"},
		{"huge pages count", []int64{17, 17}, []string{"1Gi+768Mi", "1Gi+768Mi", "1Gi+768Mi"}, []string{"0", "1", none}, "14336[0] 15360[1]"},
	} {
		r := newRig(t, tc.nodes...)
		for i, n := range tc.asks {
			if got := r.add(pod(fmt.Sprint("pod-", i), n)); got != tc.want[i] {
				t.Errorf("%s: %s is on %s, want %s", tc.name, n, got, tc.want[i])
			}
		}
		if got := r.free(); got != tc.free {
			t.Errorf("%s: %s is left, want %s", tc.name, got, tc.free)
		}
		r.start(r.config, "") // the state is one that a restart accepts
	}
}

func TestReuse(t *testing.T) {
	r := newRig(t, 17, 17)
	if got, want := r.add(pod("a", "i6Gi", "i2Gi", "s1Gi", "4Gi", "4Gi")), "0 0 0 0 0"; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := r.free(), "6144[0] 16384[1]"; got != want { // 15Gi less 1Gi, and 8Gi for the others
		t.Errorf("%s is left, want %s", got, want)
	}
	r.start(r.config, "")
	burstable := pod("b", "1Gi")
	burstable.Spec.Containers[0].Resources.Limits = nil
	if got := r.add(burstable); got != "" {
		t.Errorf("a Burstable pod is on %s", got)
	}
	r.active = nil
	r.add(pod("c", "1Gi"))
	if got, want := r.free(), "14336[0] 16384[1]"; got != want {
		t.Errorf("%s is left, want %s", got, want)
	}
}

func TestAffinity(t *testing.T) {
	r := newRig(t, 17, 17)
	r.hint = topologymanager.Hint{Affinity: topologymanager.NewMask(1), Preferred: true}
	if got := r.add(pod("a", "2Gi")); got != "1" {
		t.Errorf("got %s", got)
	}
	if got, want := r.add(pod("b", "15Gi")), "[memorymanager] failed to find NUMA nodes to extend the current topology hint"; got != want {
		t.Errorf("got %s", got)
	}
	r = newRig(t, 17, 17)
	r.hint = topologymanager.Hint{Affinity: topologymanager.NewMask(1)}
	if got := r.add(pod("a", "20Gi")); got != "0,1" {
		t.Errorf("got %s", got)
	}
}

func TestStart(t *testing.T) {
	const wrap = "start memory manager error: "
	r := newRig(t, 17, 17)
	r.add(pod("a", "2Gi"))
	memory := func(node int32, q string) []kubeletconfig.MemoryReservation {
		return []kubeletconfig.MemoryReservation{{NumaNode: node, Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(q)}}}
	}
	for _, tc := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.ReservedMemory = memory(2, "1Gi") }, "the reserved memory configuration references a NUMA node 2 that does not exist on this machine"},
		{func(c *Config) { c.ReservedMemory = memory(0, "2Gi") }, `the total amount "2Gi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature`},
		{func(c *Config) { c.ReservedMemory = nil }, `the total amount "0" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature`},
		{func(c *Config) { c.ReservedMemory, c.NodeReserved = nil, nil }, "[memorymanager] you should specify the system reserved memory"},
		{func(c *Config) { c.ReservedMemory = memory(1, "1Gi") }, wrap + "[memorymanager] the expected machine state is different from the real one"},
		{func(c *Config) { c.Policy = PolicyNone }, wrap + `could not restore state from checkpoint: configured policy "None" differs from state checkpoint policy "Static", please drain this node and delete the memory manager checkpoint file "/k/memory_manager_state" before restarting Kubelet`},
	} {
		c := r.config
		tc.change(&c)
		r.start(c, tc.want)
	}
	again := r.start(r.config, "")
	if got := again.Nodes(r.active[0], &r.active[0].Spec.Containers[0]); got != "0" {
		t.Errorf("after a restart on %q", got)
	}
}
