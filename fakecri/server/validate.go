//go:build linux

package server

import (
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The bounds of what a request can hold. They are far beyond what any runtime
// takes, and keep a hostile one from making the runtime build something huge. maxName is in
// bytes.
const (
	maxName  = 4096
	maxItems = 100_000
)

// validate tells what is wrong with a request's form, naming the field; nil
// means that the runtime can judge it. It is about size and shape alone. What containerd would
// judge is left to the runtime, so that errors have its words.
func validate(req any) error {
	switch r := req.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		if err := validSandboxConfig("config", r.Config); err != nil {
			return err
		}
		return short("runtime_handler", r.RuntimeHandler)
	case *runtimeapi.StopPodSandboxRequest:
		return validID("pod_sandbox_id", r.PodSandboxId)
	case *runtimeapi.RemovePodSandboxRequest:
		return validID("pod_sandbox_id", r.PodSandboxId)
	case *runtimeapi.PodSandboxStatusRequest:
		return validID("pod_sandbox_id", r.PodSandboxId)
	case *runtimeapi.PodSandboxStatsRequest:
		return validID("pod_sandbox_id", r.PodSandboxId)
	case *runtimeapi.UpdatePodSandboxResourcesRequest:
		return validID("pod_sandbox_id", r.PodSandboxId)
	case *runtimeapi.CreateContainerRequest:
		return validCreate(r)
	case *runtimeapi.StartContainerRequest:
		return validID("container_id", r.ContainerId)
	case *runtimeapi.StopContainerRequest:
		return first(validID("container_id", r.ContainerId), validTimeout(r.Timeout))
	case *runtimeapi.RemoveContainerRequest:
		return validID("container_id", r.ContainerId)
	case *runtimeapi.ContainerStatusRequest:
		return validID("container_id", r.ContainerId)
	case *runtimeapi.ContainerStatsRequest:
		return validID("container_id", r.ContainerId)
	case *runtimeapi.ReopenContainerLogRequest:
		return validID("container_id", r.ContainerId)
	case *runtimeapi.CheckpointContainerRequest:
		return first(validID("container_id", r.ContainerId), validTimeout(r.Timeout))
	case *runtimeapi.UpdateContainerResourcesRequest:
		return first(validID("container_id", r.ContainerId), validResources("linux", r.Linux))
	case *runtimeapi.PullImageRequest:
		return validImage(r.Image)
	case *runtimeapi.ImageStatusRequest:
		return validImage(r.Image)
	case *runtimeapi.RemoveImageRequest:
		return validImage(r.Image)
	}
	return validStreaming(req)
}

// validStreaming judges what runs commands or opens streams. The streaming
// server itself says what is missing for Exec and Attach. port-forward checks its ports here
// since the runtime is asked only when the client connects.
func validStreaming(req any) error {
	switch r := req.(type) {
	case *runtimeapi.ExecSyncRequest:
		return first(validID("container_id", r.ContainerId), validCmd(r.Cmd), validTimeout(r.Timeout))
	case *runtimeapi.ExecRequest:
		return first(short("container_id", r.ContainerId), validExec(r.ContainerId, r.Cmd)) // the streaming server says the rest
	case *runtimeapi.AttachRequest:
		return short("container_id", r.ContainerId)
	case *runtimeapi.PortForwardRequest:
		if err := short("pod_sandbox_id", r.PodSandboxId); err != nil {
			return err
		}
		for i, p := range r.Port {
			if p < 1 || p > 65535 {
				return fmt.Errorf("port[%d]: %d is not within 1 and 65535", i, p)
			}
		}
	}
	return nil
}

// first returns the first error. All of them are evaluated, which is cheap.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// validID refuses an id that is missing or too long.
func validID(field, id string) error {
	if id == "" {
		return fmt.Errorf("%s: must be set", field)
	}
	return short(field, id)
}

// short bounds the length of a text that is kept. Names of pods and paths are far shorter.
func short(field, s string) error {
	if len(s) > maxName {
		return fmt.Errorf("%s: %d bytes are more than %d", field, len(s), maxName)
	}
	return nil
}

// validTimeout refuses a timeout that is negative.
func validTimeout(seconds int64) error {
	if seconds < 0 {
		return fmt.Errorf("timeout: %d is negative", seconds)
	}
	return nil
}

// validCmd refuses a command line without a command.
func validCmd(cmd []string) error {
	if len(cmd) == 0 || cmd[0] == "" {
		return errors.New("cmd: must not be empty")
	}
	return nil
}

// validExec leaves it to the streaming server to miss an id.
func validExec(id string, cmd []string) error {
	if id == "" {
		return nil
	}
	return validCmd(cmd)
}

// validImage bounds what names an image.
func validImage(im *runtimeapi.ImageSpec) error {
	if im.GetImage() == "" {
		return errors.New("image: must be set")
	}
	return short("image", im.Image)
}

// validSandboxConfig bounds a sandbox's configuration, which is kept for its life.
func validSandboxConfig(field string, c *runtimeapi.PodSandboxConfig) error {
	if c == nil {
		return fmt.Errorf("%s: must be set", field)
	}
	md := c.Metadata
	if md == nil {
		return fmt.Errorf("%s.metadata: must be set", field)
	}
	for _, f := range []struct{ name, value string }{{"name", md.Name}, {"uid", md.Uid}, {"namespace", md.Namespace}} {
		if f.value == "" {
			return fmt.Errorf("%s.metadata.%s: must be set", field, f.name)
		}
		if err := short(field+".metadata."+f.name, f.value); err != nil {
			return err
		}
	}
	if err := short(field+".log_directory", c.LogDirectory); err != nil {
		return err
	}
	for i, p := range c.PortMappings {
		if p.GetContainerPort() < 0 || p.GetContainerPort() > 65535 || p.GetHostPort() < 0 || p.GetHostPort() > 65535 {
			return fmt.Errorf("%s.port_mappings[%d]: %d to %d is not within 0 and 65535", field, i, p.GetHostPort(), p.GetContainerPort())
		}
	}
	return few(field, len(c.PortMappings), len(c.Labels), len(c.Annotations))
}

// few bounds the number of items in lists. Each label or mount costs memory for the container's
// life.
func few(field string, counts ...int) error {
	for _, n := range counts {
		if n > maxItems {
			return fmt.Errorf("%s: a list in it has %d items, more than %d", field, n, maxItems)
		}
	}
	return nil
}

// validCreate bounds a container's configuration, which is kept for its life.
func validCreate(r *runtimeapi.CreateContainerRequest) error {
	if err := validID("pod_sandbox_id", r.PodSandboxId); err != nil {
		return err
	}
	c := r.Config
	switch {
	case c == nil:
		return errors.New("config: must be set")
	case c.Metadata == nil:
		return errors.New("config.metadata: must be set")
	case c.Metadata.Name == "":
		return errors.New("config.metadata.name: must be set")
	}
	if c.Image.GetImage() == "" {
		return errors.New("config.image: must be set")
	}
	for i, m := range c.Mounts {
		if m.GetContainerPath() == "" {
			return fmt.Errorf("config.mounts[%d].container_path: must be set", i)
		}
		if err := first(short(fmt.Sprintf("config.mounts[%d].container_path", i), m.ContainerPath),
			short(fmt.Sprintf("config.mounts[%d].host_path", i), m.HostPath)); err != nil {
			return err
		}
	}
	if r.SandboxConfig != nil {
		if err := validSandboxConfig("sandbox_config", r.SandboxConfig); err != nil {
			return err
		}
	}
	return first(
		short("config.metadata.name", c.Metadata.Name),
		short("config.image", c.Image.Image),
		short("config.log_path", c.LogPath),
		short("config.working_dir", c.WorkingDir),
		few("config", len(c.Mounts), len(c.Envs), len(c.Labels), len(c.Annotations), len(c.Devices), len(c.Command), len(c.Args)),
		validResources("config.linux.resources", c.GetLinux().GetResources()),
	)
}

// validResources judges numbers that no cgroup takes. What is 0 is not set;
// -1 means no limit where that makes sense. oom_score_adj is the kernel's range.
func validResources(field string, l *runtimeapi.LinuxContainerResources) error {
	if l == nil {
		return nil
	}
	for _, f := range []struct {
		name     string
		v, least int64
	}{
		{"cpu_period", l.CpuPeriod, 0},
		{"cpu_quota", l.CpuQuota, -1},
		{"cpu_shares", l.CpuShares, 0},
		{"memory_limit_in_bytes", l.MemoryLimitInBytes, -1},
		{"memory_swap_limit_in_bytes", l.MemorySwapLimitInBytes, -1},
		{"oom_score_adj", l.OomScoreAdj, -1000},
	} {
		if f.v < f.least {
			return fmt.Errorf("%s.%s: %d is less than %d", field, f.name, f.v, f.least)
		}
	}
	if l.OomScoreAdj > 1000 {
		return fmt.Errorf("%s.oom_score_adj: %d is more than 1000", field, l.OomScoreAdj)
	}
	return nil
}
