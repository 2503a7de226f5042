package sim

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// TestUnregisteredResource has bound pods ask for resources of which the node has one by a
// plugin, one as capacity and one not at all: all run, and the last is warned of.
func TestUnregisteredResource(t *testing.T) {
	c, err := New(Options{Seed: 1, Workers: 1, ControlPlane: controlplane.Options{Disable: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var warnings []string
	c.Records(func(r *trace.Record) {
		if r.Kind == trace.KindWarning && strings.Contains(r.Verb, "device plugin") {
			warnings = append(warnings, r.Verb)
		}
	})
	one := resource.MustParse("1")
	n, err := c.AddNode(NodeOptions{Name: "n", Plugins: &plugins.Options{}, Capacity: v1.ResourceList{"example.com/there": one}})
	if err != nil {
		t.Fatal(err)
	}
	n.Plugins().StartDevice(plugins.Device{Resource: "example.com/plugged", Devices: healthyDevices(1), Reregister: true})
	if err := c.RunUntil(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plugged", "there", "nowhere"} {
		list := v1.ResourceList{v1.ResourceName("example.com/" + name): one, v1.ResourceCPU: one}
		if _, err := c.API().Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PodSpec{NodeName: "n",
			Containers: []v1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", "900"}, Resources: v1.ResourceRequirements{Limits: list, Requests: list}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RunUntil(time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, pod := range c.API().Pods() {
		if pod.Status.Phase != v1.PodRunning {
			t.Errorf("%s: %s %s", pod.Name, pod.Status.Phase, pod.Status.Message)
		}
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "pod default/nowhere: container c asks for example.com/nowhere, which no device plugin of node n offers") {
		t.Errorf("warnings: %q", warnings)
	}
}
