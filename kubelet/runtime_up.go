package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
)

// runtimeUp is what the last good runtime status told.
type runtimeUp struct {
	lock *loop.Semaphore
	// rounds are those of updateRuntimeUp, left out while the runtime tells of
	// its changes and was found well.
	rounds *loop.Rounds
	// generation is the runtime's StatusGeneration from before the last good
	// status; 0 if it has none.
	generation uint64
	// once: the runtime has been up, and what depends on it was started.
	once     bool
	handlers []v1.NodeRuntimeHandler
	features *v1.NodeFeatures
}

// statusGeneration is implemented by a runtime client that knows, without a
// call, whether Version and Status would say something new.
type statusGeneration interface {
	// StatusGeneration grows with every change that they could show. 0 means
	// that it is not known, so the real call must be made.
	StatusGeneration() uint64
}

// statusGeneration returns the runtime's, 0 if it has none or nothing is to be
// left out.
func (kl *Kubelet) statusGeneration() uint64 {
	if kl.statuses == nil {
		return 0
	}
	return kl.statuses.StatusGeneration()
}

// runtimeStillUp is updateRuntimeUp for a runtime whose answer is known to be
// what it was when all was well: that only renews the time of the answer. It
// tells whether it did so.
func (kl *Kubelet) runtimeStillUp() bool {
	u := &kl.runtimeUp
	if !u.once || u.generation == 0 || u.generation != kl.statusGeneration() || u.lock.Taken() ||
		kl.state.runtimeError != nil || kl.state.networkError != nil {
		return false
	}
	kl.runtimeChecks++
	kl.state.lastSync = kl.l.UnixNano()
	if kl.loop.notified { // it stays so until the runtime tells of a change
		u.rounds.Park()
		kl.state.assured = true
	}
	return true
}

// runtimeChanged is called when the runtime may answer otherwise than before.
func (kl *Kubelet) runtimeChanged() {
	kl.stir()
	if u := &kl.runtimeUp; kl.state.assured {
		n, last := u.rounds.Unpark()
		kl.runtimeChecks += uint64(n)
		kl.state.lastSync = max(kl.state.lastSync, last)
		kl.state.assured = false
		kl.planSyncTick()
		kl.nodeStatus.Unpark()
	}
	kl.unparkHousekeeping()
}

// updateRuntimeUp asks the runtime for its status. Its callers come one after
// another, so a slow first run holds the others.
func (kl *Kubelet) updateRuntimeUp(ctx context.Context) {
	u := &kl.runtimeUp
	if u.lock == nil {
		u.lock = loop.NewSemaphore(1)
	}
	if u.lock.Acquire(ctx) != nil {
		return
	}
	defer u.lock.Release()
	kl.runtimeChecks++
	generation := kl.statusGeneration()
	u.generation = 0
	resp, err := kl.runtime.Status(ctx)
	if err != nil {
		kl.logf("Container runtime sanity check failed: %v", err)
		return
	}
	conditions := resp.Status.GetConditions()
	kl.state.networkError = nil
	if c := runtimeCondition(conditions, runtimeapi.NetworkReady); c == nil || !c.Status {
		kl.state.networkError = fmt.Errorf("container runtime network not ready: %s", conditionText(c))
		kl.logf("Container runtime network not ready networkReady=%q", conditionText(c))
	}
	if c := runtimeCondition(conditions, runtimeapi.RuntimeReady); c == nil || !c.Status {
		kl.state.runtimeError = errors.New("container runtime not ready: " + conditionText(c))
		kl.planSyncTick()
		kl.logf("Container runtime not ready runtimeReady=%q", conditionText(c))
		return
	}
	kl.state.runtimeError = nil
	u.set(resp)
	if !u.once {
		if err := kl.startRuntimeModules(ctx); err != nil {
			kl.exit(err)
			return
		}
		u.once = true // local storage is known from now on
	}
	kl.state.lastSync = kl.l.UnixNano()
	u.generation = generation
}

// startRuntimeModules starts what needs the runtime, once.
func (kl *Kubelet) startRuntimeModules(ctx context.Context) error {
	if kl.client != nil && kl.node.get() == nil {
		// The container manager and the DRA manager each ask for the node. While
		// the API has none they get one built here, whose new conditions show in
		// events.
		kl.nodeStatus.InitialNode(ctx)
		kl.nodeStatus.InitialNode(ctx)
	}
	if err := kl.reserved.Check(kl.settings.resources.all.Capacity); err != nil {
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.KubeletSetupFailed, err.Error())
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	if err := kl.startManagers(); err != nil {
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	if err := kl.startContainerLogs(); err != nil {
		return err
	}
	if err := kl.startCgroups(ctx); err != nil {
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	kl.eviction.Start()
	kl.startShutdown(ctx)
	return nil
}

// set keeps the handlers, sorted by name, and the features; what did not change
// stays the same object.
func (u *runtimeUp) set(resp *runtimeapi.StatusResponse) {
	handlers := make([]v1.NodeRuntimeHandler, 0, len(resp.RuntimeHandlers))
	for _, h := range resp.RuntimeHandlers {
		o := v1.NodeRuntimeHandler{Name: h.Name}
		if f := h.Features; f != nil {
			rro, userns := f.RecursiveReadOnlyMounts, f.UserNamespaces
			o.Features = &v1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &rro, UserNamespaces: &userns}
		}
		handlers = append(handlers, o)
	}
	slices.SortFunc(handlers, func(a, b v1.NodeRuntimeHandler) int { return strings.Compare(a.Name, b.Name) })
	if !slices.EqualFunc(handlers, u.handlers, sameHandler) {
		u.handlers = handlers
	}
	if f := resp.Features; f != nil && (u.features == nil || *u.features.SupplementalGroupsPolicy != f.SupplementalGroupsPolicy) {
		policy := f.SupplementalGroupsPolicy
		u.features = &v1.NodeFeatures{SupplementalGroupsPolicy: &policy}
	}
}

func sameHandler(a, b v1.NodeRuntimeHandler) bool {
	if a.Name != b.Name || (a.Features == nil) != (b.Features == nil) {
		return false
	}
	return a.Features == nil || *a.Features.RecursiveReadOnlyMounts == *b.Features.RecursiveReadOnlyMounts &&
		*a.Features.UserNamespaces == *b.Features.UserNamespaces
}

func runtimeCondition(list []*runtimeapi.RuntimeCondition, t string) *runtimeapi.RuntimeCondition {
	for _, c := range list {
		if c.Type == t {
			return c
		}
	}
	return nil
}

func conditionText(c *runtimeapi.RuntimeCondition) string {
	if c == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s=%t reason:%s message:%s", c.Type, c.Status, c.Reason, c.Message)
}

// knownRuntimeVersion is what a Version call would return, if that is known
// without one: the call would be answered, and the runtime answered its last
// status check, so it is the one that was asked before.
func (kl *Kubelet) knownRuntimeVersion() (string, bool) {
	v := kl.runtime.RuntimeVersion()
	if kl.statusGeneration() == 0 || v == nil || kl.state.runtimeErrors() != nil ||
		!kl.state.assured && kl.l.UnixNano()-kl.state.lastSync > int64(2*runtimeUpPeriod) {
		return "", false
	}
	return v.RuntimeVersion, true
}
