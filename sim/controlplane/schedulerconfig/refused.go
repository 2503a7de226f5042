package schedulerconfig

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// unbuilt refuses what upstream would run and a simulated scheduler would not.
func (v *validator) unbuilt(cfg *configv1.KubeSchedulerConfiguration) {
	if len(cfg.Extenders) > 0 {
		v.add(field.Forbidden(field.NewPath("extenders"), "extenders are not simulated: they are asked over HTTP, and nothing in a simulation is"))
	}
	for i := range cfg.Profiles {
		p, at := &cfg.Profiles[i], profilePath(i).Child("plugins")
		for _, name := range pluginsNamed(p.Plugins) {
			if known := pluginOf(name); known != nil && known.off {
				v.add(field.Forbidden(at, fmt.Sprintf("the plugin %s is not simulated: its feature gate is off in v1.36", name)))
			}
		}
		points, _ := expand(at, p.Plugins)
		v.halves(at, points)
		v.order(at, points)
	}
}

// halves refuses plugins of which one point needs what another one prepares: upstream's would
// start, and fail on every pod with an error.
func (v *validator) halves(at *field.Path, points expansion) {
	for _, h := range []struct {
		name         string
		needs, point Point
	}{
		{NodePorts, PreFilter, Filter}, {NodeResourcesFit, PreFilter, Filter}, {PodTopologySpread, PreFilter, Filter}, {InterPodAffinity, PreFilter, Filter},
		{PodTopologySpread, PreScore, Score}, {InterPodAffinity, PreScore, Score}, {DynamicResources, PreFilter, Filter}, {DynamicResources, Filter, Reserve},
		{DynamicResources, Reserve, PreBind}, {DynamicResources, PreBind, Filter}, {VolumeBinding, PreFilter, Filter}, {VolumeRestrictions, PreFilter, Filter},
		{NodeAffinity, PreFilter, Filter},
	} {
		if slices.Contains(points[h.point], h.name) && !slices.Contains(points[h.needs], h.name) {
			v.add(field.Forbidden(at.Child(pointNames[h.needs]),
				fmt.Sprintf("%s is simulated at %s only together with %s", h.name, pointNames[h.point], pointNames[h.needs])))
		}
	}
}

// order refuses plugins that run in another order than by default where it would show.
func (v *validator) order(at *field.Path, points expansion) {
	for _, point := range []Point{Filter, PostFilter} {
		last := -1
		for _, name := range points[point] {
			i := slices.IndexFunc(plugins(), func(p plugin) bool { return p.name == name })
			if i < last {
				v.add(field.Forbidden(at.Child(pointNames[point]), fmt.Sprintf("%s would run after plugins that it runs before by default: only the default order is simulated", name)))
				return
			}
			last = i
		}
	}
}
