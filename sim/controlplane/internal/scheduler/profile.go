package scheduler

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// profile is a schedulerconfig.Profile in the form in which cycles ask it. Classes are of one
// profile, so what they remember is that profile's.
type profile struct {
	name string
	// filters are the plugins whose filters run.
	filters plugins
	// gates: scheduling gates keep pods out of the queue; claimGates: claims that aren't there do.
	gates, claimGates bool
	// deallocates and preempts are the post-filters that run.
	deallocates, preempts bool
	// scores: some plugin scores nodes. Without any the first node will do that takes the pod.
	scores            bool
	weights           weights
	percentageOfNodes int

	minCandidatePercent, minCandidates int
	// hardPodAffinityWeight is what required affinity of pods to others counts for in the
	// scores of those others.
	hardPodAffinityWeight int64
	// ownPreferencesOnly: a pod without preferred affinity is not scored by that of others.
	ownPreferencesOnly bool
	// required and preferred are NodeAffinity's addedAffinity.
	required  *nodeaffinity.NodeSelector
	preferred *nodeaffinity.PreferredSchedulingTerms
	// spread are the constraints of pods without any; systemSpread: those that upstream has
	// built in.
	spread       []v1.TopologySpreadConstraint
	systemSpread bool

	// volumeBindTimeout and deviceBindTimeout are how long a pod that was placed waits for its
	// volumes, and for its devices.
	volumeBindTimeout, deviceBindTimeout time.Duration

	fit      scoring
	balanced []configv1.ResourceSpec
	// ignored and ignoredGroups are extended resources that don't keep pods off nodes.
	ignored, ignoredGroups []string
}

// weights are those of the plugins' scores; 0: it scores nothing.
type weights struct {
	taints, nodeAffinity, fit, balanced, images, spread, podAffinity, devices int64
}

// newProfile takes a profile's settings over.
func newProfile(p *schedulerconfig.Profile) *profile {
	out := &profile{
		name:    p.SchedulerName,
		filters: filtersOf(p),
		gates:   p.Runs(schedulerconfig.PreEnqueue, schedulerconfig.SchedulingGates), claimGates: p.Runs(schedulerconfig.PreEnqueue, schedulerconfig.DynamicResources),
		deallocates: p.Runs(schedulerconfig.PostFilter, schedulerconfig.DynamicResources), preempts: p.Runs(schedulerconfig.PostFilter, schedulerconfig.DefaultPreemption),
		scores: p.Scores(),
		weights: weights{
			taints: p.Weight(schedulerconfig.TaintToleration), nodeAffinity: p.Weight(schedulerconfig.NodeAffinity),
			fit: p.Weight(schedulerconfig.NodeResourcesFit), balanced: p.Weight(schedulerconfig.NodeResourcesBalancedAllocation),
			images: p.Weight(schedulerconfig.ImageLocality), spread: p.Weight(schedulerconfig.PodTopologySpread),
			podAffinity: p.Weight(schedulerconfig.InterPodAffinity), devices: p.Weight(schedulerconfig.DynamicResources),
		},
		percentageOfNodes:   int(p.PercentageOfNodesToScore),
		minCandidatePercent: int(*p.DefaultPreemption.MinCandidateNodesPercentage), minCandidates: int(*p.DefaultPreemption.MinCandidateNodesAbsolute),
		hardPodAffinityWeight: int64(*p.InterPodAffinity.HardPodAffinityWeight), ownPreferencesOnly: p.InterPodAffinity.IgnorePreferredTermsOfExistingPods,
		spread: p.PodTopologySpread.DefaultConstraints, systemSpread: p.PodTopologySpread.DefaultingType == configv1.SystemDefaulting,
		volumeBindTimeout: time.Duration(*p.VolumeBinding.BindTimeoutSeconds) * time.Second, deviceBindTimeout: p.DynamicResources.BindingTimeout.Duration,
		fit: newScoring(p.NodeResourcesFit.ScoringStrategy), balanced: p.BalancedAllocation.Resources,
		ignored: p.NodeResourcesFit.IgnoredResources, ignoredGroups: p.NodeResourcesFit.IgnoredResourceGroups,
	}
	// Both were judged when the configuration was.
	if a := p.NodeAffinity.AddedAffinity; a != nil {
		if ns := a.RequiredDuringSchedulingIgnoredDuringExecution; ns != nil {
			out.required, _ = nodeaffinity.NewNodeSelector(ns)
		}
		if terms := a.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
			out.preferred, _ = nodeaffinity.NewPreferredSchedulingTerms(terms)
		}
	}
	if isPlain(out.balanced) {
		out.balanced = nil
	}
	return out
}

// filtersOf returns the plugins whose filters run.
func filtersOf(p *schedulerconfig.Profile) plugins {
	var out plugins
	for name, bit := range map[string]plugins{ //drydock:unordered a set
		schedulerconfig.NodeUnschedulable: nodeUnschedulable, schedulerconfig.TaintToleration: taintToleration, schedulerconfig.NodeAffinity: nodeAffinity,
		schedulerconfig.NodePorts: nodePorts, schedulerconfig.NodeResourcesFit: nodeResourcesFit, schedulerconfig.PodTopologySpread: podTopologySpread,
		schedulerconfig.InterPodAffinity: interPodAffinity, schedulerconfig.VolumeBinding: volumeBinding, schedulerconfig.DynamicResources: dynamicResources,
		schedulerconfig.VolumeRestrictions: volumeRestrictions, schedulerconfig.NodeVolumeLimits: nodeVolumeLimits, schedulerconfig.VolumeZone: volumeZone,
		schedulerconfig.NodeDeclaredFeatures: nodeDeclaredFeatures,
	} {
		if p.Runs(schedulerconfig.Filter, name) {
			out |= bit
		}
	}
	return out
}

// isPlain reports whether CPU and memory are scored alike, as by default.
func isPlain(list []configv1.ResourceSpec) bool {
	return len(list) == 2 && list[0] == configv1.ResourceSpec{Name: string(v1.ResourceCPU), Weight: 1} && list[1] == configv1.ResourceSpec{Name: string(v1.ResourceMemory), Weight: 1}
}

// runs reports whether a plugin's filter runs.
func (p *profile) runs(plugin plugins) bool { return p.filters&plugin != 0 }

// ignores reports whether an extended resource doesn't keep pods off nodes.
func (p *profile) ignores(name v1.ResourceName) bool {
	if len(p.ignored) == 0 && len(p.ignoredGroups) == 0 || !isExtendedName(name) {
		return false
	}
	group, _, _ := strings.Cut(string(name), "/")
	return slices.Contains(p.ignored, string(name)) || slices.Contains(p.ignoredGroups, group)
}

// isExtendedName reports whether a resource is neither Kubernetes' own nor huge pages
// (v1helper.IsExtendedResourceName).
func isExtendedName(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}

// scoresAny reports whether one of the resources that nodes are scored by has a device class.
func (p *profile) scoresAny(m classMapping) bool {
	if len(m) == 0 || p.fit.plain && p.balanced == nil {
		return false
	}
	mapped := func(r configv1.ResourceSpec) bool { return m[v1.ResourceName(r.Name)] != nil }
	return slices.ContainsFunc(p.fit.resources, mapped) || slices.ContainsFunc(p.balanced, mapped)
}

// profiles are all of them, the first of which also stands for pods of no profile: those that
// others have placed.
type profiles []*profile

func newProfiles(c *schedulerconfig.Config) profiles {
	var out profiles
	for _, p := range c.Profiles {
		out = append(out, newProfile(p))
	}
	return out
}

// named returns the profile of a scheduler name; nil if there is none.
func (ps profiles) named(name string) *profile {
	for _, p := range ps {
		if p.name == name {
			return p
		}
	}
	return nil
}

// of returns the profile that a pod is looked at by.
func (ps profiles) of(p *v1.Pod) *profile {
	if len(ps) == 1 {
		return ps[0]
	}
	if x := ps.named(p.Spec.SchedulerName); x != nil {
		return x
	}
	return ps[0]
}
