package sidecars

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// capacityNamespace is where the objects are: that of the provisioner's pod.
const capacityNamespace = "kube-system"

// capacity says by CSIStorageCapacity objects how much each zone has left for volumes of each
// class, as often as that changes (external-provisioner pkg/capacity).
type capacity struct {
	*sidecar
	queue *controller.Queue
}

func startCapacity(s *sidecar) {
	if s.driver.Free() == nil {
		return
	}
	c := &capacity{sidecar: s}
	c.queue = s.queue("capacity", c.publish)
	srv := s.api.Server()
	srv.OnChange(func(ch apiserver.Change) { c.queue.Add(controller.Key{}) }, apiserver.KindStorageClass)
	srv.OnChange(func(ch apiserver.Change) {
		if pv := ch.New.(*v1.PersistentVolume); pv.Spec.CSI != nil && pv.Spec.CSI.Driver == s.driver.DriverName() && (ch.Type != watch.Modified || !sameSize(ch.Old, pv)) {
			c.queue.Add(controller.Key{})
		}
	}, apiserver.KindPersistentVolume)
	c.queue.Add(controller.Key{})
}

func sameSize(old apiserver.Object, pv *v1.PersistentVolume) bool {
	was, ok := old.(*v1.PersistentVolume)
	return ok && storage(was.Spec.Capacity) == storage(pv.Spec.Capacity)
}

// publish writes the objects that are missing or say something else.
func (c *capacity) publish(ctx context.Context, _ controller.Key) error {
	free := c.driver.Free()
	zones := make([]string, 0, len(free))
	for zone := range free { //drydock:unordered sorted below
		zones = append(zones, zone)
	}
	slices.Sort(zones)
	for _, class := range apiserver.Objects[*storagev1.StorageClass](c.api.Server().Store(), apiserver.KindStorageClass) {
		if class.Provisioner != c.driver.DriverName() {
			continue
		}
		for i, zone := range zones {
			if err := c.say(ctx, fmt.Sprintf("csisc-%s-%d", class.Name, i), class.Name, zone, free[zone]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *capacity) say(ctx context.Context, name, class, zone string, free int64) error {
	size := resource.NewQuantity(max(free, 0), resource.BinarySI)
	key := controller.Key{Namespace: capacityNamespace, Name: name}
	if old, ok := controller.Lookup[*storagev1.CSIStorageCapacity](c.api, apiserver.KindCSIStorageCapacity, key); ok {
		if old.Capacity != nil && old.Capacity.Cmp(*size) == 0 {
			return nil
		}
		next := old.DeepCopy()
		next.Capacity = size
		if _, err := controller.Update(ctx, c.api, next, ""); err != nil {
			return fmt.Errorf("capacity %s: %w", name, err)
		}
		return nil
	}
	made := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{"csi.storage.k8s.io/drivername": c.driver.DriverName()}},
		StorageClassName: class, Capacity: size, NodeTopology: &metav1.LabelSelector{},
	}
	if topology := c.driver.TopologyKey(); topology != "" {
		made.NodeTopology.MatchLabels = map[string]string{topology: zone}
	}
	if _, err := controller.Create(ctx, c.api, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("capacity %s: %w", name, err)
	}
	return nil
}
