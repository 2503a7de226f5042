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
	// once: the runtime has been up, and what depends on it was started.
	once     bool
	handlers []v1.NodeRuntimeHandler
	features *v1.NodeFeatures
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
	kl.bodies.checkRuntime(ctx)
}

// checkRuntime asks the runtime for its status, and reports whether it is well.
func (kl *Kubelet) checkRuntime(ctx context.Context) bool {
	u := &kl.runtimeUp
	kl.runtimeChecks++
	resp, err := kl.runtime.Status(ctx)
	if err != nil {
		kl.logf("Container runtime sanity check failed: %v", err)
		return false
	}
	conditions := resp.Status.GetConditions()
	var networkError error
	if c := runtimeCondition(conditions, runtimeapi.NetworkReady); c == nil || !c.Status {
		networkError = fmt.Errorf("container runtime network not ready: %s", conditionText(c))
		kl.logf("Container runtime network not ready networkReady=%q", conditionText(c))
	}
	kl.state.setNetworkError(networkError)
	if c := runtimeCondition(conditions, runtimeapi.RuntimeReady); c == nil || !c.Status {
		kl.state.setRuntimeError(errors.New("container runtime not ready: " + conditionText(c)))
		kl.logf("Container runtime not ready runtimeReady=%q", conditionText(c))
		return false
	}
	kl.state.setRuntimeError(nil)
	u.set(resp)
	if !u.once {
		if err := kl.startRuntimeModules(ctx); err != nil {
			kl.exit(err)
			return false
		}
		u.once = true // local storage is known from now on
	}
	kl.state.lastSync = kl.l.UnixNano()
	return true
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
