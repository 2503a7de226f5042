package podspec

import v1 "k8s.io/api/core/v1"

// DropDisabled takes out of a pod's spec, or a template's, what belongs to features that
// are off at v1.36 (DropDisabledPodFields): signals to stop with, trust bundles and
// certificates in files, and groups of pods.
func DropDisabled(s *v1.PodSpec) {
	s.SchedulingGroup = nil
	for _, list := range [...][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			dropStopSignal(&list[i])
		}
	}
	for i := range s.EphemeralContainers {
		dropStopSignal((*v1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
	for i := range s.Volumes {
		if p := s.Volumes[i].Projected; p != nil {
			for j := range p.Sources {
				if src := &p.Sources[j]; src.ClusterTrustBundle != nil || src.PodCertificate != nil {
					src.ClusterTrustBundle, src.PodCertificate = nil, nil
				}
			}
		}
	}
}

func dropStopSignal(c *v1.Container) {
	l := c.Lifecycle
	if l == nil || l.StopSignal == nil {
		return
	}
	l.StopSignal = nil
	if *l == (v1.Lifecycle{}) {
		c.Lifecycle = nil
	}
}
