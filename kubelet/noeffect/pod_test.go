package noeffect

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestUnsupported(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	p := &v1.Pod{}
	p.Spec.InitContainers = []v1.Container{{RestartPolicy: &always}}
	p.Spec.Containers = []v1.Container{{LivenessProbe: &v1.Probe{}, VolumeDevices: []v1.VolumeDevice{{}}, Env: []v1.EnvVar{
		{Name: "A", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{}}},
		{Name: "B", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{}}},
	}}}
	p.Spec.Volumes = []v1.Volume{{Name: "data"}}
	got := strings.Join(Unsupported(p), "\n")
	want := "spec.volumes[0] (data): volumes of this kind are not supported yet"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if out := Unsupported(&v1.Pod{}); out != nil {
		t.Errorf("a plain pod: %v", out)
	}
}
