package clientgo

import (
	"context"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// GetCSINode reads what drivers know of a node.
func (c *Client) GetCSINode(ctx context.Context, name string) (*storagev1.CSINode, error) {
	return loop.Await(ctx, func(ctx context.Context) (*storagev1.CSINode, error) {
		return c.main.StorageV1().CSINodes().Get(ctx, name, metav1.GetOptions{})
	})
}

// CreateCSINode creates what drivers know of a node.
func (c *Client) CreateCSINode(ctx context.Context, node *storagev1.CSINode) (*storagev1.CSINode, error) {
	return loop.Await(ctx, func(ctx context.Context) (*storagev1.CSINode, error) {
		return c.main.StorageV1().CSINodes().Create(ctx, node, metav1.CreateOptions{})
	})
}

// UpdateCSINode writes what drivers know of a node. Errors: Conflict.
func (c *Client) UpdateCSINode(ctx context.Context, node *storagev1.CSINode) (*storagev1.CSINode, error) {
	return loop.Await(ctx, func(ctx context.Context) (*storagev1.CSINode, error) {
		return c.main.StorageV1().CSINodes().Update(ctx, node, metav1.UpdateOptions{})
	})
}

// GetCSIDriver reads what a driver wants. Errors: NotFound.
func (c *Client) GetCSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return loop.Await(ctx, func(ctx context.Context) (*storagev1.CSIDriver, error) {
		return c.main.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{})
	})
}

// GetVolumeAttachment reads a wish that a volume be attached. Errors: NotFound.
func (c *Client) GetVolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return loop.Await(ctx, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
		return c.main.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	})
}

// UpdatePersistentVolumeClaimStatus writes a claim's status. Errors: Conflict.
func (c *Client) UpdatePersistentVolumeClaimStatus(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.PersistentVolumeClaim, error) {
		return c.main.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	})
}
