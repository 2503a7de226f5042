// Package containerdeletor removes dead containers of pods that go on, or whose
// dead containers are of no use any more. It mirrors upstream's
// pkg/kubelet/pod_container_deletor.go.
package containerdeletor

import (
	"context"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

const (
	// deletorCapacity bounds the containers that wait for their removal; what
	// comes beyond is left to garbage collection.
	deletorCapacity = 50
	// minDeadContainerInPod stay per container name, whatever the policy says.
	minDeadContainerInPod = 1
)

// Deletor removes dead containers one at a time. Its task exists only while there is
// something to remove.
type Deletor struct {
	group *loop.Group
	// remove is the runtime's RemoveContainer.
	remove func(ctx context.Context, id string) error
	logf   func(format string, args ...any)
	// keep is how many dead containers stay per container name.
	keep  int
	queue []string
	busy  bool
}

// New returns a Deletor whose task is of a group. keep is how many dead containers
// stay per container name; it is at least one.
func New(g *loop.Group, keep int, remove func(ctx context.Context, id string) error, logf func(format string, args ...any)) *Deletor {
	return &Deletor{group: g, keep: max(keep, minDeadContainerInPod), remove: remove, logf: logf}
}

// DeleteContainersInPod queues the exited containers of a pod that are not to
// be kept: all of them with removeAll, else those with the name of the one
// with the given ID beyond the newest.
func (d *Deletor) DeleteContainersInPod(filterID string, status *kubecontainer.PodStatus, removeAll bool) {
	keep := d.keep
	if removeAll {
		filterID, keep = "", 0
	}
	for _, id := range containersToDelete(filterID, status, keep) {
		// Upstream's buffered channel refuses what is beyond, too.
		if len(d.queue) >= deletorCapacity {
			d.logf("Failed to issue the request to remove container %s", id)
			continue
		}
		d.queue = append(d.queue, id)
	}
	if len(d.queue) > 0 && !d.busy {
		d.busy = true
		d.group.Go("container-deletor", d.run)
	}
}

// run also removes what is queued while it waits for the runtime. A failure is
// left to garbage collection.
func (d *Deletor) run(ctx context.Context) {
	defer func() { d.busy = false }()
	for len(d.queue) > 0 {
		id := d.queue[0]
		d.queue = d.queue[1:]
		if err := d.remove(ctx, id); err != nil {
			d.logf("DeleteContainer returned error for container %s: %v", id, err)
		}
	}
	d.queue = nil
}

// containersToDelete returns the exited containers beyond the newest keep ones.
// Statuses are sorted newest first.
// It mirrors upstream's getContainersToDeleteInPod.
func containersToDelete(filterID string, status *kubecontainer.PodStatus, keep int) []string {
	name := ""
	if filterID != "" {
		for _, c := range status.ContainerStatuses {
			if c.ID == filterID {
				name = c.Name
			}
		}
		// The container has been removed meanwhile.
		if name == "" {
			return nil
		}
	}
	var out []string
	for _, c := range status.ContainerStatuses {
		if c.State != kubecontainer.StateExited || filterID != "" && c.Name != name {
			continue
		}
		if keep > 0 {
			keep--
			continue
		}
		out = append(out, c.ID)
	}
	return out
}
