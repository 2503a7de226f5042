package lifecycle

import (
	"path"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// This file is what requests are refused for: what containerd refuses itself,
// and what runc or the kernel would when the process is made.

// invalid is an error of a request that is refused for what it says. InvalidArgument is not
// retried by the caller with the same request.
func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// maxHostname is the kernel's, in bytes.
const maxHostname = 64

// checkSandboxConfig refuses a sandbox's configuration. NoUserNamespaces is looked at last, since
// what is malformed is refused by any runtime.
func (r *Machine) checkSandboxConfig(s *records.Sandbox) error {
	md, config, handler := s.Metadata, s.Config, s.Handler
	if md.GetName() == "" || md.GetNamespace() == "" || md.GetUid() == "" {
		return invalid("sandbox config must include metadata with name, namespace and uid")
	}
	if err := r.checkHandler(handler); err != nil {
		return err
	}
	if name := s.Hostname(); len(name) > maxHostname {
		return invalid("hostname %q is longer than %d characters", name, maxHostname)
	}
	for i, p := range config.PortMappings {
		if p.GetContainerPort() < 0 || p.GetContainerPort() > 65535 || p.GetHostPort() < 0 || p.GetHostPort() > 65535 {
			return invalid("port mapping %d: container port %d and host port %d must be within 0 to 65535", i, p.GetContainerPort(), p.GetHostPort())
		}
	}
	o := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	for _, n := range []struct {
		name string
		mode runtimeapi.NamespaceMode
	}{{"network", o.GetNetwork()}, {"ipc", o.GetIpc()}} {
		if n.mode != runtimeapi.NamespaceMode_POD && n.mode != runtimeapi.NamespaceMode_NODE {
			return invalid("%s namespace mode %s is not supported", n.name, n.mode)
		}
	}
	if err := checkUserns(o.GetUsernsOptions()); err != nil {
		return err
	}
	if o.GetUsernsOptions().GetMode() == runtimeapi.NamespaceMode_POD && o.GetUsernsOptions() != nil && r.NoUserNamespaces {
		return invalid("runtime handler %q does not support user namespaces", handler)
	}
	return nil
}

// checkUserns refuses the user namespaces that a runtime must refuse. One mapping that begins at
// 0 is what the kubelet makes (pkg/kubelet/userns) and all that runtimes take.
func checkUserns(o *runtimeapi.UserNamespace) error {
	if o == nil {
		return nil
	}
	switch o.Mode {
	case runtimeapi.NamespaceMode_NODE:
		if len(o.Uids)+len(o.Gids) > 0 {
			return invalid("invalid user namespace options: mode NODE has no mappings")
		}
		return nil
	case runtimeapi.NamespaceMode_POD:
		if len(o.Uids) != 1 || len(o.Gids) != 1 {
			return invalid("invalid user namespace options: one uid and one gid mapping are needed, not %d and %d", len(o.Uids), len(o.Gids))
		}
		for _, m := range []*runtimeapi.IDMapping{o.Uids[0], o.Gids[0]} {
			if m.GetContainerId() != 0 {
				return invalid("invalid user namespace options: the mapping must start at container id 0, not %d", m.GetContainerId())
			}
			if m.GetLength() == 0 {
				return invalid("invalid user namespace options: the mapping has no length")
			}
		}
		return nil
	}
	return invalid("invalid user namespace options: mode %s is not supported", o.Mode)
}

// checkContainerConfig refuses what of a container's configuration can be told
// without looking at anything else. Enums are checked for values that this CRI does not know: a
// newer client's.
func checkContainerConfig(config *runtimeapi.ContainerConfig) error {
	if config.GetMetadata().GetName() == "" {
		return invalid("container config must include metadata with a name")
	}
	if config.GetImage().GetImage() == "" {
		return invalid("container config must include an image")
	}
	sc := config.GetLinux().GetSecurityContext()
	if sc.GetRunAsGroup() != nil && sc.GetRunAsUser() == nil && sc.GetRunAsUsername() == "" {
		return invalid("user group is specified without user, groupID %d", sc.RunAsGroup.Value)
	}
	for _, n := range []int64{sc.GetRunAsUser().GetValue(), sc.GetRunAsGroup().GetValue()} {
		if n < 0 {
			return invalid("user or group %d is negative", n)
		}
	}
	for _, g := range sc.GetSupplementalGroups() {
		if g < 0 {
			return invalid("supplemental group %d is negative", g)
		}
	}
	if _, ok := runtimeapi.Signal_name[int32(config.StopSignal)]; !ok {
		return invalid("stop signal %d is unknown", config.StopSignal)
	}
	if _, ok := runtimeapi.SupplementalGroupsPolicy_name[int32(sc.GetSupplementalGroupsPolicy())]; !ok {
		return invalid("supplemental groups policy %d is unknown", sc.GetSupplementalGroupsPolicy())
	}
	for _, p := range []struct {
		name    string
		profile *runtimeapi.SecurityProfile
	}{{"seccomp", sc.GetSeccomp()}, {"AppArmor", sc.GetApparmor()}} {
		if _, ok := runtimeapi.SecurityProfile_ProfileType_name[int32(p.profile.GetProfileType())]; !ok {
			return invalid("unknown %s profile type %d", p.name, p.profile.GetProfileType())
		}
		if p.profile.GetProfileType() == runtimeapi.SecurityProfile_Localhost && p.profile.LocalhostRef == "" {
			return invalid("a localhost %s profile needs localhost_ref", p.name)
		}
	}
	if err := checkUserns(sc.GetNamespaceOptions().GetUsernsOptions()); err != nil {
		return err
	}
	for _, m := range config.Mounts {
		if err := checkMount(m); err != nil {
			return err
		}
	}
	return checkResources(config.GetLinux().GetResources())
}

// checkMount refuses a mount; what it names is looked for later. Recursive read-only mounts have
// the conditions of KEP-3857.
func checkMount(m *runtimeapi.Mount) error {
	at := m.GetContainerPath()
	switch {
	case at == "":
		return invalid("a mount has no container path")
	// The root is the image's.
	case path.Clean("/"+at) == "/":
		return invalid("mount %s: a container's root can't be mounted over", at)
	case m.Image == nil && m.HostPath == "":
		return invalid("mount %s: neither a host path nor an image", at)
	case m.RecursiveReadOnly && !m.Readonly:
		return invalid("mount %s: recursive_read_only needs readonly", at)
	case m.RecursiveReadOnly && m.Propagation != runtimeapi.MountPropagation_PROPAGATION_PRIVATE:
		return invalid("mount %s: recursive_read_only needs private propagation", at)
	}
	if _, ok := runtimeapi.MountPropagation_name[int32(m.Propagation)]; !ok {
		return invalid("mount %s: propagation %d is unknown", at, m.Propagation)
	}
	return nil
}

// checkResources refuses what the kernel's cgroups or runc do. 0 is not set, and always passes.
func checkResources(lin *runtimeapi.LinuxContainerResources) error {
	if lin == nil {
		return nil
	}
	for _, n := range []struct {
		name   string
		value  int64
		lo, hi int64 // besides 0
	}{
		{"cpu_period", lin.CpuPeriod, 1000, 1_000_000},
		{"cpu_quota", lin.CpuQuota, 1000, 1 << 62},
		{"cpu_shares", lin.CpuShares, 1, 1 << 62},
		{"memory_limit_in_bytes", lin.MemoryLimitInBytes, 1, 1 << 62},
		{"memory_swap_limit_in_bytes", lin.MemorySwapLimitInBytes, 1, 1 << 62},
		{"oom_score_adj", lin.OomScoreAdj, -1000, 1000},
	} {
		// -1 is no limit where the kernel has that.
		unlimited := n.value == -1 && (n.name == "cpu_quota" || n.name == "memory_swap_limit_in_bytes")
		if n.value != 0 && !unlimited && (n.value < n.lo || n.value > n.hi) {
			return invalid("invalid resources: %s: %d is out of range", n.name, n.value)
		}
	}
	if m, s := lin.MemoryLimitInBytes, lin.MemorySwapLimitInBytes; m > 0 && s > 0 && s < m {
		return invalid("invalid resources: memory_swap_limit_in_bytes: %d is below the memory limit, %d", s, m)
	}
	if !validCPUSet(lin.CpusetCpus) {
		return invalid("invalid resources: cpuset_cpus: %q is no list of numbers", lin.CpusetCpus)
	}
	if !validCPUSet(lin.CpusetMems) {
		return invalid("invalid resources: cpuset_mems: %q is no list of numbers", lin.CpusetMems)
	}
	for _, h := range lin.HugepageLimits {
		if h.GetPageSize() == "" {
			return invalid("invalid resources: a hugepage limit has no page size")
		}
	}
	return nil
}

// validCPUSet reports whether a text is a cpuset: "0-3,7"; "" is none. It is the list format of
// cpuset(7); numbers of processors that the node lacks are not noticed here.
func validCPUSet(text string) bool {
	if text == "" {
		return true
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		lo, err := strconv.ParseUint(from, 10, 16)
		if err != nil {
			return false
		}
		if isRange {
			if hi, err := strconv.ParseUint(to, 10, 16); err != nil || hi < lo {
				return false
			}
		}
	}
	return true
}

// checkInSandbox refuses a container that doesn't fit its sandbox. Sharing the target's
// namespaces takes a target that runs, in the same pod.
func (r *Machine) checkInSandbox(s *records.Sandbox, config *runtimeapi.ContainerConfig) error {
	o := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if o.GetPid() == runtimeapi.NamespaceMode_TARGET {
		t, err := r.Records.LookupContainer(o.GetTargetId())
		switch {
		case err != nil:
			return err
		case t == nil || t.Sandbox.Pod != s.Pod:
			return invalid("invalid target container: there is no container %q in the sandbox", o.GetTargetId())
		case t.State != records.StateRunning:
			return status.Errorf(codes.FailedPrecondition, "invalid target container: container %q is not running, it is in state %s", t.ID, t.State)
		}
	}
	if u := o.GetUsernsOptions(); u != nil {
		su := s.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
		if usernsMode(u) != usernsMode(su) || !sameMapping(u.Uids, su.GetUids()) || !sameMapping(u.Gids, su.GetGids()) {
			return invalid("the user namespace of the container is not that of its sandbox: %v and %v", u, su)
		}
	}
	return nil
}

// usernsMode is NODE where nothing is said. NODE means the machine's own users.
func usernsMode(u *runtimeapi.UserNamespace) runtimeapi.NamespaceMode {
	if u == nil {
		return runtimeapi.NamespaceMode_NODE
	}
	return u.Mode
}

// sameMapping compares the mappings of user namespaces, which must be the sandbox's
// in all its containers. Order counts.
func sameMapping(a, b []*runtimeapi.IDMapping) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].GetContainerId() != b[i].GetContainerId() || a[i].GetHostId() != b[i].GetHostId() || a[i].GetLength() != b[i].GetLength() {
			return false
		}
	}
	return true
}
