package schedulerconfig

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Config is what a scheduler goes by: a configuration that was completed and found right.
type Config struct {
	// Profiles are at least one.
	Profiles []*Profile
	// PodInitialBackoff and PodMaxBackoff bound how long a pod that failed waits.
	PodInitialBackoff, PodMaxBackoff time.Duration
	// QPS and Burst are those of clientConnection. A QPS under 0 is no limit.
	QPS   float64
	Burst int
}

// Profile is what pods of one scheduler name are placed by.
type Profile struct {
	SchedulerName string
	// PercentageOfNodesToScore is 0 for upstream's own choice by the number of nodes.
	PercentageOfNodesToScore int32

	// The plugins' arguments, with defaults.
	DefaultPreemption  *configv1.DefaultPreemptionArgs
	DynamicResources   *configv1.DynamicResourcesArgs
	InterPodAffinity   *configv1.InterPodAffinityArgs
	NodeAffinity       *configv1.NodeAffinityArgs
	BalancedAllocation *configv1.NodeResourcesBalancedAllocationArgs
	NodeResourcesFit   *configv1.NodeResourcesFitArgs
	PodTopologySpread  *configv1.PodTopologySpreadArgs
	VolumeBinding      *configv1.VolumeBindingArgs

	points  expansion
	weights map[string]int64
}

// Runs reports whether a plugin runs at a point.
func (p *Profile) Runs(point Point, plugin string) bool {
	return slices.Contains(p.points[point], plugin)
}

// Scores reports whether any plugin scores nodes.
func (p *Profile) Scores() bool { return len(p.points[Score]) > 0 }

// Weight returns what a plugin's scores are multiplied by; 0 when it scores nothing.
func (p *Profile) Weight(plugin string) int64 {
	if !p.Runs(Score, plugin) {
		return 0
	}
	return p.weights[plugin]
}

// Default returns the configuration of a scheduler that was given none.
func Default() *Config {
	cfg := &configv1.KubeSchedulerConfiguration{}
	SetDefaults(cfg)
	return resolved(cfg)
}

// Resolve completes a configuration, judges it and makes a Config of it. Nil is an empty one. The
// configuration is left as it is.
func Resolve(cfg *configv1.KubeSchedulerConfiguration) (*Config, error) {
	cfg = clone(cfg)
	if err := DecodeArgs(cfg); err != nil {
		return nil, err
	}
	SetDefaults(cfg)
	if err := Validate(cfg); err != nil {
		return nil, fmt.Errorf("invalid KubeSchedulerConfiguration: %w", err)
	}
	return resolved(cfg), nil
}

// resolved is of a configuration that is complete and right.
func resolved(cfg *configv1.KubeSchedulerConfiguration) *Config {
	out := &Config{
		PodInitialBackoff: time.Duration(*cfg.PodInitialBackoffSeconds) * time.Second,
		PodMaxBackoff:     time.Duration(*cfg.PodMaxBackoffSeconds) * time.Second,
		QPS:               float64(cfg.ClientConnection.QPS),
		Burst:             int(cfg.ClientConnection.Burst),
	}
	for i := range cfg.Profiles {
		p := &cfg.Profiles[i]
		x := &Profile{SchedulerName: *p.SchedulerName, PercentageOfNodesToScore: *cfg.PercentageOfNodesToScore}
		if p.PercentageOfNodesToScore != nil {
			x.PercentageOfNodesToScore = *p.PercentageOfNodesToScore
		}
		x.points, _ = expand(nil, p.Plugins)
		x.weights, _ = scoreWeights(p.Plugins)
		x.arguments(p)
		out.Profiles = append(out.Profiles, x)
	}
	return out
}

// arguments takes those that are configured, and the defaults of plugins that are switched off.
func (x *Profile) arguments(p *configv1.KubeSchedulerProfile) {
	args := func(name string) any {
		for i := range p.PluginConfig {
			if p.PluginConfig[i].Name == name {
				return p.PluginConfig[i].Args.Object
			}
		}
		a := NewArgs(name)
		setArgsDefaults(a)
		return a
	}
	x.DefaultPreemption = args(DefaultPreemption).(*configv1.DefaultPreemptionArgs)
	x.DynamicResources = args(DynamicResources).(*configv1.DynamicResourcesArgs)
	x.InterPodAffinity = args(InterPodAffinity).(*configv1.InterPodAffinityArgs)
	x.NodeAffinity = args(NodeAffinity).(*configv1.NodeAffinityArgs)
	x.BalancedAllocation = args(NodeResourcesBalancedAllocation).(*configv1.NodeResourcesBalancedAllocationArgs)
	x.NodeResourcesFit = args(NodeResourcesFit).(*configv1.NodeResourcesFitArgs)
	x.PodTopologySpread = args(PodTopologySpread).(*configv1.PodTopologySpreadArgs)
	x.VolumeBinding = args(VolumeBinding).(*configv1.VolumeBindingArgs)
}

// SchedulerNames returns the names of a configuration's profiles; those of nil are the default's.
func SchedulerNames(c *Config) []string {
	if c == nil {
		return []string{v1.DefaultSchedulerName}
	}
	var out []string
	for _, p := range c.Profiles {
		out = append(out, p.SchedulerName)
	}
	return out
}
