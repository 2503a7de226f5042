// Package image is the volume that shows the files of an image. The runtime
// mounts it; here is nothing to do. It mirrors upstream's pkg/volume/image.
package image

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/image"

// Plugin is the plugin.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements volume.Plugin.
func (*Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(v *v1.Volume) bool { return v.Image != nil }

// Path implements volume.Plugin: there is none.
func (*Plugin) Path(types.UID, *v1.Volume) string { return "" }

// ReadOnly implements volume.Plugin.
func (*Plugin) ReadOnly(*v1.Volume) bool { return true }

// InPodDir implements volume.Plugin.
func (*Plugin) InPodDir() bool { return false }

// SetUp implements volume.Plugin.
func (*Plugin) SetUp(context.Context, *volume.Request) error { return nil }

// TearDown implements volume.Plugin.
func (*Plugin) TearDown(context.Context, types.UID, string) error { return nil }
