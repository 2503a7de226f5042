package kubelet

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
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		field := fmt.Sprintf("spec.initContainers[%d]", i)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			say(field+".restartPolicy", "sidecar containers are not supported yet")
		}
		unsupportedContainer(field, c, say)
	}
	for i := range spec.Containers {
		unsupportedContainer(fmt.Sprintf("spec.containers[%d]", i), &spec.Containers[i], say)
	}
	if len(spec.EphemeralContainers) > 0 {
		say("spec.ephemeralContainers", "ephemeral containers are not supported yet")
	}
	for i := range spec.Volumes {
		say(fmt.Sprintf("spec.volumes[%d] (%s)", i, spec.Volumes[i].Name), "volumes are not mounted yet")
	}
	if len(spec.ImagePullSecrets) > 0 {
		say("spec.imagePullSecrets", "pull secrets are not read yet")
	}
	if len(spec.ResourceClaims) > 0 {
		say("spec.resourceClaims", "dynamic resources are not prepared yet")
	}
	if spec.RuntimeClassName != nil && *spec.RuntimeClassName != "" {
		say("spec.runtimeClassName", "runtime classes are not looked up yet")
	}
	return out
}

func unsupportedContainer(field string, c *v1.Container, say func(field, what string)) {
	for _, p := range [...]struct {
		name  string
		probe *v1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if p.probe != nil {
			say(field+"."+p.name, "probes are not run yet")
		}
	}
	if l := c.Lifecycle; l != nil {
		if l.PostStart != nil {
			say(field+".lifecycle.postStart", "hooks are not run yet")
		}
		if l.PreStop != nil {
			say(field+".lifecycle.preStop", "hooks are not run yet")
		}
	}
	if len(c.VolumeMounts) > 0 {
		say(field+".volumeMounts", "volumes are not mounted yet")
	}
	if len(c.VolumeDevices) > 0 {
		say(field+".volumeDevices", "volumes are not mounted yet")
	}
	if len(c.EnvFrom) > 0 {
		say(field+".envFrom", "environment from other objects is not read yet")
	}
	for i := range c.Env {
		v := c.Env[i].ValueFrom
		if v == nil || v.FieldRef != nil || v.ResourceFieldRef != nil {
			continue
		}
		say(fmt.Sprintf("%s.env[%d].valueFrom", field, i), "environment from other objects is not read yet")
	}
}
