package records

import (
	"net/netip"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
)

// Whole is the sandbox's configuration as one message.
func (s *Sandbox) Whole() *runtimeapi.PodSandboxConfig {
	if s.Own != nil {
		return s.Own.Config()
	}
	return s.Config
}

// LogDirectory is where the containers' logs are, by the request.
func (s *Sandbox) LogDirectory() string {
	if s.Own != nil {
		return s.Own.LogDirectory()
	}
	return s.Config.LogDirectory
}

// Hostname is the request's, "" for the machine's.
func (s *Sandbox) Hostname() string {
	if s.Own != nil {
		return s.Own.Hostname()
	}
	return s.Config.GetHostname()
}

// label is a label of the sandbox.
func (s *Sandbox) label(name string) (string, bool) {
	if s.Own != nil {
		return s.Own.Label(name)
	}
	v, ok := s.Config.Labels[name]
	return v, ok
}

const (
	SandboxReady    = runtimeapi.PodSandboxState_SANDBOX_READY
	SandboxNotReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

// Sandbox is the record of a pod sandbox. Before RunPodSandbox is done it only
// holds the name and isn't listed.
type Sandbox struct {
	ID        string
	Config    *runtimeapi.PodSandboxConfig // the request's, or what replicas share of it: see whole
	Metadata  *runtimeapi.PodSandboxMetadata
	Own       SandboxConfig // nil: config is the whole
	Handler   string
	Pod       *podRecords
	CreatedAt int64
	State     runtimeapi.PodSandboxState
	Listed    bool
	// NetUp says that the network is still there, so that the status shows
	// the IP; the IP stays taken until StopPodSandbox either way.
	NetUp bool
	IP    netip.Addr // invalid without a network of its own

	// Containers are in order of their requests, those being created included.
	Containers []*Container

	Status *runtimeapi.PodSandboxStatus // what PodSandboxStatus shows; nil after a change
}

// subject is what calls about the sandbox are about.
func (s *Sandbox) subject() calls.Subject {
	md := s.Metadata
	return calls.Subject{Namespace: md.Namespace, Pod: md.Name, Attempt: md.Attempt, Timeout: -1}
}

// HostNetwork reports whether the sandbox has the machine's network.
func (s *Sandbox) HostNetwork() bool {
	return s.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}

// SandboxName is the name by which containerd reserves a sandbox, and shows in errors.
func SandboxName(md *runtimeapi.PodSandboxMetadata) string {
	return md.Name + "_" + md.Namespace + "_" + md.Uid + "_" + Itoa(md.Attempt)
}
