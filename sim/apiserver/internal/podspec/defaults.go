package podspec

import (
	"cmp"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// SetDefaults fills in what a pod's manifest left out, in place, as the API
// server's decoding does: also static pods get it. Admission's defaults
// (tolerations, priority, service account) are not among them. It may be called twice: what is
// set is not set again.
func SetDefaults(pod *v1.Pod) {
	fields.DefaultPtr(&pod.Spec.EnableServiceLinks, true)
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		*g = 1 // upstream converts it, where it has refused nothing so far
	}
	setPodSpecDefaults(&pod.Spec, false)
	setStatusDefaults(&pod.Status)
}

// setStatusDefaults has a pod's address in both the field that was first and the list
// that came after it. The older one wins, for the sake of old kubelets.
func setStatusDefaults(st *v1.PodStatus) {
	if st.PodIP != "" && (len(st.PodIPs) == 0 || st.PodIPs[0].IP != st.PodIP) {
		st.PodIPs = []v1.PodIP{{IP: st.PodIP}}
	}
	if len(st.PodIPs) > 0 {
		st.PodIP = st.PodIPs[0].IP
	}
}

// setPodSpecDefaults fills in a pod's spec, or a template's, which has fewer
// defaults. The order of the two kinds of defaults matters once: requests from limits come before
// those of the pod as a whole, which sum them up.
func setPodSpecDefaults(s *v1.PodSpec, template bool) {
	fields.Default(&s.RestartPolicy, v1.RestartPolicyAlways)
	fields.Default(&s.DNSPolicy, v1.DNSClusterFirst)
	fields.Default(&s.SchedulerName, v1.DefaultSchedulerName)
	fields.DefaultPtr(&s.TerminationGracePeriodSeconds, int64(v1.DefaultTerminationGracePeriodSeconds))
	// An empty one is shown, as upstream shows it.
	if s.SecurityContext == nil {
		s.SecurityContext = &v1.PodSecurityContext{}
	}
	// Old manifests name the account in the field that was first; both are shown.
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.Volumes {
		setVolumeDefaults(&s.Volumes[i])
	}
	for _, list := range [...][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			setContainerDefaults(&list[i], s.HostNetwork && !template)
			// Requests are the pod's business: the template shows what its author
			// wrote.
			if !template {
				requestsFromLimits(&list[i].Resources)
			}
		}
	}
	DefaultEphemeral(s)
	if !template {
		setPodRequestDefaults(s)
	}
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		fields.DefaultPtr(&t.NodeAffinityPolicy, v1.NodeInclusionPolicyHonor)
		fields.DefaultPtr(&t.NodeTaintsPolicy, v1.NodeInclusionPolicyIgnore)
	}
}

// DefaultTemplate fills in what a pod template left out. What is a default
// of pods only (requests from limits, service links, host ports) the pods that
// are made of it get (pkg/apis/core/v1/defaults.go SetDefaults_PodSpec).
func DefaultTemplate(t *v1.PodTemplateSpec, on features.Gates) {
	setPodSpecDefaults(&t.Spec, true)
	DropDisabled(&t.Spec, on)
}

// DefaultResize fills in what a resize left out. Requests follow limits there as at
// creation; nothing else is a resize's to default.
func DefaultResize(s *v1.PodSpec) {
	for _, list := range [...][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			requestsFromLimits(&list[i].Resources)
		}
	}
	setPodRequestDefaults(s)
}

// setPodRequestDefaults sets the pod-level requests that are missing, if there
// are pod-level limits: to what the containers request in sum, or else to the
// limits. It is for pod-level resources (KEP-2837). Huge pages are left out, since their sum need
// not be what the pod is limited to.
func setPodRequestDefaults(s *v1.PodSpec) {
	r := s.Resources
	if r == nil {
		return
	}
	setPodPageLimits(s, r)
	if len(r.Limits) == 0 {
		return
	}
	sum := resourcehelper.AggregateContainerRequests(&v1.Pod{Spec: *s}, resourcehelper.PodResourcesOptions{})
	for _, name := range fields.SortedKeys(sum) {
		if _, ok := r.Requests[name]; ok || !resourcehelper.IsSupportedPodLevelResource(name) || isHugePages(name) {
			continue
		}
		if r.Requests == nil {
			r.Requests = v1.ResourceList{}
		}
		r.Requests[name] = sum[name].DeepCopy()
	}
	for _, name := range fields.SortedKeys(r.Limits) {
		if _, ok := r.Requests[name]; ok || !resourcehelper.IsSupportedPodLevelResource(name) {
			continue
		}
		if r.Requests == nil {
			r.Requests = v1.ResourceList{}
		}
		r.Requests[name] = r.Limits[name].DeepCopy()
	}
}

// setPodPageLimits sets the pod-level limits of huge pages to those of the containers in
// sum, unless the pod says something itself (defaultHugePagePodLimits).
func setPodPageLimits(s *v1.PodSpec, r *v1.ResourceRequirements) {
	if len(r.Limits)+len(r.Requests) == 0 {
		return
	}
	sum := resourcehelper.AggregateContainerLimits(&v1.Pod{Spec: *s}, resourcehelper.PodResourcesOptions{})
	for _, name := range fields.SortedKeys(sum) {
		_, requested := r.Requests[name]
		_, limited := r.Limits[name]
		if requested || limited || !isHugePages(name) {
			continue
		}
		if r.Limits == nil {
			r.Limits = v1.ResourceList{}
		}
		r.Limits[name] = sum[name].DeepCopy()
	}
}

// DefaultEphemeral fills in what ephemeral containers left out. They come by a
// subresource, too, where nothing else is defaulted. What they may not have is completed
// before it is refused.
func DefaultEphemeral(s *v1.PodSpec) {
	for i := range s.EphemeralContainers {
		setContainerDefaults((*v1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon), false)
	}
}

// setContainerDefaults is SetDefaults_Container with those of its parts. With the
// host's network a port of the container is one of the host; templates leave that
// to their pods. Ports that are declared are for information, but for host ports.
func setContainerDefaults(c *v1.Container, hostNetwork bool) {
	fields.Default(&c.ImagePullPolicy, PullPolicy(c.Image))
	fields.Default(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	fields.Default(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		fields.Default(&c.Ports[i].Protocol, v1.ProtocolTCP)
		if hostNetwork {
			fields.Default(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	setEnvDefaults(c)
	setProbeDefaults(c.LivenessProbe)
	setProbeDefaults(c.ReadinessProbe)
	setProbeDefaults(c.StartupProbe)
	if c.Lifecycle != nil {
		for _, h := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				setHTTPDefaults(h.HTTPGet)
			}
		}
	}
}

// setEnvDefaults is that of SetDefaults_ObjectFieldSelector and of optional files.
func setEnvDefaults(c *v1.Container) {
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			if from.FieldRef != nil {
				fields.Default(&from.FieldRef.APIVersion, "v1")
			}
			if from.FileKeyRef != nil {
				fields.DefaultPtr(&from.FileKeyRef.Optional, false)
			}
		}
	}
}

// requestsFromLimits sets the requests that are missing to the limits
// (SetDefaults_Pod): that is how a pod with limits alone becomes Guaranteed. A request of zero
// that was said stays zero.
func requestsFromLimits(r *v1.ResourceRequirements) {
	for name, q := range r.Limits { //drydock:unordered fills a map
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = v1.ResourceList{}
			}
			r.Requests[name] = q.DeepCopy()
		}
	}
}

// setProbeDefaults is SetDefaults_Probe. The delay and the grace period have no
// default: zero and the pod's.
func setProbeDefaults(p *v1.Probe) {
	if p == nil {
		return
	}
	fields.Default(&p.TimeoutSeconds, 1)
	fields.Default(&p.PeriodSeconds, 10)
	fields.Default(&p.SuccessThreshold, 1)
	fields.Default(&p.FailureThreshold, 3)
	setHTTPDefaults(p.HTTPGet)
	if p.GRPC != nil {
		fields.DefaultPtr(&p.GRPC.Service, "")
	}
}

// setHTTPDefaults is SetDefaults_HTTPGetAction.
func setHTTPDefaults(h *v1.HTTPGetAction) {
	if h == nil {
		return
	}
	fields.Default(&h.Path, "/")
	fields.Default(&h.Scheme, v1.URISchemeHTTP)
}

// PullPolicy is Always for the tag latest, which is also what no tag and no
// digest mean; else IfNotPresent. A name that cannot be parsed is refused elsewhere, if at all.
func PullPolicy(image string) v1.PullPolicy {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return v1.PullIfNotPresent
	}
	tagged, hasTag := ref.(reference.Tagged)
	_, hasDigest := ref.(reference.Digested)
	if hasTag && tagged.Tag() == "latest" || !hasTag && !hasDigest {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

// setVolumeDefaults is SetDefaults_Volume with those of the sources. A volume
// without any is an emptyDir. Modes are 0644, as octal constants of core/v1.
func setVolumeDefaults(v *v1.Volume) {
	src := &v.VolumeSource
	if *src == (v1.VolumeSource{}) {
		src.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	switch {
	case src.Secret != nil:
		fields.DefaultPtr(&src.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	case src.ConfigMap != nil:
		fields.DefaultPtr(&src.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	case src.DownwardAPI != nil:
		fields.DefaultPtr(&src.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		setItemDefaults(src.DownwardAPI.Items)
	case src.Projected != nil:
		fields.DefaultPtr(&src.Projected.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
		for i := range src.Projected.Sources {
			p := &src.Projected.Sources[i]
			if p.ServiceAccountToken != nil {
				fields.DefaultPtr(&p.ServiceAccountToken.ExpirationSeconds, int64(3600))
			}
			if p.DownwardAPI != nil {
				setItemDefaults(p.DownwardAPI.Items)
			}
		}
	case src.HostPath != nil:
		fields.DefaultPtr(&src.HostPath.Type, v1.HostPathUnset)
	case src.Image != nil:
		fields.Default(&src.Image.PullPolicy, PullPolicy(src.Image.Reference))
	case src.Ephemeral != nil && src.Ephemeral.VolumeClaimTemplate != nil:
		fields.DefaultPtr(&src.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	case src.ISCSI != nil:
		fields.Default(&src.ISCSI.ISCSIInterface, "default")
	}
}

// setItemDefaults gives the fields that files are made of their version.
func setItemDefaults(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			fields.Default(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}
