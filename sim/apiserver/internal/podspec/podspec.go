// Package podspec is what the API knows of pods' specs, whether they stand in a pod
// or in the template of a workload: what a manifest's omissions mean, what is
// refused, and what an update may change.
//
// - podspec.go: the pod as a whole, names, DNS, tolerations, node affinity, security, updates
// - container.go, resources.go, sleeps.go: containers, their quantities and hooks
// - volume.go: volumes and what is projected into them
// - scheduling.go, labelkeys.go: what only the scheduler reads
// - resize.go: in-place resizes and pod-level resources
// - template.go: templates and their selectors
// - defaults.go: defaults
//
// Functions mirror those of upstream's pkg/apis/core/validation/validation.go and
// pkg/apis/core/v1/defaults.go at v1.36, whose names they give; the texts of errors
// are upstream's, since users and tests compare them. What can't happen here
// (Windows, devices, claims) is let through or refused as a whole. All are pure
// functions: of a pod and, for updates, of the one before it.
package podspec

import (
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// Validate checks a new, defaulted pod but for its metadata (ValidatePodCreate).
// What a pod may only get by a subresource, or only lose, is refused at its
// creation. Metadata is checked for all kinds alike, elsewhere.
func Validate(pod *v1.Pod) field.ErrorList {
	errs := validatePodSpec(&pod.Spec, field.NewPath("spec"))
	if IsMirror(pod) && pod.Spec.NodeName == "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(v1.MirrorPodAnnotationKey), "", "must set spec.nodeName if mirror pod annotation is set"))
	}
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), "cannot be set on create"))
	}
	if len(pod.Spec.SchedulingGates) > 0 && pod.Spec.NodeName != "" {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

// validatePodSpec is ValidatePodSpec. Volumes come first: containers are checked
// against their names. Each part is checked whatever another one's errors, so that
// a user sees all mistakes at once.
func validatePodSpec(s *v1.PodSpec, path *field.Path) field.ErrorList {
	// The order is upstream's: errors come out in it.
	errs, volumes := validateVolumes(s.Volumes, path.Child("volumes"))
	errs = append(errs, validateContainers(s, volumes, path)...)
	errs = append(errs, validateSleeps(s, path)...)
	errs = append(errs, fields.OneOf(s.RestartPolicy, path.Child("restartPolicy"), v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	errs = append(errs, validateDNS(s, path)...)
	errs = append(errs, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateAffinity(s.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validatePodSecurity(s, path.Child("securityContext"))...)
	errs = append(errs, validatePodNames(s, path)...)
	// The deadline's end is computed in nanoseconds of an int64, for which more would be too
	// far.
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	errs = append(errs, validatePodResources(s, path)...)
	for i, g := range s.ReadinessGates {
		errs = append(errs, fields.Invalid(path.Child("readinessGates").Index(i).Child("conditionType"), string(g.ConditionType), validation.IsQualifiedName(string(g.ConditionType)))...)
	}
	errs = append(errs, validateScheduling(s, path)...)
	if s.OS != nil {
		errs = append(errs, fields.OneOf(s.OS.Name, path.Child("os", "name"), v1.Linux, v1.Windows)...)
	}
	return errs
}

// validatePodNames checks the fields that name other things. Nobody checks here
// that those exist: the kubelet and the scheduler wait for them.
func validatePodNames(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct{ name, value string }{
		// All of them are names of objects, which are DNS subdomains.
		{"nodeName", s.NodeName},
		{"serviceAccountName", s.ServiceAccountName},
		{"priorityClassName", s.PriorityClassName},
		{"schedulerName", s.SchedulerName},
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
	for i, a := range s.HostAliases {
		p := path.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIP(p.Child("ip"), a.IP)...)
		for j, h := range a.Hostnames {
			errs = append(errs, fields.DNSName(h, p.Child("hostnames").Index(j))...)
		}
	}
	for i, r := range s.ImagePullSecrets {
		if r.Name == "" {
			errs = append(errs, field.Required(path.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	return errs
}

// validateDNS is validatePodDNSConfig with validateDNSPolicy. The limits are those
// of glibc's resolver: three nameservers, and search paths as v1.36 allows.
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
	if len(c.Nameservers) > 3 {
		errs = append(errs, field.Invalid(p.Child("nameservers"), c.Nameservers, "must not have more than 3 nameservers"))
	}
	for i, ns := range c.Nameservers {
		errs = append(errs, validation.IsValidIP(p.Child("nameservers").Index(i), ns)...)
	}
	if len(c.Searches) > 32 {
		errs = append(errs, field.Invalid(p.Child("searches"), c.Searches, "must not have more than 32 search paths"))
	}
	for i, o := range c.Options {
		if o.Name == "" {
			errs = append(errs, field.Required(p.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

// validateTolerations is ValidateTolerations. An empty operator means Equal, and an
// empty effect all effects. The operators Lt and Gt (TaintTolerationComparisonOperators) are
// alpha and refused.
func validateTolerations(list []v1.Toleration, path *field.Path) field.ErrorList {
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
			errs = append(errs, fields.Invalid(p.Child("operator"), t.Value, validation.IsValidLabelValue(t.Value))...)
		case v1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(p.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
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
		if r.Key != "metadata.name" {
			errs = append(errs, field.Invalid(p.Child("key"), r.Key, "not a valid field selector key"))
		}
	}
	return errs
}

// validatePodSecurity is ValidatePodSecurityContext, as far as it has an effect
// here: ids within what the kernel takes, sysctls once, and one process namespace
// at most. Sysctls' names are judged by the kubelet, which knows the ones that are safe.
func validatePodSecurity(s *v1.PodSpec, path *field.Path) field.ErrorList {
	c := s.SecurityContext
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	// The path is that of a pod, within a template too.
	if s.HostPID && s.ShareProcessNamespace != nil && *s.ShareProcessNamespace {
		errs = append(errs, field.Invalid(field.NewPath("spec", "shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	id := func(v *int64, name string) {
		if v != nil && (*v < 0 || *v > math.MaxInt32) {
			errs = append(errs, field.Invalid(path.Child(name), *v, validation.InclusiveRangeError(0, math.MaxInt32)))
		}
	}
	id(c.RunAsUser, "runAsUser")
	id(c.RunAsGroup, "runAsGroup")
	id(c.FSGroup, "fsGroup")
	seen := map[string]bool{}
	for i, sy := range c.Sysctls {
		p := path.Child("sysctls").Index(i).Child("name")
		switch {
		case sy.Name == "":
			errs = append(errs, field.Required(p, ""))
		case seen[sy.Name]:
			errs = append(errs, field.Duplicate(p, sy.Name))
		}
		seen[sy.Name] = true
	}
	return errs
}

// ValidateUpdate checks that an update through a subresource changes only what may
// change (ValidatePodUpdate and its kin). Whether a pod mirrors a static one never
// changes: a kubelet tells its own mirrors by that.
func ValidateUpdate(pod, old *v1.Pod, sub string) field.ErrorList {
	var errs field.ErrorList
	if a, b := pod.Annotations[v1.MirrorPodAnnotationKey], old.Annotations[v1.MirrorPodAnnotationKey]; a != b || IsMirror(pod) != IsMirror(old) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1.MirrorPodAnnotationKey), "may not change"))
	}
	switch sub {
	case "status":
		return append(errs, validatePodStatusUpdate(pod, old)...)
	case "resize":
		return append(errs, validateResize(pod, old)...)
	case "ephemeralcontainers":
		return append(errs, validateEphemeralUpdate(pod, old)...)
	}
	return append(errs, validateSpecUpdate(pod, old)...)
}

// validateSpecUpdate checks an update of the pod itself: of its spec, hardly
// anything may change once containers may run by it. Lists of containers are
// compared before their members, which are matched by position. Upstream's order: the first
// mistake of shape ends it, since members could not be matched.
func validateSpecUpdate(pod, old *v1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validatePodSpec(&pod.Spec, spec)
	if len(pod.Spec.Containers) != len(old.Spec.Containers) {
		return append(errs, field.Forbidden(spec.Child("containers"), "pod updates may not add or remove containers"))
	}
	if len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return append(errs, field.Forbidden(spec.Child("initContainers"), "pod updates may not add or remove containers"))
	}
	// A deadline may be set and brought nearer: it may not move away from a pod
	// that counts on it.
	if d, was := pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds; d != nil && was != nil && *d > *was {
		errs = append(errs, field.Invalid(spec.Child("activeDeadlineSeconds"), *d, "must be less than or equal to previous value"))
	} else if d == nil && was != nil {
		errs = append(errs, field.Invalid(spec.Child("activeDeadlineSeconds"), nil, "must not update from a positive integer to nil value"))
	}
	errs = append(errs, onlyAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations, spec.Child("tolerations"))...)
	if !equality.Semantic.DeepEqual(muted(pod, old), old.Spec) {
		errs = append(errs, field.Forbidden(spec, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

// muted is pod's spec with what may change set to what it was in old: images, a
// shorter deadline, more tolerations, a negative grace period set to 1, fewer
// gates. Equality with old's spec then says that nothing else changed, whatever
// fields a spec will get. Only the slices that are written to are copied.
func muted(pod, old *v1.Pod) v1.PodSpec {
	s := pod.Spec
	s.Containers = append([]v1.Container(nil), s.Containers...)
	for i := range s.Containers {
		s.Containers[i].Image = old.Spec.Containers[i].Image
	}
	s.InitContainers = append([]v1.Container(nil), s.InitContainers...)
	for i := range s.InitContainers {
		s.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	s.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	s.Tolerations = old.Spec.Tolerations
	if g := old.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 && s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds == 1 {
		s.TerminationGracePeriodSeconds = g
	}
	if len(old.Spec.SchedulingGates) > 0 { // gates may be taken away, and the node selector narrowed
		left := lists.Filter(s.SchedulingGates, func(g v1.PodSchedulingGate) bool {
			return slices.Contains(old.Spec.SchedulingGates, g)
		})
		if len(left) == len(s.SchedulingGates) {
			s.SchedulingGates = old.Spec.SchedulingGates
		}
	}
	return s
}

// onlyAddedTolerations is validateOnlyAddedTolerations. Of one that was there,
// tolerationSeconds may change: the taint eviction of a running pod reads it anew.
func onlyAddedTolerations(list, old []v1.Toleration, path *field.Path) field.ErrorList {
	for _, o := range old {
		found := false
		for _, t := range list {
			same := t
			same.TolerationSeconds = o.TolerationSeconds // may change for NoExecute
			found = found || equality.Semantic.DeepEqual(same, o) && (t.Effect == v1.TaintEffectNoExecute || equality.Semantic.DeepEqual(t, o))
		}
		if !found {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// validatePodStatusUpdate is ValidatePodStatusUpdate. A kubelet's own patches don't
// come by here (see package merge), so these are users' and controllers'.
func validatePodStatusUpdate(pod, old *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	// The class is the spec's, whoever writes the status.
	if was := old.Status.QOSClass; was != "" && pod.Status.QOSClass != was {
		errs = append(errs, field.Invalid(path.Child("qosClass"), pod.Status.QOSClass, "field is immutable"))
	}
	if n := pod.Status.NominatedNodeName; n != "" {
		errs = append(errs, fields.DNSName(n, path.Child("nominatedNodeName"))...)
	}
	seen := map[v1.PodConditionType]bool{}
	for i, c := range pod.Status.Conditions {
		p := path.Child("conditions").Index(i)
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(p.Child("type"), c.Type))
		}
		seen[c.Type] = true
		errs = append(errs, fields.OneOf(c.Status, p.Child("status"), v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown)...)
	}
	return errs
}

// validateEphemeralUpdate is ValidatePodEphemeralContainersUpdate: containers are
// only ever added, since the kubelet starts each once and never ends it.
func validateEphemeralUpdate(pod, old *v1.Pod) field.ErrorList {
	if IsMirror(old) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	path := field.NewPath("spec", "ephemeralContainers")
	errs, volumes := validateVolumes(pod.Spec.Volumes, field.NewPath("spec", "volumes"))
	errs = append(errs, validateEphemeral(&pod.Spec, volumes, path)...)
	// What is there already must be in the new list as it was, wherever it stands
	// in it.
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		found := false
		for j := range pod.Spec.EphemeralContainers {
			if c := &pod.Spec.EphemeralContainers[j]; c.Name == was.Name {
				found = true
				if !equality.Semantic.DeepEqual(c, was) {
					errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed", c.Name)))
				}
			}
		}
		if !found {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed", was.Name)))
		}
	}
	return errs
}

// IsMirror reports whether the object mirrors a static pod. The kubelet puts the
// annotation there; its value is the static pod's hash.
func IsMirror(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[v1.MirrorPodAnnotationKey]
	return ok
}
