package scale

import (
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// The controllers that make a class's pods.
const (
	kindDeployment  = "Deployment"
	kindReplicaSet  = "ReplicaSet"
	kindStatefulSet = "StatefulSet"
	kindJob         = "Job"
	kindDaemonSet   = "DaemonSet"
)

// LabelObject is the label of controllers' generated pods that has their object's
// number in its class.
const LabelObject = "drydock.dev/object"

// defaultReplicas is how many pods an object has of which nothing is said.
const defaultReplicas = 10

// checkController finds what does not go with the class's controller.
func (c *Class) checkController(at string, bad func(field, format string, args ...any)) {
	switch {
	case c.Controller == "" && c.Replicas != nil:
		bad(at+".replicas", "needs a controller")
	case c.Controller == kindDaemonSet && (c.Replicas != nil || c.Share > 0 || c.ArrivalRate > 0):
		bad(at, "a DaemonSet has a pod on each node: it goes with count only")
	case c.End == endExit && c.Controller != "" && c.Controller != kindJob:
		bad(at+".end", "containers of a %s are not to exit: only those of a Job are", c.Controller)
	case c.Controller == kindJob && c.End != endExit:
		bad(at+".end", "a Job's containers must exit: want end: exit and a lifetime")
	}
}

// object is the class's n-th object, with as many pods. Each object selects its
// own pods by LabelObject, so that objects of one class don't adopt each other's.
func (c *Class) object(n uint64, replicas int32, pod *v1.Pod) apiserver.Object {
	number := strconv.FormatUint(n, 10)
	labels := map[string]string{LabelClass: c.Name, LabelObject: number}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	t := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: pod.Annotations}, Spec: pod.Spec}
	for k, v := range pod.Labels { //drydock:unordered copies a map
		t.Labels[k] = v
	}
	t.Labels[LabelObject] = number
	meta := metav1.ObjectMeta{Namespace: c.namespace(), Name: c.podName(n), Labels: labels}
	switch c.Controller {
	case kindReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: t}}
	case kindStatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: t, ServiceName: c.Name}}
	case kindJob:
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Completions: &replicas, Parallelism: &replicas, Template: t}}
	case kindDaemonSet:
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: t}}
	}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: t}}
}

// object creates a class's next object and returns how many pods it is to have:
// at least one, at most so many. The size is a draw of the object's number,
// whoever asks and when.
func (g *generator) object(c *class, most int) int {
	n := c.next
	c.next++
	replicas := defaultReplicas
	if d := c.Replicas; d != nil {
		replicas = int(math.Round(min(d.quantile(draw(g.r.cfg.Seed, "scale/replicas", c.Name, n)), MaxPods)))
	}
	replicas = min(max(replicas, 1), most)
	if _, err := g.r.cluster.API().Create(c.object(n, int32(replicas), c.pod(c.amounts(g.r.cfg.Seed, n)))); err != nil {
		g.r.failed(c.namespace(), c.podName(n), err)
		g.r.result.Refused += replicas - 1
		return replicas
	}
	return replicas
}

// daemons creates the DaemonSets. They come first, as in a real cluster: their
// pods are on a node before others fill it.
func (g *generator) daemons() {
	for _, c := range g.classes {
		for range c.Count {
			if c.Controller == kindDaemonSet {
				g.object(c, 1)
			}
		}
	}
}

// watch takes note of the pods that controllers make: churn picks from them, and
// their lifetimes end. Their names are not ours to foretell, so they are taken
// from the API's changes.
func (g *generator) watch() {
	if !g.controllers {
		return
	}
	byClass := map[*Class]*class{}
	for _, c := range g.classes {
		byClass[c.Class] = c
	}
	g.r.cluster.API().OnChange(func(ch apiserver.Change) {
		if ch.Type != watch.Added {
			return
		}
		pod := ch.New.(*v1.Pod)
		if _, ok := pod.Labels[LabelObject]; !ok {
			return
		}
		c := byClass[g.byName[pod.Namespace+"/"+pod.Labels[LabelClass]]]
		if c == nil || c.Controller == "" {
			return
		}
		g.r.result.Created++
		if g.r.cfg.Churn > 0 && c.churns() {
			g.join(member{class: c.index, name: pod.Name})
		}
		if c.Lifetime != nil && c.End != endExit {
			uid := pod.UID
			g.r.after(c.lifetime(g.r.cfg.Seed, loop.Hash(0, []string{string(uid)})), func() {
				if p := g.r.cluster.API().Pod(pod.Namespace, pod.Name); p != nil && p.UID == uid && p.DeletionTimestamp == nil {
					g.r.delete(p.Namespace, p.Name)
				}
			})
		}
	}, apiserver.KindPod)
}
