package lifecycle

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// appArmorAnnotation, with a container's name, is the annotation that came
// before the field.
const appArmorAnnotation = v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix

// AppArmor is the handler that refuses pods with profiles that the node cannot
// enforce, while they have not started (upstream appArmorAdmitHandler,
// pkg/security/apparmor).
type AppArmor struct {
	// Disabled says that the node's kernel has no AppArmor.
	Disabled bool
}

// Admit looks at every container's profile: its own, else the pod's, else that
// of the annotation.
func (a AppArmor) Admit(_ context.Context, attrs *PodAdmitAttributes) PodAdmitResult {
	pod := attrs.Pod
	if pod.Status.Phase != v1.PodPending {
		return PodAdmitResult{Admit: true}
	}
	var pp *v1.AppArmorProfile
	if sc := pod.Spec.SecurityContext; sc != nil {
		pp = sc.AppArmorProfile
	}
	judge := func(c *v1.Container) string {
		p := pp
		if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
			p = sc.AppArmorProfile
		}
		wanted, empty := false, false
		if p != nil {
			wanted = p.Type != v1.AppArmorProfileTypeUnconfined
			empty = p.Type == v1.AppArmorProfileTypeLocalhost && (p.LocalhostProfile == nil || strings.TrimSpace(*p.LocalhostProfile) == "")
		} else if name, ok := pod.Annotations[appArmorAnnotation+c.Name]; ok {
			wanted = name != "" && name != v1.DeprecatedAppArmorBetaProfileNameUnconfined
			empty = name == v1.DeprecatedAppArmorBetaProfileNamePrefix
		}
		switch {
		case wanted && a.Disabled:
			return "AppArmor is not enabled on the host"
		case wanted && empty:
			return "invalid empty AppArmor profile name: " + v1.DeprecatedAppArmorBetaProfileNamePrefix
		}
		return ""
	}
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if why := judge(&list[i]); why != "" {
				return PodAdmitResult{Reason: "AppArmor", Message: "Cannot enforce AppArmor: " + why}
			}
		}
	}
	return PodAdmitResult{Admit: true}
}
