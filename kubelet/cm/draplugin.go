package cm

import (
	"context"

	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

// DRAPlugin is a connection to a DRA driver: the service DRAPlugin of the API dra/v1. Its
// methods wait in the task of who calls them, and their errors are gRPC's. Messages are
// shared and never written to.
type DRAPlugin interface {
	NodePrepareResources(ctx context.Context, req *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error)
	NodeUnprepareResources(ctx context.Context, req *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error)
}

// DRAPlugins are the DRA drivers of a machine.
type DRAPlugins interface {
	// DRAPlugin returns the driver of a name; nil: none is registered.
	DRAPlugin(driver string) DRAPlugin
}
