package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

const (
	// recordedNamespace is where what names no namespace is.
	recordedNamespace = "test"
	// upBefore is how long the cluster was up before a case: its nodes are Ready and without taints
	// then, and no loop of a controller's began with the case. The fraction has kubelets look at their
	// containers soon after whole seconds of the case, which is when most things end.
	upBefore = 73950 * time.Millisecond
	// sandboxTakes has a pod be Running a second after it was bound, as recorded pods are that say
	// nothing else: what else a kubelet and its runtime do for it takes the rest.
	sandboxTakes = 570 * time.Millisecond
)

// Options say how a case is replayed.
type Options struct {
	// Seed decides what a recording leaves to chance: latencies, jitter, the order of what is
	// simultaneous. With 0 latencies and jitter are the middle of their range.
	Seed uint64
}

// play is a replay in progress. It lives for one Replay.
type play struct {
	c        *Case
	cluster  *sim.Cluster
	programs *programs
	usage    *usages
	o        *observer
	zero     time.Duration
	// stated are the nodes whose status is stated instead of their kubelets', with what ends it.
	stated map[string]func()
	failed error
}

// Replay does on a simulated cluster what was done on the recorded one, and returns what was seen.
// It looks at the case's nodes, actions and times only. The same seed gives the same observation.
func (c *Case) Replay(opts Options) (*Observation, error) {
	p := &play{c: c, programs: newPrograms(), usage: newUsages(), zero: upBefore, stated: map[string]func(){}}
	o := sim.Options{Seed: opts.Seed, Typical: opts.Seed == 0, Workers: 1, Start: c.start(p.zero), APILatencyMin: 5 * time.Millisecond, APILatencyMax: 25 * time.Millisecond}
	if c.Metrics {
		o.ControlPlane = controlplane.Options{Metrics: p.usage}
	}
	cl, err := sim.New(o)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	p.cluster = cl
	cl.API().OpenDoor() // pods have service accounts, as they do wherever clients come in
	p.usage.now = func() time.Time { return cl.API().Loop().Now() }
	cl.API().OnChange(p.programs.see, apiserver.KindPod)
	p.o = newObserver(cl, p.zero)
	if err := p.replay(); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return p.o.result(), nil
}

// replay makes the cluster and does the actions. It runs in pieces, since a node can be added only
// while nothing runs.
func (p *play) replay() error {
	for i := range p.c.Nodes {
		if err := p.addNodes(&p.c.Nodes[i]); err != nil {
			return err
		}
	}
	if _, err := p.cluster.API().Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: recordedNamespace}}); err != nil {
		return err
	}
	// Registration takes a while; what a node has beyond a kubelet's flags is said then.
	if err := p.cluster.RunUntil(p.zero / 2); err != nil {
		return err
	}
	for i := range p.c.Nodes {
		if err := p.finishNodes(&p.c.Nodes[i]); err != nil {
			return err
		}
	}
	for i := range p.c.Actions {
		a := &p.c.Actions[i]
		if kind := actions[a.Do]; kind.do != nil {
			p.cluster.At(p.zero+seconds(a.At), func() { p.act(a, kind) })
			if err := p.onNode(a, kind); err != nil {
				return err
			}
			continue
		}
		if err := p.cluster.RunUntil(p.zero + seconds(a.At)); err != nil {
			return err
		}
		if err := p.joinNodes(a.Group); err != nil {
			return err
		}
	}
	if err := p.cluster.RunUntil(p.zero + seconds(p.c.Duration)); err != nil {
		return err
	}
	return p.failed
}

// onNode schedules what an action does to a node. The kubelet of a node that is deleted is gone, too.
func (p *play) onNode(a *Action, kind actionKind) error {
	name, fn := a.Node, kind.node
	if a.Do == "delete" && a.Kind == string(apiserver.KindNode) {
		name, fn = a.Name, (*sim.Node).StopKubelet
	}
	if fn == nil {
		return nil
	}
	n := p.cluster.Node(name)
	if n == nil {
		return fmt.Errorf("%s at %vs: there is no node %s", a.Do, a.At, name)
	}
	n.At(p.zero+seconds(a.At), func() { fn(n) })
	return nil
}

// start is the time at which the run begins, so that the case begins at the second of a minute at
// which it was recorded.
func (c *Case) start(zero time.Duration) time.Time {
	if c.Align == nil {
		return loop.Epoch()
	}
	begins := loop.Epoch().Add(zero)
	whole := begins.Truncate(time.Minute).Add(time.Minute + seconds(*c.Align))
	return loop.Epoch().Add(whole.Sub(begins))
}

// addNodes adds the nodes of a group. It must not be called while the cluster runs.
func (p *play) addNodes(g *NodeGroup) error {
	for _, name := range g.names() {
		n, err := p.cluster.AddNode(p.nodeOptions(g, name))
		if err != nil {
			return err
		}
		for _, f := range p.c.slowStarts() {
			n.Runtime().AddFault(f)
		}
	}
	return nil
}

// nodeOptions describe a node of a group: what kubelets keep for themselves was nothing.
func (p *play) nodeOptions(g *NodeGroup, name string) sim.NodeOptions {
	capacity := v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("8"),
		v1.ResourceMemory:           resource.MustParse("16Gi"),
		v1.ResourcePods:             resource.MustParse("110"),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	config := &kubeletconfig.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"}}
	for _, k := range resources(g.Capacity) {
		if _, ours := capacity[k]; ours {
			capacity[k] = g.Capacity[k]
		}
	}
	for _, k := range resources(g.Allocatable) {
		if whole, ours := capacity[k]; ours && k != v1.ResourcePods {
			whole.Sub(g.Allocatable[k])
			if config.SystemReserved == nil {
				config.SystemReserved = map[string]string{}
			}
			config.SystemReserved[string(k)] = whole.String()
		}
	}
	return sim.NodeOptions{
		Name: name, Labels: g.Labels, Taints: g.Taints, Capacity: capacity, Kubelet: config,
		Runtime: fakecri.Options{
			Images: p.c.images(), OnlyListedImages: true, Behave: p.programs.behave,
			Latency: map[string]fakecri.Range{"RunPodSandbox": fakecri.Exactly(sandboxTakes)},
		},
	}
}

// resources are the names of a list, sorted.
func resources(l v1.ResourceList) []v1.ResourceName {
	out := make([]v1.ResourceName, 0, len(l))
	for k := range l { //drydock:unordered sorted below
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// finishNodes says of a group's nodes what is not a kubelet's to say: resources of the cluster's
// admin, and that they are cordoned.
func (p *play) finishNodes(g *NodeGroup) error {
	more := object{}
	for _, k := range resources(g.Capacity) {
		switch k {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage:
		default:
			q := g.Capacity[k]
			more[string(k)] = q.String()
		}
	}
	for _, name := range g.names() {
		if len(more) > 0 {
			if err := p.patchNode(name, object{"status": object{"capacity": more, "allocatable": more}}, "status"); err != nil {
				return err
			}
		}
		if pods, said := g.Capacity[v1.ResourcePods]; said && pods.IsZero() { // no kubelet says that
			none := object{string(v1.ResourcePods): "0"}
			if err := p.state(name, object{"capacity": none, "allocatable": none}); err != nil {
				return err
			}
		}
		if g.Unschedulable {
			if err := p.patchNode(name, object{"spec": object{"unschedulable": true}}, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinNodes adds nodes while a case goes on. What a kubelet doesn't say follows once it has
// registered.
func (p *play) joinNodes(g *NodeGroup) error {
	if err := p.addNodes(g); err != nil {
		return err
	}
	last := g.names()[len(g.names())-1]
	done := false
	p.cluster.API().OnChange(func(c apiserver.Change) {
		if n, ok := c.New.(*v1.Node); !done && ok && n.Name == last {
			done = true
			p.cluster.At(p.cluster.Now(), func() { p.note(p.finishNodes(g)) })
		}
	}, apiserver.KindNode)
	return nil
}

// state merges a part of a node's status, and keeps its kubelet from saying otherwise: its lease and
// its pods go on.
func (p *play) state(name string, status object) error {
	if p.stated[name] == nil {
		p.stated[name] = p.cluster.API().AddFault(apiserver.Fault{Node: name, Resource: "nodes/status", Code: http.StatusServiceUnavailable})
	}
	return p.patchNode(name, object{"status": status}, "status")
}

// patchNode merges a part of a node.
func (p *play) patchNode(name string, part object, sub string) error {
	data, err := json.Marshal(part)
	if err != nil {
		return err
	}
	_, err = p.cluster.API().Patch(apiserver.KindNode, "", name, types.StrategicMergePatchType, data, sub)
	return err
}

// note keeps the first failure: what follows may come of it.
func (p *play) note(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// choose returns the pod that an action is about.
func (p *play) choose(ns string, choice *PodChoice) (*v1.Pod, error) {
	pods := p.cluster.Store().PodsInNamespace(ns)
	if choice.Name != "" {
		for _, pod := range pods {
			if pod.Name == choice.Name {
				return pod, nil
			}
		}
		return nil, fmt.Errorf("there is no pod %s/%s", ns, choice.Name)
	}
	var fit []*v1.Pod
	for _, pod := range pods {
		ref := metav1.GetControllerOf(pod)
		alive := !p.o.seenDeleted(pod) && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
		if ref == nil || !alive || choice.Node != "" && pod.Spec.NodeName != choice.Node || !ownedAs(ref.Name, choice.Owner) {
			continue
		}
		fit = append(fit, pod)
	}
	// In the order in which they were seen.
	slices.SortStableFunc(fit, func(a, b *v1.Pod) int { return p.o.names.order(a.UID) - p.o.names.order(b.UID) })
	if choice.Index >= len(fit) {
		return nil, fmt.Errorf("%s has %d pods alive, none with index %d", choice.Owner, len(fit), choice.Index)
	}
	return fit[choice.Index], nil
}
