package document

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// VolumeStorage is what is behind a driver of CSI: the volumes with their data, the controller service, and the sidecars that provision, attach and expand. A driver that nodes have and that is not in the list has one with the defaults.
type VolumeStorage struct {
	// The driver's name, as a node group has it.
	Driver string `json:"driver" required:""`
	// Volumes are used where they are, without being attached to nodes: the driver's CSIDriver says `attachRequired: false`.
	NoAttach bool `json:"noAttach,omitempty"`
	// The label by which nodes are in zones. A volume is in one zone then, and of use there alone.
	TopologyKey string `json:"topologyKey,omitempty"`
	// How much there is in each zone. A zone that is not there has no end.
	Zones map[string]resource.Quantity `json:"zones,omitempty"`
	// How much there is where there are no zones. No end unless said.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// The scheduler is told by CSIStorageCapacity objects how much is left.
	Tracked bool `json:"tracked,omitempty"`
	// Volumes grow by the controller service alone, and not on nodes.
	GrowsOnline bool `json:"growsOnline,omitempty"`
	// How many requests to the API each sidecar sends in a second, and twice as many at once (--kube-api-qps). 5 unless said: with an attacher some 75 claims a minute.
	QPS float64 `json:"qps,omitempty"`
	// How long calls of the controller service take, by method: a time or a range. 1s unless said.
	Latency map[string]value.Range `json:"latency,omitempty" keys:"csiController"`
	// What goes wrong with these calls from the start; the action `storage` does the same later.
	Fail []action.PluginFailure `json:"fail,omitempty"`
}

// Check wants methods that there are, and zones by a label.
func (s *VolumeStorage) Check(at decode.Place) {
	methods := plugins.ControllerMethods()
	for _, m := range decode.SortedKeys(s.Latency) {
		value.OneOf(at.Field("latency").Key(m), "method of the controller service", m, methods)
	}
	if len(s.Zones) > 0 && s.TopologyKey == "" {
		at.Field("zones").Errorf("needs a topologyKey: the label that says in which zone a node is")
	}
	if s.Capacity != nil && s.TopologyKey != "" {
		at.Field("capacity").Errorf("is for storage without zones: say it of each zone")
	}
	if s.QPS < 0 {
		at.Field("qps").Errorf("must be positive, not %v", s.QPS)
	}
	if s.Tracked && len(s.Zones) == 0 && s.Capacity == nil {
		at.Field("tracked").Errorf("has no effect: needs zones or capacity")
	}
	checkFailures(at.Field("fail"), s.Fail, methods)
}

// Options are the storage as the cluster takes it.
func (s *VolumeStorage) Options() plugins.StorageOptions {
	o := plugins.StorageOptions{Driver: s.Driver, QPS: s.QPS, Latency: spans(s.Latency), TopologyKey: s.TopologyKey, NodeExpand: !s.GrowsOnline, Tracked: s.Tracked, Capacity: map[string]int64{}}
	for zone, q := range s.Zones { //drydock:unordered each key is set once
		o.Capacity[zone] = q.Value()
	}
	if s.Capacity != nil {
		o.Capacity[""] = s.Capacity.Value()
	}
	return o
}

// Object is the driver's CSIDriver.
func (s *VolumeStorage) Object() *storagev1.CSIDriver {
	o := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: s.Driver}}
	o.Spec.AttachRequired = new(!s.NoAttach)
	o.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}
	if s.Tracked {
		o.Spec.StorageCapacity = new(true)
	}
	return o
}

// Rules are what goes wrong from the start.
func (s *VolumeStorage) Rules() []plugins.Rule {
	var out []plugins.Rule
	for i := range s.Fail {
		out = append(out, s.Fail[i].Rule(s.Driver))
	}
	return out
}

// AllStorage is what is behind each driver of CSI that nodes have, in the order of their
// names.
func (s *Spec) AllStorage() []VolumeStorage {
	out := slices.Clone(s.Storage)
	for i := range s.Nodes {
		for k := range s.Nodes[i].Drivers {
			d := &s.Nodes[i].Drivers[k]
			if d.CSI != nil && !slices.ContainsFunc(out, func(o VolumeStorage) bool { return o.Driver == d.Name }) {
				out = append(out, VolumeStorage{Driver: d.Name})
			}
		}
	}
	return out
}

// checkStorage wants drivers that nodes have, each once.
func (s *Spec) checkStorage(at decode.Place) {
	for i := range s.Storage {
		name := s.Storage[i].Driver
		has := slices.ContainsFunc(s.Nodes, func(g NodeGroup) bool {
			return slices.ContainsFunc(g.Drivers, func(d Driver) bool { return d.CSI != nil && d.Name == name })
		})
		switch {
		case name == "": // told of already
		case !has:
			at.Index(i).Field("driver").Errorf("%s is a driver of CSI on no node: see nodes[].drivers", decode.Short(name))
		case slices.ContainsFunc(s.Storage[:i], func(o VolumeStorage) bool { return o.Driver == name }):
			at.Index(i).Field("driver").Errorf("%s is there twice", name)
		}
	}
}
