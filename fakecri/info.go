package fakecri

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// This file is what verbose statuses tell besides: JSON with the names that
// containerd gives its parts, of which crictl and others read some
// (".info.pid", ".info.runtimeSpec").

const (
	snapshotter  = "overlayfs"
	runtimeType  = "io.containerd.runc.v2"
	cgroupDriver = "cgroupfs"
)

// infoMap is one part of a verbose answer.
func infoMap(v any) map[string]string {
	text, err := json.Marshal(v)
	if err != nil {
		return map[string]string{"info": "{}"}
	}
	return map[string]string{"info": string(text)}
}

type runtimeOptionsInfo struct {
	SystemdCgroup bool
}

// containerInfo is what ContainerStatus tells besides.
func (r *viewer) containerInfo(c *records.Container) map[string]string {
	return infoMap(struct {
		SandboxID      string                      `json:"sandboxID"`
		PID            int                         `json:"pid"`
		Removing       bool                        `json:"removing"`
		SnapshotKey    string                      `json:"snapshotKey"`
		Snapshotter    string                      `json:"snapshotter"`
		RuntimeType    string                      `json:"runtimeType"`
		RuntimeOptions runtimeOptionsInfo          `json:"runtimeOptions"`
		Config         *runtimeapi.ContainerConfig `json:"config"`
		RuntimeSpec    *specs.Spec                 `json:"runtimeSpec"`
	}{
		c.Sandbox.ID, r.pidOf(c), c.Removing, c.ID, snapshotter, runtimeType, runtimeOptionsInfo{r.kern.Options.CgroupDriver != cgroupDriver},
		c.Whole(), r.runtimeSpec(c),
	})
}

// sandboxInfo is what PodSandboxStatus tells besides.
func (r *viewer) sandboxInfo(s *records.Sandbox) map[string]string {
	pid, state := 0, "deleted"
	if s.State == records.SandboxReady {
		pid, state = statedPID(s.ID), "running"
	}
	type ipConfig struct{ IP, Gateway string }
	type iface struct {
		IPConfigs []ipConfig
		Mac       string
		Sandbox   string
	}
	type cniResult struct {
		Interfaces map[string]iface
	}
	var cni *cniResult
	if s.NetUp {
		cni = &cniResult{Interfaces: map[string]iface{"eth0": {IPConfigs: []ipConfig{{IP: s.IP.String()}}, Sandbox: "/var/run/netns/cni-" + s.ID[:36]}}}
	}
	return infoMap(struct {
		PID                int                          `json:"pid"`
		ProcessStatus      string                       `json:"processStatus"`
		NetNamespaceClosed bool                         `json:"netNamespaceClosed"`
		Image              string                       `json:"image"`
		SnapshotKey        string                       `json:"snapshotKey"`
		Snapshotter        string                       `json:"snapshotter"`
		RuntimeHandler     string                       `json:"runtimeHandler"`
		RuntimeType        string                       `json:"runtimeType"`
		RuntimeOptions     runtimeOptionsInfo           `json:"runtimeOptions"`
		Config             *runtimeapi.PodSandboxConfig `json:"config"`
		RuntimeSpec        *specs.Spec                  `json:"runtimeSpec"`
		CNIResult          *cniResult                   `json:"cniResult"`
	}{
		pid, state, s.State != records.SandboxReady && !s.HostNetwork(), cmp.Or(r.opts.SandboxImage, "registry.k8s.io/pause:3.10.1"), s.ID, snapshotter,
		cmp.Or(s.Handler, "runc"), runtimeType, runtimeOptionsInfo{r.kern.Options.CgroupDriver != cgroupDriver}, s.Whole(), r.sandboxSpec(s), cni,
	})
}

// statedPID makes up a process id for what has no process here: the same for
// the same id.
func statedPID(id string) int {
	n := 0
	for _, d := range []byte(id[:6]) {
		n = n*16 + int(d)%16
	}
	return 1000 + n%4_000_000
}

// pidOf is the container's process as the machine numbers it, 0 for none.
func (r *viewer) pidOf(c *records.Container) int {
	switch {
	case c.Process == nil:
		return 0
	case c.Process.Interpreted != nil && c.Process.Interpreted.Kernel.First() != nil:
		return c.Process.Interpreted.Kernel.First().PIDIn(r.kern.Kernel().HostPIDs())
	}
	return statedPID(c.ID)
}

// runtimeSpec is what containerd would hand to runc, as far as it is of use to
// those who look at it.
func (r *viewer) runtimeSpec(c *records.Container) *specs.Spec {
	sc := c.Config.GetLinux().GetSecurityContext()
	src := c.Image.Source
	spec := &specs.Spec{
		Version:  specs.Version,
		Hostname: r.kern.UtsName(c.Sandbox),
		Root:     &specs.Root{Path: "rootfs", Readonly: sc.GetReadonlyRootfs()},
		Process: &specs.Process{
			Terminal:        c.Config.Tty,
			Args:            c.Argv(),
			Env:             r.run.Environment(c, ""),
			Cwd:             cmp.Or(cmp.Or(c.Config.WorkingDir, src.WorkingDir), "/"),
			NoNewPrivileges: sc.GetNoNewPrivs(),
			User:            specUser(r.containerUser(c)),
		},
		Annotations: map[string]string{
			"io.kubernetes.cri.container-type":    "container",
			"io.kubernetes.cri.container-name":    c.Config.Metadata.Name,
			"io.kubernetes.cri.image-name":        c.Image.Spec.Image,
			"io.kubernetes.cri.sandbox-id":        c.Sandbox.ID,
			"io.kubernetes.cri.sandbox-name":      c.Sandbox.Metadata.Name,
			"io.kubernetes.cri.sandbox-namespace": c.Sandbox.Metadata.Namespace,
			"io.kubernetes.cri.sandbox-uid":       c.Sandbox.Metadata.Uid,
		},
		Linux: &specs.Linux{
			CgroupsPath:   r.kern.CgroupPath(c),
			MaskedPaths:   sc.GetMaskedPaths(),
			ReadonlyPaths: sc.GetReadonlyPaths(),
			Sysctl:        c.Sandbox.Config.GetLinux().GetSysctls(),
			Resources:     specResources(c.LinuxResources()),
			Namespaces:    specNamespaces(sc.GetNamespaceOptions()),
		},
	}
	if lin := c.LinuxResources(); lin != nil {
		spec.Process.OOMScoreAdj = new(int(lin.OomScoreAdj))
	}
	for _, m := range c.Config.Mounts {
		spec.Mounts = append(spec.Mounts, specMount(m))
	}
	return spec
}

func (r *viewer) sandboxSpec(s *records.Sandbox) *specs.Spec {
	lin := s.Whole().GetLinux()
	return &specs.Spec{
		Version:  specs.Version,
		Hostname: r.kern.UtsName(s),
		Root:     &specs.Root{Path: "rootfs", Readonly: true},
		Process:  &specs.Process{Args: []string{"/pause"}, Cwd: "/", User: specs.User{UID: 65535, GID: 65535}},
		Annotations: map[string]string{
			"io.kubernetes.cri.container-type":        "sandbox",
			"io.kubernetes.cri.sandbox-id":            s.ID,
			"io.kubernetes.cri.sandbox-name":          s.Metadata.Name,
			"io.kubernetes.cri.sandbox-namespace":     s.Metadata.Namespace,
			"io.kubernetes.cri.sandbox-uid":           s.Metadata.Uid,
			"io.kubernetes.cri.sandbox-log-directory": s.LogDirectory(),
		},
		Linux: &specs.Linux{
			CgroupsPath: path.Join("/", lin.GetCgroupParent(), s.ID),
			Sysctl:      lin.GetSysctls(),
			Resources:   specResources(lin.GetResources()),
			Namespaces:  specNamespaces(lin.GetSecurityContext().GetNamespaceOptions()),
		},
	}
}

func specUser(u *runtimeapi.ContainerUser) specs.User {
	out := specs.User{UID: uint32(u.GetLinux().GetUid()), GID: uint32(u.GetLinux().GetGid())}
	for _, g := range u.GetLinux().GetSupplementalGroups() {
		out.AdditionalGids = append(out.AdditionalGids, uint32(g))
	}
	return out
}

func specMount(m *runtimeapi.Mount) specs.Mount {
	options := []string{"rbind", map[runtimeapi.MountPropagation]string{
		runtimeapi.MountPropagation_PROPAGATION_PRIVATE:           "rprivate",
		runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER: "rslave",
		runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:     "rshared",
	}[m.Propagation]}
	switch {
	case m.RecursiveReadOnly:
		options = append(options, "rro")
	case m.Readonly:
		options = append(options, "ro")
	default:
		options = append(options, "rw")
	}
	return specs.Mount{Destination: m.ContainerPath, Type: "bind", Source: m.HostPath, Options: slices.DeleteFunc(options, func(s string) bool { return s == "" })}
}

func specResources(lin *runtimeapi.LinuxContainerResources) *specs.LinuxResources {
	if lin == nil {
		return nil
	}
	out := &specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: lin.CpusetCpus, Mems: lin.CpusetMems}, Memory: &specs.LinuxMemory{}, Unified: lin.Unified}
	if lin.CpuShares > 0 {
		out.CPU.Shares = new(uint64(lin.CpuShares))
	}
	if lin.CpuQuota != 0 {
		out.CPU.Quota = new(lin.CpuQuota)
	}
	if lin.CpuPeriod > 0 {
		out.CPU.Period = new(uint64(lin.CpuPeriod))
	}
	if lin.MemoryLimitInBytes != 0 {
		out.Memory.Limit = new(lin.MemoryLimitInBytes)
	}
	if lin.MemorySwapLimitInBytes != 0 {
		out.Memory.Swap = new(lin.MemorySwapLimitInBytes)
	}
	for _, h := range lin.HugepageLimits {
		out.HugepageLimits = append(out.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: h.PageSize, Limit: h.Limit})
	}
	return out
}

// specNamespaces are those that a container or sandbox doesn't share with the
// machine.
func specNamespaces(o *runtimeapi.NamespaceOption) []specs.LinuxNamespace {
	out := []specs.LinuxNamespace{{Type: specs.UTSNamespace}, {Type: specs.MountNamespace}}
	for _, n := range []struct {
		mode runtimeapi.NamespaceMode
		kind specs.LinuxNamespaceType
	}{{o.GetPid(), specs.PIDNamespace}, {o.GetIpc(), specs.IPCNamespace}, {o.GetNetwork(), specs.NetworkNamespace}} {
		if n.mode != runtimeapi.NamespaceMode_NODE {
			out = append(out, specs.LinuxNamespace{Type: n.kind})
		}
	}
	if u := o.GetUsernsOptions(); u != nil && u.Mode != runtimeapi.NamespaceMode_NODE {
		out = append(out, specs.LinuxNamespace{Type: specs.UserNamespace})
	}
	return out
}

// imageInfo is what ImageStatus tells besides: the image's configuration as the OCI
// image format has it.
func imageInfo(im *images.Present) map[string]string {
	src := im.Source
	type config struct {
		User         string              `json:"User,omitempty"`
		ExposedPorts map[string]struct{} `json:"ExposedPorts,omitempty"`
		Env          []string            `json:"Env,omitempty"`
		Entrypoint   []string            `json:"Entrypoint,omitempty"`
		Cmd          []string            `json:"Cmd,omitempty"`
		WorkingDir   string              `json:"WorkingDir,omitempty"`
		StopSignal   string              `json:"StopSignal,omitempty"`
	}
	type rootfs struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	type imageSpec struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
		Config       config `json:"config"`
		RootFS       rootfs `json:"rootfs"`
	}
	c := config{User: src.User, Env: src.Env, Entrypoint: src.Entrypoint, Cmd: src.Cmd, WorkingDir: src.WorkingDir}
	if src.StopSignal != 0 {
		c.StopSignal = records.SignalNamed(src.StopSignal).String()
	}
	layer := "sha256:" + reverse(strings.TrimPrefix(src.Digest, "sha256:"))
	return infoMap(struct {
		ChainID   string    `json:"chainID"`
		ImageSpec imageSpec `json:"imageSpec"`
	}{layer, imageSpec{"amd64", "linux", c, rootfs{"layers", []string{layer}}}})
}

// reverse makes the digest of the only layer out of that of the manifest.
func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// statusInfo is what Status tells besides.
func (r *viewer) statusInfo() map[string]string {
	type handler struct {
		RuntimeType string             `json:"runtimeType"`
		Options     runtimeOptionsInfo `json:"options"`
	}
	handlers := map[string]handler{}
	for _, h := range r.life.Handlers {
		if h.Name != "" {
			handlers[h.Name] = handler{runtimeType, runtimeOptionsInfo{r.kern.Options.CgroupDriver != cgroupDriver}}
		}
	}
	name := "runc"
	if len(r.opts.Handlers) > 0 {
		name = r.opts.Handlers[0]
	}
	text, err := json.Marshal(map[string]any{
		"containerd":   map[string]any{"snapshotter": snapshotter, "defaultRuntimeName": name, "runtimes": handlers},
		"sandboxImage": r.opts.SandboxImage,
		"podCIDR":      r.opts.PodCIDR,
	})
	if err != nil {
		text = []byte("{}")
	}
	network := "OK"
	if r.networkNotReady != nil {
		network = r.networkNotReady.Message
	}
	return map[string]string{"config": string(text), "lastCNILoadStatus": network}
}
