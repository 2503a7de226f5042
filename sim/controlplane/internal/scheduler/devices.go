package scheduler

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// maxSelectors is how many compiled selectors are kept. Upstream keeps 10; how many
// decides nothing but the cost.
const maxSelectors = 128

// allocatorFeatures are those that v1.36 has on by default
// (plugins/dynamicresources, AllocatorFeatures).
var allocatorFeatures = structured.Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
	DeviceBindingAndStatus: true, ConsumableCapacity: true,
}

// deviceTable is what is known of devices: which there are and which are taken. It
// stands for upstream's allocatedDevices and for the lister of ResourceSlices. The
// allocator itself is upstream's, k8s.io/dynamic-resource-allocation/structured.
type deviceTable struct {
	store *apiserver.Store
	cel   *dracel.Cache
	taken structured.AllocatedState
	// byClaim are the allocations that taken is made of, also of claims whose
	// allocation is decided and not yet written.
	byClaim map[types.UID]*resourcev1.AllocationResult
	// pending are the claims whose allocation is decided and not yet written.
	pending map[types.UID]bool
	// mapping are the classes behind extended resources, and extended the claims that were made for
	// such, by their pod.
	mapping  classMapping
	extended map[types.UID]*resourcev1.ResourceClaim
	// own are the slices of the pools that have one for the node of that name, and
	// shared those of pools that have one for more than a named node. Nil: to be
	// made again.
	own    map[string][]*resourcev1.ResourceSlice
	shared []*resourcev1.ResourceSlice
}

func newDeviceTable(store *apiserver.Store) deviceTable {
	return deviceTable{
		store: store,
		cel:   dracel.NewCache(maxSelectors, dracel.Features{EnableConsumableCapacity: true}),
		taken: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		byClaim: map[types.UID]*resourcev1.AllocationResult{}, pending: map[types.UID]bool{},
		mapping: classMapping{}, extended: map[types.UID]*resourcev1.ResourceClaim{},
	}
}

// set notes what a claim has now; nil is nothing.
func (t *deviceTable) set(claim types.UID, a *resourcev1.AllocationResult) {
	was := t.byClaim[claim]
	if was == a {
		return
	}
	if was != nil {
		t.count(was, false)
		delete(t.byClaim, claim)
	}
	if a != nil {
		t.byClaim[claim] = a
		t.count(a, true)
	}
}

// count takes the devices of an allocation, or gives them back. Who has admin access
// to a device does not take it (foreachAllocatedDevice).
func (t *deviceTable) count(a *resourcev1.AllocationResult, take bool) {
	for i := range a.Devices.Results {
		r := &a.Devices.Results[i]
		if ptr.Deref(r.AdminAccess, false) {
			continue
		}
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case r.ShareID == nil && take:
			t.taken.AllocatedDevices.Insert(id)
		case r.ShareID == nil:
			t.taken.AllocatedDevices.Delete(id)
		case take:
			t.taken.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
			if r.ConsumedCapacity != nil {
				t.taken.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			}
		default:
			t.taken.AllocatedSharedDeviceIDs.Delete(structured.MakeSharedDeviceID(id, r.ShareID))
			if r.ConsumedCapacity != nil {
				t.taken.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			}
		}
	}
}

// rename has devices taken by a claim that got its UID only now.
func (t *deviceTable) rename(claim, as types.UID) {
	t.byClaim[as], t.pending[as] = t.byClaim[claim], t.pending[claim]
	delete(t.byClaim, claim)
	delete(t.pending, claim)
}

// slicesChanged has the slices sorted by node again when they are asked for next.
func (t *deviceTable) slicesChanged() { t.own, t.shared = nil, nil }

// slicesFor returns the slices of all pools that can have a device for a node. The
// allocator gets whole pools, because it looks whether they are complete.
func (t *deviceTable) slicesFor(node string) []*resourcev1.ResourceSlice {
	if t.own == nil {
		t.sortSlices()
	}
	return slices.Concat(t.own[node], t.shared)
}

func (t *deviceTable) sortSlices() {
	type pool struct{ driver, name string }
	t.own = map[string][]*resourcev1.ResourceSlice{}
	all := apiserver.Objects[*resourcev1.ResourceSlice](t.store, apiserver.KindResourceSlice)
	pools := map[pool][]*resourcev1.ResourceSlice{}
	var order []pool
	for _, s := range all {
		k := pool{s.Spec.Driver, s.Spec.Pool.Name}
		if pools[k] == nil {
			order = append(order, k)
		}
		pools[k] = append(pools[k], s)
	}
	for _, k := range order {
		var nodes []string
		everywhere := false
		for _, s := range pools[k] {
			switch {
			case ptr.Deref(s.Spec.NodeName, "") != "":
				nodes = append(nodes, *s.Spec.NodeName)
			// Shared counters are in slices without devices and without a node.
			case len(s.Spec.Devices) > 0:
				everywhere = true
			}
		}
		if everywhere {
			t.shared = append(t.shared, pools[k]...)
			continue
		}
		slices.Sort(nodes)
		for _, n := range slices.Compact(nodes) {
			t.own[n] = append(t.own[n], pools[k]...)
		}
	}
}

// allocate looks for devices for claims on a node. No result and no error: there are
// not enough.
func (t *deviceTable) allocate(ctx context.Context, node *v1.Node, claims []*resourcev1.ResourceClaim) ([]resourcev1.AllocationResult, error) {
	a, err := structured.NewAllocator(ctx, allocatorFeatures, t.taken, classLister{t.store}, t.slicesFor(node.Name), t.cel)
	if err != nil {
		return nil, fmt.Errorf("making an allocator: %w", err)
	}
	//nolint:wrapcheck // The text goes into an event.
	return a.Allocate(ctx, node, claims)
}

// totals counts a node's devices of the class behind an extended resource, and those of them that
// are taken. A selector that can't be evaluated makes it none
// (noderesources/resource_allocation.go, calculateDRAResourceTotals).
func (t *deviceTable) totals(node *v1.Node, resource v1.ResourceName) (capacity, taken int64) {
	class := t.mapping[resource]
	if class == nil {
		return 0, 0
	}
	for _, s := range t.slicesFor(node.Name) {
		each := ptr.Deref(s.Spec.PerDeviceNodeSelection, false)
		if !each && !reaches(node, s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector) {
			continue
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if each && !reaches(node, d.NodeName, d.AllNodes, d.NodeSelector) {
				continue
			}
			switch ok, err := t.matches(class, s.Spec.Driver, d); {
			case err != nil:
				return 0, 0
			case !ok:
				continue
			}
			capacity++
			if structured.IsDeviceAllocated(structured.MakeDeviceID(s.Spec.Driver, s.Spec.Pool.Name, d.Name), &t.taken) {
				taken++
			}
		}
	}
	return capacity, taken
}

// reaches reports whether devices can be used on a node.
func reaches(node *v1.Node, name *string, all *bool, selector *v1.NodeSelector) bool {
	switch {
	case ptr.Deref(all, false), name != nil && *name == node.Name:
		return true
	case selector == nil:
		return false
	}
	s, err := nodeaffinity.NewNodeSelector(selector)
	return err == nil && s.Match(node)
}

// matches reports whether a device is of a class.
func (t *deviceTable) matches(class *resourcev1.DeviceClass, driver string, d *resourcev1.Device) (bool, error) {
	for i := range class.Spec.Selectors {
		if class.Spec.Selectors[i].CEL == nil {
			continue
		}
		compiled := t.cel.GetOrCompile(class.Spec.Selectors[i].CEL.Expression)
		if compiled.Error != nil {
			return false, fmt.Errorf("device class %s: %w", class.Name, compiled.Error)
		}
		ok, _, err := compiled.DeviceMatches(context.Background(), dracel.Device{Driver: driver, Attributes: d.Attributes, Capacity: d.Capacity})
		if err != nil {
			return false, fmt.Errorf("device class %s: %w", class.Name, err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// classLister implements structured.DeviceClassLister.
type classLister struct{ store *apiserver.Store }

// List implements structured.DeviceClassLister.
func (l classLister) List() ([]*resourcev1.DeviceClass, error) {
	return apiserver.Objects[*resourcev1.DeviceClass](l.store, apiserver.KindDeviceClass), nil
}

// Get implements structured.DeviceClassLister.
func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	c, ok := l.store.Lookup(apiserver.KindDeviceClass, "", name).(*resourcev1.DeviceClass)
	if !ok {
		return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclass"), name)
	}
	return c, nil
}
