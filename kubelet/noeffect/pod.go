package noeffect

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Unsupported lists, in words with field paths, what a pod's manifest asks for
// that this kubelet does not act on yet. An empty list means that the pod runs
// as its manifest says.
func Unsupported(pod *v1.Pod) []string {
	var out []string
	say := func(field, what string) { out = append(out, field+": "+what) }
	spec := &pod.Spec
	for i := range spec.Volumes {
		unsupportedVolume(fmt.Sprintf("spec.volumes[%d] (%s)", i, spec.Volumes[i].Name), &spec.Volumes[i], say)
	}
	return out
}

// unsupportedVolume tells of kinds of volumes that are never mounted (a pod that
// uses one waits for it).
func unsupportedVolume(field string, v *v1.Volume, say func(field, what string)) {
	switch {
	case v.EmptyDir != nil, v.HostPath != nil, v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.PersistentVolumeClaim != nil, v.Ephemeral != nil, v.NFS != nil, v.CSI != nil, v.Image != nil, v.Projected != nil:
	case v.GitRepo != nil: // as upstream: it is disabled
	default:
		say(field, "volumes of this kind are not supported yet")
	}
}
