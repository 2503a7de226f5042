package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
)

// What is left out while nothing changes is in the files elide*.go, here and in
// the packages below: decorators around the plain parts, and the versions that
// their periodic bodies read (see package loop). A kubelet without elision polls
// as upstream does: elide is all that sets it up.

// elision is what a kubelet has of it. The zero elision elides nothing.
type elision struct {
	kl *Kubelet
	// notifier is the runtime, if it tells of its changes; nil: nothing that
	// reads the runtime is elided.
	notifier pleg.Notifier
	// statuses and images are nil if the runtime's client can't tell without a
	// call.
	statuses statusGeneration
	images   imageListGeneration

	// runtime grows with the runtime's generation, conditions with what the
	// eviction manager makes of the node.
	runtime, conditions loop.Version

	pleg         *pleg.Elided
	syncs        *podworkers.Elided
	checks       *elidedChecks
	housekeeping *loop.Memo
	containerGC  *loop.Memo
	cpus         *loop.Memo
	// imageList is the runtime's ImageListGeneration from before the last good list
	// of images; 0: the next is made.
	imageList uint64
}

// begin has what would do nothing new left out, as far as the runtime tells of
// its changes. It is called when the parts are made and nothing has started.
func (e *elision) begin(kl *Kubelet) {
	e.kl = kl
	if !kl.l.Elides() {
		return
	}
	e.statuses, _ = kl.opts.RuntimeService.(statusGeneration)
	e.images, _ = kl.opts.ImageService.(imageListGeneration)
	// The CPU manager and the list of images go by versions of their own, so they
	// are elided even if the runtime doesn't tell of its changes.
	if kl.containers.cpuManager.Static() {
		e.elideCPUs()
	}
	kl.reporter.list = e.rememberedImages(kl.reporter.list)
	n, ok := kl.opts.RuntimeService.(pleg.Notifier)
	if !ok {
		return
	}
	e.notifier = n
	n.OnChange(e.runtime.Grow)
	e.pleg = pleg.Elide(kl.pleg.(*pleg.Generic), n, &e.runtime)
	kl.pleg = e.pleg
	nodeStatus := nodestatus.Elide(kl.reporter.nodeStatus.(*nodestatus.Manager), nodestatus.ElideOptions{
		KnownRuntimeVersion: e.knownRuntimeVersion, AllTold: e.nodeElided,
		Reads: []*loop.Version{&e.runtime, &kl.node.version, &kl.node.images.version, &e.conditions, &kl.node.state.version},
	})
	kl.reporter.nodeStatus = nodeStatus
	e.syncs = podworkers.Elide(kl.workers, podworkers.ElideOptions{
		Surroundings: e, Pods: kl.pods, Cache: kl.podCache, Statuses: kl.statusManager, Volumes: kl.volumes.Manager,
		Node: &kl.node.forPods, Runtime: &e.runtime, Health: &kl.node.state.version,
	})
	probed := e.syncs.Probed
	kl.containers.deviceHealth, kl.containers.staleHealth = probed, e.syncs.Stale
	for _, r := range [...]interface{ OnSet(func(types.UID)) }{kl.probes.Liveness, kl.probes.Readiness, kl.probes.Startup} {
		r.OnSet(probed)
	}
	e.elideChecks()
	known := e.runtimeKnown
	e.housekeeping = &loop.Memo{Of: []*loop.Version{kl.pods.Version(), kl.workers.Version(), &e.runtime}, Known: known}
	if kl.gcPolicy().MinAge == 0 { // else a pass goes by the time, too
		e.containerGC = &loop.Memo{Of: []*loop.Version{kl.workers.Version(), &e.runtime}, Known: known}
		kl.gc.pass = remembered(e.containerGC, kl.gc.pass)
	}
	if kl.l.ChecksElision() {
		e.describe(nodeStatus)
	}
}

// loops has passes left out of what has just been started.
func (e *elision) loops(checks *loop.Periodic) {
	if e.notifier == nil {
		return
	}
	e.checks.passes = checks
	checks.Elide(e.checks)
	e.syncs.ElideTicks(e.kl.loop.ticks)
	e.kl.loop.housekeeping.Elide(e.housekeeping)
}

// imageListGeneration is implemented by a runtime client that knows, without a
// call, whether ListImages would say something new; as statusGeneration.
type imageListGeneration interface{ ImageListGeneration() uint64 }

// sameImages reports whether a listing of images would find the list that the
// kubelet has.
func (e *elision) sameImages() bool {
	return e.imageList != 0 && e.imageList == e.images.ImageListGeneration()
}

// rememberedImages notes of which generation a list of images is.
func (e *elision) rememberedImages(list func(context.Context) bool) func(context.Context) bool {
	return func(ctx context.Context) bool {
		// The generation is read before the call: a change during it must not
		// count as seen.
		generation := uint64(0)
		if e.images != nil {
			generation = e.images.ImageListGeneration()
		}
		e.imageList = 0
		good := list(ctx)
		if good {
			e.imageList = generation
		}
		return good
	}
}

// catchUp accounts for what was left out so far.
func (e *elision) catchUp() {
	e.kl.loop.ticks.CatchUp()
	if e.checks != nil {
		e.checks.passes.CatchUp()
	}
}

// resyncs counts the syncs that were left out.
// It is for Stats, which must not depend on elision otherwise.
func (e *elision) resyncs() uint64 {
	if e.syncs == nil {
		return 0
	}
	return e.syncs.Elided()
}

// elideCPUs has passes of the CPU manager elided while nobody's CPUs could be
// others.
func (e *elision) elideCPUs() {
	kl, m := e.kl, e.kl.containers
	e.cpus = &loop.Memo{Of: []*loop.Version{kl.pods.Version(), kl.workers.Version(), kl.statusManager.Version(), m.cpuManager.Version()}}
	reconcile := remembered(e.cpus, m.reconcile)
	m.reconcile = func(ctx context.Context) bool {
		settled := reconcile(ctx)
		e.cpus.Accept(m.cpuManager.Version()) // what it took back itself it has told of
		return settled
	}
}

// runtimeKnown reports whether the runtime's version tells of all that listings
// show: not while they fail or take time, when no two generations are equal.
func (e *elision) runtimeKnown() bool {
	n := e.notifier.Generation()
	return n != 0 && n == e.notifier.Generation()
}

// remembered has a memo told of a body's passes.
func remembered(m *loop.Memo, body func(context.Context) bool) func(context.Context) bool {
	return func(ctx context.Context) bool {
		m.Begin()
		settled := body(ctx)
		m.End(settled)
		return settled
	}
}

// cleanups leaves out a housekeeping pass that the memo knows would find nothing. A tick
// that came while the sync loop was busy is not left out by itself.
//
// A pass reads the pod manager, the workers' records, the statuses' phases, the
// runtime's running pods and the pod directories, and nothing else. Records grow
// also by every way in which a status becomes terminal, a rejection aside, which
// comes with a pod; directories are made by syncs of pods that are new. Back-off
// entries, which a pass drops 10 minutes after their last use, are reset by their
// next use at that age anyway.
func (e *elision) cleanups(pass func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	m := e.housekeeping
	if m == nil {
		return pass
	}
	return func(ctx context.Context) (acted bool, err error) {
		if m.Settled() {
			return false, nil
		}
		m.Begin()
		acted, err = pass(ctx)
		m.End(err == nil && !acted)
		return acted, err
	}
}

// RuntimeErrorsFrom implements podworkers.Surroundings.
func (e *elision) RuntimeErrorsFrom() int64 {
	s := e.kl.node.state
	if s.lastSync == 0 || s.runtimeError != nil {
		return 0
	}
	at := e.pleg.HealthyUntil()
	// While checks are left out, each would have been answered and renewed
	// lastSync.
	if !e.checks.Parked() {
		at = min(at, s.lastSync+int64(runtimeDownAfter))
	}
	return at
}

// RuntimeQuiet implements podworkers.Surroundings.
func (e *elision) RuntimeQuiet() bool { return e.checks.Parked() && e.pleg.Parked() }

// NetworkError implements podworkers.Surroundings.
func (e *elision) NetworkError() error { return e.kl.node.state.networkError }

// FirstHost implements podworkers.Surroundings.
func (e *elision) FirstHost() *v1.HostIP {
	if ips := e.kl.node.hostIPs(); e.kl.client != nil && len(ips) > 0 {
		return &ips[0]
	}
	return nil
}

// nodeElided reports whether what the node's status shows changes only together
// with a version.
func (e *elision) nodeElided() bool {
	return e.notifier != nil && e.RuntimeQuiet() && e.kl.node.state.storageError == nil
}
