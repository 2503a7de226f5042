package kuberuntime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
)

// imageVolume is what came of bringing a volume's image onto the machine.
// The error is kept until a container that mounts the volume is started: others
// don't suffer from it.
type imageVolume struct {
	spec    *runtimeapi.ImageSpec
	message string
	err     error
}

// hasImageVolumes reports whether a volume of the pod is an image (KEP-4639).
func hasImageVolumes(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Image != nil {
			return true
		}
	}
	return false
}

// Repeats reports whether each sync of the pod does something, although nothing
// has changed: it tells again what of its DNS settings was cut, and looks again
// for the images of its volumes.
// Upstream repeats both at each sync, as a side effect of building its
// messages; who watches events sees them.
func (m *Manager) Repeats(pod *v1.Pod) bool {
	return hasImageVolumes(pod) || len(m.dns.of(pod).warnings) > 0
}

// pullVolumes brings the images of the pod's volumes onto the machine, by the
// name of the volume. What fails is told by who needs it.
func (s *podSync) pullVolumes(ctx context.Context) {
	if !hasImageVolumes(s.pod) {
		return
	}
	s.imageVolumes = map[string]imageVolume{}
	for i := range s.pod.Spec.Volumes {
		v := &s.pod.Spec.Volumes[i]
		if v.Image == nil {
			continue
		}
		ref, message, err := s.m.images.EnsureImageExists(ctx, images.Request{
			Ref: kubecontainer.PodRef(s.pod), Pod: s.pod, Image: v.Image.Reference, Policy: v.Image.PullPolicy,
			PullSecrets: s.pullSecrets, Sandbox: s.config,
		})
		s.imageVolumes[v.Name] = imageVolume{&runtimeapi.ImageSpec{Image: ref, UserSpecifiedImage: v.Image.Reference}, message, err}
	}
}

// imageVolumeError is the last error of the image volumes that the container
// mounts; each is told as an event.
func (s *podSync) imageVolumeError(c *v1.Container) (message string, err error) { //nolint:revive // as upstream
	for i := range c.VolumeMounts {
		v, ok := s.imageVolumes[c.VolumeMounts[i].Name]
		if !ok || v.err == nil {
			continue
		}
		message, err = v.message, v.err
		s.m.event(kubecontainer.ContainerRef(s.pod, c), v1.EventTypeWarning, "Failed", "Error: "+message)
	}
	return message, err
}

// withImages has the mounts of image volumes name the images that were found.
// The mounts name the image as the pod does; the runtime needs the ID that the
// pull returned.
func withImages(mounts []*runtimeapi.Mount, volumes map[string]imageVolume) []*runtimeapi.Mount {
	if len(volumes) == 0 {
		return mounts
	}
	for _, mount := range mounts {
		if mount.Image == nil {
			continue
		}
		for _, v := range volumes { //drydock:unordered equal references have one image
			if v.err == nil && v.spec.UserSpecifiedImage == mount.Image.UserSpecifiedImage {
				mount.Image = v.spec
				break
			}
		}
	}
	return mounts
}
