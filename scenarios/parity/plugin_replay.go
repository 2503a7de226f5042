package parity

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// pluginsUpBefore is for how long the kubelet has been up when a case begins: recordings say
// at least 6 s. When the node's status goes, each 10 s, depends on it, and so when a volume is
// known to be in use.
const pluginsUpBefore = 18400 * time.Millisecond

// Replay does on a simulated node what was done on the recorded one, and returns what was
// seen. The same seed gives the same observation.
func (c *PluginCase) Replay(opts Options) (*PluginObservation, error) {
	cl, err := sim.New(sim.Options{Seed: opts.Seed, Typical: opts.Seed == 0, Workers: 1, ControlPlane: controlplane.Options{Disable: c.withoutControllers()}, Elision: loop.NoElide})
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	cl.API().OpenDoor() // pods have service accounts, whose tokens are real ones
	var o *pluginObserver
	options := recordedNodeOptions(c.Config)
	if err := (&Machine{}).use(&options); err != nil {
		return nil, err
	}
	options.Plugins = &plugins.Options{Observe: func(call plugins.Call) { o.seeCall(call) }}
	options.Created = func(call sim.Created) { o.seeCreated(call) }
	options.Runtime.CDI = map[string][]string{}
	for _, device := range [...]string{"c0", "c1", "c2", "c3", "d0", "d1", "d2", "d3"} {
		options.Runtime.CDI["plugin.test/dev="+device] = []string{"CDI_" + device + "=1"}
	}
	if n := c.Machine.NUMANodes; n > 0 {
		options.Topology = numaNodes(n, options.Capacity.Memory())
	}
	n, err := cl.AddNode(options)
	if err != nil {
		return nil, err
	}
	o = newPluginObserver(c, cl, n, opts.Warn)
	p := &pluginPlay{c: c, cluster: cl, node: n}
	if err := p.makeEarlierObjects(); err != nil {
		return nil, err
	}
	for i := range c.Actions {
		p.schedule(&c.Actions[i])
	}
	if err := cl.RunUntil(pluginsUpBefore + c.watched()); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	if p.failed != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, p.failed)
	}
	return o.result(), nil
}

// attachDetach is what recordings call the controller.
const attachDetach = "attach/detach"

// withoutControllers are the parts of the control plane that did not run.
func (c *PluginCase) withoutControllers() []string {
	if len(c.Controllers) == 0 {
		return []string{"*"}
	}
	return slices.DeleteFunc(controlplane.Names(), func(name string) bool { return name == controlplane.AttachDetach })
}

// numaNodes are so many nodes with a CPU each, which share the memory.
func numaNodes(n int, memory *resource.Quantity) *cm.Topology {
	t := &cm.Topology{}
	for i := range n {
		t.CPUs = append(t.CPUs, cm.CPU{ID: i, Core: i, Socket: i, Node: i, Uncore: i})
		node := cm.NUMANode{ID: i, Memory: memory.Value() / int64(n)}
		for k := range n {
			distance := 20
			if k == i {
				distance = 10
			}
			node.Distances = append(node.Distances, distance)
		}
		t.Nodes = append(t.Nodes, node)
	}
	return t
}

// makeEarlierObjects makes what was there before a case.
func (p *pluginPlay) makeEarlierObjects() error {
	files := &play{cluster: p.cluster, node: p.node}
	if err := files.makeMachineFiles(); err != nil {
		return err
	}
	if err := p.node.FS().MkdirAll(pluginDir+"/devinfo", 0o755); err != nil {
		return err
	}
	if err := p.node.FS().WriteFile(pluginDir+"/devinfo/info", []byte("from the plugin\n"), 0o644); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: v1.NamespaceDefault}
	service := &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []v1.ServicePort{{Name: "https", Port: 443, Protocol: v1.ProtocolTCP}}}}
	service.Name = "kubernetes"
	account := &v1.ServiceAccount{ObjectMeta: meta}
	account.Name = "default"
	ca := &v1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"ca.crt": "stand-in certificate"}}
	ca.Name = "kube-root-ca.crt"
	for _, create := range []func() error{
		func() error { _, err := p.cluster.API().Create(service); return err },
		func() error { _, err := p.cluster.API().Create(account); return err },
		func() error { _, err := p.cluster.API().Create(ca); return err },
	} {
		if err := create(); err != nil {
			return err
		}
	}
	return nil
}

// snapshots is how often what the recorder read at moments of its own is read here.
const snapshots = time.Second
