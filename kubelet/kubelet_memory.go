package kubelet

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
)

// swapper is a Machine that may have swap.
type swapper interface {
	// Swap may be asked at any time and must not wait.
	Swap() cm.Swap
}

// swap is the machine's.
func (kl *Kubelet) swap() cm.Swap {
	if m, ok := kl.opts.Machine.(swapper); ok {
		return m.Swap()
	}
	return cm.Swap{}
}

// limitedSwap is the swapBehavior of that name.
const limitedSwap = "LimitedSwap"

// checkSwap refuses a machine whose swap the configuration does not want
// (upstream cm.NewContainerManager).
func (kl *Kubelet) checkSwap() error {
	if kl.cfg.MemorySwap.SwapBehavior == limitedSwap && kl.opts.CgroupV1 {
		return errors.New("swap feature is enabled and LimitedSwap but it is only supported with cgroupv2")
	}
	s := kl.swap()
	switch {
	case s.Capacity == 0:
	case ptr.Deref(kl.cfg.FailSwapOn, true):
		return errors.New("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")
	case !s.Noswap:
		// Swap is permitted here, so this is a warning only, as upstream's.
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.PossibleMemoryBackedVolumesOnDisk, "The tmpfs noswap option is not supported. "+
			"Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.")
	}
	return nil
}

// addMemory says what containers get of memory beside limits.
func (kl *Kubelet) addMemory(n *resources.Options) {
	n.MemoryOOMGroup = !kl.opts.CgroupV1 && !ptr.Deref(kl.cfg.SingleProcessOOMKill, false)
	s := kl.swap()
	n.Swap = resources.Swap{Controller: s.Controller, CgroupV1: kl.opts.CgroupV1 || s.CgroupV1, Limited: kl.cfg.MemorySwap.SwapBehavior == limitedSwap, Capacity: s.Capacity}
	if kl.memoryQoS() {
		mem := kl.reserved.Enforceable(kl.settings.resources.all.Capacity)[v1.ResourceMemory]
		n.MemoryQoS = &resources.MemoryQoS{ThrottlingFactor: ptr.Deref(kl.cfg.MemoryThrottlingFactor, 0.9), Tiered: kl.tieredMemory(), Allocatable: mem.Value()}
	}
}
