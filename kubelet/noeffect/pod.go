package noeffect

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Unsupported lists, in words with field paths, what a pod's manifest asks for
// that this kubelet does not act on yet. An empty list means that the pod runs
// as its manifest says.
func Unsupported(pod *v1.Pod) []string { return unsupported(pod, true) }

// UnsupportedOnMachine is Unsupported for a kubelet on a machine, whose runtime mounts
// images by itself.
func UnsupportedOnMachine(pod *v1.Pod) []string { return unsupported(pod, false) }

func unsupported(pod *v1.Pod, simulated bool) []string {
	var out []string
	say := func(field, what string) { out = append(out, field+": "+what) }
	spec := &pod.Spec
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		field := fmt.Sprintf("spec.initContainers[%d]", i)
		unsupportedContainer(field, c, simulated, say)
	}
	for i := range spec.Containers {
		unsupportedContainer(fmt.Sprintf("spec.containers[%d]", i), &spec.Containers[i], simulated, say)
	}
	for i := range spec.Volumes {
		unsupportedVolume(fmt.Sprintf("spec.volumes[%d] (%s)", i, spec.Volumes[i].Name), &spec.Volumes[i], simulated, say)
	}
	return out
}

func unsupportedContainer(field string, c *v1.Container, simulated bool, say func(field, what string)) {
	if len(c.VolumeDevices) > 0 && simulated {
		say(field+".volumeDevices", "block devices of simulated nodes hold no data")
	}
}

// unsupportedVolume tells of kinds of volumes that are never mounted (a pod that
// uses one waits for it), or hold nothing.
func unsupportedVolume(field string, v *v1.Volume, simulated bool, say func(field, what string)) {
	switch {
	case v.EmptyDir != nil, v.HostPath != nil, v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.PersistentVolumeClaim != nil, v.Ephemeral != nil, v.NFS != nil, v.CSI != nil:
	case v.Image != nil:
		if simulated {
			say(field, "the image is pulled, but the files in it are not simulated")
		}
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s := &v.Projected.Sources[i]
			if s.ClusterTrustBundle != nil || s.PodCertificate != nil {
				say(fmt.Sprintf("%s.projected.sources[%d]", field, i), "needs a feature gate that is off")
			}
		}
	case v.GitRepo != nil: // as upstream: it is disabled
	default:
		say(field, "volumes of this kind are not supported yet")
	}
}
