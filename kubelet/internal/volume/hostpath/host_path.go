// Package hostpath is the volume that is a file or directory of the node. It
// mirrors upstream's pkg/volume/hostpath.
package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/host-path"

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.HostPath != nil }

// Path implements volume.Plugin.
func (p *Plugin) Path(_ types.UID, v *v1.Volume) string { return v.HostPath.Path }

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return false }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return false }

// SetUp implements volume.Plugin: it checks what is at the path.
func (p *Plugin) SetUp(_ context.Context, r *volume.Request) error {
	source := r.Volume.HostPath
	if slices.Contains(strings.Split(source.Path, "/"), "..") {
		return fmt.Errorf("invalid HostPath `%s`: must not contain '..'", source.Path)
	}
	if source.Type == nil {
		return nil
	}
	return checkType(p.host, source.Path, *source.Type)
}

// TearDown implements volume.Plugin: the path is the node's.
func (p *Plugin) TearDown(context.Context, types.UID, string) error { return nil }

// checkType checks what is at a path, or makes what is missing.
func checkType(host *volume.Host, name string, t v1.HostPathType) error {
	info, err := host.FS.Stat(name)
	exists := err == nil
	var mode fs.FileMode
	if exists {
		mode = info.Mode()
	}
	fails := func(ok bool, what string) error {
		if exists && ok {
			return nil
		}
		return fmt.Errorf("hostPath type check failed: %s is not %s", name, what)
	}
	switch t {
	case v1.HostPathUnset:
		return nil
	case v1.HostPathDirectoryOrCreate:
		if !exists {
			return host.FS.MkdirAll(name, 0o755)
		}
		return fails(mode.IsDir(), "a directory")
	case v1.HostPathDirectory:
		return fails(mode.IsDir(), "a directory")
	case v1.HostPathFileOrCreate:
		if !exists {
			return createFile(host, name)
		}
		return fails(mode.IsRegular(), "a file")
	case v1.HostPathFile:
		return fails(mode.IsRegular(), "a file")
	case v1.HostPathSocket:
		return fails(mode&fs.ModeSocket != 0, "a socket file")
	case v1.HostPathCharDev:
		return fails(mode&fs.ModeCharDevice != 0, "a character device")
	case v1.HostPathBlockDev:
		return fails(mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0, "a block device")
	}
	return fmt.Errorf("%s is an invalid volume type", t)
}

// createFile makes an empty file; one that somebody else has made is as good.
func createFile(host *volume.Host, name string) error {
	err := host.FS.WriteFile(name, nil, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
