package devicemanager

import (
	"context"
	"fmt"
	"path"
	"slices"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// deprecationFile tells who looks into the directory that plugins can register otherwise.
const deprecationFile = "DEPRECATION"

// Handler takes in device plugins that the plugin manager has found, as if they had
// registered by the kubelet's socket (plugin/v1beta1/handler.go).
type Handler struct{ m *Manager }

var _ pluginmanager.Handler = Handler{}

// Handler returns the manager's, and leaves the file that says so.
func (m *Manager) Handler() Handler {
	if err := m.c.FS.WriteFile(path.Join(m.c.Dir, deprecationFile), nil, 0o644); err != nil {
		m.log("Failed to create deprecation file at socket dir: %v", err)
	}
	return Handler{m}
}

// ValidatePlugin implements pluginmanager.Handler.
func (h Handler) ValidatePlugin(name, _ string, versions []string) error {
	switch {
	case !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(pluginapi.SupportedVersions[:], v) }):
		return fmt.Errorf("manager version, %s, is not among plugin supported versions %v", pluginapi.Version, versions)
	case !isExtendedResource(name):
		return fmt.Errorf("invalid name of device plugin socket: the ResourceName %q is invalid", name)
	}
	return nil
}

// RegisterPlugin implements pluginmanager.Handler.
func (h Handler) RegisterPlugin(ctx context.Context, name, endpoint string, _ []string) error {
	return h.m.connect(ctx, name, endpoint)
}

// DeRegisterPlugin implements pluginmanager.Handler: the plugin's stream ends, too.
func (h Handler) DeRegisterPlugin(_ context.Context, name, _ string) {
	if r := h.m.resources[name]; r != nil && r.plugin != nil {
		r.plugin.Close()
		h.m.gone(name, r.plugin)
	}
}
