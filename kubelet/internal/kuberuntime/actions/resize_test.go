package actions

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

func entryOf(was map[string]string) *state.Entry {
	e := &state.Entry{Actuated: state.Resources{Containers: map[string]v1.ResourceRequirements{}}}
	for name, r := range was {
		e.Actuated.Containers[name] = podtest.Resources(r)
	}
	return e
}

func TestResizeActions(t *testing.T) {
	for _, tc := range []struct {
		name     string
		was, is  map[string]string
		policies []v1.ContainerResizePolicy // of a
		cpu, mem string                     // the order of the updates
		start    []int
		kill     string
	}{
		{name: "nothing", was: map[string]string{"a": "1/1 1Gi/1Gi"}, is: map[string]string{"a": "1/1 1Gi/1Gi"}},
		{name: "cpu", was: map[string]string{"a": "1/1 1Gi/1Gi"}, is: map[string]string{"a": "2/2 1Gi/1Gi"}, cpu: "a"},
		{name: "memory request alone", was: map[string]string{"a": "1/1 1Gi/2Gi"}, is: map[string]string{"a": "1/1 2Gi/2Gi"}, mem: "a"},
		{name: "what shrinks goes first", was: map[string]string{"a": "1/1 1Gi/1Gi", "b": "2/2 2Gi/2Gi"},
			is: map[string]string{"a": "2/2 2Gi/2Gi", "b": "1/1 1Gi/1Gi"}, cpu: "b a", mem: "b a"},
		{name: "the limit tells the direction", was: map[string]string{"a": "1/4 -/-", "b": "1/1 -/-"},
			is: map[string]string{"a": "2/3 -/-", "b": "1/2 -/-"}, cpu: "a b"},
		{name: "restart", was: map[string]string{"a": "1/1 1Gi/1Gi"}, is: map[string]string{"a": "1/1 2Gi/2Gi"},
			policies: []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}},
			start:    []int{0}, kill: "Container a resize requires restart"},
		{name: "the policy of the other resource", was: map[string]string{"a": "1/1 1Gi/1Gi"}, is: map[string]string{"a": "2/2 1Gi/1Gi"},
			policies: []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}, cpu: "a"},
		{name: "both, and one restarts", was: map[string]string{"a": "1/1 1Gi/1Gi"}, is: map[string]string{"a": "2/2 2Gi/2Gi"},
			policies: []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}},
			start:    []int{0}, kill: "Container a resize requires restart"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var h kubecontainer.Hasher
			p := podtest.Sized(tc.is)
			p.Spec.Containers[0].ResizePolicy = tc.policies
			a := Compute(Input{Pod: p, Status: podtest.Running(p, &h), Hasher: &h, Resources: entryOf(tc.was)})
			names := func(list []Update) string {
				var out []string
				for _, u := range list {
					out = append(out, u.Container.Name)
				}
				return strings.Join(out, " ")
			}
			var r Resizes
			if a.Resizes != nil {
				r = *a.Resizes
			}
			kill := ""
			for _, k := range a.ContainersToKill {
				kill += k.Message
			}
			if names(r.CPU) != tc.cpu || names(r.Memory) != tc.mem || !slices.Equal(a.ContainersToStart, tc.start) || kill != tc.kill || r.Restarts != (tc.kill != "") {
				t.Errorf("cpu %q, memory %q, start %v, kill %q", names(r.CPU), names(r.Memory), a.ContainersToStart, kill)
			}
			if a.KillPod {
				t.Error("the pod is killed")
			}
		})
	}
}
