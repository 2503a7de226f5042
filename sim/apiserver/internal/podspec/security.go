package podspec

import (
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validatePodSecurity is validatePodSpecSecurityContext. Whether a sysctl is safe, the
// kubelet judges.
func (c *checker) validatePodSecurity(path *field.Path) field.ErrorList {
	sc := c.spec.SecurityContext
	if sc == nil {
		return nil
	}
	errs := userID(sc.RunAsUser, path.Child("runAsUser"))
	errs = append(errs, userID(sc.RunAsGroup, path.Child("runAsGroup"))...)
	errs = append(errs, userID(sc.FSGroup, path.Child("fsGroup"))...)
	for i := range sc.SupplementalGroups {
		errs = append(errs, userID(&sc.SupplementalGroups[i], path.Child("supplementalGroups").Index(i))...)
	}
	if share := c.spec.ShareProcessNamespace; c.spec.HostPID && share != nil && *share {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	errs = append(errs, c.validateSysctls(sc.Sysctls, path.Child("sysctls"))...)
	if p := sc.FSGroupChangePolicy; p != nil {
		errs = append(errs, fields.Supported(*p, path.Child("fsGroupChangePolicy"), v1.FSGroupChangeAlways, v1.FSGroupChangeOnRootMismatch)...)
	}
	errs = append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	errs = append(errs, validateWindowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	if p := sc.SupplementalGroupsPolicy; p != nil {
		errs = append(errs, fields.Supported(*p, path.Child("supplementalGroupsPolicy"), v1.SupplementalGroupsPolicyMerge, v1.SupplementalGroupsPolicyStrict)...)
	}
	if p := sc.SELinuxChangePolicy; p != nil {
		errs = append(errs, fields.Supported(*p, path.Child("seLinuxChangePolicy"), v1.SELinuxChangePolicyMountOption, v1.SELinuxChangePolicyRecursive)...)
	}
	return errs
}

// userID checks the number of a user or a group, which the kernel keeps in 32 bits.
func userID(id *int64, path *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return fields.Invalid(path, *id, validation.IsValidUserID(*id))
}

// validateSysctls checks the kernel's parameters of a pod. Those of a namespace that the
// pod shares with its host would be the host's.
func (c *checker) validateSysctls(list []v1.Sysctl, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range list {
		p := path.Index(i).Child("name")
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(p, ""))
		case !sysctlName(s.Name):
			errs = append(errs, field.Invalid(p, s.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctlName, sysctlFormat)))
		default:
			for _, o := range list[:i] {
				if o.Name == s.Name {
					errs = append(errs, field.Duplicate(p, s.Name))
					break
				}
			}
		}
		switch ns, _, _ := sysctl.GetNamespace(s.Name); {
		case c.spec.HostNetwork && ns == sysctl.NetNamespace:
			errs = append(errs, field.Invalid(p, s.Name, "may not be specified when 'hostNetwork' is true"))
		case c.spec.HostIPC && ns == sysctl.IPCNamespace:
			errs = append(errs, field.Invalid(p, s.Name, "may not be specified when 'hostIPC' is true"))
		}
	}
	return errs
}

// sysctlFormat is that of a sysctl's name, with dots or slashes.
const sysctlFormat = `^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`

const maxSysctlName = 253

// sysctlName is IsValidSysctlName.
func sysctlName(name string) bool {
	return len(name) <= maxSysctlName && regexp.MustCompile(sysctlFormat).MatchString(name)
}

// validateSecurity is ValidateSecurityContext. Privileged, or with CAP_SYS_ADMIN, a
// process may gain privileges anyhow.
func (c *checker) validateSecurity(sc *v1.SecurityContext, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := userID(sc.RunAsUser, path.Child("runAsUser"))
	errs = append(errs, userID(sc.RunAsGroup, path.Child("runAsGroup"))...)
	if m := sc.ProcMount; m != nil {
		p := path.Child("procMount")
		errs = append(errs, fields.Supported(*m, p, v1.DefaultProcMount, v1.UnmaskedProcMount)...)
		if *m == v1.UnmaskedProcMount && c.hostUsers() {
			errs = append(errs, field.Invalid(p, *m, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	errs = append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	if e := sc.AllowPrivilegeEscalation; e != nil && !*e {
		if sc.Privileged != nil && *sc.Privileged {
			errs = append(errs, field.Invalid(path, fields.GoNames(sc), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if sc.Capabilities != nil {
			for _, add := range sc.Capabilities.Add {
				if add == "CAP_SYS_ADMIN" {
					errs = append(errs, field.Invalid(path, fields.GoNames(sc), "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
				}
			}
		}
	}
	errs = append(errs, validateWindowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
	return append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
}

// hostUsers reports whether a pod has the users of its host.
func (c *checker) hostUsers() bool { return c.spec.HostUsers == nil || *c.spec.HostUsers }

// validateHostUsers keeps pods with users of their own from the host's other namespaces,
// where they would have no rights.
func (c *checker) validateHostUsers(path *field.Path) field.ErrorList {
	if c.hostUsers() {
		return nil
	}
	var errs field.ErrorList
	const why = "when `hostUsers` is false"
	if c.spec.HostNetwork {
		errs = append(errs, field.Forbidden(path.Child("hostNetwork"), why))
	}
	if c.spec.HostPID {
		errs = append(errs, field.Forbidden(path.Child("HostPID"), why))
	}
	if c.spec.HostIPC {
		errs = append(errs, field.Forbidden(path.Child("HostIPC"), why))
	}
	eachContainer(c.spec, path, func(ctr *v1.Container, p *field.Path) {
		if len(ctr.VolumeDevices) > 0 {
			errs = append(errs, field.Forbidden(p.Child("volumeDevices"), why))
		}
	})
	return errs
}

// validateSeccomp is validateSeccompProfileField.
func validateSeccomp(s *v1.SeccompProfile, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "type is required when seccompProfile is set"))
	} else {
		errs = append(errs, fields.Supported(s.Type, path.Child("type"), v1.SeccompProfileTypeLocalhost, v1.SeccompProfileTypeRuntimeDefault, v1.SeccompProfileTypeUnconfined)...)
	}
	local, at := s.Type == v1.SeccompProfileTypeLocalhost, path.Child("localhostProfile")
	switch {
	case local && s.LocalhostProfile == nil:
		errs = append(errs, field.Required(at, "must be set when seccomp type is Localhost"))
	case local:
		errs = append(errs, descendingPath(*s.LocalhostProfile, at)...)
	case s.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(at, fields.GoNames(s), "can only be set when seccomp type is Localhost"))
	}
	return errs
}

// validateAppArmor is ValidateAppArmorProfileField.
func validateAppArmor(a *v1.AppArmorProfile, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	at := path.Child("localhostProfile")
	switch a.Type {
	case v1.AppArmorProfileTypeLocalhost:
		return validateLocalAppArmor(a.LocalhostProfile, at)
	case v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined:
		if a.LocalhostProfile == nil {
			return nil
		}
		return field.ErrorList{field.Invalid(at, *a.LocalhostProfile, "can only be set when AppArmor type is Localhost")}
	case "":
		return field.ErrorList{field.Required(path.Child("type"), "type is required when appArmorProfile is set")}
	}
	return fields.Supported(a.Type, path.Child("type"), v1.AppArmorProfileTypeLocalhost, v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined)
}

// maxAppArmorProfile is the longest path but one.
const maxAppArmorProfile = 4095

func validateLocalAppArmor(name *string, path *field.Path) field.ErrorList {
	missing := field.Required(path, "must be set when AppArmor type is Localhost")
	if name == nil {
		return field.ErrorList{missing}
	}
	var errs field.ErrorList
	switch trimmed := strings.TrimSpace(*name); {
	case trimmed != *name:
		errs = append(errs, field.Invalid(path, *name, "must not be padded with whitespace"))
	case trimmed == "":
		errs = append(errs, missing)
	}
	if len(*name) > maxAppArmorProfile {
		errs = append(errs, field.TooLong(path, "", maxAppArmorProfile))
	}
	return errs
}

// validateAnnotations is ValidatePodSpecificAnnotations: of those that mean something.
func (c *checker) validateAnnotations(m map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, k := range fields.SortedKeys(m) {
		v, at := m[k], path.Key(k)
		container, isAppArmor := strings.CutPrefix(k, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
		switch {
		case k == v1.MirrorPodAnnotationKey && c.spec.NodeName == "":
			errs = append(errs, field.Invalid(at, v, "must set spec.nodeName if mirror pod annotation is set"))
		case k == podDeletionCost && !plainInt32(v):
			errs = append(errs, field.Invalid(at, v, "must be a 32bit integer"))
		case k == v1.SeccompPodAnnotationKey, strings.HasPrefix(k, v1.SeccompContainerAnnotationKeyPrefix):
			errs = append(errs, validateOldSeccomp(v, path.Child(k))...)
		case isAppArmor:
			if !c.hasContainer(container) {
				errs = append(errs, field.Invalid(at, container, "container not found"))
			}
			if v != "" && v != v1.DeprecatedAppArmorBetaProfileRuntimeDefault && v != v1.DeprecatedAppArmorBetaProfileNameUnconfined && !strings.HasPrefix(v, v1.DeprecatedAppArmorBetaProfileNamePrefix) {
				errs = append(errs, field.Invalid(at, v, fmt.Sprintf("invalid AppArmor profile name: %q", v)))
			}
		}
	}
	return errs
}

// podDeletionCost is the annotation by which ReplicaSets choose the pods that go.
const podDeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// plainInt32 reports whether a text is a number of 32 bits, without a plus sign and
// without leading zeros.
func plainInt32(text string) bool {
	var n int32
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return false
	}
	return fmt.Sprint(n) == text
}

// validateOldSeccomp is ValidateSeccompProfile, of an annotation.
func validateOldSeccomp(v string, path *field.Path) field.ErrorList {
	switch name, local := strings.CutPrefix(v, v1.SeccompLocalhostProfileNamePrefix); {
	case v == v1.SeccompProfileRuntimeDefault, v == v1.DeprecatedSeccompProfileDockerDefault, v == v1.SeccompProfileNameUnconfined:
		return nil
	case local:
		return descendingPath(name, path)
	}
	return field.ErrorList{field.Invalid(path, v, "must be a valid seccomp profile")}
}

// hasContainer reports whether the pod has a container of that name.
func (c *checker) hasContainer(name string) bool {
	found := false
	eachContainer(c.spec, nil, func(ctr *v1.Container, _ *field.Path) { found = found || ctr.Name == name })
	return found
}

// validateSameProfiles requires that annotations say of seccomp and AppArmor what the
// fields say (validateSeccompAnnotationsAndFields,
// validateAppArmorAnnotationsAndFieldsMatchOnCreate).
func (c *checker) validateSameProfiles(m map[string]string, path *field.Path) field.ErrorList {
	if len(m) == 0 {
		return nil
	}
	var errs field.ErrorList
	var pod v1.PodSecurityContext
	if c.spec.SecurityContext != nil {
		pod = *c.spec.SecurityContext
	}
	if text, ok := m[v1.SeccompPodAnnotationKey]; ok && pod.SeccompProfile != nil {
		errs = append(errs, sameSeccomp(text, pod.SeccompProfile, path.Child("securityContext", "seccompProfile"))...)
	}
	windows := c.spec.OS != nil && c.spec.OS.Name == v1.Windows
	eachContainer(c.spec, path, func(ctr *v1.Container, p *field.Path) {
		var sc v1.SecurityContext
		if ctr.SecurityContext != nil {
			sc = *ctr.SecurityContext
		}
		if text, ok := m[v1.SeccompContainerAnnotationKeyPrefix+ctr.Name]; ok && sc.SeccompProfile != nil {
			errs = append(errs, sameSeccomp(text, sc.SeccompProfile, p.Child("securityContext", "seccompProfile"))...)
		}
		profile := sc.AppArmorProfile
		if profile == nil {
			profile = pod.AppArmorProfile
		}
		if text, ok := m[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+ctr.Name]; ok && profile != nil && !windows {
			errs = append(errs, sameProfile(text, "apparmor", string(profile.Type), profile.LocalhostProfile, []string{v1.DeprecatedAppArmorBetaProfileRuntimeDefault}, p.Child("securityContext", "appArmorProfile"))...)
		}
	})
	return errs
}

func sameSeccomp(text string, s *v1.SeccompProfile, path *field.Path) field.ErrorList {
	return sameProfile(text, "seccomp", string(s.Type), s.LocalhostProfile, []string{v1.SeccompProfileRuntimeDefault, v1.DeprecatedSeccompProfileDockerDefault}, path)
}

// sameProfile compares an annotation with a field. Types and their annotations are named
// alike for both kinds of profiles, but for the runtime's default.
func sameProfile(text, what, typ string, local *string, defaults []string, path *field.Path) field.ErrorList {
	other := field.ErrorList{field.Forbidden(path.Child("type"), what+" type in annotation and field must match")}
	name, isLocal := strings.CutPrefix(text, "localhost/")
	switch typ {
	case "Unconfined":
		if text == "unconfined" {
			return nil
		}
		return other
	case "RuntimeDefault":
		for _, d := range defaults {
			if text == d {
				return nil
			}
		}
		return other
	case "Localhost":
		switch {
		case !isLocal:
			return other
		case local == nil || *local != name:
			return field.ErrorList{field.Forbidden(path.Child("localhostProfile"), what+" profile in annotation and field must match")}
		}
	}
	return nil
}
