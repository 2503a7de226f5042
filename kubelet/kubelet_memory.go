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
func (b *base) swap() cm.Swap {
	if m, ok := b.opts.Machine.(swapper); ok {
		return m.Swap()
	}
	return cm.Swap{}
}

// limitedSwap is the swapBehavior of that name.
const limitedSwap = "LimitedSwap"

// checkSwap refuses a machine whose swap the configuration does not want
// (upstream cm.NewContainerManager).
func (b *base) checkSwap() error {
	if b.cfg.MemorySwap.SwapBehavior == limitedSwap && b.opts.CgroupV1 {
		return errors.New("swap feature is enabled and LimitedSwap but it is only supported with cgroupv2")
	}
	s := b.swap()
	switch {
	case s.Capacity == 0:
	case ptr.Deref(b.cfg.FailSwapOn, true):
		return errors.New("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")
	case !s.Noswap:
		// Swap is permitted here, so this is a warning only, as upstream's.
		b.nodeEvent(v1.EventTypeWarning, events.PossibleMemoryBackedVolumesOnDisk, "The tmpfs noswap option is not supported. "+
			"Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.")
	}
	return nil
}

// addMemory says what containers get of memory beside limits.
func (m *containerManager) addMemory(n *resources.Options) {
	n.MemoryOOMGroup = !m.opts.CgroupV1 && !ptr.Deref(m.cfg.SingleProcessOOMKill, false)
	s := m.swap()
	n.Swap = resources.Swap{Controller: s.Controller, CgroupV1: m.opts.CgroupV1 || s.CgroupV1, Limited: m.cfg.MemorySwap.SwapBehavior == limitedSwap, Capacity: s.Capacity}
	if m.memoryQoS() {
		mem := m.settings.reserved.Enforceable(m.settings.resources.all.Capacity)[v1.ResourceMemory]
		n.MemoryQoS = &resources.MemoryQoS{ThrottlingFactor: ptr.Deref(m.cfg.MemoryThrottlingFactor, 0.9), Tiered: m.tieredMemory(), Allocatable: mem.Value()}
	}
}
