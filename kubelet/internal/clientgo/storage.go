package clientgo

import (
	"context"

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
