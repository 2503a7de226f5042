package schedulerconfig

import (
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Upstream's plugins by name (pkg/scheduler/framework/plugins/names).
const (
	DefaultBinder                   = "DefaultBinder"
	DefaultPreemption               = "DefaultPreemption"
	DynamicResources                = "DynamicResources"
	ImageLocality                   = "ImageLocality"
	InterPodAffinity                = "InterPodAffinity"
	NodeAffinity                    = "NodeAffinity"
	NodeDeclaredFeatures            = "NodeDeclaredFeatures"
	NodeName                        = "NodeName"
	NodePorts                       = "NodePorts"
	NodeResourcesBalancedAllocation = "NodeResourcesBalancedAllocation"
	NodeResourcesFit                = "NodeResourcesFit"
	NodeUnschedulable               = "NodeUnschedulable"
	NodeVolumeLimits                = "NodeVolumeLimits"
	PodTopologySpread               = "PodTopologySpread"
	PrioritySort                    = "PrioritySort"
	SchedulingGates                 = "SchedulingGates"
	TaintToleration                 = "TaintToleration"
	VolumeBinding                   = "VolumeBinding"
	VolumeRestrictions              = "VolumeRestrictions"
	VolumeZone                      = "VolumeZone"
)

// Point is an extension point of the scheduling framework.
type Point uint8

// The points, in the order in which upstream fills them with plugins
// (framework/runtime/framework.go, getExtensionPoints).
const (
	PreFilter Point = iota
	Filter
	PostFilter
	Reserve
	PreScore
	Score
	PreBind
	Bind
	PostBind
	Permit
	PreEnqueue
	QueueSort
	PlacementGenerate
	PlacementScore
	numPoints
)

// names are the fields of a profile's plugins, and interfaces what upstream's messages call them.
var (
	pointNames = [numPoints]string{
		"preFilter", "filter", "postFilter", "reserve", "preScore", "score", "preBind", "bind", "postBind", "permit", "preEnqueue", "queueSort",
		"placementGenerate", "placementScore",
	}
	pointInterfaces = [numPoints]string{
		"PreFilterPlugin", "FilterPlugin", "PostFilterPlugin", "ReservePlugin", "PreScorePlugin", "ScorePlugin", "PreBindPlugin", "BindPlugin",
		"PostBindPlugin", "PermitPlugin", "PreEnqueuePlugin", "QueueSortPlugin", "PlacementGeneratePlugin", "PlacementScorePlugin",
	}
)

// set returns the plugins that a profile names at a point.
func (p Point) set(of *configv1.Plugins) *configv1.PluginSet {
	return [numPoints]*configv1.PluginSet{
		&of.PreFilter, &of.Filter, &of.PostFilter, &of.Reserve, &of.PreScore, &of.Score, &of.PreBind, &of.Bind, &of.PostBind, &of.Permit,
		&of.PreEnqueue, &of.QueueSort, &of.PlacementGenerate, &of.PlacementScore,
	}[p]
}

// plugin is a plugin of upstream's registry.
type plugin struct {
	name string
	// weight: of its scores by default; 0: it has none, or 1.
	weight int32
	points []Point
	// off: it is in the registry, and not among the defaults; nothing here stands for it.
	off bool
}

// plugins are upstream's, the defaults in their order (apis/config/v1/default_plugins.go with the
// feature gates of v1.36).
func plugins() []plugin {
	return []plugin{
		{name: SchedulingGates, points: []Point{PreEnqueue}},
		{name: PrioritySort, points: []Point{QueueSort}},
		{name: NodeUnschedulable, points: []Point{Filter}},
		{name: NodeName, points: []Point{Filter}},
		{name: TaintToleration, weight: 3, points: []Point{Filter, PreScore, Score}},
		{name: NodeAffinity, weight: 2, points: []Point{PreFilter, Filter, PreScore, Score}},
		{name: NodePorts, points: []Point{PreFilter, Filter}},
		{name: NodeResourcesFit, weight: 1, points: []Point{PreFilter, Filter, PreScore, Score, PlacementScore}},
		{name: VolumeRestrictions, points: []Point{PreFilter, Filter}},
		{name: NodeVolumeLimits, points: []Point{PreFilter, Filter}},
		{name: VolumeBinding, points: []Point{PreFilter, Filter, Reserve, PreBind, PreScore, Score}},
		{name: VolumeZone, points: []Point{PreFilter, Filter}},
		{name: PodTopologySpread, weight: 2, points: []Point{PreFilter, Filter, PreScore, Score}},
		{name: InterPodAffinity, weight: 2, points: []Point{PreFilter, Filter, PreScore, Score}},
		{name: DynamicResources, weight: 2, points: []Point{PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind}},
		{name: DefaultPreemption, points: []Point{PostFilter, PreEnqueue}},
		{name: NodeResourcesBalancedAllocation, weight: 1, points: []Point{PreScore, Score}},
		{name: ImageLocality, weight: 1, points: []Point{Score}},
		{name: DefaultBinder, points: []Point{Bind}},
		{name: NodeDeclaredFeatures, points: []Point{PreFilter, Filter}},
		{name: "GangScheduling", points: []Point{PreEnqueue, Permit}, off: true},
		{name: "TopologyPlacementGenerator", points: []Point{PlacementGenerate}, off: true},
		{name: "PodGroupPodsCount", points: []Point{PlacementScore}, off: true},
	}
}

// pluginOf returns a plugin of the registry; nil when there is none of that name.
func pluginOf(name string) *plugin {
	all := plugins()
	if i := slices.IndexFunc(all, func(p plugin) bool { return p.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Names returns the names of upstream's plugins, for who misspells one.
func Names() []string {
	var out []string
	for _, p := range plugins() {
		out = append(out, p.name)
	}
	return out
}

// defaultPlugins are the plugins of a profile that says nothing: all at multiPoint.
func defaultPlugins() *configv1.Plugins {
	out := &configv1.Plugins{}
	for _, p := range plugins() {
		if p.off {
			continue
		}
		x := configv1.Plugin{Name: p.name}
		if p.weight > 0 {
			x.Weight = &p.weight
		}
		out.MultiPoint.Enabled = append(out.MultiPoint.Enabled, x)
	}
	return out
}

// merge lays what a profile says over the defaults, point by point.
func merge(custom *configv1.Plugins) *configv1.Plugins {
	out := defaultPlugins()
	if custom == nil {
		return out
	}
	out.MultiPoint = mergeSet(out.MultiPoint, custom.MultiPoint)
	for p := range numPoints {
		*p.set(out) = mergeSet(configv1.PluginSet{}, *p.set(custom))
	}
	return out
}

// mergeSet takes the disabled plugins out of the defaults and puts the enabled ones in: one that
// is there already is replaced in its place, the others come after.
func mergeSet(defaults, custom configv1.PluginSet) configv1.PluginSet {
	out := configv1.PluginSet{Disabled: slices.Clone(custom.Disabled)}
	has := func(list []configv1.Plugin, name string) int {
		return slices.IndexFunc(list, func(p configv1.Plugin) bool { return p.Name == name })
	}
	replaced := make([]bool, len(custom.Enabled))
	if has(custom.Disabled, "*") < 0 {
		for _, p := range defaults.Enabled {
			if has(custom.Disabled, p.Name) >= 0 {
				continue
			}
			// Of several that are enabled the last one counts; the others come again below, and
			// are found to be registered twice.
			for i := len(custom.Enabled) - 1; i >= 0; i-- {
				if custom.Enabled[i].Name == p.Name {
					p, replaced[i] = custom.Enabled[i], true
					break
				}
			}
			out.Enabled = append(out.Enabled, p)
		}
	}
	for i, p := range custom.Enabled {
		if !replaced[i] {
			out.Enabled = append(out.Enabled, p)
		}
	}
	return out
}
