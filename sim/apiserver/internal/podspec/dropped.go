package podspec

import (
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
)

// DropDisabled takes out of a pod's spec, or a template's, what belongs to features that
// are off (DropDisabledPodFields): at v1.36 signals to stop with, groups of pods and,
// unless their gates are on, trust bundles and certificates in files.
func DropDisabled(s *v1.PodSpec, on features.Gates) {
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
				dropSource(&p.Sources[j], on)
			}
		}
	}
}

// dropSource writes only to a source of a kind that is off: others may be shared.
func dropSource(s *v1.VolumeProjection, on features.Gates) {
	if s.ClusterTrustBundle != nil && !on.ClusterTrustBundleProjection {
		s.ClusterTrustBundle = nil
	}
	if s.PodCertificate != nil && !on.PodCertificateRequest {
		s.PodCertificate = nil
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
