package running

import (
	"math"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/timeline"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// state is the cluster as expectations see it. It is read on the API's loop, when a change is
// judged, and between runs. calls is filled by the journal when records are flushed, which is
// between runs; so expectations about calls are judged only then. phase and ready are counted
// change by change: looking at all pods for every look at progress would cost more than the run.
type state struct {
	// What of pods, nodes, events and leases an expectation asks for is the store's own.
	*apiserver.Store
	cluster    *sim.Cluster
	start      time.Time
	wantsCalls bool
	calls      []*expect.CRICall
	phase      map[v1.PodPhase]int
	ready      int
	kinds      map[expect.Kind]kind
}

func (s *state) CRICalls() []*expect.CRICall { return s.calls }
func (s *state) Start() time.Time            { return s.start }

// Objects lists the objects of a kind that has no method of its own.
func (s *state) Objects(k expect.Kind) any { return s.kinds[k].list(s.Store) }

// Object returns one of them, or a lease; nil if it is not there. A typed nil in the interface
// would not equal nil; so the pointer is not returned as it came.
func (s *state) Object(k expect.Kind, namespace, name string) any {
	if o := s.Lookup(s.kinds[k].name, namespace, name); o != nil {
		return o
	}
	return nil
}

// NodeUsage is for use between runs, when no node's loop is running. It is nil for a machine
// outside, which the simulation cannot look into.
func (s *state) NodeUsage(name string) *expect.NodeUsage {
	n := s.cluster.Node(name)
	if n == nil {
		return nil
	}
	u := n.Usage()
	if u == nil {
		return nil
	}
	return &expect.NodeUsage{
		Memory: u.Memory, MemoryAvailable: u.MemoryAvailable, PodsMemory: u.PodsMemory, MilliCPU: u.MilliCPU, PIDs: u.PIDs, PIDsAvailable: u.PIDsAvailable,
		Nodefs: fsUsage(&u.Nodefs), Imagefs: fsUsage(&u.Imagefs), Containerfs: fsUsage(&u.Containerfs),
	}
}

// fsUsage is a file system as the kubelet's summary has it; what is not known is
// 0. Expressions then need no test for presence, which CEL would ask for at every step.
func fsUsage(f *statsapi.FsStats) expect.FilesystemUsage {
	n := func(v *uint64) int64 {
		if v == nil {
			return 0
		}
		return int64(*v)
	}
	return expect.FilesystemUsage{
		Used: n(f.UsedBytes), Available: n(f.AvailableBytes), Capacity: n(f.CapacityBytes), Inodes: n(f.Inodes), InodesFree: n(f.InodesFree), InodesUsed: n(f.InodesUsed),
	}
}

// record keeps a CRI call if an expectation asks for calls. Calls are kept in the order of the
// records.
func (s *state) record(r *trace.Record) {
	if r.Kind != trace.KindCRI || !s.wantsCalls {
		return
	}
	attempt, _ := strconv.Atoi(timeline.Field(r.Fields, "attempt")) // absent: 0
	pod, container := timeline.PodOf(r)
	s.calls = append(s.calls, &expect.CRICall{
		Node: r.Node, Method: r.Verb, Pod: pod, Container: container,
		Image: timeline.Field(r.Fields, "image"), Attempt: attempt, Error: timeline.Field(r.Fields, "error"),
		CpusetCpus: timeline.Field(r.Fields, "cpusetCpus"), CpusetMems: timeline.Field(r.Fields, "cpusetMems"),
		PodCIDR: timeline.Field(r.Fields, "podCIDR"),
		At:      time.Duration(r.At - s.start.UnixNano()),
	})
}

// count keeps the numbers of pods by phase and of ready nodes. It must be registered for both
// kinds whatever the expectations want.
func (s *state) count(c *apiserver.Change) {
	switch c.Kind {
	case apiserver.KindPod:
		if old, ok := c.Old.(*v1.Pod); ok && old != nil {
			s.phase[old.Status.Phase]--
		}
		if !removed(c) {
			s.phase[c.New.(*v1.Pod).Status.Phase]++
		}
	case apiserver.KindNode:
		if old, ok := c.Old.(*v1.Node); ok && old != nil && nodeReady(old) {
			s.ready--
		}
		if !removed(c) && nodeReady(c.New.(*v1.Node)) {
			s.ready++
		}
	}
}

// A pod that is Pending because nothing fits keeps the run from being steady; wall times then
// count as start-up to the end.
func (s *state) steady(nodes int) bool { return s.phase[v1.PodPending] == 0 && s.ready == nodes }

// phases are the numbers of pods by phase, without phases that no pod is in.
func (s *state) phases() map[string]int {
	out := map[string]int{}
	for p, n := range s.phase { //drydock:unordered each key is set once
		if n != 0 {
			out[string(p)] = n
		}
	}
	return out
}

// nodeReady reports whether a node's Ready condition is true.
func nodeReady(n *v1.Node) bool {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == v1.NodeReady {
			return n.Status.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

// watch tells the expectations of every committed change. The hook runs on the API's loop within
// the write that it is told of, so an expectation "always" sees every version of an object, not
// only those that a watcher would have caught.
func (p *performance) watch() {
	l := p.cluster.API().Loop()
	since := func() time.Duration { return l.Since(p.cluster.Start()) }
	// Deadlines ("within 30s") come due while the engine runs; a timer on the API's loop finds
	// them at their very time, not at the next round of drive.
	p.timer = l.Root().NewTimer("expectations", func() {
		p.engine.Advance(since())
		p.setTimer()
	})
	p.traceOwners()
	p.traceReadiness()
	wanted := map[apiserver.Kind]expect.Kind{}
	kinds := []apiserver.Kind{apiserver.KindPod, apiserver.KindNode} // what state.count counts
	for ek, k := range p.state.kinds {                               //drydock:unordered each key is set once
		if p.engine.Wants(ek) {
			wanted[k.name] = ek
			kinds = append(kinds, k.name)
		}
	}
	// Only kinds that somebody wants: a hook for leases would be called for most writes of a
	// large cluster.
	p.cluster.Store().OnChange(func(c apiserver.Change) {
		p.state.count(&c)
		kind, ok := wanted[c.Kind]
		if !ok {
			return
		}
		out := expect.Change{Kind: kind}
		if c.Old != nil {
			// An interface that holds a nil pointer is not nil. So fields are set only where
			// there is something.
			out.Old = c.Old
		}
		if !removed(&c) {
			out.New = c.New
		}
		p.engine.Changed(out, since())
		p.setTimer()
	}, kinds...)
}

// setTimer sets the timer to the next time at which an expectation is to be
// judged. It is called after everything that may have changed the next deadline.
func (p *performance) setTimer() {
	at, ok := p.engine.NextDeadline()
	if !ok || at == math.MaxInt64 {
		p.timer.Stop()
		return
	}
	p.timer.ResetAt(p.cluster.Start().Add(at))
}

// kind is a kind that expectations can be about, as the API has it.
type kind struct {
	name apiserver.Kind
	list func(*apiserver.Store) any
}

// kindOf is the kind whose objects are T.
func kindOf[T interface {
	comparable
	apiserver.Object
}](name apiserver.Kind) kind {
	return kind{name, func(s *apiserver.Store) any {
		if s.Kinds().Find(name) == nil { // its gate is off
			return []T(nil)
		}
		return apiserver.Objects[T](s, name)
	}}
}

// expectKinds are the kinds that expectations can be about. A kind of the API that is missing
// here cannot be named by an expectation; expect has the other half, its CEL type.
func expectKinds() map[expect.Kind]kind {
	return map[expect.Kind]kind{
		expect.KindPod:                       kindOf[*v1.Pod](apiserver.KindPod),
		expect.KindNode:                      kindOf[*v1.Node](apiserver.KindNode),
		expect.KindEvent:                     kindOf[*v1.Event](apiserver.KindEvent),
		expect.KindLease:                     kindOf[*coordinationv1.Lease](apiserver.KindLease),
		expect.KindDeployment:                kindOf[*appsv1.Deployment](apiserver.KindDeployment),
		expect.KindReplicaSet:                kindOf[*appsv1.ReplicaSet](apiserver.KindReplicaSet),
		expect.KindStatefulSet:               kindOf[*appsv1.StatefulSet](apiserver.KindStatefulSet),
		expect.KindDaemonSet:                 kindOf[*appsv1.DaemonSet](apiserver.KindDaemonSet),
		expect.KindControllerRevision:        kindOf[*appsv1.ControllerRevision](apiserver.KindControllerRevision),
		expect.KindJob:                       kindOf[*batchv1.Job](apiserver.KindJob),
		expect.KindCronJob:                   kindOf[*batchv1.CronJob](apiserver.KindCronJob),
		expect.KindPodDisruptionBudget:       kindOf[*policyv1.PodDisruptionBudget](apiserver.KindPodDisruptionBudget),
		expect.KindHorizontalPodAutoscaler:   kindOf[*autoscalingv2.HorizontalPodAutoscaler](apiserver.KindHorizontalPodAutoscaler),
		expect.KindEndpointSlice:             kindOf[*discoveryv1.EndpointSlice](apiserver.KindEndpointSlice),
		expect.KindService:                   kindOf[*v1.Service](apiserver.KindService),
		expect.KindNamespace:                 kindOf[*v1.Namespace](apiserver.KindNamespace),
		expect.KindPersistentVolumeClaim:     kindOf[*v1.PersistentVolumeClaim](apiserver.KindPersistentVolumeClaim),
		expect.KindVolumeAttachment:          kindOf[*storagev1.VolumeAttachment](apiserver.KindVolumeAttachment),
		expect.KindCSINode:                   kindOf[*storagev1.CSINode](apiserver.KindCSINode),
		expect.KindCertificateSigningRequest: kindOf[*certificatesv1.CertificateSigningRequest](apiserver.KindCertificateSigningRequest),
		expect.KindPodCertificateRequest:     kindOf[*certificatesv1beta1.PodCertificateRequest](apiserver.KindPodCertificateRequest),
		expect.KindResourceClaim:             kindOf[*resourcev1.ResourceClaim](apiserver.KindResourceClaim),
		expect.KindResourceSlice:             kindOf[*resourcev1.ResourceSlice](apiserver.KindResourceSlice),
		expect.KindPersistentVolume:          kindOf[*v1.PersistentVolume](apiserver.KindPersistentVolume),
	}
}

// removed reports whether a change is the end of an object.
func removed(c *apiserver.Change) bool { return c.Type == "DELETED" }
