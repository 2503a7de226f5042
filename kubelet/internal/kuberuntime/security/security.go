// Package security computes the security contexts of sandboxes and containers,
// as messages of the CRI: a container's own values over those of its pod. It
// mirrors upstream's pkg/securitycontext and kuberuntime/security_context.go.
package security

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// Node is what security contexts follow from beside the pod.
type Node struct {
	// SeccompDefault is the setting of that name: RuntimeDefault, rather than
	// Unconfined, for what has no seccomp profile.
	SeccompDefault bool
	// SeccompDir is where profiles of the type Localhost are.
	SeccompDir string
}

// What containers must not see, or not write, unless procMount is Unmasked
// (upstream pkg/securitycontext). Read only.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// AnyPrivileged reports whether a container of the pod is privileged: its
// sandbox has to be, too.
func AnyPrivileged(pod *v1.Pod) bool {
	for c := range kubecontainer.Containers(&pod.Spec) {
		if c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false) {
			return true
		}
	}
	return false
}

// int64Value wraps a number that may be missing.
func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}

// selinux converts SELinux options; nil leaves the label to the runtime.
func selinux(o *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// supplementalGroups: the fsGroup, then the listed groups. Those of volumes
// come with volumes.
// Their order is visible in the runtime's message, so it is upstream's.
func supplementalGroups(sc *v1.PodSecurityContext) []int64 {
	var out []int64
	if sc.FSGroup != nil {
		out = append(out, *sc.FSGroup)
	}
	return append(out, sc.SupplementalGroups...)
}

// groupsPolicy is Merge unless the pod says otherwise (KEP-3619).
func groupsPolicy(sc *v1.PodSecurityContext) (runtimeapi.SupplementalGroupsPolicy, error) {
	if sc.SupplementalGroupsPolicy == nil {
		return runtimeapi.SupplementalGroupsPolicy_Merge, nil
	}
	switch p := *sc.SupplementalGroupsPolicy; p {
	case v1.SupplementalGroupsPolicyMerge:
		return runtimeapi.SupplementalGroupsPolicy_Merge, nil
	case v1.SupplementalGroupsPolicyStrict:
		return runtimeapi.SupplementalGroupsPolicy_Strict, nil
	default:
		return 0, fmt.Errorf("unsupported supplementalGroupsPolicy: %s", p)
	}
}

// namespaceOptions is what the pod shares with its host and among its
// containers; users is nil unless it has a user namespace of its own.
// The process namespace of a target container is set where the container's
// config is made.
func namespaceOptions(pod *v1.Pod, users *runtimeapi.UserNamespace) *runtimeapi.NamespaceOption {
	if users == nil {
		users = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}
	}
	out := &runtimeapi.NamespaceOption{
		Network:       kubecontainer.NetworkMode(pod),
		Pid:           runtimeapi.NamespaceMode_CONTAINER,
		UsernsOptions: users,
	}
	switch {
	case pod.Spec.HostPID:
		out.Pid = runtimeapi.NamespaceMode_NODE
	case ptr.Deref(pod.Spec.ShareProcessNamespace, false):
		out.Pid = runtimeapi.NamespaceMode_POD
	}
	if pod.Spec.HostIPC {
		out.Ipc = runtimeapi.NamespaceMode_NODE
	}
	return out
}

// Sandbox is a sandbox's security context, psc the one of the pod; users is nil
// unless it has a user namespace of its own.
func Sandbox(pod *v1.Pod, psc *v1.PodSecurityContext, privileged bool, users *runtimeapi.UserNamespace) (*runtimeapi.LinuxSandboxSecurityContext, error) {
	out := &runtimeapi.LinuxSandboxSecurityContext{
		Privileged: privileged,
		Seccomp:    &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	if psc == nil {
		return out, nil
	}
	out.NamespaceOptions = namespaceOptions(pod, users)
	out.RunAsUser, out.RunAsGroup = int64Value(psc.RunAsUser), int64Value(psc.RunAsGroup)
	out.SelinuxOptions = selinux(psc.SELinuxOptions)
	out.SupplementalGroups = supplementalGroups(psc)
	var err error
	out.SupplementalGroupsPolicy, err = groupsPolicy(psc)
	return out, err
}

// Container is the effective security context of a container. Errors: an unknown
// supplementalGroupsPolicy, or a Localhost profile without a name.
// Without a runAsUser the user is the image's: its name if it has one, since
// only the runtime can look that up in the image.
func (n Node) Container(pod *v1.Pod, c *v1.Container, user User, users *runtimeapi.UserNamespace) (*runtimeapi.LinuxContainerSecurityContext, error) {
	own, psc := c.SecurityContext, pod.Spec.SecurityContext
	if own == nil {
		own = &v1.SecurityContext{}
	}
	if psc == nil {
		psc = &v1.PodSecurityContext{}
	}
	out := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:   namespaceOptions(pod, users),
		Privileged:         ptr.Deref(own.Privileged, false),
		ReadonlyRootfs:     ptr.Deref(own.ReadOnlyRootFilesystem, false),
		NoNewPrivs:         own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
		RunAsUser:          int64Value(firstOf(own.RunAsUser, psc.RunAsUser)),
		RunAsGroup:         int64Value(firstOf(own.RunAsGroup, psc.RunAsGroup)),
		SelinuxOptions:     selinux(firstOf(own.SELinuxOptions, psc.SELinuxOptions)),
		SupplementalGroups: supplementalGroups(psc),
	}
	var err error
	if out.SupplementalGroupsPolicy, err = groupsPolicy(psc); err != nil {
		return nil, err
	}
	if out.RunAsUser == nil {
		if user.Name != "" {
			out.RunAsUsername = user.Name
		} else {
			out.RunAsUser = &runtimeapi.Int64Value{Value: user.UID}
		}
	}
	if own.Capabilities != nil {
		out.Capabilities = &runtimeapi.Capability{AddCapabilities: capabilities(own.Capabilities.Add), DropCapabilities: capabilities(own.Capabilities.Drop)}
	}
	if own.ProcMount == nil || *own.ProcMount == v1.DefaultProcMount {
		out.MaskedPaths, out.ReadonlyPaths = maskedPaths, readonlyPaths
	}
	if out.Seccomp, err = n.seccomp(firstOf(own.SeccompProfile, psc.SeccompProfile)); err != nil {
		return nil, err
	}
	setAppArmor(out, pod, c, firstOf(own.AppArmorProfile, psc.AppArmorProfile))
	return out, nil
}

// firstOf is a, or b where a says nothing.
func firstOf[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// capabilities are names without the prefix CAP_, as runtimes want them.
func capabilities(list []v1.Capability) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = string(c)
	}
	return out
}

// seccomp is a container's profile. The deprecated annotations are not read:
// the API server has translated them.
func (n Node) seccomp(p *v1.SeccompProfile) (*runtimeapi.SecurityProfile, error) {
	out := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	switch {
	case p == nil:
		if n.SeccompDefault {
			out.ProfileType = runtimeapi.SecurityProfile_RuntimeDefault
		}
	case p.Type == v1.SeccompProfileTypeRuntimeDefault:
		out.ProfileType = runtimeapi.SecurityProfile_RuntimeDefault
	case p.Type == v1.SeccompProfileTypeLocalhost:
		if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
			return nil, fmt.Errorf("localhostProfile must be set if seccompProfile type is Localhost")
		}
		out.ProfileType = runtimeapi.SecurityProfile_Localhost
		out.LocalhostRef = n.SeccompDir + "/" + *p.LocalhostProfile
	}
	return out, nil
}

// AppArmorAnnotation, before a container's name, is the older way to name a container's profile.
const AppArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"

// setAppArmor sets the profile in both of the forms that runtimes read. A
// profile in the container's own security context wins over the annotation, the
// annotation over the pod's.
func setAppArmor(out *runtimeapi.LinuxContainerSecurityContext, pod *v1.Pod, c *v1.Container, p *v1.AppArmorProfile) {
	text := ""
	if old, ok := pod.Annotations[AppArmorAnnotation+c.Name]; ok && (c.SecurityContext == nil || c.SecurityContext.AppArmorProfile == nil) {
		text = old
	} else if p != nil {
		switch p.Type {
		case v1.AppArmorProfileTypeRuntimeDefault:
			text = "runtime/default"
		case v1.AppArmorProfileTypeUnconfined:
			text = "unconfined"
		case v1.AppArmorProfileTypeLocalhost:
			if p.LocalhostProfile != nil {
				text = "localhost/" + *p.LocalhostProfile
			}
		}
	}
	if text == "" {
		return
	}
	profile := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	if name, ok := strings.CutPrefix(text, "localhost/"); ok {
		profile.ProfileType, profile.LocalhostRef = runtimeapi.SecurityProfile_Localhost, name
	} else if text == "unconfined" {
		profile.ProfileType = runtimeapi.SecurityProfile_Unconfined
	}
	out.Apparmor = profile
	out.ApparmorProfile = text
}

// User is the user that an image runs as: a number, or a name.
type User struct {
	UID  int64
	Name string
}

// VerifyNonRoot holds a container to its runAsNonRoot: its error is why it must
// not start.
// A user that is only known by name can't be verified, so it is refused, too.
func VerifyNonRoot(pod *v1.Pod, c *v1.Container, user User) error {
	var nonRoot *bool
	var uid *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		nonRoot, uid = sc.RunAsNonRoot, sc.RunAsUser
	}
	if sc := c.SecurityContext; sc != nil {
		nonRoot, uid = firstOf(sc.RunAsNonRoot, nonRoot), firstOf(sc.RunAsUser, uid)
	}
	if !ptr.Deref(nonRoot, false) {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", kubecontainer.PodDesc(pod), c.Name)
	switch {
	case uid != nil && *uid == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
	case uid != nil:
		return nil
	case user.Name != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", user.Name, where)
	case user.UID == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	}
	return nil
}
