package records

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// Beside the CRI, a caller in process can say what replicas have in common with
// one message for all of them, and have a pod's own message made when somebody
// looks at it: a node has hundreds of sandboxes and containers, and hardly
// anybody does. What goes over a socket is whole, and so is what the methods of
// the CRI return.

// SandboxConfig is a sandbox's configuration in two parts.
type SandboxConfig = interface {
	// Shared is what replicas have in common: DNS, ports, and the Linux part but
	// for the cgroup parent. It lacks the rest.
	Shared() *runtimeapi.PodSandboxConfig
	Metadata() *runtimeapi.PodSandboxMetadata
	LogDirectory() string
	Hostname() string
	// Label is a label of the sandbox.
	Label(name string) (string, bool)
	// Config is the whole, made anew at each call.
	Config() *runtimeapi.PodSandboxConfig
}

// labelled is what has labels.
type labelled interface {
	label(name string) (string, bool)
}

// LabelsMatch reports whether what has labels has every pair of the selector.
func LabelsMatch(of labelled, selector map[string]string) bool {
	for k, v := range selector { //drydock:unordered all must hold
		if got, ok := of.label(k); !ok || got != v {
			return false
		}
	}
	return true
}
