// Package keyed is the volumes whose files are the keys of an object: those of
// configMaps, and those of secrets, which are kept in memory. It mirrors
// upstream's pkg/volume/configmap and pkg/volume/secret, which differ in names
// only.
//
// A [Reader] reads an object of one kind and selects what is shown of it;
// projected volumes use it, too. A [Plugin] writes that into a volume.
package keyed

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

// Source says which object is shown, and what of it.
type Source struct {
	Name string
	// Items maps keys to paths; none: every key is a file of its name.
	Items []v1.KeyToPath
	// Mode is that of files whose item has none of its own. Defaulting sets it;
	// nil is an error, as upstream.
	Mode *int32
	// Optional: the object, or a key of an item, need not be there.
	Optional *bool
}

// Reader reads objects of one kind for volumes.
type Reader[T any] struct {
	*kind[T]
	host    *volume.Host
	objects volume.Objects[T] // nil in standalone mode
}

// kind is what the two kinds of objects differ in.
type kind[T any] struct {
	plugin string // the Plugin's name
	medium v1.StorageMedium
	// source returns a volume's source; false: it is of another kind.
	source func(*v1.Volume) (Source, bool)
	// name is as messages have it, noKey the format of the error that a key is
	// missing.
	name, noKey string
	// values returns the values of an object by key. A key is in one of the two
	// maps; text wins if an object got past validation with both.
	values func(T) (text map[string]string, binary map[string][]byte)
}

var configMaps = kind[*v1.ConfigMap]{
	plugin: "kubernetes.io/configmap", medium: v1.StorageMediumDefault,
	source: func(v *v1.Volume) (Source, bool) {
		if v.ConfigMap == nil {
			return Source{}, false
		}
		return Source{v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.DefaultMode, v.ConfigMap.Optional}, true
	},
	name: "configMap", noKey: "configmap references non-existent config key: %s",
	values: func(c *v1.ConfigMap) (map[string]string, map[string][]byte) { return c.Data, c.BinaryData },
}

var secrets = kind[*v1.Secret]{
	plugin: "kubernetes.io/secret", medium: v1.StorageMediumMemory,
	source: func(v *v1.Volume) (Source, bool) {
		if v.Secret == nil {
			return Source{}, false
		}
		return Source{v.Secret.SecretName, v.Secret.Items, v.Secret.DefaultMode, v.Secret.Optional}, true
	},
	name: "secret", noKey: "references non-existent secret key: %s",
	values: func(s *v1.Secret) (map[string]string, map[string][]byte) { return nil, s.Data },
}

// ConfigMaps returns the Reader of configMaps.
func ConfigMaps(host *volume.Host) Reader[*v1.ConfigMap] {
	return Reader[*v1.ConfigMap]{&configMaps, host, host.ConfigMaps}
}

// Secrets returns the Reader of secrets.
func Secrets(host *volume.Host) Reader[*v1.Secret] {
	return Reader[*v1.Secret]{&secrets, host, host.Secrets}
}

// Payload reads an object and returns the files that show it. The object goes
// to r.Inputs: nil, of its type, stands for one that is missing and optional,
// which shows nothing.
func (k *Reader[T]) Payload(ctx context.Context, r *volume.Request, s Source) (map[string]util.FileProjection, error) {
	if k.objects == nil {
		return nil, fmt.Errorf("%ss cannot be read in standalone mode", k.name)
	}
	var (
		text   map[string]string
		binary map[string][]byte
	)
	optional := ptr.Deref(s.Optional, false)
	object, err := k.objects.Get(ctx, r.Pod.Namespace, s.Name)
	switch {
	case err == nil:
		text, binary = k.values(object)
	case optional && apierrors.IsNotFound(err):
		var none T
		object = none
	default:
		k.host.Logf("Couldn't get %s %s/%s: %v", k.name, r.Pod.Namespace, s.Name, err)
		return nil, err
	}
	if s.Mode == nil {
		return nil, errors.New("no defaultMode used, not even the default value for it")
	}
	r.Inputs = append(r.Inputs, object)
	payload := make(map[string]util.FileProjection, len(text)+len(binary))
	if len(s.Items) == 0 {
		for name, data := range text { //drydock:unordered fills a map
			payload[name] = util.FileProjection{Data: []byte(data), Mode: *s.Mode}
		}
		for name, data := range binary { //drydock:unordered fills a map
			payload[name] = util.FileProjection{Data: data, Mode: *s.Mode}
		}
		return payload, nil
	}
	for _, m := range s.Items {
		f := util.FileProjection{Mode: ptr.Deref(m.Mode, *s.Mode)}
		if t, ok := text[m.Key]; ok {
			f.Data = []byte(t)
		} else if f.Data, ok = binary[m.Key]; !ok {
			if optional {
				continue
			}
			return nil, fmt.Errorf(k.noKey, m.Key)
		}
		payload[m.Path] = f
	}
	return payload, nil
}

// Peek returns what Payload would add to the inputs now; false if that can't be
// told without waiting.
func (k *Reader[T]) Peek(namespace, name string) (input any, ok bool) {
	if k.objects == nil {
		return nil, false
	}
	return k.objects.Peek(namespace, name)
}

// Plugin is the plugin of one kind.
type Plugin[T any] struct{ Reader[T] }

// NewConfigMap returns the plugin of configMap volumes.
func NewConfigMap(host *volume.Host) *Plugin[*v1.ConfigMap] {
	return &Plugin[*v1.ConfigMap]{ConfigMaps(host)}
}

// NewSecret returns the plugin of secret volumes.
func NewSecret(host *volume.Host) *Plugin[*v1.Secret] { return &Plugin[*v1.Secret]{Secrets(host)} }

// Name implements volume.Plugin.
func (p *Plugin[T]) Name() string { return p.plugin }

// CanSupport implements volume.Plugin.
func (p *Plugin[T]) CanSupport(v *v1.Volume) bool {
	_, ok := p.source(v)
	return ok
}

// Path implements volume.Plugin.
func (p *Plugin[T]) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, p.plugin, v.Name)
}

// ReadOnly implements volume.Plugin.
func (p *Plugin[T]) ReadOnly(*v1.Volume) bool { return true }

// InPodDir implements volume.Plugin.
func (p *Plugin[T]) InPodDir() bool { return true }

// SetUp implements volume.Plugin.
func (p *Plugin[T]) SetUp(ctx context.Context, r *volume.Request) error {
	source, _ := p.source(r.Volume)
	payload, err := p.Payload(ctx, r, source)
	if err != nil {
		return err
	}
	return util.SetUpContent(p.host, r, func() error {
		return emptydir.SetUpWrapped(p.host, r, p.medium)
	}, func() error { return p.TearDown(ctx, r.Pod.UID, r.Volume.Name) }, payload)
}

// TearDown implements volume.Plugin.
func (p *Plugin[T]) TearDown(_ context.Context, uid types.UID, name string) error {
	return emptydir.TearDownWrapped(p.host, uid, p.host.VolumeDir(uid, p.plugin, name), name)
}

// Inputs implements volume.Remounter.
func (p *Plugin[T]) Inputs(pod *v1.Pod, v *v1.Volume) ([]any, bool) {
	source, _ := p.source(v)
	input, ok := p.Peek(pod.Namespace, source.Name)
	return []any{input}, ok
}
