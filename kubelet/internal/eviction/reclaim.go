package eviction

import "context"

// Layout says which file systems a node has for its images and containers.
type Layout struct {
	// Dedicated: images have a file system of their own, and with them the
	// writable layers.
	Dedicated bool
	// Split: writable layers are on the root's file system all the same.
	Split bool
}

// measured says what a disk signal measures of a pod.
func (l Layout) measured(s Signal) measured {
	image := s == ImageFsAvailable || s == ImageFsInodesFree
	container := s == ContainerFsAvailable || s == ContainerFsInodesFree
	switch {
	case l.Dedicated && l.Split && image:
		return measured{}
	case l.Dedicated && !l.Split && (image || container):
		return measured{layer: true}
	case l.Dedicated && !l.Split:
		return measured{logs: true, volumes: true}
	}
	return measured{layer: true, logs: true, volumes: true}
}

// reclaims says what can be freed for a signal before pods are evicted.
func (l Layout) reclaims(s Signal) (containers, images bool) {
	switch s {
	case NodeFsAvailable, NodeFsInodesFree:
		return !l.Dedicated || l.Split, !l.Dedicated
	case ImageFsAvailable, ImageFsInodesFree:
		return !l.Split, true
	case ContainerFsAvailable, ContainerFsInodesFree:
		return true, !l.Split
	}
	return false, false
}

// reclaim frees what no pod needs, and reports whether after that nothing is low
// any more: judged by fresh statistics, by all configured thresholds and
// including the minimum reclaim. What goes wrong meanwhile decides nothing.
func (m *Manager) reclaim(ctx context.Context, s Signal) bool {
	containers, images := m.layout.reclaims(s)
	free := func(what string, fn func(context.Context) error) {
		if fn == nil {
			return
		}
		if err := fn(ctx); err != nil {
			m.log("Eviction manager: unexpected error when attempting to reduce %s pressure (%s): %v", s, what, err)
		}
	}
	if containers {
		free("containers", m.o.DeleteUnusedContainers)
	}
	if images {
		free("images", m.o.DeleteUnusedImages)
	}
	if !containers && !images {
		return false
	}
	summary, err := m.o.Stats.Summary(ctx, true)
	if err != nil {
		m.log("Eviction manager: failed to get summary stats after resource reclaim: %v", err)
		return false
	}
	return len(met(m.thresholds, observe(summary), true)) == 0
}
