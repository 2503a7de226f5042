package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/internal/images/pullmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/nodelease"
	"github.com/drydock-sim/drydock/kubelet/internal/nodeshutdown"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
)

// nodeReporter is the kubelet's node role: it registers the node, renews its
// lease, asks the runtime how it is, and tells the API of all that.
type nodeReporter struct {
	*nodeView
	runtime    *kuberuntime.Manager
	pulls      *pullmanager.Manager
	nodeStatus nodeStatusManager
	lease      *nodelease.Manager
	// startModules starts what needs the runtime, once.
	startModules func(ctx context.Context) error
	lock         *loop.Semaphore // one check of the runtime at a time
	checks       uint64          // counts the checks
	// check is checkRuntime and list listImages, unless something stands before
	// them.
	check, list func(ctx context.Context) bool
}

// newNodeReporter makes what reports the node. modules are started once, when the
// runtime is up for the first time.
func newNodeReporter(view *nodeView, rt *kuberuntime.Manager, pulls *pullmanager.Manager, ev *eviction.Manager, shutdown *nodeshutdown.Manager, volumes *podVolumes, modules func(context.Context) error) *nodeReporter {
	n := &nodeReporter{nodeView: view, runtime: rt, pulls: pulls, startModules: modules, lock: loop.NewSemaphore(1)}
	n.check, n.list = n.checkRuntime, n.listImages
	cfg := n.cfg
	o := nodestatus.Options{
		Loop: n.l, Recorder: n.recorder, NodeName: n.nodeName, Labels: n.opts.NodeLabels,
		Register: ptr.Deref(cfg.RegisterNode, true), RegisterTaints: nodestatus.RegisterTaints(cfg.RegisterWithTaints, n.opts.ExternalCloudProvider), ProviderID: cfg.ProviderID,
		Annotations: n.settings.annotations, Ref: n.nodeRef,
		UpdateFrequency: cfg.NodeStatusUpdateFrequency.Duration, ReportFrequency: cfg.NodeStatusReportFrequency.Duration,
		Port: cfg.Port, RuntimeName: n.runtime.RuntimeName(), KubeletVersion: Version,
		DeclaredFeatures: n.settings.declared, Timeout: kubeletcfg.HeartbeatTimeout(cfg),
		Sources: n.nodeSources(ev, shutdown, volumes), Log: n.log,
	}
	if cfg.NodeStatusMaxImages != nil {
		o.MaxImages = *cfg.NodeStatusMaxImages
	}
	lo := nodelease.Options{Loop: n.l, NodeName: n.nodeName, DurationSeconds: cfg.NodeLeaseDurationSeconds, Timeout: kubeletcfg.HeartbeatTimeout(cfg), Log: n.log}
	if n.client != nil {
		o.Client, lo.Client = n.client, n.client
	}
	n.nodeStatus = nodestatus.New(o)
	n.lease = nodelease.New(lo)
	return n
}

// start starts what needs an API: node status, lease, and the mirrors of
// the static pods that are known when the node object appears.
func (n *nodeReporter) start(reconcileMirrors func(context.Context)) {
	if n.client == nil {
		return
	}
	n.nodeStatus.Start(n.g)
	n.lease.Start(n.g)
	n.g.Go("csi-node", n.initializeCSINode)
	var poll *loop.Periodic
	poll = n.g.EveryNow("fast-static-pods", mirrorPollPeriod, 0, func() {
		if n.get() != nil {
			poll.Stop()
			n.g.Go("fast-static-pods", reconcileMirrors)
		}
	})
}

// waitForNode gives the node's first list the time that upstream takes to build
// itself meanwhile: by when it runs, an API that answers has answered. So the
// first relist and the sync loop come this much after the pod sources' start,
// and the relists after that much behind the sources' look for the node, which
// happens on whole seconds.
func (n *nodeView) waitForNode(ctx context.Context) {
	if n.client == nil {
		return
	}
	if n.l.Sleep(ctx, buildTime) == nil && !n.hasSynced() {
		n.logf("Node informer has not synced yet")
	}
}

// updateRuntimeUp asks the runtime for its status. Its callers come one after
// another, so a slow first run holds the others.
func (n *nodeReporter) updateRuntimeUp(ctx context.Context) {
	if n.lock.Acquire(ctx) != nil {
		return
	}
	defer n.lock.Release()
	n.check(ctx)
}

// checkRuntime asks the runtime for its status, and reports whether it is well.
func (n *nodeReporter) checkRuntime(ctx context.Context) bool {
	u := &n.facts
	n.checks++
	resp, err := n.runtime.Status(ctx)
	if err != nil {
		n.logf("Container runtime sanity check failed: %v", err)
		return false
	}
	conditions := resp.Status.GetConditions()
	var networkError error
	if c := runtimeCondition(conditions, runtimeapi.NetworkReady); c == nil || !c.Status {
		networkError = fmt.Errorf("container runtime network not ready: %s", conditionText(c))
		n.logf("Container runtime network not ready networkReady=%q", conditionText(c))
	}
	n.state.setNetworkError(networkError)
	if c := runtimeCondition(conditions, runtimeapi.RuntimeReady); c == nil || !c.Status {
		n.state.setRuntimeError(errors.New("container runtime not ready: " + conditionText(c)))
		n.logf("Container runtime not ready runtimeReady=%q", conditionText(c))
		return false
	}
	n.state.setRuntimeError(nil)
	u.set(resp)
	if !u.once {
		if err := n.startModules(ctx); err != nil {
			n.exit(err)
			return false
		}
		u.once = true // local storage is known from now on
	}
	n.state.lastSync = n.l.UnixNano()
	return true
}

// updatePodCIDR hands the addresses of the node's pods to the runtime, if it has
// others, and reports whether it has (pkg/kubelet/kubelet_network.go). On an error it
// may have.
func (n *nodeReporter) updatePodCIDR(ctx context.Context, cidr string) (bool, error) {
	was := n.state.podCIDR
	if was == cidr {
		return false, nil
	}
	if err := n.runtime.UpdatePodCIDR(ctx, cidr); err != nil {
		return true, fmt.Errorf("failed to update pod CIDR: %w", err)
	}
	n.logf("Updating Pod CIDR originalPodCIDR=%q newPodCIDR=%q", was, cidr)
	n.state.podCIDR = cidr
	return true, nil
}

// listImages reads the list of images. An unchanged list, known by its
// entries' addresses, stays the same slice. It reports whether the runtime
// answered.
func (n *nodeReporter) listImages(ctx context.Context) bool {
	raw, err := n.runtime.ListImages(ctx)
	if err != nil {
		n.logf("Failed to update image list: %v", err)
		return false
	}
	if slices.Equal(raw, n.images.raw) {
		return true
	}
	// The first list tells which images were there before any pull.
	if n.images.raw == nil {
		n.pulls.Initialize(raw)
	}
	list := make([]nodestatus.Image, 0, len(raw))
	for _, r := range raw {
		list = append(list, nodestatus.Image{ID: r.Id, RepoDigests: r.RepoDigests, RepoTags: r.RepoTags, Size: int64(r.Size)})
	}
	n.images.set(slices.Clone(raw), list)
	return true
}

// initializeCSINode stands for the CSINode object, which upstream writes once
// the API answers and the node is there; until then the node is not ready. The
// object itself belongs to CSI volumes.
func (n *nodeReporter) initializeCSINode(ctx context.Context) {
	_, err := n.client.GetNode(ctx, n.nodeName)
	for err != nil && !apierrors.IsNotFound(err) { // the API does not answer yet
		if n.l.Sleep(ctx, csiPoll) != nil {
			return
		}
		_, err = n.client.GetNode(ctx, n.nodeName)
	}
	pause := csiFirstPause
	for try := 1; err != nil; try++ {
		if try == csiTries {
			n.exit(fmt.Errorf("failed to initialize CSINode after retrying: %w", err))
			return
		}
		if n.l.Sleep(ctx, pause) != nil {
			return
		}
		pause *= csiPauseFactor
		_, err = n.client.GetNode(ctx, n.nodeName)
	}
	n.state.setStorageError(nil)
}

// nodeSources says where the node's status comes from.
func (n *nodeReporter) nodeSources(ev *eviction.Manager, shutdown *nodeshutdown.Manager, volumes *podVolumes) nodestatus.Sources {
	machine := n.machine()
	return nodestatus.Sources{
		Addresses: n.own.Of,
		Machine:   func() *nodestatus.Machine { return machine },
		Resources: n.nodeResources,
		RuntimeVersion: func(ctx context.Context) (string, error) {
			v, err := n.runtime.Version(ctx)
			if err != nil {
				return "", err
			}
			return v.RuntimeVersion, nil
		},
		Images:          n.images.get,
		RuntimeHandlers: func() []v1.NodeRuntimeHandler { return n.facts.handlers },
		Features:        func() *v1.NodeFeatures { return n.facts.features },
		MemoryPressure:  func() bool { return ev.Under(v1.NodeMemoryPressure) },
		DiskPressure:    func() bool { return ev.Under(v1.NodeDiskPressure) },
		PIDPressure:     func() bool { return ev.Under(v1.NodePIDPressure) },
		RuntimeErrors:   n.state.runtimeErrors,
		NetworkErrors:   func() error { return n.state.networkError },
		StorageErrors:   func() error { return n.state.storageError },
		ShutdownErrors:  shutdown.ShutdownStatus,
		VolumesInUse:    volumes.GetVolumesInUse,
		ReportedInUse:   volumes.MarkVolumesAsReportedInUse,
		UpdatePodCIDR:   n.updatePodCIDR,
		UpdateRuntimeUp: n.updateRuntimeUp,
		Node:            n.get,
	}
}
