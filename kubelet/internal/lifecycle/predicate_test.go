package lifecycle

import (
	"context"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

func pod(change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{}
	p.Spec.Containers = []v1.Container{{Name: "main"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func wants(list map[v1.ResourceName]string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		rl := v1.ResourceList{}
		for name, q := range list {
			rl[name] = resource.MustParse(q)
		}
		p.Spec.Containers[0].Resources.Requests = rl
	}
}

func port(n int32, ip string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: n, HostIP: ip}} }
}

func node(change ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{}
	n.Name = "node-0"
	n.Labels = map[string]string{"disk": "hdd"}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("10Gi"), v1.ResourcePods: resource.MustParse("2"),
		"example.com/gpu": resource.MustParse("1"),
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func taint(effect v1.TaintEffect) func(*v1.Node) {
	return func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "k", Effect: effect}} }
}

func TestPredicates(t *testing.T) {
	static := func(p *v1.Pod) {
		p.Annotations = map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}
	}
	selector := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }
	other := pod(wants(map[v1.ResourceName]string{"cpu": "100m", "memory": "900Mi"}))
	for _, tc := range []struct {
		name            string
		pod             *v1.Pod
		others          []*v1.Pod
		node            *v1.Node
		reason, message string
	}{
		{name: "fits", pod: pod(wants(map[v1.ResourceName]string{"cpu": "1900m"})), others: []*v1.Pod{other}},
		{name: "cpu", pod: pod(wants(map[v1.ResourceName]string{"cpu": "100"})), others: []*v1.Pod{other}, reason: "OutOfcpu",
			message: "Node didn't have enough resource: cpu, requested: 100000, used: 100, capacity: 2000"},
		{name: "memory goes before the selector", pod: pod(wants(map[v1.ResourceName]string{"memory": "200Mi"}), selector), others: []*v1.Pod{other},
			reason: "OutOfmemory", message: "Node didn't have enough resource: memory, requested: 209715200, used: 943718400, capacity: 1073741824"},
		{name: "storage", pod: pod(wants(map[v1.ResourceName]string{"ephemeral-storage": "11Gi"})), reason: "OutOfephemeral-storage",
			message: "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240"},
		{name: "pods", pod: pod(), others: []*v1.Pod{pod(), pod()}, reason: "OutOfpods",
			message: "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"},
		{name: "extended resource", pod: pod(wants(map[v1.ResourceName]string{"example.com/gpu": "2"})), reason: "OutOfexample.com/gpu",
			message: "Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1"},
		{name: "an unknown extended resource is ignored", pod: pod(wants(map[v1.ResourceName]string{"example.com/fpga": "2"}))},
		{name: "selector", pod: pod(selector), reason: "NodeAffinity",
			message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{name: "host port", pod: pod(port(80, "10.0.0.1")), others: []*v1.Pod{pod(port(80, ""))}, reason: "NodePorts",
			message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{name: "host port on another address", pod: pod(port(80, "10.0.0.1")), others: []*v1.Pod{pod(port(80, "10.0.0.2"))}},
		{name: "NoExecute", pod: pod(), node: node(taint(v1.TaintEffectNoExecute)), reason: "TaintToleration",
			message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{name: "NoExecute and a static pod", pod: pod(static), node: node(taint(v1.TaintEffectNoExecute))},
		{name: "NoSchedule is not the kubelet's", pod: pod(), node: node(taint(v1.TaintEffectNoSchedule))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := tc.node
			if n == nil {
				n = node()
			}
			p := &Predicates{Node: func() (*v1.Node, error) { return n, nil }}
			r := p.Admit(context.Background(), &PodAdmitAttributes{Pod: tc.pod, OtherPods: func() []*v1.Pod { return tc.others }})
			if r.Admit != (tc.reason == "") || r.Reason != tc.reason || r.Message != tc.message {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestAffinityAsksTheAPIOnce(t *testing.T) {
	asked := 0
	p := &Predicates{
		Node:      func() (*v1.Node, error) { return node(), nil },
		FreshNode: func(context.Context) (*v1.Node, error) { asked++; n := node(); n.Labels["disk"] = "ssd"; return n, nil },
	}
	r := p.Admit(context.Background(), &PodAdmitAttributes{Pod: pod(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })})
	if !r.Admit || asked != 1 {
		t.Errorf("got %+v after %d requests", r, asked)
	}
}

// A pod is judged alike with and without what others use at most; they are looked
// at only if that does not do.
func TestAdmitByUsage(t *testing.T) {
	n := &v1.Node{}
	n.Name = "n"
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourcePods: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("4Gi"), "example.com/x": resource.MustParse("3")}
	p := &Predicates{Node: func() (*v1.Node, error) { return n, nil }}
	port := func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} }
	cpu := func(q string) func(*v1.Pod) { return wants(map[v1.ResourceName]string{"cpu": q}) }
	mem := func(q string) func(*v1.Pod) { return wants(map[v1.ResourceName]string{"memory": q}) }
	twice := func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers...) }
	x := func(q string) func(*v1.Pod) { return wants(map[v1.ResourceName]string{"example.com/x": q}) }
	for _, tc := range []struct {
		name   string
		pod    *v1.Pod
		others []*v1.Pod
		ended  []*v1.Pod // count in the usage only
		looks  bool
	}{
		{"fits", pod(cpu("1")), []*v1.Pod{pod(cpu("500m")), pod(cpu("500m"))}, nil, false},
		{"too much", pod(cpu("1")), []*v1.Pod{pod(cpu("500m")), pod(cpu("501m"))}, nil, true},
		{"others have ended", pod(cpu("1")), []*v1.Pod{pod(cpu("500m"))}, []*v1.Pod{pod(cpu("2"))}, true},
		{"others have ended, there is room", pod(cpu("1")), []*v1.Pod{pod(cpu("500m"))}, []*v1.Pod{pod(cpu("500m"))}, false},
		{"more have ended than a number tells", pod(mem("2Gi")), []*v1.Pod{pod(mem("3Gi"))}, []*v1.Pod{pod(mem("5Ei")), pod(mem("5Ei"))}, true},
		{"more of others", pod(x("1")), []*v1.Pod{pod(x("3"))}, []*v1.Pod{pod(x("5E")), pod(x("5E"))}, true},
		{"one asked for more than a number tells", pod(mem("1Gi")), []*v1.Pod{pod(mem("4Gi"))}, []*v1.Pod{pod(mem("5Ei"), twice)}, true},
		{"too many", pod(), []*v1.Pod{pod(), pod(), pod(), pod()}, nil, true},
		{"nearly too many", pod(), []*v1.Pod{pod(), pod(), pod()}, nil, false},
		{"other resources", pod(x("2")), []*v1.Pod{pod(x("1"))}, nil, false},
		{"too much of others", pod(x("2")), []*v1.Pod{pod(x("2"))}, nil, true},
		{"a port", pod(port), []*v1.Pod{pod(port)}, nil, true},
		{"a free port", pod(port), []*v1.Pod{pod()}, nil, true},
		{"of another node", pod(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }), nil, nil, true},
	} {
		var u Usage
		for _, o := range slices.Concat(tc.others, tc.ended) {
			u.Add(o)
		}
		looks := false
		others := func() []*v1.Pod { looks = true; return tc.others }
		want := p.Admit(context.Background(), &PodAdmitAttributes{Pod: tc.pod, OtherPods: others})
		looks = false
		got := p.Admit(context.Background(), &PodAdmitAttributes{Pod: tc.pod, OtherPods: others, Usage: &u})
		if got != want || looks != tc.looks {
			t.Errorf("%s: %+v, not %+v; looks: %t", tc.name, got, want, looks)
		}
	}
}
