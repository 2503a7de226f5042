// Package configmap is the volume that shows a configMap. It answers to
// upstream's pkg/volume/configmap.
package configmap

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/emptydir"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/configmap"

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.ConfigMap != nil }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, PluginName, v.Name)
}

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly() bool { return true }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return true }

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, r *volume.Request) error {
	source := r.Volume.ConfigMap
	object, input, err := Get(ctx, p.host, r.Pod.Namespace, source.Name, ptr.Deref(source.Optional, false))
	if err != nil {
		return err
	}
	payload, err := MakePayload(source.Items, object, source.DefaultMode, ptr.Deref(source.Optional, false))
	if err != nil {
		return err
	}
	r.Inputs = append(r.Inputs, input)
	return util.SetUpContent(p.host, r, func() error {
		return emptydir.SetUpWrapped(p.host, r, v1.StorageMediumDefault)
	}, func() error { return p.TearDown(r.Pod.UID, r.Volume.Name) }, payload)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(uid types.UID, name string) error {
	return emptydir.TearDownWrapped(p.host, uid, p.host.VolumeDir(uid, PluginName, name), name)
}

// Inputs implements volume.Remounter.
func (p *Plugin) Inputs(pod *v1.Pod, v *v1.Volume) ([]any, bool) {
	if p.host.ConfigMaps == nil {
		return nil, false
	}
	c, ok := p.host.ConfigMaps.Peek(pod.Namespace, v.ConfigMap.Name)
	return []any{c}, ok
}

// Get reads a configMap; one that is missing and optional is empty. input is
// the object read, nil for none.
func Get(ctx context.Context, host *volume.Host, namespace, name string, optional bool) (object, input *v1.ConfigMap, err error) {
	if host.ConfigMaps == nil {
		return nil, nil, errors.New("configMaps cannot be read in standalone mode")
	}
	c, err := host.ConfigMaps.GetConfigMap(ctx, namespace, name)
	switch {
	case err == nil:
		return c, c, nil
	case optional && apierrors.IsNotFound(err):
		return &v1.ConfigMap{}, nil, nil
	}
	host.Logf("Couldn't get configMap %s/%s: %v", namespace, name, err)
	return nil, nil, err
}

// MakePayload selects what a volume shows of a configMap: all of it, or the
// keys that are mapped to paths.
func MakePayload(mappings []v1.KeyToPath, c *v1.ConfigMap, defaultMode *int32, optional bool) (map[string]util.FileProjection, error) {
	if defaultMode == nil {
		return nil, errors.New("no defaultMode used, not even the default value for it")
	}
	payload := make(map[string]util.FileProjection, len(c.Data)+len(c.BinaryData))
	if len(mappings) == 0 {
		for name, data := range c.Data { //drydock:unordered fills a map
			payload[name] = util.FileProjection{Data: []byte(data), Mode: *defaultMode}
		}
		for name, data := range c.BinaryData { //drydock:unordered fills a map
			payload[name] = util.FileProjection{Data: data, Mode: *defaultMode}
		}
		return payload, nil
	}
	for _, m := range mappings {
		f := util.FileProjection{Mode: *defaultMode}
		if m.Mode != nil {
			f.Mode = *m.Mode
		}
		if s, ok := c.Data[m.Key]; ok {
			f.Data = []byte(s)
		} else if b, ok := c.BinaryData[m.Key]; ok {
			f.Data = b
		} else if optional {
			continue
		} else {
			return nil, fmt.Errorf("configmap references non-existent config key: %s", m.Key)
		}
		payload[m.Path] = f
	}
	return payload, nil
}
