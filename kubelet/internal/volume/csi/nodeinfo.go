package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Client is what the API is needed for. What it returns is shared and never written to.
type Client interface {
	GetNode(ctx context.Context, name string) (*v1.Node, error)
	PatchNode(ctx context.Context, name string, base, node *v1.Node) (*v1.Node, error)
	GetCSINode(ctx context.Context, name string) (*storagev1.CSINode, error)
	CreateCSINode(ctx context.Context, node *storagev1.CSINode) (*storagev1.CSINode, error)
	UpdateCSINode(ctx context.Context, node *storagev1.CSINode) (*storagev1.CSINode, error)
	GetCSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	GetVolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
	GetSecret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// nodeIDs is the annotation that has the drivers' names for the node, as JSON by driver.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// Pauses between tries (updateBackoff of nodeinfomanager.go), without its jitter.
const (
	updateTries  = 4
	updatePause  = 10 * time.Millisecond
	updateFactor = 5
)

// install tells of a driver: in the node's annotation and labels, and in the CSINode
// object, which is made with the first driver (InstallCSIDriver).
func (h *Handler) install(ctx context.Context, name string, info *csispec.NodeGetInfoResponse) error {
	if info.NodeId == "" {
		return errors.New("error adding CSI driver node info: driverNodeID must not be empty")
	}
	if h.o.Client == nil {
		return errors.New("error updating Node object with CSI driver node info: error getting kube client")
	}
	topology := info.AccessibleTopology.GetSegments()
	err := h.retry(ctx, func() error {
		return h.updateNode(ctx, func(node *v1.Node) error {
			if err := setNodeID(node, name, info.NodeId); err != nil {
				return err
			}
			for _, key := range sets.List(sets.KeySet(topology)) {
				if is, ok := node.Labels[key]; ok && is != topology[key] {
					return fmt.Errorf("detected topology value collision: driver reported %q:%q but existing label is %q:%q", key, topology[key], key, is)
				}
				if node.Labels == nil {
					node.Labels = map[string]string{}
				}
				node.Labels[key] = topology[key]
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("error updating Node object with CSI driver node info: error updating node: %w", err)
	}
	spec := storagev1.CSINodeDriver{Name: name, NodeID: info.NodeId}
	if len(topology) > 0 {
		spec.TopologyKeys = sets.List(sets.KeySet(topology))
	}
	if n := info.MaxVolumesPerNode; n > 0 {
		count := int32(min(n, math.MaxInt32))
		spec.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	} else if n != 0 {
		h.o.Log("Invalid attach limit value %d cannot be added to CSINode object for %q", n, name)
	}
	if err := h.retry(ctx, func() error { return h.installDriver(ctx, spec) }); err != nil {
		return fmt.Errorf("error updating CSINode object with CSI driver node info: error updating CSINode: %w", err)
	}
	return nil
}

// installDriver puts a driver into the CSINode object, in the place of one of its name.
func (h *Handler) installDriver(ctx context.Context, spec storagev1.CSINodeDriver) error {
	old, err := h.o.Client.GetCSINode(ctx, h.o.NodeName)
	if apierrors.IsNotFound(err) {
		old, err = h.createCSINode(ctx)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(old.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return equality.Semantic.DeepEqual(d, spec) }) {
		return nil
	}
	node := old.DeepCopy()
	node.Spec.Drivers = slices.DeleteFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == spec.Name })
	node.Spec.Drivers = append(node.Spec.Drivers, spec)
	_, err = h.o.Client.UpdateCSINode(ctx, node)
	return err
}

// createCSINode makes the node's CSINode object, which goes with the node.
func (h *Handler) createCSINode(ctx context.Context) (*storagev1.CSINode, error) {
	node, err := h.o.Client.GetNode(ctx, h.o.NodeName)
	if err != nil {
		return nil, err
	}
	made, err := h.o.Client.CreateCSINode(ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name:            node.Name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}})
	if err != nil {
		return nil, fmt.Errorf("create CSINode %s: %w", node.Name, err)
	}
	return made, nil
}

// uninstall takes back what install told (UninstallCSIDriver); topology labels stay.
func (h *Handler) uninstall(ctx context.Context, name string) error {
	if h.o.Client == nil {
		return nil
	}
	if err := h.retry(ctx, func() error { return h.uninstallDriver(ctx, name) }); err != nil {
		return fmt.Errorf("error uninstalling CSI driver from CSINode object: error updating CSINode: %w", err)
	}
	err := h.retry(ctx, func() error {
		return h.updateNode(ctx, func(node *v1.Node) error { return setNodeID(node, name, "") })
	})
	if err != nil {
		return fmt.Errorf("error removing CSI driver node info from Node object: error updating node: %w", err)
	}
	return nil
}

func (h *Handler) uninstallDriver(ctx context.Context, name string) error {
	old, err := h.o.Client.GetCSINode(ctx, h.o.NodeName)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	node := old.DeepCopy()
	node.Spec.Drivers = slices.DeleteFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == name })
	if len(node.Spec.Drivers) == len(old.Spec.Drivers) {
		return nil
	}
	_, err = h.o.Client.UpdateCSINode(ctx, node)
	return err
}

// updateNode patches the node as change has it.
func (h *Handler) updateNode(ctx context.Context, change func(node *v1.Node) error) error {
	old, err := h.o.Client.GetNode(ctx, h.o.NodeName)
	if err != nil {
		return err
	}
	node := *old
	node.Labels, node.Annotations = maps.Clone(old.Labels), maps.Clone(old.Annotations)
	if err := change(&node); err != nil {
		return err
	}
	if maps.Equal(node.Labels, old.Labels) && maps.Equal(node.Annotations, old.Annotations) {
		return nil
	}
	_, err = h.o.Client.PatchNode(ctx, h.o.NodeName, old, &node)
	return err
}

// setNodeID notes a driver's name for a node; "": none.
func setNodeID(node *v1.Node, driver, id string) error {
	ids := map[string]string{}
	if is := node.Annotations[nodeIDs]; is != "" {
		if err := json.Unmarshal([]byte(is), &ids); err != nil {
			return fmt.Errorf("failed to parse node's %q annotation value (%q) err=%w", nodeIDs, is, err)
		}
	}
	if ids[driver] == id {
		return nil
	}
	ids[driver] = id
	if id == "" {
		delete(ids, driver)
	}
	if len(ids) == 0 {
		delete(node.Annotations, nodeIDs)
		return nil
	}
	value, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("failed to marshal %q: %w", nodeIDs, err)
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[nodeIDs] = string(value)
	return nil
}

// retry tries until there is no error, a few times.
func (h *Handler) retry(ctx context.Context, try func() error) error {
	pause := updatePause
	var errs []error
	for range updateTries {
		err := try()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		if err := h.o.Loop.Sleep(ctx, pause); err != nil {
			return err
		}
		pause *= updateFactor
	}
	return fmt.Errorf("timed out waiting for the condition; caused by: %w", errors.Join(errs...))
}
