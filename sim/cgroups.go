package sim

import (
	"context"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// cgroups are a simulated machine's: what its kubelets have set. The cgroups of
// classes and of pods are not kept, since they follow from the pods (see
// [Node.Cgroups]); limits of memory and processes are the runtime's to enforce.
type cgroups struct {
	// memory takes the memory limit of all pods in bytes, pids that of their
	// processes; 0 is none.
	memory, pids func(limit int64)
}

var _ cm.NodeCgroups = cgroups{}

// SetRoot implements cm.NodeCgroups.
func (c cgroups) SetRoot(_ context.Context, v cm.NodeCgroup) error {
	if c.memory != nil && v.MemoryLimit != nil {
		c.memory(*v.MemoryLimit)
	}
	if c.pids != nil && v.Pids != nil {
		c.pids(*v.Pids)
	}
	return nil
}

// SetReserved implements cm.NodeCgroups. A machine has whatever cgroup its
// configuration names; nothing that runs in one is simulated but the machine's
// own use, which has no limit.
func (c cgroups) SetReserved(context.Context, string, cm.NodeCgroup) error { return nil }

// Cgroups returns the node's cgroups above those of containers with their
// values, see [kubelet.Kubelet.Cgroups]; nil while no kubelet runs.
func (n *Node) Cgroups() []cm.Cgroup {
	if n.kubelet == nil {
		return nil
	}
	return n.kubelet.Cgroups(context.Background())
}
