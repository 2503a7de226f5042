package schedulerconfig

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	sigsjson "sigs.k8s.io/json"
)

// NewArgs returns empty arguments of a plugin; nil for one that takes none, as far as anybody here
// knows.
func NewArgs(plugin string) runtime.Object {
	switch plugin {
	case DefaultPreemption:
		return &configv1.DefaultPreemptionArgs{}
	case DynamicResources:
		return &configv1.DynamicResourcesArgs{}
	case InterPodAffinity:
		return &configv1.InterPodAffinityArgs{}
	case NodeAffinity:
		return &configv1.NodeAffinityArgs{}
	case NodeResourcesBalancedAllocation:
		return &configv1.NodeResourcesBalancedAllocationArgs{}
	case NodeResourcesFit:
		return &configv1.NodeResourcesFitArgs{}
	case PodTopologySpread:
		return &configv1.PodTopologySpreadArgs{}
	case VolumeBinding:
		return &configv1.VolumeBindingArgs{}
	}
	return nil
}

// KindError says, in upstream's words, that arguments are of another kind than their plugin's; ""
// if they are of the right one or don't say (config/v1/types.go, decodeNestedObjects).
func KindError(plugin string, args runtime.Object) string {
	is := args.GetObjectKind().GroupVersionKind()
	want := configv1.SchemeGroupVersion.WithKind(plugin + "Args")
	if (is.Kind == "" || is.Kind == want.Kind) && (is.Group == "" || is.Group == want.Group) {
		return ""
	}
	return fmt.Sprintf("args for plugin %s were not of type %s, got %s", plugin, want.GroupKind(), is.GroupKind())
}

// DecodeArgs gives arguments that are still JSON their types. Unknown fields are errors. Arguments
// that have a type are left as they are.
func DecodeArgs(cfg *configv1.KubeSchedulerConfiguration) error {
	for i := range cfg.Profiles {
		for j := range cfg.Profiles[i].PluginConfig {
			if err := decodeArgs(&cfg.Profiles[i].PluginConfig[j]); err != nil {
				return fmt.Errorf("decoding .profiles[%d].pluginConfig[%d]: %w", i, j, err)
			}
		}
	}
	return nil
}

func decodeArgs(c *configv1.PluginConfig) error {
	args := NewArgs(c.Name)
	if args == nil || c.Args.Object != nil {
		return nil
	}
	if len(c.Args.Raw) > 0 {
		strict, err := sigsjson.UnmarshalStrict(c.Args.Raw, args)
		if err == nil && len(strict) > 0 {
			err = strict[0]
		}
		if err != nil {
			return fmt.Errorf("decoding args for plugin %s: %w", c.Name, err)
		}
	}
	if text := KindError(c.Name, args); text != "" {
		return fmt.Errorf("%s", text)
	}
	c.Args.Object = args
	return nil
}

// clone returns a copy of which nothing is shared. Types of arguments are kept.
func clone(cfg *configv1.KubeSchedulerConfiguration) *configv1.KubeSchedulerConfiguration {
	if cfg == nil {
		return &configv1.KubeSchedulerConfiguration{}
	}
	return cfg.DeepCopy()
}

// Encode returns a configuration as JSON, with its plugins' arguments.
func Encode(cfg *configv1.KubeSchedulerConfiguration) ([]byte, error) {
	out := clone(cfg)
	for i := range out.Profiles {
		for j := range out.Profiles[i].PluginConfig {
			a := &out.Profiles[i].PluginConfig[j].Args
			if a.Object == nil {
				continue
			}
			raw, err := json.Marshal(a.Object)
			if err != nil {
				return nil, fmt.Errorf("encoding .profiles[%d].pluginConfig[%d]: %w", i, j, err)
			}
			a.Raw, a.Object = raw, nil
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding a KubeSchedulerConfiguration: %w", err)
	}
	return data, nil
}
