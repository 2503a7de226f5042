package cpumanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checkpointtest"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

type files = checkpointtest.Files

func layout(t *testing.T, l cm.Layout) *cm.Topology {
	t.Helper()
	topo, err := l.New()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// dual are two sockets of four cores with two threads each, a NUMA node each.
var dual = cm.Layout{Sockets: 2, CoresPerSocket: 4, ThreadsPerCore: 2}

func parse(t *testing.T, s string) cpuset.CPUSet {
	t.Helper()
	set, err := cpuset.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// guaranteed is a pod with a container of so many CPUs each; "i" before the
// number makes it an init container, "s" a sidecar.
func guaranteed(uid string, cpus ...string) *v1.Pod {
	pod := &v1.Pod{}
	pod.Name, pod.UID = uid, types.UID(uid)
	for i, text := range cpus {
		n := strings.TrimLeft(text, "is")
		r := v1.ResourceList{v1.ResourceCPU: resource.MustParse(n), v1.ResourceMemory: resource.MustParse("1Gi")}
		c := v1.Container{Name: fmt.Sprintf("c%d", i), Resources: v1.ResourceRequirements{Requests: r, Limits: r}}
		switch text[0] {
		case 's':
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			fallthrough
		case 'i':
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return pod
}

type rig struct {
	t       *testing.T
	m       *Manager
	active  []*v1.Pod
	status  map[types.UID]*v1.PodStatus
	updates []string
	fail    error
	hint    topologymanager.Hint
	files   files
	ready   bool
	config  Config
}

func newRig(t *testing.T, topo *cm.Topology, o Options, reserved string) *rig {
	t.Helper()
	r := &rig{t: t, status: map[types.UID]*v1.PodStatus{}, files: files{}, ready: true}
	r.config = Config{
		Topology: topo, Policy: PolicyStatic, Options: o, ReservedMilliCPU: 1000, FS: r.files, Dir: "/k",
		Affinity:   func(string) topologymanager.Hint { return r.hint },
		ActivePods: func() []*v1.Pod { return slices.Clone(r.active) }, SourcesReady: func() bool { return r.ready },
		PodStatus: func(uid types.UID) (*v1.PodStatus, bool) { s := r.status[uid]; return s, s != nil },
		Update: func(_ context.Context, id, cpus string) error {
			r.updates = append(r.updates, id+"="+cpus)
			return r.fail
		},
	}
	if reserved != "" {
		r.config.ReservedCPUs = parse(t, reserved)
		r.config.ReservedMilliCPU = int64(r.config.ReservedCPUs.Size()) * 1000
	}
	r.start()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.m, err = New(r.config); err == nil {
		err = r.m.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// add has a pod's containers allocated; it returns their sets, or the error.
func (r *rig) add(pod *v1.Pod) string {
	r.active = append(r.active, pod)
	var out []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if err := r.m.Allocate(r.t.Context(), pod, &c); err != nil {
			r.active = r.active[:len(r.active)-1]
			return err.Error()
		}
		if set, ok := r.m.state.Get(pod.UID, c.Name); ok {
			out = append(out, set.String())
		} else {
			out = append(out, "shared")
		}
	}
	return strings.Join(out, " ")
}

// TestPacking has the worked example, and what else decides who gets which CPUs.
func TestPacking(t *testing.T) {
	numaInSocket := cm.Layout{Sockets: 1, NUMANodes: 2, CoresPerSocket: 8, ThreadsPerCore: 2}
	caches := cm.Layout{CoresPerSocket: 8, ThreadsPerCore: 2, UncoreCaches: 2}
	for _, tc := range []struct {
		name     string
		layout   cm.Layout
		options  Options
		reserved string
		asks     []string
		want     []string
		left     string // the default set
	}{
		{"the worked example", dual, Options{}, "", []string{"2", "4", "1", "8"}, []string{"1,9", "2-3,10-11", "8", "4-7,12-15"}, "0"},
		{"only whole CPUs are exclusive", dual, Options{}, "", []string{"1500m", "500m"}, []string{"shared", "shared"}, "0-15"},
		{"too many", dual, Options{}, "", []string{"15", "1"}, []string{"1-15", "not enough cpus available to satisfy request: requested=1, available=0"}, "0"},
		{"a whole socket before cores", dual, Options{}, "", []string{"9"}, []string{"4-7,8,12-15"}, "0-3,9-11"},
		{"NUMA nodes in a socket", numaInSocket, Options{}, "", []string{"8", "6"}, []string{"4-7,12-15", "1-3,9-11"}, "0,8"},
		{"a list of reserved CPUs", dual, Options{}, "0,8", []string{"1", "2"}, []string{"1", "2,10"}, "0,3-9,11-15"},
		{"strict reservation", dual, Options{StrictCPUReservation: true}, "0-1", []string{"2"}, []string{"2,10"}, "3-9,11-15"},
		{"whole cores only", dual, Options{FullPhysicalCPUsOnly: true}, "", []string{"3", "2", "14"},
			[]string{"SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2", "1,9",
				"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 12, requested CPUs = 14, CPUs per core = 2"}, "0,2-8,10-15"},
		{"across cores", dual, Options{DistributeCPUsAcrossCores: true}, "", []string{"4"}, []string{"1-3,8"}, "0,4-7,9-15"},
		{"evenly across NUMA nodes", dual, Options{DistributeCPUsAcrossNUMA: true}, "", []string{"10"}, []string{"1-2,4-6,8-10,12-13"}, "0,3,7,11,14-15"},
		{"in groups of cores", dual, Options{DistributeCPUsAcrossNUMA: true, FullPhysicalCPUsOnly: true}, "", []string{"10"}, []string{"1-2,4-6,9-10,12-14"}, "0,3,7-8,11,15"},
		{"on one NUMA node if that has room", dual, Options{DistributeCPUsAcrossNUMA: true}, "", []string{"7"}, []string{"4-6,7,12-14"}, "0-3,8-11,15"},
		{"a part of an uncore cache", caches, Options{PreferAlignByUncoreCache: true}, "0,8", []string{"4", "3", "5"}, []string{"1-2,9-10", "4-5,12", "6-7,13-15"}, "0,3,8,11"},
		{"without the option over caches", caches, Options{}, "", []string{"4", "4", "4"}, []string{"1-2,9-10", "3-4,11-12", "5-6,13-14"}, "0,7-8,15"},
		{"with it within one", caches, Options{PreferAlignByUncoreCache: true}, "", []string{"4", "4", "4"}, []string{"4-5,12-13", "6-7,14-15", "1-2,9-10"}, "0,3,8,11"}, // core 0 is half reserved
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, layout(t, tc.layout), tc.options, tc.reserved)
			for i, n := range tc.asks {
				want := tc.want[i]
				if set, err := cpuset.Parse(want); err == nil {
					want = set.String()
				}
				if got := r.add(guaranteed(fmt.Sprint("pod-", i), n)); got != want {
					t.Errorf("%s CPUs are %s, want %s", n, got, want)
				}
			}
			if got := r.m.state.Default().String(); got != tc.left {
				t.Errorf("%s is left, want %s", got, tc.left)
			}
		})
	}
}

// Init containers' CPUs are for the containers after them, sidecars' are not.
func TestReuse(t *testing.T) {
	r := newRig(t, layout(t, dual), Options{}, "")
	if got, want := r.add(guaranteed("a", "i4", "i2", "2", "2")), "1-2,9-10 1,9 1,9 2,10"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := r.add(guaranteed("b", "s2", "2")), "3,11 4,12"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.active = nil
	r.m.Reconcile(context.Background())
	if got := r.m.state.Default().String(); got != "0-15" || r.m.state.Len() != 0 {
		t.Errorf("left: %s", got)
	}
}

// The topology manager's hint comes first, what it lacks from anywhere.
func TestAffinity(t *testing.T) {
	r := newRig(t, layout(t, dual), Options{}, "")
	r.hint = topologymanager.Hint{Affinity: topologymanager.NewMask(1), Preferred: true}
	if got := r.add(guaranteed("a", "2")); got != "4,12" {
		t.Errorf("got %s", got)
	}
	if got := r.add(guaranteed("b", "8")); got != "1,5-7,9,13-15" {
		t.Errorf("got %s", got)
	}
}

func TestHints(t *testing.T) {
	r := newRig(t, layout(t, dual), Options{}, "")
	list := func(hints []topologymanager.Hints) string {
		if hints == nil {
			return "anywhere"
		}
		out := []string{}
		for _, h := range hints[0].List {
			text := fmt.Sprintf("%02b", h.Affinity)
			if h.Preferred {
				text += "p"
			}
			out = append(out, text)
		}
		return strings.Join(out, " ")
	}
	of := func(n string) string {
		pod := guaranteed("x", n)
		return list(r.m.GetTopologyHints(pod, &pod.Spec.Containers[0]))
	}
	for n, want := range map[string]string{"500m": "anywhere", "2": "01p 10p 11", "8": "10p 11", "9": "11p", "16": ""} {
		if got := of(n); got != want {
			t.Errorf("%s CPUs: %s, want %s", n, got, want)
		}
	}
	a := guaranteed("a", "2")
	r.add(a)
	if got := list(r.m.GetTopologyHints(a, &a.Spec.Containers[0])); got != "01p 11" {
		t.Errorf("what is allocated: %s", got)
	}
	more := guaranteed("a", "4")
	if got := list(r.m.GetTopologyHints(more, &more.Spec.Containers[0])); got != "" {
		t.Errorf("of another size: %s", got)
	}
	if got := list(r.m.GetPodTopologyHints(guaranteed("b", "i8", "2", "4"))); got != "10p 11" {
		t.Errorf("a pod: %s", got)
	}
}

func TestReconcile(t *testing.T) {
	r := newRig(t, layout(t, dual), Options{}, "")
	running := func(name, id string) v1.ContainerStatus {
		return v1.ContainerStatus{Name: name, ContainerID: "containerd://" + id, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	}
	pass := func(want ...string) {
		t.Helper()
		r.updates = nil
		r.m.Reconcile(context.Background())
		if !slices.Equal(r.updates, want) {
			t.Errorf("told %q, want %q", r.updates, want)
		}
	}
	shared, own := guaranteed("shared", "500m"), guaranteed("own", "2")
	r.add(shared)
	r.status["shared"] = &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{running("c0", "1")}}
	pass("1=0-15")
	pass()
	r.add(own)
	r.m.Started(own, &own.Spec.Containers[0])
	r.status["own"] = &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{running("c0", "2")}}
	r.fail = errors.New("down")
	pass("1=0,2-8,10-15")
	r.fail = nil
	pass("1=0,2-8,10-15")
	pass()
	r.active, r.ready = r.active[:1], false
	pass() // a source may still tell of the pod
	r.ready = true
	pass("1=0-15")
	// Another kubelet does not know what the last one told.
	r.start()
	pass("1=0-15")
}

func TestStart(t *testing.T) {
	const wrap = "start cpu manager error: "
	topo := layout(t, dual)
	for _, tc := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"nothing reserved", func(c *Config) { c.ReservedMilliCPU = 0 }, "[cpumanager] unable to determine reserved CPU resources for static policy"},
		{"too few CPUs", func(c *Config) { c.ReservedMilliCPU = 17000 }, "new static policy error: [cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 17)"},
		{"another policy", func(c *Config) { c.Policy = PolicyNone }, wrap + `could not restore state from checkpoint: configured policy "none" differs from state checkpoint policy "static", please drain this node and delete the CPU manager checkpoint file "/k/cpu_manager_state" before restarting Kubelet`},
		{"more reserved", func(c *Config) { c.ReservedCPUs, c.ReservedMilliCPU = cpuset.New(0, 1), 2000 }, wrap + `not all reserved cpus: "0-1" are present in defaultCpuSet: "0,2-8,10-15"`},
		{"reserved strictly", func(c *Config) { c.Options.StrictCPUReservation = true }, wrap + `some of strictly reserved cpus: "0" are present in defaultCpuSet: "0,2-8,10-15"`},
		{"another machine", func(c *Config) { c.Topology = layout(t, cm.Layout{CoresPerSocket: 8}) }, wrap + `current set of available CPUs "0-7" doesn't match with CPUs in state "0-15"`},
		{"align-by-socket", func(c *Config) {
			c.Options.AlignBySocket, c.TopologyPolicy = true, topologymanager.PolicySingleNUMANode
		}, "new static policy error: Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"},
		{"the same", func(*Config) {}, ""},
	} {
		r := newRig(t, topo, Options{}, "")
		r.add(guaranteed("a", "2"))
		c := r.config
		tc.change(&c)
		m, err := New(c)
		if err == nil {
			err = m.Start()
		}
		if got := fmt.Sprint(err); got != tc.want && (tc.want != "" || err != nil) {
			t.Errorf("%s: got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	alpha, err := features.Resolve(map[string]bool{features.CPUManagerPolicyAlphaOptions: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		policy  string
		options map[string]string
		gates   features.Gates
		want    string
	}{
		{PolicyNone, map[string]string{"full-pcpus-only": "true"}, alpha, "None policy: received unsupported options=map[full-pcpus-only:true]"},
		{PolicyStatic, map[string]string{"full-pcpus": "true"}, alpha, `unknown CPU Manager Policy option: "full-pcpus"`},
		{PolicyStatic, map[string]string{"full-pcpus-only": "yes"}, alpha, `bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": invalid syntax`},
		{PolicyStatic, map[string]string{"align-by-socket": "true"}, features.Gates{}, `CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided`},
		{PolicyStatic, map[string]string{"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"}, alpha, "static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at the same time"},
		{PolicyStatic, map[string]string{"prefer-align-cpus-by-uncorecache": "true", "distribute-cpus-across-numa": "true"}, alpha, "static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can not be used at the same time"},
		{PolicyStatic, map[string]string{"full-pcpus-only": "true", "strict-cpu-reservation": "true", "distribute-cpus-across-numa": "1"}, features.Gates{}, "<nil>"},
	} {
		if _, err := ParseOptions(tc.policy, tc.options, tc.gates); fmt.Sprint(err) != tc.want {
			t.Errorf("%s %v: got %v", tc.policy, tc.options, err)
		}
	}
}
