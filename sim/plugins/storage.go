package plugins

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/sidecars"
)

// StorageOptions describe what is behind a driver of CSI.
type StorageOptions struct {
	Driver string
	// Latency is how long a call of the controller service takes, by its name
	// ("CreateVolume"). Those that are not there take DefaultStorageLatency.
	Latency map[string]Span
	// TopologyKey is the label by which nodes are in a zone; "": there are no zones.
	TopologyKey string
	// Capacity is how many bytes each zone has; a zone that is not there has no end. Without
	// a TopologyKey it is that of the zone "".
	Capacity map[string]int64
	// Tracked has CSIStorageCapacity objects say how much is left.
	Tracked bool
	// NodeExpand has file systems grow on nodes, after the volume has.
	NodeExpand bool
	// QPS is how many requests to the API each sidecar sends in a second; 0 means 5.
	QPS float64
	// Network is how long a message takes to a node, or from one: at least the lookahead.
	Network time.Duration
	// Observe is told of calls of the controller service; nil: nobody watches.
	Observe func(Call)
}

// Span is a time that is drawn from a range.
type Span struct{ Min, Max time.Duration }

// DefaultStorageLatency is how long calls of a controller service take unless it is said: an
// assumption, of the order of what clouds' disks take.
const DefaultStorageLatency = time.Second

// The methods of a controller service that are called here.
const (
	createVolume    = "CreateVolume"
	deleteVolume    = "DeleteVolume"
	publishVolume   = "ControllerPublishVolume"
	unpublishVolume = "ControllerUnpublishVolume"
	expandVolume    = "ControllerExpandVolume"
)

// ControllerMethods are those of the controller service that are called here.
func ControllerMethods() []string {
	return []string{createVolume, deleteVolume, publishVolume, unpublishVolume, expandVolume}
}

// Storage is what is behind a driver: its controller service, with the sidecars that call it,
// and its volumes with their data, on the API's loop. While a node has a volume mounted the
// data is with the node. A volume that nobody made was there before, and has no end.
type Storage struct {
	rules
	o       StorageOptions
	srv     *apiserver.Server
	g       *loop.Group
	stream  uint64
	volumes map[string]*storedVolume // by handle
	drawn   uint64
	// sidecars die together; nil: they are stopped.
	sidecars *loop.Group
}

// storedVolume is a volume of a Storage.
type storedVolume struct {
	handle, zone string
	size         int64
	tree         *memfs.Tree // nil: it is with holders
	holders      []*Host
	attached     map[string]bool // to nodes
	// taking is the queue of who wants the data, or wants it back: one after another.
	taking *loop.Semaphore
}

// StartStorage starts what is behind a driver: from now on its claims are provisioned, its
// volumes attached and expanded.
func StartStorage(srv *apiserver.Server, o StorageOptions) *Storage {
	s := newStorage(srv, o)
	s.StartSidecars()
	return s
}

// newStorage is a Storage that no sidecars act on.
func newStorage(srv *apiserver.Server, o StorageOptions) *Storage {
	l := srv.Loop()
	return &Storage{rules: rules{l: l}, o: o, srv: srv, g: l.NewGroup("storage " + o.Driver), stream: l.NewStream(), volumes: map[string]*storedVolume{}}
}

// StartSidecars starts the sidecars of the controller service, which were stopped.
func (s *Storage) StartSidecars() {
	if s.sidecars == nil {
		s.sidecars = s.l.NewGroup("sidecars of " + s.o.Driver)
		sidecars.Start(sidecars.Options{Group: s.sidecars, Server: s.srv, Driver: s, QPS: s.o.QPS})
	}
}

// StopSidecars has the sidecars crash, in the middle of whatever they do.
func (s *Storage) StopSidecars() {
	if s.sidecars != nil {
		s.sidecars.Kill()
		s.sidecars = nil
	}
}

// DriverName implements sidecars.Driver.
func (s *Storage) DriverName() string { return s.o.Driver }

// TopologyKey implements sidecars.Driver.
func (s *Storage) TopologyKey() string { return s.o.TopologyKey }

// Free implements sidecars.Driver.
func (s *Storage) Free() map[string]int64 {
	if !s.o.Tracked {
		return nil
	}
	out := map[string]int64{}
	for zone := range s.o.Capacity { //drydock:unordered each key is set once
		out[zone], _ = s.free(zone)
	}
	return out
}

// call is a call of the controller service, about a volume.
func (s *Storage) call(ctx context.Context, method, volume string, do func() error) error {
	c := Call{At: s.l.Now(), Plugin: s.o.Driver, Method: method, Volume: volume}
	span, ok := s.o.Latency[method]
	if !ok {
		span = Span{DefaultStorageLatency, DefaultStorageLatency}
	}
	s.drawn++
	if err := s.l.Sleep(ctx, s.l.Between(span.Min, max(span.Min, span.Max), "storage/"+method, volume, s.drawn)); err != nil {
		return err
	}
	rule := s.match(s.o.Driver, method, func() string { return volume })
	_, c.Err = answerAs(ctx, s.l, rule, func() (struct{}, error) { return struct{}{}, do() })
	c.Took = s.l.Since(c.At)
	if s.o.Observe != nil {
		s.o.Observe(c)
	}
	return c.Err
}

// volume returns a volume, which is there from now on if it was not.
func (s *Storage) volume(handle string) *storedVolume {
	v := s.volumes[handle]
	if v == nil {
		v = &storedVolume{handle: handle, tree: newTree(), attached: map[string]bool{}, taking: loop.NewSemaphore(1)}
		s.volumes[handle] = v
	}
	return v
}

// free is how much a zone has left; false: it has no end.
func (s *Storage) free(zone string) (int64, bool) {
	left, ok := s.o.Capacity[zone]
	if !ok {
		return 0, false
	}
	for _, v := range s.volumes { //drydock:unordered sum
		if v.zone == zone {
			left -= v.size
		}
	}
	return left, true
}

// CreateVolume implements sidecars.Driver.
func (s *Storage) CreateVolume(ctx context.Context, handle string, size int64, zones []string) (string, error) {
	err := s.call(ctx, createVolume, handle, func() error {
		if s.volumes[handle] != nil {
			return nil // a call that was repeated
		}
		for _, zone := range zones {
			if free, ends := s.free(zone); !ends || free >= size {
				v := s.volume(handle)
				v.zone, v.size, v.tree.Size = zone, size, size
				return nil
			}
		}
		return status.Errorf(codes.ResourceExhausted, "not enough free space for %d bytes in %q", size, zones)
	})
	if err != nil {
		return "", err
	}
	return s.volumes[handle].zone, nil
}

// DeleteVolume implements sidecars.Driver.
func (s *Storage) DeleteVolume(ctx context.Context, handle string) error {
	return s.call(ctx, deleteVolume, handle, func() error {
		if v := s.volumes[handle]; v != nil && len(v.attached) > 0 {
			return status.Errorf(codes.FailedPrecondition, "volume %s is attached to %q", handle, slices.Sorted(maps.Keys(v.attached))) //drydock:unordered sorted
		}
		delete(s.volumes, handle)
		return nil
	})
}

// AttachVolume implements sidecars.Driver.
func (s *Storage) AttachVolume(ctx context.Context, handle, node string) error {
	return s.call(ctx, publishVolume, handle, func() error {
		s.volume(handle).attached[node] = true
		return nil
	})
}

// DetachVolume implements sidecars.Driver. A volume that the node still has mounted is taken
// away: what is written there from then on is lost.
func (s *Storage) DetachVolume(ctx context.Context, handle, node string) error {
	return s.call(ctx, unpublishVolume, handle, func() error {
		v := s.volume(handle)
		if err := s.recall(ctx, v, func(h *Host) bool { return h.node == node }); err != nil {
			return err
		}
		delete(v.attached, node)
		return nil
	})
}

// ExpandVolume implements sidecars.Driver. A block device has no file system that would have to
// grow on the node.
func (s *Storage) ExpandVolume(ctx context.Context, handle string, block bool, size int64) (bool, error) {
	onNode := s.o.NodeExpand && !block
	err := s.call(ctx, expandVolume, handle, func() error {
		v := s.volume(handle)
		if size <= v.size {
			return nil
		}
		if free, ends := s.free(v.zone); ends && free < size-v.size {
			return status.Errorf(codes.OutOfRange, "not enough free space for %d bytes more", size-v.size)
		}
		v.size = size
		if !onNode {
			s.grow(v)
		}
		return nil
	})
	return onNode, err
}

// grow has the files of a volume have all of its room.
func (s *Storage) grow(v *storedVolume) {
	if v.tree != nil {
		v.tree.Size = v.size
	}
	for _, h := range v.holders {
		size := v.size
		s.l.Send(h.l, s.o.Network, s.stream, func() { h.resize(volumeKey{s.o.Driver, v.handle}, size) })
	}
}

// take has a volume's data go to a node. One that is on other nodes is copied: what all of
// them write is put together as they let go, file by file the newest.
func (s *Storage) take(h *Host, handle string) {
	s.g.Go("take volume", func(ctx context.Context) {
		v := s.volume(handle)
		if v.taking.Acquire(ctx) != nil {
			return
		}
		defer v.taking.Release()
		shared := len(v.holders) > 0
		if shared {
			if err := s.copyBack(ctx, v); err != nil {
				return
			}
		}
		if v.tree == nil {
			v.tree = newTree()
		}
		tree, size := v.tree, v.size
		if shared {
			tree = v.tree.Clone()
		} else {
			v.tree = nil
		}
		if !slices.Contains(v.holders, h) {
			v.holders = append(v.holders, h)
		}
		s.l.Send(h.l, s.o.Network, s.stream, func() { h.arrive(volumeKey{s.o.Driver, handle}, tree, size) })
	})
}

// give has a volume's data come back from a node that has let go of it.
func (s *Storage) give(h *Host, handle string, tree *memfs.Tree) {
	v := s.volume(handle)
	i := slices.Index(v.holders, h)
	if i < 0 {
		return // it was taken away
	}
	v.holders = slices.Delete(v.holders, i, i+1)
	v.put(tree)
}

// put adds what a node wrote to what is there.
func (v *storedVolume) put(tree *memfs.Tree) {
	if v.tree == nil {
		v.tree = tree
		return
	}
	v.tree.Merge(tree)
}

// recall takes a volume's data from nodes that have it.
func (s *Storage) recall(ctx context.Context, v *storedVolume, from func(*Host) bool) error {
	for _, h := range slices.Clone(v.holders) {
		if !from(h) {
			continue
		}
		tree, err := s.ask(ctx, h, v.handle, true)
		if err != nil {
			return err
		}
		if i := slices.Index(v.holders, h); i >= 0 {
			v.holders = slices.Delete(v.holders, i, i+1)
		}
		if tree != nil {
			v.put(tree)
		}
	}
	return nil
}

// copyBack puts together what nodes have written so far, and leaves the volume with them.
func (s *Storage) copyBack(ctx context.Context, v *storedVolume) error {
	for _, h := range slices.Clone(v.holders) {
		tree, err := s.ask(ctx, h, v.handle, false)
		if err != nil {
			return err
		}
		if tree != nil {
			v.put(tree)
		}
	}
	return nil
}

// ask has a node send a copy of a volume's data, and let go of it or not; nil: it has none.
func (s *Storage) ask(ctx context.Context, h *Host, handle string, away bool) (*memfs.Tree, error) {
	var come loop.Event
	var got *memfs.Tree
	s.l.Send(h.l, s.o.Network, s.stream, func() {
		tree := h.copyOf(volumeKey{s.o.Driver, handle}, away)
		h.l.Send(s.l, s.o.Network, h.stream, func() {
			got = tree
			come.Fire()
		})
	})
	if err := come.Wait(ctx); err != nil {
		return nil, err //nolint:wrapcheck // The call ends.
	}
	return got, nil
}
