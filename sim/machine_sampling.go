package sim

import (
	"context"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// Sampling says how often what a pod's cgroup uses is looked at. A kubelet is
// told what was seen last, as upstream's is by cAdvisor (manager/container.go,
// housekeeping): a new cgroup is looked at when it is made, with nothing in it,
// and again after 10 s and up to as much again; after half as long again while
// nothing changes. A kubelet that starts looks at all cgroups at once.
//
// Only an order by use of memory or processes can tell: the machine's own
// signals and the cgroup of all pods are looked at anew for each pass.
type Sampling struct {
	// First is the time from a cgroup's first look to its second, Then from any
	// other to the next. A zero First: cgroups are looked at when asked for.
	First, Then fakecri.Range
}

// sampler looks at the cgroups of pods for one run of a kubelet.
type sampler struct {
	n    *Node
	g    *loop.Group // the kubelet's
	pods map[string]*sampledPod
}

type sampledPod struct {
	uid   string
	timer *loop.Timer
	looks uint64
	seen  fakecri.PodUsage // at the last look
}

// newSampler returns nil unless the node's options want one.
func (n *Node) newSampler(g *loop.Group) *sampler {
	if n.looks.First == (fakecri.Range{}) {
		return nil
	}
	s := &sampler{n: n, g: g, pods: map[string]*sampledPod{}}
	for _, b := range n.rt.Sandboxes() {
		s.add(b.UID)
	}
	return s
}

// add looks at a pod's cgroup, and from then on.
func (s *sampler) add(uid string) {
	if s.pods[uid] != nil {
		return
	}
	p := &sampledPod{uid: uid}
	p.timer = s.g.NewTimer("housekeeping", func() { s.look(p) })
	s.pods[uid] = p
	s.look(p)
}

// look goes on until the pod has gone from the runtime.
func (s *sampler) look(p *sampledPod) {
	seen, there := s.n.rt.PodUsage(p.uid)
	if !there && p.looks > 0 {
		delete(s.pods, p.uid)
		return
	}
	wait := s.n.looks.Then
	if p.looks == 0 {
		wait = s.n.looks.First
	} else if seen == p.seen {
		wait.Min, wait.Max = wait.Min*3/2, wait.Max*3/2 // maxHousekeepingInterval is 15 s
	}
	p.seen = seen
	p.looks++
	p.timer.Reset(max(s.n.l.Between(wait.Min, wait.Max, "housekeeping", p.uid, p.looks), time.Millisecond))
}

// sampled returns the statistics of a pod's cgroup as they were last seen; nil
// for any other cgroup.
func (m machineStats) sampled(cgroup string) *stats.Cgroup {
	i := strings.LastIndex(cgroup, "pod")
	if m.s == nil || i < 0 {
		return nil
	}
	p := m.s.pods[strings.ReplaceAll(strings.TrimSuffix(cgroup[i+len("pod"):], ".slice"), "_", "-")]
	if p == nil {
		return nil
	}
	return &stats.Cgroup{Memory: m.memoryStats(p.seen.Memory, 0), Processes: amount(p.seen.Processes)}
}

// sampledRuntime tells a sampler of new pods: the kubelet makes a pod's cgroup
// right before its sandbox.
type sampledRuntime struct {
	*fakecri.Client
	s *sampler
}

// RunPodSandbox implements the CRI.
func (r sampledRuntime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if r.s != nil {
		r.s.add(config.GetMetadata().GetUid())
	}
	return r.Client.RunPodSandbox(ctx, config, handler)
}

// RunPodSandboxOf is what a kubelet calls in its place if it can.
func (r sampledRuntime) RunPodSandboxOf(ctx context.Context, config fakecri.SandboxConfig, handler string) (string, error) {
	if r.s != nil {
		r.s.add(config.Metadata().GetUid())
	}
	return r.Client.RunPodSandboxOf(ctx, config, handler)
}
