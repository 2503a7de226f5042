package sim_test

import (
	"flag"
	"fmt"
	"github.com/drydock-sim/drydock/ground/loop"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

var (
	pressureSeeds = flag.Int("pressure.seeds", 60, "how many seeds TestRandomPressure runs")
	pressureFirst = flag.Int("pressure.first", 0, "the first seed of TestRandomPressure")
	pressureEach  = flag.Uint64("pressure.each", 10, "every how many seeds TestRandomPressure compares with a run in which nothing is left out")
	pressureTrace = flag.String("pressure.trace", "", "log the records about what has this in its name, with -v")
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
	// pressureEnd is when the last curve has come to its end.
	pressureEnd = 8 * time.Minute
)

// pressPod is a pod and what its one program uses.
type pressPod struct {
	pod    *v1.Pod
	at     time.Duration
	static bool
	b      fakecri.Behaviour
	// volume, if any, is what it writes to its emptyDir of the limit.
	volume, limit int64
}

// pressRun is one node with random pods that use random amounts of it.
type pressRun struct {
	oracle
	seed   uint64
	c      *sim.Cluster
	n      *sim.Node
	did    pressureActs
	config *kubeletconfig.KubeletConfiguration
}

// pressMaker draws what a run is made of.
type pressMaker struct{ *rand.Rand }

func (m pressMaker) between(lo, hi int64) int64 { return lo + m.Int64N(hi-lo+1) }
func (m pressMaker) chance(percent int) bool    { return m.IntN(100) < percent }
func (m pressMaker) seconds(n int) time.Duration {
	return time.Duration(m.IntN(n*1000)) * time.Millisecond
}

// priorities are those of the classes class0, class1, ...
var priorities = []int32{-10, 5, 1000, 2000000000}

// curve draws how an amount up to peak changes.
func (m pressMaker) curve(peak int64) *usage.Curve {
	lo := m.between(0, peak/2)
	var c *usage.Curve
	var err error
	switch m.IntN(5) {
	case 0, 1:
		return usage.Constant(peak)
	case 2:
		return usage.Ramp(lo, peak, time.Second+m.seconds(200))
	case 3:
		c, err = usage.Steps([]usage.Point{{Value: lo}, {At: m.seconds(100) + time.Second, Value: peak}, {At: 101*time.Second + m.seconds(100), Value: lo}})
	case 4:
		c, err = usage.Periodic(lo, peak, 20*time.Second+m.seconds(200), usage.Triangle)
	}
	if err != nil {
		panic(err)
	}
	return c
}

func (m pressMaker) config() *kubeletconfig.KubeletConfiguration {
	c := &kubeletconfig.KubeletConfiguration{
		EvictionHard:                     map[string]string{},
		EvictionPressureTransitionPeriod: metav1.Duration{Duration: time.Duration(m.between(15, 90)) * time.Second},
		VolumeStatsAggPeriod:             metav1.Duration{Duration: time.Second},
		EvictionMaxPodGracePeriod:        int32(m.IntN(8)),
		ContainerLogMaxSize:              "1Ti", // rotated logs shrink
	}
	for _, t := range []struct{ signal, value string }{
		{"memory.available", fmt.Sprintf("%dMi", m.between(100, 900))},
		{"nodefs.available", fmt.Sprintf("%d%%", m.between(5, 30))},
		{"nodefs.inodesFree", fmt.Sprintf("%d%%", m.between(2, 20))},
		{"imagefs.available", fmt.Sprintf("%d%%", m.between(5, 30))},
		{"pid.available", fmt.Sprint(m.between(50, 400))},
	} {
		if m.chance(75) {
			c.EvictionHard[t.signal] = t.value
		}
		if m.chance(15) {
			if c.EvictionMinimumReclaim == nil {
				c.EvictionMinimumReclaim = map[string]string{}
			}
			c.EvictionMinimumReclaim[t.signal] = "5%"
		}
	}
	if m.chance(40) {
		c.EvictionSoft = map[string]string{"memory.available": fmt.Sprintf("%dMi", m.between(900, 1500))}
		c.EvictionSoftGracePeriod = map[string]string{"memory.available": fmt.Sprintf("%ds", m.between(5, 60))}
	}
	return c
}

// pod draws a pod; its name is also its program's.
func (m pressMaker) pod(i int) *pressPod {
	name := fmt.Sprint("p", i)
	p := &pressPod{at: m.seconds(200), static: m.chance(10)}
	p.b = fakecri.Behaviour{Memory: m.curve(m.between(1, 1400) * mi), Processes: m.curve(m.between(1, 150))}
	c := v1.Container{Name: "main", Image: "app:1"}
	spec := v1.PodSpec{NodeName: "n0", TerminationGracePeriodSeconds: ptr.To(m.between(0, 20)), RestartPolicy: v1.RestartPolicyAlways}
	list := func(memory int64) v1.ResourceList {
		return v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI), v1.ResourceCPU: resource.MustParse("10m")}
	}
	switch m.IntN(4) {
	case 0: // BestEffort
	case 1, 2:
		c.Resources.Requests = list(m.between(1, 600) * mi)
	case 3:
		c.Resources.Requests = list(m.between(300, 900) * mi)
		c.Resources.Limits = c.Resources.Requests
	}
	if m.chance(40) {
		p.b.Writes = []fakecri.Write{{Path: "/data/f", Bytes: m.curve(m.between(1, 5000) * mi), Inodes: m.curve(m.between(1, 40000))}}
	}
	if m.chance(20) {
		p.b.LogBytes = usage.Ramp(0, m.between(1, 2000)*mi, time.Second+m.seconds(200))
	}
	if m.chance(25) {
		p.volume, p.limit = m.between(1, 600)*mi, m.between(0, 2)*300*mi
		e := &v1.EmptyDirVolumeSource{}
		if p.limit > 0 {
			e.SizeLimit = resource.NewQuantity(p.limit, resource.BinarySI)
		}
		spec.Volumes = []v1.Volume{{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: e}}}
		c.VolumeMounts = []v1.VolumeMount{{Name: "cache", MountPath: "/cache"}}
		p.b.Writes = append(p.b.Writes, fakecri.Write{Path: "/cache/f", Bytes: usage.Constant(p.volume)})
	}
	switch m.IntN(6) {
	case 0:
		p.b.OnTerm = fakecri.OnTerm{Ignore: true}
	case 1:
		p.b.OnTerm = fakecri.OnTerm{Exit: 3, After: fakecri.Exactly(m.seconds(4))}
	case 2:
		p.b.RunFor, p.b.ExitCode = fakecri.Exactly(time.Second+m.seconds(60)), int32(m.IntN(2))
		spec.RestartPolicy = []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}[m.IntN(3)]
	}
	if m.chance(40) {
		class := m.IntN(len(priorities))
		spec.Priority, spec.PriorityClassName = ptr.To(priorities[class]), fmt.Sprint("class", class)
		if class == 3 {
			spec.PriorityClassName = "system-cluster-critical"
		}
	}
	spec.Containers = []v1.Container{c}
	p.pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: spec}
	return p
}

func newPressRun(t *testing.T, seed uint64, noElide bool) *pressRun {
	m := pressMaker{rand.New(rand.NewPCG(seed, 5))}
	c, err := sim.New(sim.Options{Seed: seed, Workers: 1, Elision: map[bool]loop.ElisionMode{true: loop.NoElide}[noElide], Census: true, KubeletLogs: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &pressRun{seed: seed, c: c, config: m.config(), did: pressureActs{}}
	r.init(c)
	opts := sim.NodeOptions{
		Name: "n0", Kubelet: r.config, PIDMax: 900,
		Capacity: v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(m.between(3, 6)*gi, resource.BinarySI), v1.ResourceEphemeralStorage: *resource.NewQuantity(m.between(10, 40)*gi, resource.BinarySI)},
		Usage:    sim.MachineUsage{Memory: m.curve(m.between(100, 1200) * mi), PIDs: m.curve(m.between(10, 500)), Disk: m.curve(m.between(1, 4) * gi), Inodes: m.curve(m.between(1, 40000))},
	}
	if m.chance(50) {
		noisy, err := opts.Usage.Memory.WithNoise(50*mi, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		opts.Usage.Memory = noisy
	}
	r.usage, r.reclaims = opts.Usage, len(r.config.EvictionMinimumReclaim) > 0
	opts.Filesystems.Root = &sim.Filesystem{Capacity: opts.Capacity.StorageEphemeral().Value(), Inodes: m.between(50000, 400000)}
	if r.dedicated = m.chance(30); r.dedicated {
		opts.Filesystems.Image = &sim.Filesystem{Capacity: 20 * gi, Inodes: 200000}
		r.split = m.chance(40)
		if r.split {
			opts.Filesystems.Container = &sim.Filesystem{}
		}
	}
	for i := range int(m.between(4, 16)) {
		p := m.pod(i)
		r.pods[p.pod.Name] = p
		opts.Runtime.Programs = append(opts.Runtime.Programs, fakecri.Program{Match: fakecri.Match{Pod: p.pod.Name + "*"}, Behaviour: p.b})
		if p.static {
			// Its name on the node ends in the node's, so it needs a pattern that p1 and p10 don't share.
			opts.Runtime.Programs[i].Match.Pod = p.pod.Name + "-n0"
		} else {
			opts.Runtime.Programs[i].Match.Pod = p.pod.Name
		}
	}
	if r.n, err = c.AddNode(opts); err != nil {
		t.Fatal(err)
	}
	for i, v := range priorities[:3] {
		class := &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("class", i)}, Value: v}
		if _, err := c.API().Apply(class); err != nil {
			t.Fatal(err)
		}
	}
	for i := range len(r.pods) {
		r.create(t, r.pods[fmt.Sprint("p", i)])
		if m.chance(20) {
			at, grace := m.seconds(400), []*int64{nil, ptr.To[int64](0), ptr.To[int64](60)}[m.IntN(3)]
			c.At(at, func() {
				_ = c.API().Delete(apiserver.KindPod, "default", fmt.Sprint("p", i), metav1.DeleteOptions{GracePeriodSeconds: grace})
			})
		}
	}
	if m.chance(25) {
		r.n.At(m.seconds(300), func() { r.n.RestartKubelet(2 * time.Second) })
	}
	return r
}

func (r *pressRun) create(t *testing.T, p *pressPod) {
	if !p.static {
		r.c.At(p.at, func() {
			if _, err := r.c.API().Create(p.pod.DeepCopy()); err != nil {
				r.fail("creating %s: %v", p.pod.Name, err)
			}
		})
		return
	}
	p.pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	manifest, err := yaml.Marshal(p.pod)
	if err != nil {
		t.Fatal(err)
	}
	r.n.At(p.at, func() {
		if err := r.n.WriteStaticPod(p.pod.Name+".yaml", manifest); err != nil && !r.filled {
			r.fail("static %s: %v", p.pod.Name, err)
		}
	})
}

// TestRandomPressure runs random pods that use random amounts of a node under
// random thresholds, and holds every eviction, every condition and the node's
// accounts against what the curves say. One seed can be run with
//
//	go test ./sim -run RandomPressure -pressure.first 17 -pressure.seeds 1 -v
//
// and many with -pressure.seeds 1000.
func TestRandomPressure(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test of what one loop does: nothing for the race detector")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var total tally
	t.Run("seeds", func(t *testing.T) {
		for i := range *pressureSeeds {
			seed := uint64(*pressureFirst + i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) { total.add(randomPressure(t, seed)) })
		}
	})
	t.Logf("%+v", total)
	if *pressureSeeds >= 50 && (total.Memory == 0 || total.Disk == 0 || total.Limits == 0 || total.PIDs == 0 || total.Conditions == 0) {
		t.Errorf("the runs show too little: %+v", total)
	}
}

func randomPressure(t *testing.T, seed uint64) tally {
	r := runPressure(t, seed, false)
	defer r.c.Close()
	if seed%*pressureEach == 0 {
		all := runPressure(t, seed, true)
		r.sameAs(t, all)
		all.c.Close()
	}
	r.judge()
	r.settled(r.c, r.n)
	r.cleared(t)
	for _, f := range r.failures {
		t.Errorf("seed %d: %s", seed, f)
	}
	return r.seen
}

func runPressure(t *testing.T, seed uint64, noElide bool) *pressRun {
	r := newPressRun(t, seed, noElide)
	r.c.Records(func(rec *trace.Record) {
		if *pressureTrace != "" && strings.Contains(rec.Object+rec.Verb+fmt.Sprint(rec.Fields), *pressureTrace) {
			t.Logf("%9.4f %s %s %s %s %v", float64(rec.At-r.c.Start().UnixNano())/1e9, rec.Node, rec.Kind, rec.Object, rec.Verb, rec.Fields)
		}
		r.record(rec)
		r.did.record(rec)
	})
	for now := time.Duration(0); now <= pressureEnd; now += time.Second {
		if err := r.c.RunUntil(now); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r.accounts(r.n)
		r.conditions(r.c.Store().Node("n0"), r.config.EvictionPressureTransitionPeriod.Duration)
	}
	return r
}
