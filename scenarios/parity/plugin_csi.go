package parity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// scriptedCSI is what actions of CSI drivers have.
type scriptedCSI struct {
	Driver     string            `json:"driver"`
	Caps       []string          `json:"caps"`
	MaxVolumes int64             `json:"maxVolumes"`
	Topology   map[string]string `json:"topology"`
}

// scriptedVolume is a claim and its volume as an action has them.
type scriptedVolume struct {
	VolumeHandle string                          `json:"volumeHandle"`
	Modes        []v1.PersistentVolumeAccessMode `json:"modes"`
	VolumeMode   *v1.PersistentVolumeMode        `json:"volumeMode"`
	Capacity     string                          `json:"capacity"`
	Attrs        map[string]string               `json:"attrs"`
	FSType       string                          `json:"fsType"`
	MountOptions []string                        `json:"mountOptions"`
	ReadOnly     bool                            `json:"readOnly"`
}

// scriptedAttacher is what the stand-in for external-attacher has; times are in seconds.
type scriptedAttacher struct {
	Attach float64 `json:"attach"`
	Detach float64 `json:"detach"`
	Fail   int     `json:"fail"`
}

// startAttacher is attacher.
func (p *pluginPlay) startAttacher(a *PluginAction) error {
	plugins.StartAttacher(p.cluster.API(), plugins.Attacher{
		Driver: a.Driver, Attach: seconds(a.Attach), Detach: seconds(a.Detach), Fail: a.Fail, Metadata: map[string]string{"devicePath": "/dev/scripted"},
	}, func(err error) { p.failed = errors.Join(p.failed, err) })
	return nil
}

// startCSI is csi-start.
func (p *pluginPlay) startCSI(a *PluginAction) error {
	d := plugins.CSI{Driver: a.Driver, NodeID: recordedNode + "-id", MaxVolumes: a.MaxVolumes, Topology: a.Topology}
	for _, name := range a.Caps {
		c, ok := csi.NodeServiceCapability_RPC_Type_value[name]
		if !ok {
			return fmt.Errorf("caps: %q is none of a node service", name)
		}
		d.Capabilities = append(d.Capabilities, csi.NodeServiceCapability_RPC_Type(c))
	}
	// What the recorded driver says of each volume.
	d.Stats = &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: 1 << 30, Used: 324 << 20, Available: 700 << 20},
		{Unit: csi.VolumeUsage_INODES, Total: 1000, Used: 100, Available: 900},
	}}
	p.node.Plugins().StartDriver(d)
	return nil
}

// createVolume is volume: a claim and a volume that are bound to each other.
func (p *pluginPlay) createVolume(a *PluginAction) error {
	size, err := resource.ParseQuantity(cmp.Or(a.Capacity, "1Gi"))
	if err != nil {
		return fmt.Errorf("capacity: %w", err)
	}
	modes := a.Modes
	if len(modes) == 0 {
		modes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	}
	amount, class := v1.ResourceList{v1.ResourceStorage: size}, ""
	claim, err := p.cluster.API().Create(&v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: a.Name},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeMode: a.VolumeMode, VolumeName: "pv-" + a.Name, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: amount},
		},
	})
	if err != nil {
		return err
	}
	_, err = p.cluster.API().Create(&v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + a.Name},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: modes, VolumeMode: a.VolumeMode, Capacity: amount, MountOptions: a.MountOptions, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			ClaimRef: &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: v1.NamespaceDefault, Name: a.Name, UID: claim.GetUID()},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: a.Driver, VolumeHandle: cmp.Or(a.VolumeHandle, "vol-"+a.Name), VolumeAttributes: a.Attrs, FSType: a.FSType, ReadOnly: a.ReadOnly,
			}},
		},
	})
	if err != nil {
		return err
	}
	bound := encode(object{"status": object{"phase": v1.VolumeBound}})
	if _, err := p.cluster.API().Patch(apiserver.KindPersistentVolume, "", "pv-"+a.Name, types.MergePatchType, bound, "status"); err != nil {
		return err
	}
	bound = encode(object{"status": object{"phase": v1.ClaimBound, "accessModes": modes, "capacity": amount}})
	_, err = p.cluster.API().Patch(apiserver.KindPersistentVolumeClaim, v1.NamespaceDefault, a.Name, types.MergePatchType, bound, "status")
	return err
}

// CSINodeSeen is what the CSINode object said of the case's drivers.
type CSINodeSeen struct {
	At      float64                   `json:"at"`
	Drivers []storagev1.CSINodeDriver `json:"drivers"`
}

// seeCSINode notes what the node's CSINode object says of the case's drivers.
func (o *pluginObserver) seeCSINode(c apiserver.Change) {
	n, ok := c.New.(*storagev1.CSINode)
	if !ok {
		return
	}
	seen := CSINodeSeen{At: o.pods.at(o.pods.c.API().Loop().Now()), Drivers: []storagev1.CSINodeDriver{}}
	for _, d := range n.Spec.Drivers {
		if slices.Contains(o.c.Plugins, d.Name) {
			seen.Drivers = append(seen.Drivers, d)
		}
	}
	k := len(o.seen.CSINode)
	if k == 0 && len(seen.Drivers) == 0 || k > 0 && sameJSON(o.seen.CSINode[k-1].Drivers, seen.Drivers) {
		return
	}
	o.seen.CSINode = append(o.seen.CSINode, seen)
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
