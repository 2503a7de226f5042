package records

import (
	"cmp"
	"encoding/json"
	"path"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	StateCreated = runtimeapi.ContainerState_CONTAINER_CREATED
	StateRunning = runtimeapi.ContainerState_CONTAINER_RUNNING
	StateExited  = runtimeapi.ContainerState_CONTAINER_EXITED
	StateUnknown = runtimeapi.ContainerState_CONTAINER_UNKNOWN
)

// Container is the record of a container. Before CreateContainer is done it
// only holds the name and isn't listed.
type Container struct {
	ID      string
	Sandbox *Sandbox
	Config  *runtimeapi.ContainerConfig // the request's: see whole
	Image   *images.Present             // what it was made of, still present or not

	CreatedAt, StartedAt, FinishedAt int64
	State                            runtimeapi.ContainerState
	Listed, Starting, Removing       bool
	Lean                             bool // config lacks the labels: see CreateContainerOf
	ExitCode                         int32
	Reason, Message                  string
	Resources                        *runtimeapi.LinuxContainerResources // nil: as in config

	Process *Process    // nil unless alive
	Exited  *loop.Event // made by who waits for the exit
}

// Subject is what calls about the container are about.
func (c *Container) Subject() calls.Subject {
	md := c.Sandbox.Metadata
	return calls.Subject{Namespace: md.Namespace, Pod: md.Name, Container: c.Config.Metadata.Name, Attempt: c.Config.Metadata.Attempt, Timeout: -1}
}

// Alive reports whether the container has a process.
func (c *Container) Alive() bool { return c.State == StateRunning || c.State == StateUnknown }

// LinuxResources are those it was made with, or last updated to.
func (c *Container) LinuxResources() *runtimeapi.LinuxContainerResources {
	if c.Resources != nil {
		return c.Resources
	}
	return c.Config.GetLinux().GetResources()
}

// LogPath is the absolute path of the log, or "" when the requests named none.
func (c *Container) LogPath() string {
	if c.Config.LogPath == "" {
		return ""
	}
	dir := c.Sandbox.LogDirectory()
	if dir == "" {
		return ""
	}
	return path.Clean(dir + "/" + c.Config.LogPath)
}

// ContainerNotFound is containerd's error; kubelets know it by its code.
func ContainerNotFound(id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", id)
}

// Quota is a container's, in millicores; 0 for none.
func (c *Container) Quota() int64 {
	lin := c.LinuxResources()
	if lin.GetCpuQuota() <= 0 {
		return 0
	}
	return lin.GetCpuQuota() * 1000 / cmp.Or(lin.GetCpuPeriod(), 100_000)
}

// Argv is the container's command line.
func (c *Container) Argv() []string {
	cmd, args := c.Config.Command, c.Config.Args
	if len(cmd) == 0 {
		cmd = c.Image.Source.Entrypoint
		if len(args) == 0 {
			args = c.Image.Source.Cmd
		}
	}
	return append(cmd[:len(cmd):len(cmd)], args...)
}

// label is a label; a lean container has the kubelet's four, which are made up here.
func (c *Container) label(name string) (string, bool) {
	if !c.Lean {
		v, ok := c.Config.Labels[name]
		return v, ok
	}
	md := c.Sandbox.Metadata
	switch name {
	case labelPodName:
		return md.Name, true
	case labelPodNamespace:
		return md.Namespace, true
	case LabelPodUID:
		return md.Uid, true
	case labelContainerName:
		return c.Config.Metadata.Name, true
	}
	return "", false
}

// Labels are those of the container, made anew if they are the kubelet's.
func (c *Container) Labels() map[string]string {
	if !c.Lean {
		return c.Config.Labels
	}
	md := c.Sandbox.Metadata
	return map[string]string{
		labelPodName: md.Name, labelPodNamespace: md.Namespace, LabelPodUID: md.Uid, labelContainerName: c.Config.Metadata.Name,
	}
}

// Whole is the container's configuration with its labels.
func (c *Container) Whole() *runtimeapi.ContainerConfig {
	if !c.Lean {
		return c.Config
	}
	o := c.Config
	return &runtimeapi.ContainerConfig{
		Metadata: o.Metadata, Image: o.Image, Command: o.Command, Args: o.Args, WorkingDir: o.WorkingDir, Envs: o.Envs, Mounts: o.Mounts,
		Devices: o.Devices, Labels: c.Labels(), Annotations: o.Annotations, LogPath: o.LogPath, Stdin: o.Stdin, StdinOnce: o.StdinOnce,
		Tty: o.Tty, Linux: o.Linux, Windows: o.Windows, CDIDevices: o.CDIDevices, StopSignal: o.StopSignal,
	}
}

// OomScoreAdj is the container's, within the kernel's bounds.
func OomScoreAdj(c *Container) int16 {
	return int16(max(-1000, min(1000, c.LinuxResources().GetOomScoreAdj())))
}

// StopSignal is the request's, else the image's, else SIGTERM.
func (c *Container) StopSignal() int {
	if n, ok := stopSignals[c.Config.StopSignal]; ok {
		return n
	}
	return cmp.Or(c.Image.Source.StopSignal, SigTERM)
}

// AnnotationPorts is where kubelets note the ports of a container's manifest.
const AnnotationPorts = "io.kubernetes.container.ports"

// DeclaredPorts are the ports that the pod's manifest lists for the container.
func (c *Container) DeclaredPorts() []int {
	text := c.Config.Annotations[AnnotationPorts]
	if text == "" {
		return nil
	}
	var ports []struct {
		ContainerPort int `json:"containerPort"`
	}
	if json.Unmarshal([]byte(text), &ports) != nil {
		return nil
	}
	out := make([]int, len(ports))
	for i, p := range ports {
		out[i] = p.ContainerPort
	}
	return out
}

// StatedArgv is the command line of a container whose program is stated.
func (c *Container) StatedArgv() []string {
	if argv := c.Argv(); len(argv) > 0 {
		return argv
	}
	return []string{"/entrypoint"}
}

// NoiseKey is the seed of the noise of all that a run of a container uses.
func (c *Container) NoiseKey(l *loop.Loop) uint64 {
	sub := c.Subject()
	return l.Uint64("usage", sub.Pod, sub.Key())
}
