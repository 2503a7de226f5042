package podspec

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validateStatusUpdate is ValidatePodStatusUpdate. A kubelet's own patches don't
// come by here (see package merge), so these are users' and controllers'.
func validateStatusUpdate(pod, old *v1.Pod) field.ErrorList {
	path := field.NewPath("status")
	now, was := &pod.Status, &old.Status
	errs := validatePodConditions(now.Conditions, path.Child("conditions"))
	if n := now.NominatedNodeName; n != "" && n != was.NominatedNodeName {
		errs = append(errs, fields.DNSName(n, path.Child("nominatedNodeName"))...)
		if old.Spec.NodeName != "" { // ClearingNominatedNodeNameAfterBinding
			errs = append(errs, field.Forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node"))
		}
	}
	if g := now.ObservedGeneration; g < 0 {
		errs = append(errs, field.Invalid(path.Child("observedGeneration"), g, "must be a non-negative integer"))
	}
	// The class is the spec's, whoever writes the status.
	errs = append(errs, fields.Immutable(now.QOSClass, was.QOSClass, path.Child("qosClass"))...)
	all := restartsAll(&old.Spec)
	errs = append(errs, validateTransitions(now.ContainerStatuses, was.ContainerStatuses, old.Spec.Containers, &old.Spec, all, path.Child("containerStatuses"))...)
	errs = append(errs, validateTransitions(now.InitContainerStatuses, was.InitContainerStatuses, old.Spec.InitContainers, &old.Spec, all, path.Child("initContainerStatuses"))...)
	errs = append(errs, validateTransitions(now.EphemeralContainerStatuses, was.EphemeralContainerStatuses, nil, &old.Spec, false, path.Child("ephemeralContainerStatuses"))...)
	errs = append(errs, validateClaimStatuses(now.ResourceClaimStatuses, pod.Spec.ResourceClaims, path.Child("resourceClaimStatuses"))...)
	errs = append(errs, validateAddresses(now, path)...)
	for _, l := range [...]struct {
		name string
		list []v1.ContainerStatus
	}{{"containerStatuses", now.ContainerStatuses}, {"initContainerStatuses", now.InitContainerStatuses}, {"ephemeralContainerStatuses", now.EphemeralContainerStatuses}} {
		errs = append(errs, validateUsers(l.list, pod.Spec.OS, path.Child(l.name))...)
	}
	return errs
}

// validatePodConditions is validatePodConditions, which blames "Type".
func validatePodConditions(list []v1.PodCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range list {
		if c.ObservedGeneration < 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("observedGeneration"), c.ObservedGeneration, "must be a non-negative integer"))
		}
		switch c.Type {
		case v1.PodScheduled, v1.PodReady, v1.PodInitialized:
			continue
		}
		errs = append(errs, fields.Invalid(path.Index(i).Child("Type"), string(c.Type), validation.IsQualifiedName(string(c.Type)))...)
	}
	return errs
}

// restartsAll reports whether a container's rule may restart all others
// (AllContainersCouldRestart).
func restartsAll(s *v1.PodSpec) bool {
	found := false
	eachContainer(s, nil, func(c *v1.Container, _ *field.Path) {
		found = found || slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
			return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
		})
	})
	return found
}

// validateTransitions keeps containers that have ended, and may not be restarted, ended
// (ValidateContainerStateTransition and its kin).
func validateTransitions(now, was []v1.ContainerStatus, list []v1.Container, s *v1.PodSpec, all bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range was {
		end := was[i].State.Terminated
		if end == nil || all {
			continue
		}
		j := slices.IndexFunc(now, func(c v1.ContainerStatus) bool { return c.Name == was[i].Name && c.State.Terminated == nil })
		k := slices.IndexFunc(list, func(c v1.Container) bool { return c.Name == was[i].Name })
		if j >= 0 && (k < 0 || !restarts(&list[k], s, end.ExitCode)) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

// restarts reports whether a container that ended with a code is started anew: by the
// first of its rules that fits, or its own policy, or the pod's (ContainerShouldRestart).
func restarts(c *v1.Container, s *v1.PodSpec, code int32) bool {
	if c.RestartPolicy == nil {
		return s.RestartPolicy == v1.RestartPolicyAlways || s.RestartPolicy == v1.RestartPolicyOnFailure && code != 0
	}
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		in := slices.Contains(r.ExitCodes.Values, code)
		if in == (r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn) {
			return true
		}
	}
	return *c.RestartPolicy == v1.ContainerRestartPolicyAlways || *c.RestartPolicy == v1.ContainerRestartPolicyOnFailure && code != 0
}

// validateClaimStatuses is validatePodResourceClaimStatuses.
func validateClaimStatuses(list []v1.PodResourceClaimStatus, claims []v1.PodResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, st := range list {
		p := path.Index(i)
		if !slices.ContainsFunc(claims, func(c v1.PodResourceClaim) bool { return c.Name == st.Name }) {
			errs = append(errs, field.Invalid(p.Child("name"), st.Name, "must match the name of an entry in `spec.resourceClaims`"))
		}
		if slices.ContainsFunc(list[:i], func(o v1.PodResourceClaimStatus) bool { return o.Name == st.Name }) {
			errs = append(errs, field.Duplicate(p.Child("name"), st.Name))
		}
		if n := st.ResourceClaimName; n != nil {
			errs = append(errs, fields.DNSName(*n, p.Child("resourceClaimName"))...)
		}
	}
	return errs
}

// validateAddresses is validatePodIPs and validateHostIPs: one of each family at most.
func validateAddresses(st *v1.PodStatus, path *field.Path) field.ErrorList {
	var pod, host []string
	for _, ip := range st.PodIPs {
		pod = append(pod, ip.IP)
	}
	for _, ip := range st.HostIPs {
		host = append(host, ip.IP)
	}
	errs := validateFamilies(pod, fields.GoNames(st.PodIPs), path.Child("podIPs"))
	if len(host) > 0 && host[0] != st.HostIP {
		errs = append(errs, field.Invalid(path.Child("hostIPs").Index(0).Child("ip"), host[0], "must be equal to `hostIP`"))
	}
	return append(errs, validateFamilies(host, fields.GoNames(st.HostIPs), path.Child("hostIPs"))...)
}

func validateFamilies(ips []string, value any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, nil)...)
	}
	if len(ips) < 2 {
		return errs
	}
	both, err := netutils.IsDualStackIPStrings(ips)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !both || len(ips) > 2 {
		errs = append(errs, field.Invalid(path, value, "may specify no more than one IP for each IP family"))
	}
	return errs
}

// validateUsers is validateContainerStatusUsers.
func validateUsers(list []v1.ContainerStatus, os *v1.PodOS, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		if list[i].User == nil || list[i].User.Linux == nil {
			continue
		}
		u, p := list[i].User.Linux, path.Index(i).Child("user", "linux")
		if os != nil && os.Name == v1.Windows {
			errs = append(errs, field.Forbidden(p, "cannot be set for a windows pod"))
			continue
		}
		errs = append(errs, userID(&u.UID, p.Child("uid"))...)
		errs = append(errs, userID(&u.GID, p.Child("gid"))...)
		for j := range u.SupplementalGroups {
			errs = append(errs, userID(&u.SupplementalGroups[j], p.Child("supplementalGroups").Index(j))...)
		}
	}
	return errs
}
