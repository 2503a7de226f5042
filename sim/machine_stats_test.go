package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim"
)

const mib = 1 << 20

// memoryNode is a cluster of a node with 2 GiB, on which pods run that use as
// much memory as their name says, in MiB ("p300"); those of limits have one.
func memoryNode(t *testing.T, opts sim.NodeOptions, programs []fakecri.Program, pods map[string]string) (*sim.Cluster, *sim.Node) {
	t.Helper()
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	opts.Name = "w"
	opts.Capacity = v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi")}
	opts.Kubelet = &kubeletconfig.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"}}
	opts.Runtime.Programs = programs
	n, err := c.AddNode(opts)
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range pods {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{NodeName: "w", Containers: []v1.Container{{Name: "app", Image: "app:1", Command: []string{"/bin/server"}}}}}
		if limit != "" {
			pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse(limit), v1.ResourceCPU: resource.MustParse("100m")}
		}
		c.At(time.Second, func() {
			if _, err := c.API().Create(pod); err != nil {
				panic(err)
			}
		})
	}
	return c, n
}

func systemOOMs(c *sim.Cluster) (out []string) {
	for _, ev := range c.API().Events() {
		if ev.Reason == "SystemOOM" {
			out = append(out, fmt.Sprintf("%s %s %s/%s: %s", ev.Type, ev.Source.Component, ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.Message))
		}
	}
	return out
}

func programs(memory map[string]*usage.Curve) (out []fakecri.Program) {
	for _, name := range []string{"a", "b", "c"} {
		if m := memory[name]; m != nil {
			out = append(out, fakecri.Program{Match: fakecri.Match{Pod: name}, Behaviour: fakecri.Behaviour{Memory: m}})
		}
	}
	return out
}

func TestSystemOOMIsTheMachinesOnly(t *testing.T) {
	step, err := usage.Steps([]usage.Point{{Value: 100 * mib}, {At: time.Minute, Value: 1700 * mib}, {At: time.Minute + 100*time.Millisecond, Value: 100 * mib}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		system   *usage.Curve
		programs map[string]*usage.Curve
		pods     map[string]string
		dies     string
		events   int
	}{
		{"the machine's", step, map[string]*usage.Curve{"a": usage.Constant(300 * mib), "b": usage.Constant(200 * mib)}, map[string]string{"a": "", "b": "400Mi"}, "a", 1},
		{"a container's limit", nil, map[string]*usage.Curve{"a": usage.Constant(300 * mib), "b": usage.Ramp(0, 500*mib, time.Minute)}, map[string]string{"a": "", "b": "400Mi"}, "b", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, _ := memoryNode(t, sim.NodeOptions{Usage: sim.MachineUsage{Memory: tc.system}}, programs(tc.programs), tc.pods)
			if err := c.RunUntil(80 * time.Second); err != nil {
				t.Fatal(err)
			}
			for _, pod := range c.API().Pods() {
				s := pod.Status.ContainerStatuses[0]
				if pod.Name != tc.dies {
					if s.RestartCount != 0 || s.LastTerminationState.Terminated != nil {
						t.Errorf("pod %s: %+v", pod.Name, s)
					}
				} else if end := s.LastTerminationState.Terminated; end == nil || end.ExitCode != 137 || end.Reason != "OOMKilled" {
					t.Errorf("pod %s: %+v", pod.Name, s)
				}
			}
			got := systemOOMs(c)
			if len(got) != tc.events {
				t.Fatalf("events %q", got)
			}
			const want = "Warning kubelet Node/w: System OOM encountered, victim process: server, pid: "
			if tc.events > 0 && (!strings.HasPrefix(got[0], want) || got[0] == want+"0") {
				t.Errorf("the event is %q", got[0])
			}
		})
	}
}
