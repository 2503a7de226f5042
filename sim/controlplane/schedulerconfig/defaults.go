package schedulerconfig

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Bounds of how long a pod that failed waits.
const (
	podInitialBackoff = time.Second
	podMaxBackoff     = 10 * time.Second
)

// SetDefaults fills in what a configuration leaves out, with plugins and arguments of each profile
// (apis/config/v1/defaults.go). Arguments have their types already (DecodeArgs).
func SetDefaults(cfg *configv1.KubeSchedulerConfiguration) {
	orElse(&cfg.Parallelism, 16)
	if len(cfg.Profiles) == 0 {
		cfg.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	// With several profiles each must be named.
	if len(cfg.Profiles) == 1 {
		orElse(&cfg.Profiles[0].SchedulerName, v1.DefaultSchedulerName)
	}
	for i := range cfg.Profiles {
		setProfileDefaults(&cfg.Profiles[i])
	}
	orElse(&cfg.PercentageOfNodesToScore, 0)
	l := &cfg.LeaderElection
	orText(&l.ResourceLock, "leases")
	orText(&l.ResourceNamespace, configv1.SchedulerDefaultLockObjectNamespace)
	orText(&l.ResourceName, configv1.SchedulerDefaultLockObjectName)
	orText(&cfg.ClientConnection.ContentType, "application/vnd.kubernetes.protobuf")
	if cfg.ClientConnection.QPS == 0 {
		cfg.ClientConnection.QPS = 50
	}
	if cfg.ClientConnection.Burst == 0 {
		cfg.ClientConnection.Burst = 100
	}
	componentbaseconfig.RecommendedDefaultLeaderElectionConfiguration(l)
	orElse(&cfg.PodInitialBackoffSeconds, int64(podInitialBackoff/time.Second))
	orElse(&cfg.PodMaxBackoffSeconds, int64(podMaxBackoff/time.Second))
	orElse(&cfg.EnableProfiling, true)
	if *cfg.EnableProfiling {
		orElse(&cfg.EnableContentionProfiling, true)
	}
}

// orElse sets what is not set.
func orElse[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

func orText(p *string, v string) {
	if *p == "" {
		*p = v
	}
}

// setProfileDefaults merges a profile's plugins with the defaults, and appends the arguments of
// those that are not configured.
func setProfileDefaults(p *configv1.KubeSchedulerProfile) {
	p.Plugins = merge(p.Plugins)
	configured := func(name string) bool {
		return slices.ContainsFunc(p.PluginConfig, func(c configv1.PluginConfig) bool { return c.Name == name })
	}
	for i := range p.PluginConfig {
		if args := p.PluginConfig[i].Args.Object; args != nil {
			setArgsDefaults(args)
		}
	}
	for _, name := range pluginsNamed(p.Plugins) {
		args := NewArgs(name)
		if args == nil || configured(name) {
			continue
		}
		setArgsDefaults(args)
		p.PluginConfig = append(p.PluginConfig, configv1.PluginConfig{Name: name, Args: runtime.RawExtension{Object: args}})
	}
}

// pluginsNamed returns the plugins that are enabled anywhere, sorted.
func pluginsNamed(p *configv1.Plugins) []string {
	var out []string
	add := func(list []configv1.Plugin) {
		for _, x := range list {
			out = append(out, x.Name)
		}
	}
	add(p.MultiPoint.Enabled)
	for point := range numPoints {
		add(point.set(p).Enabled)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// defaultResources are scored unless others are said.
func defaultResources() []configv1.ResourceSpec {
	return []configv1.ResourceSpec{{Name: string(v1.ResourceCPU), Weight: 1}, {Name: string(v1.ResourceMemory), Weight: 1}}
}

// weigh gives resources without a weight the weight 1.
func weigh(list []configv1.ResourceSpec) {
	for i := range list {
		if list[i].Weight == 0 {
			list[i].Weight = 1
		}
	}
}

func setArgsDefaults(args runtime.Object) {
	switch a := args.(type) {
	case *configv1.DefaultPreemptionArgs:
		orElse(&a.MinCandidateNodesPercentage, 10)
		orElse(&a.MinCandidateNodesAbsolute, 100)
	case *configv1.InterPodAffinityArgs:
		orElse(&a.HardPodAffinityWeight, 1)
	case *configv1.VolumeBindingArgs:
		orElse(&a.BindTimeoutSeconds, 600)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		if len(a.Resources) == 0 {
			a.Resources = defaultResources()
		}
		weigh(a.Resources)
	case *configv1.PodTopologySpreadArgs:
		if a.DefaultingType == "" {
			a.DefaultingType = configv1.SystemDefaulting
		}
	case *configv1.NodeResourcesFitArgs:
		if a.ScoringStrategy == nil {
			a.ScoringStrategy = &configv1.ScoringStrategy{Type: configv1.LeastAllocated}
		}
		if len(a.ScoringStrategy.Resources) == 0 {
			a.ScoringStrategy.Resources = defaultResources()
		}
		weigh(a.ScoringStrategy.Resources)
	case *configv1.DynamicResourcesArgs:
		orElse(&a.FilterTimeout, metav1.Duration{Duration: configv1.DynamicResourcesFilterTimeoutDefault})
		orElse(&a.BindingTimeout, metav1.Duration{Duration: configv1.DynamicResourcesBindingTimeoutDefault})
	}
}
