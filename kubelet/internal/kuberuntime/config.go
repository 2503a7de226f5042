package kuberuntime

import (
	"context"
	"fmt"
	"maps"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/security"
)

// generateContainerConfig builds what CreateContainer is told, for a lean runtime
// without labels.
// The order is upstream's: what fails first decides the message of
// CreateContainerConfigError.
func (m *Manager) generateContainerConfig(ctx context.Context, s *start) (*runtimeapi.ContainerConfig, error) {
	pod, c := s.pod, s.c
	opts, err := m.runOptions(ctx, s)
	if err != nil {
		return nil, err
	}
	env := opts.Envs
	user, err := m.imageUser(ctx, c.Image)
	if err != nil {
		return nil, err
	}
	if err := security.VerifyNonRoot(pod, c, user); err != nil {
		return nil, err
	}
	linux, err := m.linuxContainerConfig(ctx, pod, c, user, s.targetID)
	if err != nil {
		return nil, err
	}
	annotations, err := m.shared.containerAnnotations(&m.hasher, pod, c, s.restartCount)
	if err != nil {
		return nil, err
	}
	if m.o.FS != nil {
		if err := m.o.FS.MkdirAll(s.logDir, 0o755); err != nil {
			return nil, fmt.Errorf("create log directory for container %s failed: %w", c.Name, err)
		}
	}
	mounts := withImages(m.messages.mounts(opts, pod, c, s.restartCount), s.imageVolumes)
	plain := len(mounts) == 0 && len(opts.Devices) == 0 && len(opts.CDIDevices) == 0 && len(opts.Annotations) == 0
	if m.rt.lean == nil || !plain || pod.DeletionGracePeriodSeconds != nil {
		if len(opts.Annotations) > 0 {
			own := maps.Clone(opts.Annotations)
			maps.Copy(own, annotations)
			annotations = own
		}
		config := m.newContainerConfig(s, env, mounts, annotations, linux)
		config.Devices, config.CDIDevices = opts.Devices, opts.CDIDevices
		if m.rt.lean == nil {
			config.Labels = containerLabels(pod, c)
		}
		return config, nil
	}
	k := containerKey{c: c, image: m.shared.imageSpec(s.imageRef, c.Image), linux: linux, envs: len(env), restarts: s.restartCount, grace: pod.Spec.TerminationGracePeriodSeconds}
	if len(env) > 0 {
		k.env = env[0]
	}
	config, ok := m.shared.containers.get(k)
	if !ok {
		config = m.newContainerConfig(s, env, nil, annotations, linux)
		m.shared.containers.put(k, config)
	}
	return config, nil
}

// newContainerConfig is without labels.
// newContainerConfig puts the parts together. The log's path is relative to the
// sandbox's log directory.
func (m *Manager) newContainerConfig(s *start, env []*runtimeapi.KeyValue, mounts []*runtimeapi.Mount, annotations map[string]string, linux *runtimeapi.LinuxContainerConfig) *runtimeapi.ContainerConfig {
	c := s.c
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(s.restartCount)},
		Image:       m.shared.imageSpec(s.imageRef, c.Image),
		Command:     expandAll(c.Command, env),
		Args:        expandAll(c.Args, env),
		WorkingDir:  c.WorkingDir,
		Envs:        env,
		Annotations: annotations,
		LogPath:     c.Name + "/" + decimal(s.restartCount) + ".log",
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Mounts:      mounts,
		Linux:       linux,
		StopSignal:  m.stopSignal(c),
	}
}

// imageUser asks the runtime who the image runs as; root if it doesn't say.
// Upstream asks again, too, rather than keep what the pull returned.
func (m *Manager) imageUser(ctx context.Context, image string) (security.User, error) {
	resp, err := m.rt.ImageStatus(ctx, m.shared.imageSpec(image, ""), false)
	if err != nil {
		return security.User{}, err
	}
	img := resp.GetImage()
	if img.GetUid() != nil {
		return security.User{UID: img.Uid.Value}, nil
	}
	return security.User{Name: img.GetUsername()}, nil
}
