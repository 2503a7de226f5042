package kuberuntime

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/security"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// shared are parts of CRI messages that are equal for many pods: those made
// from one template, or those that ask for nothing special. A runtime in
// process keeps the messages, so sharing them decides what a pod weighs.
// Nothing writes to a message once it is sent.
type shared struct {
	noResources *runtimeapi.LinuxContainerResources
	boxes       memo[boxKey, *runtimeapi.LinuxSandboxSecurityContext]
	linux       memo[linuxKey, *runtimeapi.LinuxContainerConfig]
	images      memo[imageKey, *runtimeapi.ImageSpec]
	annotations memo[annotationsKey, map[string]string]
	pods        memo[podKey, *runtimeapi.LinuxContainerResources]
	templates   memo[templateKey, *sandboxTemplate]
	containers  memo[containerKey, *runtimeapi.ContainerConfig]
	files       memo[filesKey, *runtimeapi.ContainerConfig]
	users       [4]*v1.ContainerUser // the last few
	nextUser    int
}

// What asks for nothing is the same on every node.
var (
	noOverhead = &runtimeapi.LinuxContainerResources{}
	noSysctls  = map[string]string{}
	plainPSC   = &v1.PodSecurityContext{} // stands for every one that says nothing
)

// user converts what a runtime says of a container's user; nearly all
// containers of a node have the same few.
// Four are enough for root and a few images' users.
func (s *shared) user(u *runtimeapi.ContainerUser) *v1.ContainerUser {
	if u == nil {
		return nil
	}
	l := u.GetLinux()
	for _, have := range s.users {
		if have == nil || (have.Linux == nil) != (l == nil) {
			continue
		}
		if l == nil || have.Linux.UID == l.Uid && have.Linux.GID == l.Gid && slices.Equal(have.Linux.SupplementalGroups, l.SupplementalGroups) {
			return have
		}
	}
	out := &v1.ContainerUser{}
	if l != nil {
		out.Linux = &v1.LinuxContainerUser{UID: l.Uid, GID: l.Gid, SupplementalGroups: slices.Clone(l.SupplementalGroups)}
	}
	s.users[s.nextUser%len(s.users)] = out
	s.nextUser++
	return out
}

// boxKey decides a sandbox's security context.
// Keys hold addresses of parts of a spec rather than the parts: replicas share
// their spec, and comparing addresses costs nothing. What is found by an
// address stays right because objects are never written to.
type boxKey struct {
	psc        *v1.PodSecurityContext
	ns         namespaces
	privileged bool
}

// linuxKey decides a container's resources and security context. A container
// is known by its address: replicas share their spec.
type linuxKey struct {
	c        *v1.Container // nil: has neither resources nor a security context
	psc      *v1.PodSecurityContext
	limits   *v1.ResourceRequirements // the pod's
	ns       namespaces
	user     security.User
	appArmor string
	class    v1.PodQOSClass
	critical bool
	place    placement
}

// imageKey is an image's ID and its name in the pod.
type imageKey struct{ ref, image string }

// annotationsKey decides a container's annotations, but while its pod is being
// deleted.
type annotationsKey struct {
	c        *v1.Container
	restarts int
	grace    *int64
}

// podKey decides the resources of a pod's cgroup.
type podKey struct {
	containers, init *v1.Container // the first of each
	own              *v1.ResourceRequirements
}

// podKeyOf is the key of a pod, which has a regular container at least.
func podKeyOf(pod *v1.Pod) podKey {
	k := podKey{containers: &pod.Spec.Containers[0], own: pod.Spec.Resources}
	if len(pod.Spec.InitContainers) > 0 {
		k.init = &pod.Spec.InitContainers[0]
	}
	return k
}

// namespaces is what a pod shares with its host or among its containers.
type namespaces struct{ hostNetwork, hostPID, hostIPC, sharePID bool }

// namespacesOf reads the pod's spec.
func namespacesOf(pod *v1.Pod) namespaces {
	return namespaces{pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC, ptr.Deref(pod.Spec.ShareProcessNamespace, false)}
}

// psc is the pod's security context, one and the same for all that say nothing.
func psc(pod *v1.Pod) *v1.PodSecurityContext {
	p := pod.Spec.SecurityContext
	if p != nil && p.SELinuxOptions == nil && p.WindowsOptions == nil && p.RunAsUser == nil && p.RunAsGroup == nil && p.RunAsNonRoot == nil &&
		len(p.SupplementalGroups) == 0 && p.SupplementalGroupsPolicy == nil && p.FSGroup == nil && len(p.Sysctls) == 0 &&
		p.FSGroupChangePolicy == nil && p.SeccompProfile == nil && p.AppArmorProfile == nil && p.SELinuxChangePolicy == nil {
		return plainPSC
	}
	return p
}

// memo remembers the last few values, in an array no longer than it has to be:
// most nodes have one or two.
type memo[K comparable, V any] struct {
	entries []memoEntry[K, V]
	n       int // values put
}

// memoEntry is one value that is remembered.
type memoEntry[K comparable, V any] struct {
	key K
	val V
}

// memoEntries is enough for the templates that a node starts pods of in turn;
// the oldest value makes room.
const memoEntries = 4

// get returns a value that was put, if it is still remembered.
func (m *memo[K, V]) get(k K) (V, bool) {
	for i := range m.entries {
		if m.entries[i].key == k {
			return m.entries[i].val, true
		}
	}
	var zero V
	return zero, false
}

// put remembers a value, which was not before.
func (m *memo[K, V]) put(k K, v V) {
	if e := (memoEntry[K, V]{k, v}); len(m.entries) < memoEntries {
		m.entries = append(m.entries, e)
	} else {
		m.entries[m.n%memoEntries] = e
	}
	m.n++
}

// linuxContainerConfig are a container's resources and security context.
// A container that asks for nothing shares its config with all others that do
// so, whatever their specs: its key has no container.
func (m *Manager) linuxContainerConfig(ctx context.Context, pod *v1.Pod, c *v1.Container, user security.User, targetID string) (*runtimeapi.LinuxContainerConfig, error) {
	users, err := m.userNamespace(ctx, pod)
	if err != nil {
		return nil, err
	}
	own := targetID != "" || users != nil // can't be shared
	k := linuxKey{
		c: c, psc: psc(pod), limits: pod.Spec.Resources, ns: namespacesOf(pod), user: user,
		appArmor: pod.Annotations[security.AppArmorAnnotation+c.Name], class: qos.Class(pod), critical: resources.IsNodeCritical(pod),
		place: m.placement(pod, c),
	}
	if c.SecurityContext == nil && len(c.Resources.Requests)+len(c.Resources.Limits) == 0 && k.class == v1.PodQOSBestEffort {
		k.c = nil
	}
	if out, ok := m.shared.linux.get(k); ok && !own {
		return out, nil
	}
	sec, err := m.security.Container(pod, c, user, users)
	if err != nil {
		return nil, err
	}
	out := &runtimeapi.LinuxContainerConfig{Resources: m.resources.Container(pod, c), SecurityContext: sec}
	k.place.apply(out.Resources)
	if !own {
		m.shared.linux.put(k, out)
	} else if o := sec.NamespaceOptions; targetID != "" && o.Pid == runtimeapi.NamespaceMode_CONTAINER {
		o.Pid, o.TargetId = runtimeapi.NamespaceMode_TARGET, targetID
	}
	return out, nil
}

// imageSpec names a container's image by its ID and as the pod does.
func (s *shared) imageSpec(ref, image string) *runtimeapi.ImageSpec {
	k := imageKey{ref, image}
	out, ok := s.images.get(k)
	if !ok {
		out = &runtimeapi.ImageSpec{Image: ref, UserSpecifiedImage: image}
		s.images.put(k, out)
	}
	return out
}
