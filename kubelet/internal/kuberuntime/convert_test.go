package kuberuntime

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// TestListedContainer: what a runtime lists without an ID or an image is left out (upstream
// toKubeContainer), as is what has no name; an image whose ID is not told has its reference for one.
func TestListedContainer(t *testing.T) {
	whole := func() *runtimeapi.Container {
		return &runtimeapi.Container{Id: "1", ImageRef: "ref", Image: &runtimeapi.ImageSpec{Image: "app:1"}, Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	}
	for name, change := range map[string]func(*runtimeapi.Container){
		"no id":       func(c *runtimeapi.Container) { c.Id = "" },
		"no image":    func(c *runtimeapi.Container) { c.Image = nil },
		"no metadata": func(c *runtimeapi.Container) { c.Metadata = nil },
	} {
		c := whole()
		change(c)
		if got, ok := listedContainer(c); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, ok := listedContainer(nil); ok {
		t.Error("nothing is a container")
	}
	c, ok := listedContainer(whole())
	if !ok || c.ID != "1" || c.Name != "main" || c.Image != "app:1" || c.ImageID != "ref" || c.State != kubecontainer.StateRunning {
		t.Errorf("%+v, %t", c, ok)
	}
	told := whole()
	told.ImageId = "sha256:1"
	if c, _ := listedContainer(told); c.ImageID != "sha256:1" || c.ImageRef != "ref" {
		t.Errorf("%+v", c)
	}
}
