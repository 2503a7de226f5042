// Package podspec is what the API knows of pods' specs, whether they stand in a pod
// or in the template of a workload: what a manifest's omissions mean, what is
// refused, and what an update may change.
//
// - podspec.go: the pod as a whole, names, DNS, tolerations, node affinity
// - container.go, env.go, probe.go, resources.go: containers, their variables and mounts, probes and hooks, quantities and claims
// - volume.go, volumesource.go, claim.go: volumes and what is projected into them
// - security.go, windows.go: what processes may do, and on which operating system
// - scheduling.go, labelkeys.go, nodeselector.go: what only the scheduler reads
// - update.go, status.go, resize.go: what updates may change, in-place resizes and pod-level resources
// - template.go: templates and their selectors
// - defaults.go, dropped.go: defaults, and what belongs to features that are off
// - warnings.go: what is allowed and yet hardly meant
//
// Functions mirror those of upstream's pkg/apis/core/validation/validation.go and
// pkg/apis/core/v1/defaults.go at v1.36, whose names they give; the texts and the paths of
// errors are upstream's, since users and tests compare them. All are pure
// functions: of a pod and, for updates, of the one before it.
package podspec

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// checker checks one pod, or a template's spec.
type checker struct {
	spec    *v1.PodSpec
	pod     *v1.Pod // nil for a template, whose pods will have names of their own
	volumes map[string]*v1.Volume
}

// Validate checks a new, defaulted pod but for its metadata (ValidatePodCreate).
// What a pod may only get by a subresource, or only lose, is refused at its
// creation. Metadata is checked for all kinds alike, elsewhere.
func Validate(pod *v1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validatePod(pod)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if len(pod.Spec.SchedulingGates) > 0 && pod.Spec.NodeName != "" {
		errs = append(errs, field.Forbidden(spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	c := checker{spec: &pod.Spec, pod: pod}
	return append(errs, c.validateSameProfiles(pod.Annotations, spec)...)
}

// validatePod is validatePodMetadataAndSpec without what all metadata has in common.
func validatePod(pod *v1.Pod) field.ErrorList {
	c := checker{spec: &pod.Spec, pod: pod}
	return append(c.validateAnnotations(pod.Annotations, field.NewPath("metadata", "annotations")), c.validate(field.NewPath("spec"))...)
}

// validate is ValidatePodSpec. Volumes come first: containers are checked
// against their names. Each part is checked whatever another one's errors, so that
// a user sees all mistakes at once.
func (c *checker) validate(path *field.Path) field.ErrorList {
	s := c.spec
	var errs field.ErrorList
	if s.TerminationGracePeriodSeconds == nil {
		errs = append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	}
	errs = append(errs, c.validateVolumes(path.Child("volumes"))...)
	errs = append(errs, c.validateClaims(path.Child("resourceClaims"))...)
	errs = append(errs, c.validateContainers(path)...)
	errs = append(errs, c.validatePodResources(path)...)
	errs = append(errs, fields.OneOf(s.RestartPolicy, path.Child("restartPolicy"), v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	errs = append(errs, validateDNS(s, path)...)
	errs = append(errs, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, c.validatePodSecurity(path.Child("securityContext"))...)
	errs = append(errs, validateAffinity(s.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateScheduling(s, path)...)
	errs = append(errs, c.validateHostProcess(path)...)
	errs = append(errs, c.validateHostUsers(path)...)
	errs = append(errs, validatePodNames(s, path)...)
	errs = append(errs, ValidateTolerations(s.Tolerations, path.Child("tolerations"))...)
	// The deadline's end is computed in nanoseconds of an int64, for which more would be too
	// far.
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	for i, g := range s.ReadinessGates {
		errs = append(errs, fields.Invalid(path.Child("readinessGates").Index(i).Child("conditionType"), string(g.ConditionType), validation.IsQualifiedName(string(g.ConditionType)))...)
	}
	return append(errs, c.validateOS(path)...)
}

// validatePodNames checks the fields that name other things. Nobody checks here
// that those exist: the kubelet and the scheduler wait for them.
func validatePodNames(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range [...]struct{ name, value string }{
		// All of them are names of objects, which are DNS subdomains.
		{"nodeName", s.NodeName},
		{"serviceAccountName", s.ServiceAccountName},
		{"priorityClassName", s.PriorityClassName},
	} {
		if f.value != "" {
			errs = append(errs, fields.DNSName(f.value, path.Child(f.name))...)
		}
	}
	if s.RuntimeClassName != nil {
		errs = append(errs, fields.DNSName(*s.RuntimeClassName, path.Child("runtimeClassName"))...)
	}
	// These two become parts of a DNS name, so each is a label.
	if s.Hostname != "" {
		errs = append(errs, fields.DNSLabel(s.Hostname, path.Child("hostname"))...)
	}
	if s.Subdomain != "" {
		errs = append(errs, fields.DNSLabel(s.Subdomain, path.Child("subdomain"))...)
	}
	errs = append(errs, validateHostnameOverride(s, path.Child("hostnameOverride"))...)
	for i, a := range s.HostAliases {
		p := path.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIPForLegacyField(p.Child("ip"), a.IP, true, nil)...)
		for j, h := range a.Hostnames {
			errs = append(errs, fields.DNSName(h, p.Child("hostnames").Index(j))...)
		}
	}
	return errs
}

// maxHostname is what Linux takes.
const maxHostname = 64

// validateHostnameOverride is validatePodHostName.
func validateHostnameOverride(s *v1.PodSpec, path *field.Path) field.ErrorList {
	if s.HostnameOverride == nil {
		return nil
	}
	var errs field.ErrorList
	if s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN {
		errs = append(errs, field.Forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
	}
	if s.HostNetwork {
		errs = append(errs, field.Forbidden(path, "may not be specified when hostNetwork is true"))
	}
	if len(*s.HostnameOverride) > maxHostname {
		errs = append(errs, field.TooLong(path, "", maxHostname))
	}
	return append(errs, fields.DNSName(*s.HostnameOverride, path)...)
}

// The bounds of a resolver's configuration: those of glibc, and of search paths as v1.36
// allows.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// validateDNS is validatePodDNSConfig with validateDNSPolicy.
func validateDNS(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := fields.OneOf(s.DNSPolicy, path.Child("dnsPolicy"), v1.DNSClusterFirstWithHostNet, v1.DNSClusterFirst, v1.DNSDefault, v1.DNSNone)
	c := s.DNSConfig
	p := path.Child("dnsConfig")
	// Without a policy all that the resolver knows is in dnsConfig.
	if s.DNSPolicy == v1.DNSNone {
		if c == nil {
			return append(errs, field.Required(p, fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", v1.DNSNone)))
		}
		if len(c.Nameservers) == 0 {
			return append(errs, field.Required(p.Child("nameservers"), fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", v1.DNSNone)))
		}
	}
	if c == nil {
		return errs
	}
	if len(c.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(p.Child("nameservers"), c.Nameservers, fmt.Sprintf("must not have more than %v nameservers", maxNameservers)))
	}
	for i, ns := range c.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(p.Child("nameservers").Index(i), ns, true, nil)...)
	}
	if len(c.Searches) > maxSearches {
		errs = append(errs, field.Invalid(p.Child("searches"), c.Searches, fmt.Sprintf("must not have more than %v search paths", maxSearches)))
	}
	if len(strings.Join(c.Searches, " ")) > maxSearchChars {
		errs = append(errs, field.Invalid(p.Child("searches"), c.Searches, fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", maxSearchChars)))
	}
	for i, name := range c.Searches {
		if name != "." { // RelaxedDNSSearchValidation
			name = strings.TrimSuffix(name, ".")
			errs = append(errs, fields.Invalid(p.Child("searches").Index(i), name, validation.IsDNS1123SubdomainWithUnderscore(name))...)
		}
	}
	for i, o := range c.Options {
		if o.Name == "" {
			errs = append(errs, field.Required(p.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

// ValidateTolerations checks tolerations. An empty operator means Equal, and an
// empty effect all effects. The operators Lt and Gt (TaintTolerationComparisonOperators) are
// alpha and refused.
func ValidateTolerations(list []v1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range list {
		p := path.Index(i)
		if t.Key != "" {
			errs = append(errs, metavalidation.ValidateLabelName(t.Key, p.Child("key"))...)
		} else if t.Operator != v1.TolerationOpExists {
			errs = append(errs, field.Invalid(p.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		// Only NoExecute acts on a pod that is running, so only there is time to
		// tolerate.
		if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(p.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case v1.TolerationOpEqual, "":
			if texts := validation.IsValidLabelValue(t.Value); len(texts) > 0 {
				errs = append(errs, field.Invalid(p.Child("operator"), t.Value, strings.Join(texts, ";")))
			}
		case v1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(p.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case v1.TolerationOpLt, v1.TolerationOpGt: // upstream names them all the same
			errs = append(errs, field.NotSupported(p.Child("operator"), t.Operator, []v1.TolerationOperator{v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpLt, v1.TolerationOpGt}))
		default:
			errs = append(errs, field.NotSupported(p.Child("operator"), t.Operator, []v1.TolerationOperator{v1.TolerationOpEqual, v1.TolerationOpExists}))
		}
		if t.Effect != "" {
			errs = append(errs, fields.OneOf(t.Effect, p.Child("effect"), v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		}
	}
	return errs
}

// validateAffinity checks node affinity (validateNodeAffinity); that of pods is
// checked by validateScheduling. An empty list of required terms would match no
// node, and is refused; an empty term is let through and matches none.
func validateAffinity(a *v1.Affinity, path *field.Path) field.ErrorList {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("nodeAffinity")
	if r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		p := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(p, "must have at least one node selector term"))
		}
		for i := range r.NodeSelectorTerms {
			errs = append(errs, validateSelectorTerm(&r.NodeSelectorTerms[i], p.Index(i))...)
			errs = append(errs, validateSelectorValues(&r.NodeSelectorTerms[i], p.Index(i))...)
		}
	}
	for i := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		t := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
		p := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		if t.Weight < 1 || t.Weight > 100 {
			errs = append(errs, field.Invalid(p.Child("weight"), t.Weight, "must be in the range 1-100"))
		}
		errs = append(errs, validateSelectorTerm(&t.Preference, p.Child("preference"))...)
	}
	return errs
}

// validateSelectorTerm is ValidateNodeSelectorTerm. The only field of a node that
// can be selected by is its name: daemon sets bind their pods that way.
func validateSelectorTerm(t *v1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range t.MatchExpressions {
		p := path.Child("matchExpressions").Index(i)
		switch r.Operator {
		case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(p.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
			}
		case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, field.Forbidden(p.Child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
			}
		case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				errs = append(errs, field.Required(p.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"))
			}
		default:
			errs = append(errs, field.Invalid(p.Child("operator"), r.Operator, "not a valid selector operator"))
		}
		errs = append(errs, metavalidation.ValidateLabelName(r.Key, p.Child("key"))...)
	}
	for i, r := range t.MatchFields {
		p := path.Child("matchFields").Index(i)
		if r.Operator != v1.NodeSelectorOpIn && r.Operator != v1.NodeSelectorOpNotIn {
			errs = append(errs, field.Invalid(p.Child("operator"), r.Operator, "not a valid selector operator"))
		} else if len(r.Values) != 1 {
			errs = append(errs, field.Required(p.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
		if r.Key != metav1.ObjectNameField {
			errs = append(errs, field.Invalid(p.Child("key"), r.Key, "not a valid field selector key"))
			continue
		}
		for j, v := range r.Values {
			errs = append(errs, fields.DNSName(v, p.Child("values").Index(j))...)
		}
	}
	return errs
}

// validateSelectorValues checks the values that a required term asks for. Preferred ones
// may name what no label can be.
func validateSelectorValues(t *v1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range t.MatchExpressions {
		for j, v := range r.Values {
			errs = append(errs, fields.Invalid(path.Child("matchExpressions").Index(i).Child("values").Index(j), v, validation.IsValidLabelValue(v))...)
		}
	}
	return errs
}
