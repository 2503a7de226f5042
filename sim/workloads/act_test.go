package workloads

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// patch applies a merge patch to what may not be there.
func (r *run) patch(kind apiserver.Kind, ns, name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	_, _ = r.c.API().Patch(kind, ns, name, types.MergePatchType, data, "")
}

type object = map[string]any

func (r *run) create(obj apiserver.Object) {
	if _, err := r.c.API().Create(obj); err != nil {
		r.refused = append(r.refused, fmt.Sprintf("%v %s: %v", r.c.Now(), obj.GetName(), err))
	}
}

func (r *run) delete(kind apiserver.Kind, ns, name string, policy metav1.DeletionPropagation) {
	opts := metav1.DeleteOptions{}
	if policy != "" {
		opts.PropagationPolicy = &policy
	}
	_ = r.c.API().Delete(kind, ns, name, opts)
}

// evict asks for an eviction.
func (r *run) evict(p *v1.Pod) {
	if err := r.c.API().Evict(p.Namespace, p.Name, metav1.DeleteOptions{}); apierrors.IsTooManyRequests(err) {
		r.count.refusedEvictions++
	}
}

// pick returns the k-th of the pods of a namespace and workload that are not going.
func (r *run) pick(w *workload, k int) *v1.Pod {
	var pods []*v1.Pod
	for _, p := range r.c.API().Pods() {
		if p.DeletionTimestamp == nil && p.Namespace == w.ns && p.Labels["app"] == w.name {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return int(a.CreationTimestamp.Sub(b.CreationTimestamp.Time)) })
	return pods[k%len(pods)]
}

func (m *maker) node() string { return m.plan.nodes[m.IntN(len(m.plan.nodes))].Name }

// act draws something that is done.
func (m *maker) act(at time.Duration) {
	w, k := m.work[m.IntN(len(m.work))], m.IntN(10)
	switch m.IntN(22) {
	case 0, 1, 2:
		if w.scales() {
			n := m.between(0, 8)
			m.step(at, func(r *run) { r.patch(w.kind, w.ns, w.name, object{"spec": object{"replicas": n}}) }, "%v is scaled to %d", w, n)
		}
	case 3, 4, 5:
		m.rollOut(w, at)
	case 6:
		m.step(at, func(r *run) {
			if p := r.pick(w, k); p != nil {
				r.delete(apiserver.KindPod, p.Namespace, p.Name, "")
			}
		}, "a pod of %v is deleted", w)
	case 7, 8, 9:
		for i := range m.between(1, 4) {
			m.step(at+time.Duration(i)*m.seconds(0, 3), func(r *run) {
				if p := r.pick(w, k+i); p != nil {
					r.evict(p)
				}
			}, "a pod of %v is evicted", w)
		}
	case 10, 11:
		m.drain(at)
	case 12, 13:
		m.kill(at)
	case 14:
		policy := one(m, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
		m.step(at, func(r *run) { r.delete(w.kind, w.ns, w.name, policy) }, "%v is deleted, %s", w, policy)
	case 15:
		n := m.node()
		m.cordon(n, at, true)
		if m.chance(70) {
			m.cordon(n, at+m.seconds(10, 200), false)
		}
	case 16:
		m.taint(at)
	case 17:
		n, disk := m.node(), one(m, "ssd", "hdd")
		m.step(at, func(r *run) {
			r.patch(apiserver.KindNode, "", n, object{"metadata": object{"labels": object{"disk": disk}}})
		}, "node %s has disk %s", n, disk)
	case 18:
		m.step(at, func(r *run) {
			if p := r.pick(w, k); p != nil {
				r.patch(apiserver.KindPod, p.Namespace, p.Name, object{"metadata": object{"labels": object{"app": "stray"}}})
			}
		}, "a pod of %v gets another label", w)
	case 19:
		m.pause(w, at)
	case 20:
		part := one(m, controlplane.Scheduler, controlplane.ControllerManager)
		m.step(at, func(r *run) { r.c.ControlPlane().Stop(part) }, "%s stops", part)
		m.step(at+m.seconds(1, 20), func(r *run) { r.c.ControlPlane().Start(part) }, "%s starts", part)
	case 21:
		end := func() {}
		m.step(at, func(r *run) { end = r.c.API().AddFault(apiserver.Fault{Refuse: true, Probability: 0.4}) }, "the API refuses two of five requests")
		m.step(at+m.seconds(1, 8), func(r *run) { end(); end = func() {} }, "the API refuses none")
	}
}

// rollOut changes a workload's template.
func (m *maker) rollOut(w *workload, at time.Duration) {
	image := one(m, "steady:2", "steady:3", "slow:2", "slow:3", "flaky:2", "broken:2")
	if w.kind == apiserver.KindJob || w.kind == apiserver.KindCronJob || w.kind == apiserver.KindReplicaSet {
		return
	}
	container := object{"name": "main", "image": image, "resources": object{"requests": object{"cpu": one(m, "100m", "300m", "1"), "memory": "128Mi"}}}
	if image[0] == 's' && image[1] == 'l' || image[0] == 'b' {
		container["readinessProbe"] = object{"periodSeconds": 2, "tcpSocket": object{"port": 80}}
	}
	m.step(at, func(r *run) {
		r.patch(w.kind, w.ns, w.name, object{"spec": object{"template": object{"spec": object{"containers": []object{container}}}}})
	}, "%v rolls out %s", w, image)
}

func (m *maker) pause(w *workload, at time.Duration) {
	field := ""
	switch w.kind {
	case apiserver.KindDeployment:
		field = "paused"
	case apiserver.KindJob, apiserver.KindCronJob:
		field = "suspend"
	default:
		return
	}
	set := func(at time.Duration, on bool) {
		m.step(at, func(r *run) { r.patch(w.kind, w.ns, w.name, object{"spec": object{field: on}}) }, "%v: %s %v", w, field, on)
	}
	set(at, true)
	if m.chance(75) {
		set(at+m.seconds(5, 150), false)
	}
}

func (m *maker) cordon(n string, at time.Duration, on bool) {
	m.step(at, func(r *run) { r.patch(apiserver.KindNode, "", n, object{"spec": object{"unschedulable": on}}) }, "node %s: unschedulable %v", n, on)
}

// drain cordons a node and evicts what is on it, as kubectl does: again after 5 s what was refused.
func (m *maker) drain(at time.Duration) {
	n := m.node()
	m.cordon(n, at, true)
	for i := range m.between(2, 20) {
		m.step(at+time.Duration(5*i)*time.Second, func(r *run) {
			for _, p := range slices.Clone(r.c.API().Pods()) {
				if ref := metav1.GetControllerOf(p); p.Spec.NodeName == n && p.DeletionTimestamp == nil && (ref == nil || ref.Kind != "DaemonSet") {
					r.evict(p)
				}
			}
		}, "node %s is drained", n)
	}
	if m.chance(60) {
		m.cordon(n, at+m.seconds(60, 200), false)
	}
}

// kill takes a node's kubelet, or its power. It may come back, or its Node may go.
func (m *maker) kill(at time.Duration) {
	n := m.node()
	if m.chance(40) {
		down := m.seconds(5, 400)
		m.step(at, func(r *run) { r.c.Node(n).PowerCut(down) }, "node %s is without power for %v", n, down)
		return
	}
	m.step(at, func(r *run) { r.kubelet(n, false) }, "node %s: its kubelet dies", n)
	if m.chance(25) {
		m.step(at+m.seconds(1, 100), func(r *run) {
			if r.dead[n] {
				r.delete(apiserver.KindNode, "", n, "")
			}
		}, "Node %s is deleted", n)
	}
	if m.chance(60) {
		m.step(at+m.seconds(5, 400), func(r *run) { r.kubelet(n, true) }, "node %s: its kubelet lives", n)
	}
}

func (m *maker) taint(at time.Duration) {
	n, t := m.node(), one(m, v1.Taint{Key: "outage", Effect: v1.TaintEffectNoExecute}, v1.Taint{Key: "dedicated", Value: "batch", Effect: v1.TaintEffectNoSchedule},
		v1.Taint{Key: "soft", Effect: v1.TaintEffectPreferNoSchedule})
	set := func(at time.Duration, on bool) {
		m.step(at, func(r *run) {
			node := r.c.API().Node(n)
			if node == nil {
				return
			}
			node = node.DeepCopy()
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
			if on {
				node.Spec.Taints = append(node.Spec.Taints, t)
			}
			_, _ = r.c.API().Update(node, "")
		}, "node %s: taint %s:%s %v", n, t.Key, t.Effect, on)
	}
	set(at, true)
	if m.chance(70) {
		set(at+m.seconds(3, 120), false)
	}
}

// kubelet has a node's kubelet die or live.
func (r *run) kubelet(n string, live bool) {
	r.dead[n] = !live
	if node := r.c.Node(n); live {
		node.StartKubelet()
	} else {
		node.StopKubelet()
	}
}

// settle is the last that is done: what goes on for ever ends, and everything that is needed runs.
func (r *run) settle() {
	for _, part := range []string{controlplane.Scheduler, controlplane.ControllerManager} {
		r.c.ControlPlane().Start(part)
	}
	for _, cj := range apiserver.Objects[*batchv1.CronJob](r.c.Store(), apiserver.KindCronJob) {
		r.patch(apiserver.KindCronJob, cj.Namespace, cj.Name, object{"spec": object{"suspend": true}})
	}
}

// nodeOptions returns a node's options with what its containers do.
func nodeOptions(o sim.NodeOptions) sim.NodeOptions {
	o.Runtime.Programs = programs()
	return o
}
