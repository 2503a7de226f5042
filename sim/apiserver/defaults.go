package apiserver

import (
	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults fills in what a manifest left out, in place
// (pkg/apis/core/v1/defaults.go, pkg/apis/scheduling/v1/defaults.go).
func setDefaults(obj Object) {
	switch o := obj.(type) {
	case *v1.Pod:
		SetPodDefaults(o)
	case *v1.Node:
		if o.Status.Allocatable == nil && o.Status.Capacity != nil {
			o.Status.Allocatable = o.Status.Capacity.DeepCopy()
		}
	case *v1.Secret:
		setDefault(&o.Type, v1.SecretTypeOpaque)
		for k, v := range o.StringData { //drydock:unordered fills a map
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[k] = []byte(v)
		}
		o.StringData = nil
	case *v1.Namespace:
		if o.Name != "" && o.Labels[v1.LabelMetadataName] != o.Name {
			labels := map[string]string{v1.LabelMetadataName: o.Name}
			for k, v := range o.Labels { //drydock:unordered copies a map
				if k != v1.LabelMetadataName {
					labels[k] = v
				}
			}
			o.Labels = labels
		}
	case *v1.Service:
		setServiceDefaults(&o.Spec)
	case *schedulingv1.PriorityClass:
		if o.PreemptionPolicy == nil {
			p := v1.PreemptLowerPriority
			o.PreemptionPolicy = &p
		}
	case *appsv1.Deployment:
		setDeploymentDefaults(o)
	case *appsv1.ReplicaSet:
		setReplicaSetDefaults(o)
	case *appsv1.StatefulSet:
		setStatefulSetDefaults(o)
	case *appsv1.DaemonSet:
		setDaemonSetDefaults(o)
	case *batchv1.Job:
		setJobDefaults(o)
	case *batchv1.CronJob:
		setCronJobDefaults(o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		setHPADefaults(o)
	case *discoveryv1.EndpointSlice:
		setEndpointSliceDefaults(o)
	}
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// setPtr points a nil field to v.
func setPtr[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

func setServiceDefaults(s *v1.ServiceSpec) {
	setDefault(&s.SessionAffinity, v1.ServiceAffinityNone)
	setDefault(&s.Type, v1.ServiceTypeClusterIP)
	for i := range s.Ports {
		p := &s.Ports[i]
		setDefault(&p.Protocol, v1.ProtocolTCP)
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if s.Type != v1.ServiceTypeExternalName {
		setPtr(&s.InternalTrafficPolicy, v1.ServiceInternalTrafficPolicyCluster)
	}
}

// SetPodDefaults fills in what a pod's manifest left out, in place, as the API
// server's decoding does: also static pods get it. Admission's defaults
// (tolerations, priority, service account) are not among them.
func SetPodDefaults(pod *v1.Pod) {
	setPtr(&pod.Spec.EnableServiceLinks, true)
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		*g = 1 // upstream converts it, where it has refused nothing so far
	}
	setPodSpecDefaults(&pod.Spec, false)
}

// setPodSpecDefaults fills in a pod's spec, or a template's, which has fewer
// defaults.
func setPodSpecDefaults(s *v1.PodSpec, template bool) {
	setDefault(&s.RestartPolicy, v1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, v1.DNSClusterFirst)
	setDefault(&s.SchedulerName, v1.DefaultSchedulerName)
	setPtr(&s.TerminationGracePeriodSeconds, int64(v1.DefaultTerminationGracePeriodSeconds))
	if s.SecurityContext == nil {
		s.SecurityContext = &v1.PodSecurityContext{}
	}
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	for i := range s.Volumes {
		setVolumeDefaults(&s.Volumes[i])
	}
	for _, list := range [...][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			setContainerDefaults(&list[i], s.HostNetwork && !template)
			if !template {
				requestsFromLimits(&list[i].Resources)
			}
		}
	}
	setEphemeralDefaults(s)
	if !template {
		setPodRequestDefaults(s)
	}
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		setPtr(&t.NodeAffinityPolicy, v1.NodeInclusionPolicyHonor)
		setPtr(&t.NodeTaintsPolicy, v1.NodeInclusionPolicyIgnore)
	}
}

// setResizeDefaults fills in what a resize left out.
func setResizeDefaults(s *v1.PodSpec) {
	for _, list := range [...][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			requestsFromLimits(&list[i].Resources)
		}
	}
	setPodRequestDefaults(s)
}

func setEphemeralDefaults(s *v1.PodSpec) {
	for i := range s.EphemeralContainers {
		c := (*v1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon)
		setDefault(&c.ImagePullPolicy, pullPolicy(c.Image))
		setDefault(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
		setDefault(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
		setEnvDefaults(c)
	}
}

func setContainerDefaults(c *v1.Container, hostNetwork bool) {
	setDefault(&c.ImagePullPolicy, pullPolicy(c.Image))
	setDefault(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, v1.ProtocolTCP)
		if hostNetwork {
			setDefault(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
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

func setEnvDefaults(c *v1.Container) {
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			if from.FieldRef != nil {
				setDefault(&from.FieldRef.APIVersion, "v1")
			}
			if from.FileKeyRef != nil {
				setPtr(&from.FileKeyRef.Optional, false)
			}
		}
	}
}

// requestsFromLimits sets the requests that are missing to the limits.
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

func setProbeDefaults(p *v1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	setHTTPDefaults(p.HTTPGet)
	if p.GRPC != nil {
		setPtr(&p.GRPC.Service, "")
	}
}

func setHTTPDefaults(h *v1.HTTPGetAction) {
	if h == nil {
		return
	}
	setDefault(&h.Path, "/")
	setDefault(&h.Scheme, v1.URISchemeHTTP)
}

// pullPolicy is Always for the tag latest, which is also what no tag and no
// digest mean; else IfNotPresent.
func pullPolicy(image string) v1.PullPolicy {
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

func setVolumeDefaults(v *v1.Volume) {
	src := &v.VolumeSource
	if *src == (v1.VolumeSource{}) {
		src.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	switch {
	case src.Secret != nil:
		setPtr(&src.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	case src.ConfigMap != nil:
		setPtr(&src.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	case src.DownwardAPI != nil:
		setPtr(&src.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		setItemDefaults(src.DownwardAPI.Items)
	case src.Projected != nil:
		setPtr(&src.Projected.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
		for i := range src.Projected.Sources {
			p := &src.Projected.Sources[i]
			if p.ServiceAccountToken != nil {
				setPtr(&p.ServiceAccountToken.ExpirationSeconds, int64(3600))
			}
			if p.DownwardAPI != nil {
				setItemDefaults(p.DownwardAPI.Items)
			}
		}
	case src.HostPath != nil:
		setPtr(&src.HostPath.Type, v1.HostPathUnset)
	case src.Image != nil:
		setDefault(&src.Image.PullPolicy, pullPolicy(src.Image.Reference))
	case src.Ephemeral != nil && src.Ephemeral.VolumeClaimTemplate != nil:
		setPtr(&src.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	case src.ISCSI != nil:
		setDefault(&src.ISCSI.ISCSIInterface, "default")
	}
}

func setItemDefaults(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			setDefault(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}

// isMirror tells whether the object is a mirror of a static pod.
func isMirror(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[v1.MirrorPodAnnotationKey]
	return ok
}
