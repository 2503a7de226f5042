package schedulerconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Validate judges a configuration with its defaults set: what upstream refuses, in its order, and
// then what it accepts and Drydock has no part for. The error is an aggregate of *field.Error,
// whose details are upstream's.
func Validate(cfg *configv1.KubeSchedulerConfiguration) error {
	v := &validator{}
	v.configuration(cfg)
	if len(v.errs) == 0 {
		// Upstream makes profiles only of what passed.
		for i := range cfg.Profiles {
			v.profilePlugins(profilePath(i), &cfg.Profiles[i])
		}
	}
	if len(v.errs) == 0 {
		v.unbuilt(cfg)
	}
	return v.errs.ToAggregate()
}

type validator struct{ errs field.ErrorList }

func (v *validator) add(e ...*field.Error) { v.errs = append(v.errs, e...) }

// invalid notes a value that doesn't pass.
func (v *validator) invalid(ok bool, p *field.Path, value any, detail string) {
	if !ok {
		v.add(field.Invalid(p, value, detail))
	}
}

func profilePath(i int) *field.Path { return field.NewPath("profiles").Index(i) }

// configuration is ValidateKubeSchedulerConfiguration.
func (v *validator) configuration(cfg *configv1.KubeSchedulerConfiguration) {
	v.invalid(cfg.ClientConnection.Burst >= 0, field.NewPath("clientConnection", "burst"), cfg.ClientConnection.Burst, "must be non-negative")
	v.leaderElection(cfg)
	v.invalid(*cfg.Parallelism > 0, field.NewPath("parallelism"), *cfg.Parallelism, "should be an integer value greater than zero")
	known := map[string]int{}
	for i := range cfg.Profiles {
		p, path := &cfg.Profiles[i], profilePath(i)
		name := value(p.SchedulerName)
		if name == "" {
			v.add(field.Required(path.Child("schedulerName"), ""))
		}
		v.percentage(path.Child("percentageOfNodesToScore"), p.PercentageOfNodesToScore)
		v.pluginConfig(path, p)
		if first, ok := known[name]; ok {
			v.add(field.Duplicate(path.Child("schedulerName"), profilePath(first).Child("schedulerName")))
		}
		known[name] = i
	}
	v.queueSort(cfg.Profiles)
	v.percentage(field.NewPath("percentageOfNodesToScore"), cfg.PercentageOfNodesToScore)
	v.invalid(*cfg.PodInitialBackoffSeconds > 0, field.NewPath("podInitialBackoffSeconds"), *cfg.PodInitialBackoffSeconds, "must be greater than 0")
	v.invalid(*cfg.PodMaxBackoffSeconds >= *cfg.PodInitialBackoffSeconds, field.NewPath("podMaxBackoffSeconds"), *cfg.PodMaxBackoffSeconds,
		"must be greater than or equal to PodInitialBackoffSeconds")
	v.extenders(cfg.Extenders)
}

// value of a pointer; nil is zero.
func value[T any](p *T) T {
	var zero T
	if p != nil {
		return *p
	}
	return zero
}

func (v *validator) percentage(p *field.Path, is *int32) {
	v.invalid(is == nil || *is >= 0 && *is <= 100, p, value(is), "not in valid range [0-100]")
}

// leaderElection is of component-base's validation.
func (v *validator) leaderElection(cfg *configv1.KubeSchedulerConfiguration) {
	l, p := &cfg.LeaderElection, field.NewPath("leaderElection")
	if !value(l.LeaderElect) {
		return
	}
	const positive = "must be greater than zero"
	v.invalid(l.LeaseDuration.Duration > 0, p.Child("leaseDuration"), l.LeaseDuration, positive)
	v.invalid(l.RenewDeadline.Duration > 0, p.Child("renewDeadline"), l.RenewDeadline, positive)
	v.invalid(l.RetryPeriod.Duration > 0, p.Child("retryPeriod"), l.RetryPeriod, positive)
	v.invalid(l.LeaseDuration.Duration > l.RenewDeadline.Duration, p.Child("leaseDuration"), l.RenewDeadline, "must be greater than `RenewDeadline`")
	v.invalid(l.ResourceLock == "leases", p.Child("resourceLock"), l.ResourceLock, `resourceLock value must be "leases"`)
}

// removed are plugins of former versions, which this one refuses by name.
func removed(name string) bool {
	return slices.Contains([]string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}, name)
}

// removedPlugin words why.
func removedPlugin(p *field.Path, name string) *field.Error {
	const version = "v1"
	return field.Invalid(p, name, fmt.Sprintf("was invalid in version %q (KubeSchedulerConfiguration is version %q)", version, configv1.SchemeGroupVersion.String()))
}

// pluginConfig judges arguments (validatePluginConfig).
func (v *validator) pluginConfig(path *field.Path, p *configv1.KubeSchedulerProfile) {
	for point := range numPoints {
		for i, x := range point.set(p.Plugins).Enabled {
			if removed(x.Name) {
				v.add(removedPlugin(path.Child("plugins", pointNames[point], "enabled").Index(i), x.Name))
			}
		}
	}
	seen := map[string]bool{}
	for i := range p.PluginConfig {
		c, at := &p.PluginConfig[i], path.Child("pluginConfig").Index(i)
		if seen[c.Name] {
			v.add(field.Duplicate(at, c.Name))
		}
		seen[c.Name] = true
		if removed(c.Name) {
			v.add(removedPlugin(at, c.Name))
			continue
		}
		v.args(at.Child("args"), c)
	}
}

// args judges one plugin's arguments (validation_pluginargs.go).
func (v *validator) args(at *field.Path, c *configv1.PluginConfig) {
	switch a := c.Args.Object.(type) {
	case *configv1.DefaultPreemptionArgs:
		percent, number := *a.MinCandidateNodesPercentage, *a.MinCandidateNodesAbsolute
		atPercent, atNumber := at.Child("minCandidateNodesPercentage"), at.Child("minCandidateNodesAbsolute")
		v.invalid(percent >= 0 && percent <= 100, atPercent, percent, "not in valid range [0, 100]")
		v.invalid(number >= 0, atNumber, number, "not in valid range [0, inf)")
		if percent == 0 && number == 0 {
			v.add(field.Invalid(atPercent, percent, "cannot be zero at the same time as minCandidateNodesAbsolute"),
				field.Invalid(atNumber, number, "cannot be zero at the same time as minCandidateNodesPercentage"))
		}
	case *configv1.InterPodAffinityArgs:
		w := *a.HardPodAffinityWeight
		v.invalid(w >= 0 && w <= 100, at.Child("hardPodAffinityWeight"), w, "not in valid range [0, 100]")
	case *configv1.NodeAffinityArgs:
		v.addedAffinity(at.Child("addedAffinity"), a.AddedAffinity)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		for i, r := range a.Resources {
			p := at.Child("resources").Index(i)
			if slices.ContainsFunc(a.Resources[:i], func(o configv1.ResourceSpec) bool { return o.Name == r.Name }) {
				v.add(field.Duplicate(p.Child("name"), r.Name))
			}
			v.invalid(r.Weight == 1, p.Child("weight"), r.Weight, "must be 1")
		}
	case *configv1.NodeResourcesFitArgs:
		v.fit(at, a)
	case *configv1.PodTopologySpreadArgs:
		v.spread(at, a)
	case *configv1.VolumeBindingArgs:
		v.invalid(*a.BindTimeoutSeconds >= 0, at.Child("bindTimeoutSeconds"), *a.BindTimeoutSeconds, "invalid BindTimeoutSeconds, should not be a negative value")
		v.invalid(a.Shape == nil, at.Child("shape"), a.Shape, "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring")
	case *configv1.DynamicResourcesArgs:
		v.invalid(a.FilterTimeout.Duration >= 0, at.Child("filterTimeout"), a.FilterTimeout, "must be zero or positive")
		v.invalid(a.BindingTimeout.Duration >= time.Second, at.Child("bindingTimeout"), a.BindingTimeout, "must be at least 1 second")
	}
}

func (v *validator) addedAffinity(at *field.Path, a *v1.NodeAffinity) {
	if a == nil {
		return
	}
	var errs []error
	if ns := a.RequiredDuringSchedulingIgnoredDuringExecution; ns != nil {
		_, err := nodeaffinity.NewNodeSelector(ns, field.WithPath(at.Child("requiredDuringSchedulingIgnoredDuringExecution")))
		errs = append(errs, err)
	}
	if terms := a.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		_, err := nodeaffinity.NewPreferredSchedulingTerms(terms, field.WithPath(at.Child("preferredDuringSchedulingIgnoredDuringExecution")))
		errs = append(errs, err)
	}
	all := utilerrors.Flatten(utilerrors.NewAggregate(errs))
	if all == nil {
		return
	}
	for _, err := range all.Errors() {
		var e *field.Error
		if !errors.As(err, &e) {
			e = field.Invalid(at, a, err.Error())
		}
		v.add(e)
	}
}

// fit judges NodeResourcesFitArgs. Upstream does so when it makes the plugin.
func (v *validator) fit(at *field.Path, a *configv1.NodeResourcesFitArgs) {
	for i, name := range a.IgnoredResources {
		v.add(metav1validation.ValidateLabelName(name, at.Child("ignoredResources").Index(i))...)
	}
	for i, group := range a.IgnoredResourceGroups {
		p := at.Child("ignoredResourceGroups").Index(i)
		v.invalid(!strings.Contains(group, "/"), p, group, "resource group name can't contain '/'")
		v.add(metav1validation.ValidateLabelName(group, p)...)
	}
	s, p := a.ScoringStrategy, at.Child("scoringStrategy")
	types := []configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio}
	if !slices.Contains(types, s.Type) {
		v.add(field.NotSupported(p.Child("type"), s.Type, types))
	}
	for i, r := range s.Resources {
		v.invalid(r.Weight > 0 && r.Weight <= 100, p.Child("resources").Index(i).Child("weight"), r.Weight,
			fmt.Sprintf("resource weight of %v not in valid range (0, 100]", r.Name))
	}
	ratio := p.Child("requestedToCapacityRatio")
	switch {
	case s.Type != configv1.RequestedToCapacityRatio && s.RequestedToCapacityRatio != nil:
		v.add(field.Forbidden(ratio, "must be nil when type is not RequestedToCapacityRatio"))
	case s.Type == configv1.RequestedToCapacityRatio && s.RequestedToCapacityRatio == nil:
		v.add(field.Required(ratio, "must be specified when type is RequestedToCapacityRatio"))
	case s.Type == configv1.RequestedToCapacityRatio:
		v.shape(ratio.Child("shape"), s.RequestedToCapacityRatio.Shape)
	}
}

// Bounds of the points of a shape.
const (
	maxUtilization = 100
	// maxCustomScore is a shape's best score (config.MaxCustomPriorityScore).
	maxCustomScore = 10
)

func (v *validator) shape(at *field.Path, shape []configv1.UtilizationShapePoint) {
	if len(shape) == 0 {
		v.add(field.Required(at, "at least one point must be specified"))
		return
	}
	for i := 1; i < len(shape); i++ {
		if shape[i-1].Utilization >= shape[i].Utilization {
			v.add(field.Invalid(at.Index(i).Child("utilization"), shape[i].Utilization, "values must be sorted in increasing order"))
			break
		}
	}
	for i, x := range shape {
		v.invalid(x.Utilization >= 0 && x.Utilization <= maxUtilization, at.Index(i).Child("utilization"), x.Utilization, fmt.Sprintf("not in valid range [0, %d]", maxUtilization))
		v.invalid(x.Score >= 0 && x.Score <= maxCustomScore, at.Index(i).Child("score"), x.Score, fmt.Sprintf("not in valid range [0, %d]", maxCustomScore))
	}
}

func (v *validator) spread(at *field.Path, a *configv1.PodTopologySpreadArgs) {
	types := []configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting}
	switch p := at.Child("defaultingType"); {
	case !slices.Contains(types, a.DefaultingType):
		v.add(field.NotSupported(p, a.DefaultingType, types))
	case a.DefaultingType == configv1.SystemDefaulting && len(a.DefaultConstraints) > 0:
		v.add(field.Invalid(p, a.DefaultingType, "when .defaultConstraints are not empty"))
	}
	list := at.Child("defaultConstraints")
	for i, c := range a.DefaultConstraints {
		p := list.Index(i)
		v.invalid(c.MaxSkew > 0, p.Child("maxSkew"), c.MaxSkew, "not in valid range (0, inf)")
		if c.TopologyKey == "" {
			v.add(field.Required(p.Child("topologyKey"), "can not be empty"))
		} else {
			v.add(metav1validation.ValidateLabelName(c.TopologyKey, p.Child("topologyKey"))...)
		}
		actions := []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}
		switch {
		case c.WhenUnsatisfiable == "":
			v.add(field.Required(p.Child("whenUnsatisfiable"), "can not be empty"))
		case !slices.Contains(actions, c.WhenUnsatisfiable):
			v.add(field.NotSupported(p.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, actions))
		}
		if c.LabelSelector != nil {
			v.add(field.Forbidden(p.Child("labelSelector"), "constraint must not define a selector, as they deduced for each pod"))
		}
		if slices.ContainsFunc(a.DefaultConstraints[:i], func(o v1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			v.add(field.Duplicate(p, fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable)))
		}
	}
}

// queueSort wants all profiles to sort alike: there is one queue (validateCommonQueueSort).
func (v *validator) queueSort(profiles []configv1.KubeSchedulerProfile) {
	first := &profiles[0].Plugins.QueueSort
	v.invalid(len(first.Enabled) <= 1, profilePath(0).Child("plugins", "queueSort", "enabled"), len(first.Enabled), "only one queue sort plugin can be enabled")
	for i := 1; i < len(profiles); i++ {
		is := &profiles[i].Plugins.QueueSort
		v.invalid(apiequality.Semantic.DeepEqual(first, is), profilePath(i).Child("plugins", "queueSort"), is, "must be the same for all profiles")
	}
}

// extenders is validateExtenders; unbuilt refuses those that pass.
func (v *validator) extenders(list []configv1.Extender) {
	path, binders, managed := field.NewPath("extenders"), 0, map[string]bool{}
	for i, e := range list {
		p := path.Index(i)
		if e.PrioritizeVerb != "" {
			v.invalid(e.Weight > 0, p.Child("weight"), e.Weight, "must have a positive weight applied to it")
		}
		if e.BindVerb != "" {
			binders++
		}
		for j, r := range e.ManagedResources {
			name := p.Child("managedResources").Index(j).Child("name")
			msgs := validation.IsQualifiedName(r.Name)
			for _, msg := range msgs {
				v.add(field.Invalid(name, r.Name, msg))
			}
			if len(msgs) == 0 {
				v.invalid(isExtended(r.Name), name, r.Name, "is an invalid extended resource name")
			}
			v.invalid(!managed[r.Name], name, r.Name, "duplicate extender managed resource name")
			managed[r.Name] = true
		}
	}
	if binders > 1 {
		v.add(field.Invalid(path, fmt.Sprintf("found %d extenders implementing bind", binders), "only one extender can implement bind"))
	}
}

// isExtended reports whether a resource is neither Kubernetes' own nor a quota's
// (pkg/apis/core/v1/helper, IsExtendedResourceName).
func isExtended(name string) bool {
	if !strings.Contains(name, "/") || strings.Contains(name, v1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+name)) == 0
}
