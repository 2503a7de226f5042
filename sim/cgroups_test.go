package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/sim"
)

// cgroupNode is a node of 4 CPUs, 8 GiB and 100 GiB of disk.
func cgroupNode(t *testing.T, change func(*sim.NodeOptions)) (*sim.Cluster, *sim.Node) {
	t.Helper()
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o := sim.NodeOptions{Name: "w", Kubelet: &kubeletconfig.KubeletConfiguration{}, Capacity: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}}
	if change != nil {
		change(&o)
	}
	n, err := c.AddNode(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, n
}

// manifest is a static pod with a UID; resources as YAML.
func manifest(name, resources string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, uid: %s}\nspec: {containers: [{name: main, image: app:1, resources: %s}]}\n", name, name, resources)
}

// tree prints cgroups: path, shares and weight, quota, memory and processes.
func tree(n *sim.Node) string {
	var out strings.Builder
	for _, g := range n.Cgroups() {
		mem := "max"
		if g.MemoryLimit >= 0 {
			mem = fmt.Sprintf("%dMi", g.MemoryLimit>>20)
		}
		fmt.Fprintf(&out, "%s %d/%d %d %s %d\n", g.Path, g.CPUShares, g.CPUWeight(), g.CPUQuota, mem, g.Pids)
	}
	return out.String()
}

func wantTree(t *testing.T, n *sim.Node, want ...string) {
	t.Helper()
	if got := tree(n); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestCgroupTree: the worked examples of node allocatable and of classes.
func TestCgroupTree(t *testing.T) {
	limit := int64(100)
	c, n := cgroupNode(t, func(o *sim.NodeOptions) {
		o.Kubelet.KubeReserved = map[string]string{"cpu": "100m", "memory": "500Mi", "pid": "1000"}
		o.Kubelet.SystemReserved = map[string]string{"memory": "300Mi"}
		o.Kubelet.EnforceNodeAllocatable = []string{"pods", "kube-reserved"}
		o.Kubelet.KubeReservedCgroup = "/daemons"
		o.Kubelet.PodPidsLimit = &limit
	})
	for name, resources := range map[string]string{
		"b1": "{requests: {cpu: 250m, memory: 64Mi}, limits: {cpu: 500m, memory: 128Mi}}", "b2": "{requests: {cpu: 500m}}", "e": "{}",
		"g": "{limits: {cpu: 1, memory: 1Gi}}",
	} {
		if err := n.WriteStaticPod(name+".yaml", manifest(name, resources)); err != nil {
			t.Fatal(err)
		}
	}
	if n.Cgroups() != nil {
		t.Error("there are cgroups before the kubelet has made any")
	}
	if err := c.RunUntil(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	pids := n.Cgroups()[0].Pids
	if pids <= 0 {
		t.Errorf("all pods may have %d processes", pids)
	}
	wantTree(t, n,
		fmt.Sprintf("/kubepods 3993/153 -1 7392Mi %d", pids),
		"/kubepods/burstable 768/30 -1 max -1",
		"/kubepods/besteffort 2/1 -1 max -1",
		"/kubepods/burstable/podb1 256/10 50000 128Mi 100",
		"/kubepods/burstable/podb2 512/20 -1 max 100",
		"/kubepods/besteffort/pode 2/1 -1 max 100",
		"/kubepods/podg 1024/39 100000 1024Mi 100",
		"/daemons 102/4 -1 500Mi 1000")
	if err := n.RemoveStaticPod("b1.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := c.RunUntil(120 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := tree(n); !strings.Contains(got, "/kubepods/burstable 512/20 ") || strings.Contains(got, "podb1") {
		t.Errorf("a pod that has gone is still there:\n%s", got)
	}
	n.StopKubelet()
	if n.Cgroups() != nil {
		t.Error("a kubelet that is down shows cgroups")
	}
}

// TestReservedMemory: with the gate MemoryQoS the memory that is reserved for the node's daemons is
// protected, not only limited.
func TestReservedMemory(t *testing.T) {
	for _, gate := range []bool{true, false} {
		c, n := cgroupNode(t, func(o *sim.NodeOptions) {
			o.Kubelet.FeatureGates = map[string]bool{"MemoryQoS": gate}
			o.Kubelet.KubeReserved = map[string]string{"memory": "500Mi"}
			o.Kubelet.EnforceNodeAllocatable = []string{"pods", "kube-reserved"}
			o.Kubelet.KubeReservedCgroup = "/daemons"
		})
		if err := c.RunUntil(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int64{true: 500 << 20}[gate]
		g := n.Cgroups()[len(n.Cgroups())-1]
		if g.Path != "/daemons" || g.MemoryLimit != 500<<20 || g.MemoryMin != want {
			t.Errorf("gate %t: %s has %d of %d bytes protected, want %d", gate, g.Path, g.MemoryMin, g.MemoryLimit, want)
		}
	}
}

// TestSwap: a kubelet does not start on a machine with swap unless it may, and
// then reports it.
func TestSwap(t *testing.T) {
	for _, fail := range []bool{true, false} {
		c, n := cgroupNode(t, func(o *sim.NodeOptions) {
			o.Swap, o.KubeletRestart = 8<<30, -1
			o.Kubelet.FailSwapOn = &fail
			o.Kubelet.MemorySwap.SwapBehavior = "LimitedSwap"
		})
		if err := n.WriteStaticPod("b.yaml", manifest("b", "{requests: {memory: 2Gi}}")); err != nil {
			t.Fatal(err)
		}
		if err := c.RunUntil(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		node := c.API().Node("w")
		if fail {
			if n.Kubelet() != nil || node != nil {
				t.Error("the kubelet runs although the machine has swap")
			}
			continue
		}
		if s := node.Status.NodeInfo.Swap; s == nil || *s.Capacity != 8<<30 {
			t.Errorf("the node reports %+v", s)
		}
	}
}
