package apiserver

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// GetCSINode returns what drivers know of a node. Errors: NotFound.
func (c *Client) GetCSINode(ctx context.Context, name string) (*storagev1.CSINode, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "csinodes", Name: name}, func(s *store.Store, _ time.Time) (*storagev1.CSINode, error) {
		return as[*storagev1.CSINode](s.Get(KindCSINode, "", name))
	})
}

// CreateCSINode creates what drivers know of a node.
func (c *Client) CreateCSINode(ctx context.Context, node *storagev1.CSINode) (*storagev1.CSINode, error) {
	return call(ctx, c, wire.Request{Verb: "create", Resource: "csinodes"}, func(s *store.Store, now time.Time) (*storagev1.CSINode, error) {
		return as[*storagev1.CSINode](s.Create(now, node))
	})
}

// UpdateCSINode is Store.Update.
func (c *Client) UpdateCSINode(ctx context.Context, node *storagev1.CSINode) (*storagev1.CSINode, error) {
	return call(ctx, c, wire.Request{Verb: "update", Resource: "csinodes", Name: node.Name}, func(s *store.Store, now time.Time) (*storagev1.CSINode, error) {
		return as[*storagev1.CSINode](s.Update(now, node, ""))
	})
}

// GetCSIDriver returns what a driver wants. Errors: NotFound.
func (c *Client) GetCSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return callKnown(ctx, c, wire.Request{Verb: "get", Resource: "csidrivers", Name: name}, subject{KindCSIDriver, "", name}, func(s *store.Store) (*storagev1.CSIDriver, error) {
		return as[*storagev1.CSIDriver](s.Get(KindCSIDriver, "", name))
	})
}

// GetVolumeAttachment returns a wish that a volume be attached, and what came of it. Errors:
// NotFound.
func (c *Client) GetVolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "volumeattachments", Name: name}, func(s *store.Store, _ time.Time) (*storagev1.VolumeAttachment, error) {
		return as[*storagev1.VolumeAttachment](s.Get(KindVolumeAttachment, "", name))
	})
}

// UpdatePersistentVolumeClaimStatus is Store.Update of a claim's status.
func (c *Client) UpdatePersistentVolumeClaimStatus(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	return call(ctx, c, wire.Request{Verb: "update", Resource: "persistentvolumeclaims", Namespace: claim.Namespace, Name: claim.Name}, func(s *store.Store, now time.Time) (*v1.PersistentVolumeClaim, error) {
		return as[*v1.PersistentVolumeClaim](s.Update(now, claim, "status"))
	})
}
