package cm

import (
	"context"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// DevicePlugin is a connection to a device plugin: the service DevicePlugin of the API
// deviceplugin/v1beta1. Its methods wait in the task of who calls them, and their errors
// are gRPC's. Messages are shared and never written to.
type DevicePlugin interface {
	GetDevicePluginOptions(ctx context.Context) (*pluginapi.DevicePluginOptions, error)
	GetPreferredAllocation(ctx context.Context, req *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error)
	Allocate(ctx context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error)
	PreStartContainer(ctx context.Context, req *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error)
	// ListAndWatch calls list with the devices of each message, in order, and returns
	// when the stream has ended.
	ListAndWatch(ctx context.Context, list func([]*pluginapi.Device)) error
	// Close ends the connection, and with it the stream.
	Close()
}

// DevicePlugins are the plugins of a machine.
type DevicePlugins interface {
	// Dial connects to the plugin that listens on a socket in the directory of device
	// plugins.
	Dial(ctx context.Context, endpoint string) (DevicePlugin, error)
	// Serve has plugins register from now on, as they do when they see a new socket of
	// the kubelet's. It is called on the kubelet's loop, and register may wait.
	Serve(register func(ctx context.Context, req *pluginapi.RegisterRequest) error)
}
