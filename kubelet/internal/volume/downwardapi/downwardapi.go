// Package downwardapi is the volume that shows fields of its pod. It mirrors
// upstream's pkg/volume/downwardapi.
package downwardapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/kubelet/internal/fieldpath"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/emptydir"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/downward-api"

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.DownwardAPI != nil }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, PluginName, v.Name)
}

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return true }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return true }

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, r *volume.Request) error {
	source := r.Volume.DownwardAPI
	data, err := CollectData(p.host, source.Items, r.Pod, source.DefaultMode)
	if err != nil {
		p.host.Logf("Error preparing data for downwardAPI volume %v for pod %v/%v: %v", r.Volume.Name, r.Pod.Namespace, r.Pod.Name, err)
		return err
	}
	r.Inputs, _ = p.Inputs(r.Pod, r.Volume)
	return util.SetUpContent(p.host, r, func() error {
		return emptydir.SetUpWrapped(p.host, r, v1.StorageMediumMemory)
	}, func() error { return p.TearDown(ctx, r.Pod.UID, r.Volume.Name) }, data)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(_ context.Context, uid types.UID, name string) error {
	return emptydir.TearDownWrapped(p.host, uid, p.host.VolumeDir(uid, PluginName, name), name)
}

// Inputs implements volume.Remounter.
func (p *Plugin) Inputs(pod *v1.Pod, v *v1.Volume) ([]any, bool) {
	return Inputs(p.host, v.DownwardAPI.Items, pod), true
}

// Inputs returns what items show that does not come from the pod: limits that
// default to what the node has.
func Inputs(host *volume.Host, items []v1.DownwardAPIVolumeFile, pod *v1.Pod) []any {
	var out []any
	for i := range items {
		if ref := items[i].ResourceFieldRef; ref != nil {
			value, _ := resourceValue(host, ref, pod) // an error reads as ""
			out = append(out, value)
		}
	}
	return out
}

// CollectData reads the fields. All that go wrong are in the error.
func CollectData(host *volume.Host, items []v1.DownwardAPIVolumeFile, pod *v1.Pod, defaultMode *int32) (map[string]util.FileProjection, error) {
	if defaultMode == nil {
		return nil, errors.New("no defaultMode used, not even the default value for it")
	}
	var errs []error
	data := make(map[string]util.FileProjection, len(items))
	for i := range items {
		item := &items[i]
		f := util.FileProjection{Mode: *defaultMode}
		if item.Mode != nil {
			f.Mode = *item.Mode
		}
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			seen := pod
			if host.Annotated != nil && strings.HasPrefix(item.FieldRef.FieldPath, "metadata.annotations") {
				seen = host.Annotated(pod)
			}
			value, err = fieldpath.ExtractFieldPathAsString(seen, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceValue(host, item.ResourceFieldRef, pod)
		}
		if err != nil {
			host.Logf("Unable to extract the value of %s: %v", item.Path, err)
			errs = append(errs, err)
			continue
		}
		f.Data = []byte(value)
		data[item.Path] = f
	}
	return data, utilerrors.NewAggregate(errs)
}

func resourceValue(host *volume.Host, ref *v1.ResourceFieldSelector, pod *v1.Pod) (string, error) {
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == ref.ContainerName {
				return fieldpath.ResourceValue(ref, pod, &list[i], host.NodeAllocatable())
			}
		}
	}
	return "", fmt.Errorf("container %s not found", ref.ContainerName)
}
