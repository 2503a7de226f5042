package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

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

// RunPodSandboxOf is RunPodSandbox of what config comes to.
func (c *Client) RunPodSandboxOf(ctx context.Context, config SandboxConfig, runtimeHandler string) (string, error) {
	return c.r.life.runSandbox(ctx, &c.by, &sandbox{config: config.Shared(), metadata: config.Metadata(), own: config, handler: runtimeHandler})
}

// CreateContainerOf is CreateContainer of a config that lacks the labels, which
// are the kubelet's: pod, namespace, uid and container. Replicas can share it.
func (c *Client) CreateContainerOf(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig) (string, error) {
	return c.r.life.createContainer(ctx, &c.by, podSandboxID, config, true)
}

// LeanPodSandboxStatus is PodSandboxStatus; a sandbox of RunPodSandboxOf is shown
// without labels and annotations.
func (c *Client) LeanPodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	s, err := c.readSandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.r.view.leanSandboxStatus(s), nil
}

// LeanContainerStatus is ContainerStatus; a container of CreateContainerOf is
// shown without labels, and until it has exited without the path of its log.
func (c *Client) LeanContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	ctr, err := c.readContainer(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.r.view.leanContainerStatus(ctr), nil
}

// whole is the sandbox's configuration as one message.
func (s *sandbox) whole() *runtimeapi.PodSandboxConfig {
	if s.own != nil {
		return s.own.Config()
	}
	return s.config
}

func (s *sandbox) logDirectory() string {
	if s.own != nil {
		return s.own.LogDirectory()
	}
	return s.config.LogDirectory
}

func (s *sandbox) hostname() string {
	if s.own != nil {
		return s.own.Hostname()
	}
	return s.config.GetHostname()
}

func (s *sandbox) label(name string) (string, bool) {
	if s.own != nil {
		return s.own.Label(name)
	}
	v, ok := s.config.Labels[name]
	return v, ok
}

func (c *container) label(name string) (string, bool) {
	if !c.lean {
		v, ok := c.config.Labels[name]
		return v, ok
	}
	md := c.sandbox.metadata
	switch name {
	case labelPodName:
		return md.Name, true
	case labelPodNamespace:
		return md.Namespace, true
	case labelPodUID:
		return md.Uid, true
	case labelContainerName:
		return c.config.Metadata.Name, true
	}
	return "", false
}

// labels are those of the container, made anew if they are the kubelet's.
func (c *container) labels() map[string]string {
	if !c.lean {
		return c.config.Labels
	}
	md := c.sandbox.metadata
	return map[string]string{
		labelPodName: md.Name, labelPodNamespace: md.Namespace, labelPodUID: md.Uid, labelContainerName: c.config.Metadata.Name,
	}
}

// whole is the container's configuration with its labels.
func (c *container) whole() *runtimeapi.ContainerConfig {
	if !c.lean {
		return c.config
	}
	o := c.config
	return &runtimeapi.ContainerConfig{
		Metadata: o.Metadata, Image: o.Image, Command: o.Command, Args: o.Args, WorkingDir: o.WorkingDir, Envs: o.Envs, Mounts: o.Mounts,
		Devices: o.Devices, Labels: c.labels(), Annotations: o.Annotations, LogPath: o.LogPath, Stdin: o.Stdin, StdinOnce: o.StdinOnce,
		Tty: o.Tty, Linux: o.Linux, Windows: o.Windows, CDIDevices: o.CDIDevices, StopSignal: o.StopSignal,
	}
}

// labelled is what has labels.
type labelled interface {
	label(name string) (string, bool)
}

// labelsMatch tells whether what has labels has every pair of the selector.
func labelsMatch(of labelled, selector map[string]string) bool {
	for k, v := range selector { //drydock:unordered all must hold
		if got, ok := of.label(k); !ok || got != v {
			return false
		}
	}
	return true
}
