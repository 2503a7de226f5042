package apiserver

import (
	"context"
	"time"

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
