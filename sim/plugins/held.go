package plugins

import (
	"context"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// heldVolume is a volume of a Storage whose data is on the node, or is coming.
type heldVolume struct {
	tree    *memfs.Tree // nil: it is coming
	come    loop.Event
	waiting int      // for it to come
	targets []string // where it is mounted
}

// inline reports whether a volume is one of a pod's own, by the name that kubelets give it
// (makeVolumeHandle): it is there as long as it is mounted.
func inline(handle string) bool {
	const digits = 64
	return strings.HasPrefix(handle, "csi-") && len(handle) == len("csi-")+digits
}

// acquire brings a volume's data to the node.
func (d *csiDriver) acquire(ctx context.Context, handle string) (*memfs.Tree, error) {
	if d.o.Storage == nil || inline(handle) {
		return d.h.tree(d.o.Driver, handle), nil
	}
	tree, err := d.h.acquire(ctx, d.o.Storage, volumeKey{d.o.Driver, handle})
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return tree, nil
}

// acquire brings data to the node that a Storage has. The error is the context's.
func (h *Host) acquire(ctx context.Context, s *Storage, key volumeKey) (*memfs.Tree, error) {
	v := h.held[key]
	if v == nil {
		v = &heldVolume{}
		h.held[key] = v
		h.l.Send(s.l, s.o.Network, h.stream, func() { s.take(h, key.handle) })
	}
	if v.tree == nil {
		v.waiting++
		err := v.come.Wait(ctx)
		v.waiting--
		if err != nil {
			return nil, err //nolint:wrapcheck // The caller says what for.
		}
	}
	return v.tree, nil
}

// arrive has a volume's data be on the node.
func (h *Host) arrive(key volumeKey, tree *memfs.Tree, size int64) {
	v := h.held[key]
	if v == nil || v.tree != nil {
		return // it was taken away meanwhile, with what came twice
	}
	if tree.Size == 0 {
		tree.Size = size
	}
	v.tree = tree
	v.come.Fire()
}

// mounted notes where a volume is mounted.
func (h *Host) mounted(key volumeKey, target string) {
	if v := h.held[key]; v != nil && !slices.Contains(v.targets, target) {
		v.targets = append(v.targets, target)
	}
}

// unmounted notes that a volume is mounted somewhere no more. With its last mount its data
// goes back.
func (h *Host) unmounted(s *Storage, key volumeKey, target string) {
	if s != nil && inline(key.handle) {
		delete(h.trees, key)
	}
	v := h.held[key]
	if v == nil || s == nil {
		return
	}
	v.targets = slices.DeleteFunc(v.targets, func(t string) bool { return t == target || !h.fs.Mounted(t) })
	if len(v.targets) > 0 || v.tree == nil || v.waiting > 0 {
		return
	}
	delete(h.held, key)
	tree := v.tree
	h.l.Send(s.l, s.o.Network, h.stream, func() { s.give(h, key.handle, tree) })
}

// copyOf returns a volume's data, or a copy while it is mounted; nil: the node has it not.
// With away the node has it no more.
func (h *Host) copyOf(key volumeKey, away bool) *memfs.Tree {
	v := h.held[key]
	if v == nil || v.tree == nil {
		return nil
	}
	mounted := slices.ContainsFunc(v.targets, h.fs.Mounted)
	if away {
		delete(h.held, key)
		if !mounted {
			return v.tree
		}
	}
	return v.tree.Clone()
}

// resize has a volume's file system have more room, or its block device.
func (h *Host) resize(key volumeKey, size int64) {
	v := h.held[key]
	if v == nil || v.tree == nil {
		return
	}
	v.tree.Resize(h.fs, size)
	for _, at := range v.targets {
		if strings.HasPrefix(at, blockDir) {
			_ = h.extend(path.Join(at, blockData), size) // a volume that is full can't be written to either
		}
	}
}
