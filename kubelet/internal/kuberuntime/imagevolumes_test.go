package kuberuntime

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

// imageHelper mounts the image volumes of containers.
type imageHelper struct{ plainHelper }

func (imageHelper) GenerateRunContainerOptions(_ context.Context, pod *v1.Pod, c *v1.Container, _ []string, _ bool) (*kubecontainer.RunContainerOptions, error) {
	out := &kubecontainer.RunContainerOptions{}
	for _, m := range c.VolumeMounts {
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.Name == m.Name {
				out.Mounts = append(out.Mounts, &runtimeapi.Mount{ContainerPath: m.MountPath, Image: &runtimeapi.ImageSpec{Image: v.Image.Reference, UserSpecifiedImage: v.Image.Reference}})
			}
		}
	}
	return out, nil
}

func TestImageVolumes(t *testing.T) {
	r := newRig(t)
	r.m.o.Helper = imageHelper{}
	r.f.absent["bad:1"] = true
	r.f.fail["PullImage bad:1"] = errors.New("refused")
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 2), 30)
	image := func(name, ref string) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: ref, PullPolicy: v1.PullIfNotPresent}}}
	}
	pod.Spec.Volumes = []v1.Volume{image("good", "data:1"), image("bad", "bad:1")}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "good", MountPath: "/d"}}
	pod.Spec.Containers[1].VolumeMounts = []v1.VolumeMount{{Name: "bad", MountPath: "/d"}}
	result := r.sync(pod)
	got := r.f.configs["c0"].Mounts
	if len(got) != 1 || got[0].Image.Image == "data:1" || got[0].Image.UserSpecifiedImage != "data:1" {
		t.Errorf("%v", got)
	}
	if r.f.configs["c1"] != nil {
		t.Error("the container without its volume was created")
	}
	last := result.SyncResults[len(result.SyncResults)-1]
	if last.Target != "c1" || !errors.Is(last.Error, kubecontainer.ErrImagePull) || last.Message != "refused" {
		t.Errorf("%v", last)
	}
	_, events := r.took()
	for _, want := range []string{
		`Pulled: Container image "data:1" already present on machine and can be accessed by the pod`,
		`Failed: Failed to pull image "bad:1": refused`, "spec.containers{c1} Failed: Error: refused",
	} {
		if !strings.Contains(events, want) {
			t.Errorf("no %s in\n%s", want, events)
		}
	}
	if !r.m.Repeats(pod) || r.m.Repeats(podtest.Pod(v1.RestartPolicyAlways, 0, 1)) {
		t.Error("what repeats")
	}
}
