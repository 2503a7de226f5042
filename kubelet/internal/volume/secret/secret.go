// Package secret is the volume that shows a secret, in memory. It answers to
// upstream's pkg/volume/secret.
package secret

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
const PluginName = "kubernetes.io/secret"

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.Secret != nil }

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
	source := r.Volume.Secret
	object, input, err := Get(ctx, p.host, r.Pod.Namespace, source.SecretName, ptr.Deref(source.Optional, false))
	if err != nil {
		return err
	}
	payload, err := MakePayload(source.Items, object, source.DefaultMode, ptr.Deref(source.Optional, false))
	if err != nil {
		return err
	}
	r.Inputs = append(r.Inputs, input)
	return util.SetUpContent(p.host, r, func() error {
		return emptydir.SetUpWrapped(p.host, r, v1.StorageMediumMemory)
	}, func() error { return p.TearDown(r.Pod.UID, r.Volume.Name) }, payload)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(uid types.UID, name string) error {
	return emptydir.TearDownWrapped(p.host, uid, p.host.VolumeDir(uid, PluginName, name), name)
}

// Inputs implements volume.Remounter.
func (p *Plugin) Inputs(pod *v1.Pod, v *v1.Volume) ([]any, bool) {
	if p.host.Secrets == nil {
		return nil, false
	}
	s, ok := p.host.Secrets.Peek(pod.Namespace, v.Secret.SecretName)
	return []any{s}, ok
}

// Get reads a secret; one that is missing and optional is empty. input is the
// object read, nil for none.
func Get(ctx context.Context, host *volume.Host, namespace, name string, optional bool) (object, input *v1.Secret, err error) {
	if host.Secrets == nil {
		return nil, nil, errors.New("secrets cannot be read in standalone mode")
	}
	s, err := host.Secrets.GetSecret(ctx, namespace, name)
	switch {
	case err == nil:
		return s, s, nil
	case optional && apierrors.IsNotFound(err):
		return &v1.Secret{}, nil, nil
	}
	host.Logf("Couldn't get secret %s/%s: %v", namespace, name, err)
	return nil, nil, err
}

// MakePayload selects what a volume shows of a secret: all of it, or the keys
// that are mapped to paths.
func MakePayload(mappings []v1.KeyToPath, s *v1.Secret, defaultMode *int32, optional bool) (map[string]util.FileProjection, error) {
	if defaultMode == nil {
		return nil, errors.New("no defaultMode used, not even the default value for it")
	}
	payload := make(map[string]util.FileProjection, len(s.Data))
	if len(mappings) == 0 {
		for name, data := range s.Data { //drydock:unordered fills a map
			payload[name] = util.FileProjection{Data: data, Mode: *defaultMode}
		}
		return payload, nil
	}
	for _, m := range mappings {
		data, ok := s.Data[m.Key]
		if !ok {
			if optional {
				continue
			}
			return nil, fmt.Errorf("references non-existent secret key: %s", m.Key)
		}
		f := util.FileProjection{Data: data, Mode: *defaultMode}
		if m.Mode != nil {
			f.Mode = *m.Mode
		}
		payload[m.Path] = f
	}
	return payload, nil
}
