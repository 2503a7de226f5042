// Package tainteviction deletes the pods that don't tolerate a NoExecute taint
// of their node, at once or when the time for which they tolerate it is over.
// It mirrors upstream's pkg/controller/tainteviction.
//
// A cluster without such taints costs a comparison of lengths per change; a
// pod that is to be deleted later is one timer.
package tainteviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// How often a deletion is tried, and how long after one another.
const (
	// Both are upstream's, for the deletion of one pod.
	retries    = 5
	retryDelay = 10 * time.Millisecond
)

// Controller is the taint eviction controller. work holds also evictions that are
// done, by their keys, until the pod is gone: a pod is deleted once. An entry of work is removed
// when the pod is gone, or when somebody cancels.
type Controller struct {
	g        *loop.Group
	api      *apiserver.Component
	l        *loop.Loop
	recorder *record.Recorder
	election *controller.Election

	tainted map[string][]v1.Taint // the NoExecute taints by node
	work    map[controller.Key]*eviction
}

// eviction is a pod that is to be deleted, or was (TimedWorker). created is when the tolerated
// time began: a taint that stays does not begin it anew.
type eviction struct {
	key     controller.Key
	created time.Time
	// timer: nil for one that is deleted at once, or was.
	timer *loop.Timer
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{
		g: opts.Group, api: opts.API, l: opts.Group.Loop(), election: opts.Election,
		tainted: map[string][]v1.Taint{}, work: map[controller.Key]*eviction{},
	}
	c.recorder = controller.NewRecorder(c.g, c.api, "taint-eviction-controller")
	c.api.Server().OnChange(c.onChange, apiserver.KindNode, apiserver.KindPod)
	return c
}

// hear runs fn one watch latency from now. The hook itself runs within the write; upstream hears
// by a watch.
func (c *Controller) hear(fn func()) { c.g.After(c.api.Delivery(), fn) }

func (c *Controller) onChange(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindNode:
		var was, is []v1.Taint
		if ch.Old != nil {
			was = ch.Old.(*v1.Node).Spec.Taints
		}
		if ch.Type != watch.Deleted {
			is = ch.New.(*v1.Node).Spec.Taints
		}
		// Slices of one version share memory: most changes of nodes are heartbeats.
		if len(was)+len(is) == 0 || len(was) == len(is) && &was[0] == &is[0] {
			return
		}
		if !equality.Semantic.DeepEqual(noExecute(was), noExecute(is)) {
			name := ch.New.GetName()
			c.hear(func() { c.nodeUpdated(name) })
		}
	case apiserver.KindPod:
		if len(c.tainted)+len(c.work) == 0 {
			return
		}
		c.podChanged(ch)
	}
}

// podChanged is PodUpdated: what matters of a pod is its node and its
// tolerations. Tolerations may be added to a running pod (core validation allows that), which can
// save it.
func (c *Controller) podChanged(ch apiserver.Change) {
	pod := ch.New.(*v1.Pod)
	if ch.Type == watch.Modified {
		old := ch.Old.(*v1.Pod)
		if old.Spec.NodeName == pod.Spec.NodeName && sameTolerations(old.Spec.Tolerations, pod.Spec.Tolerations) {
			return
		}
	}
	key := controller.KeyOf(pod)
	_, tainted := c.tainted[pod.Spec.NodeName]
	if _, scheduled := c.work[key]; tainted || scheduled {
		c.hear(func() { c.podUpdated(key) })
	}
}

func sameTolerations(a, b []v1.Toleration) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || equality.Semantic.DeepEqual(a, b))
}

// noExecute returns the NoExecute taints. Other effects are the scheduler's.
func noExecute(taints []v1.Taint) []v1.Taint {
	return lists.Filter(taints, func(t v1.Taint) bool { return t.Effect == v1.TaintEffectNoExecute })
}

// nodeUpdated is handleNodeUpdate. Pods are judged in the order in which they came to the node.
func (c *Controller) nodeUpdated(name string) {
	node := c.api.Server().Node(name)
	if node == nil {
		delete(c.tainted, name)
		return
	}
	taints := noExecute(node.Spec.Taints)
	if len(taints) == 0 {
		delete(c.tainted, name)
	} else {
		c.tainted[name] = taints
	}
	for _, pod := range slices.Clone(c.api.Server().Store().PodsOnNode(name)) {
		if len(taints) == 0 {
			c.cancel(controller.KeyOf(pod))
		} else {
			c.judge(pod, taints)
		}
	}
}

// podUpdated is handlePodUpdate.
func (c *Controller) podUpdated(key controller.Key) {
	pod := c.api.Server().Pod(key.Namespace, key.Name)
	if pod == nil {
		c.cancel(key)
		return
	}
	if taints, ok := c.tainted[pod.Spec.NodeName]; ok {
		c.judge(pod, taints)
	}
}

// judge is processPodOnNode. A pod that tolerates for a time keeps the earlier deletion, if one
// was set before.
func (c *Controller) judge(pod *v1.Pod, taints []v1.Taint) {
	key := controller.KeyOf(pod)
	now := c.l.Now()
	wait, tolerated := toleratedFor(taints, pod.Spec.Tolerations)
	if !tolerated {
		c.cancel(key)
		c.schedule(key, now, 0)
		return
	}
	if wait < 0 {
		c.cancel(key)
		return
	}
	created := now
	if e := c.work[key]; e != nil && e.timer != nil {
		if created = e.created; created.Before(now) {
			return // that one comes first
		}
		c.cancel(key)
	}
	c.schedule(key, created, wait)
}

// toleratedFor reports whether tolerations tolerate all taints, and how long:
// for the least time that one of those used gives; under 0 is for ever
// (GetMatchingTolerations, getMinTolerationTime). One taint that is not tolerated is enough to go
// at once.
func toleratedFor(taints []v1.Taint, tolerations []v1.Toleration) (time.Duration, bool) {
	least := time.Duration(-1)
	for i := range taints {
		j := slices.IndexFunc(tolerations, func(t v1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, &taints[i], false) })
		if j < 0 {
			return 0, false
		}
		if s := tolerations[j].TolerationSeconds; s != nil {
			if d := time.Duration(max(*s, 0)) * time.Second; least < 0 || d < least {
				least = d
			}
		}
	}
	return least, true
}

// schedule has a pod deleted after wait, unless it is already to be deleted or
// was (AddWork). Deletions are tasks: several may wait for the API at a time.
func (c *Controller) schedule(key controller.Key, created time.Time, wait time.Duration) {
	if _, ok := c.work[key]; ok {
		return
	}
	e := &eviction{key: key, created: created}
	c.work[key] = e
	evict := func() { c.g.Go("evict pod", func(ctx context.Context) { c.evict(ctx, e) }) }
	if wait <= 0 {
		evict()
		return
	}
	e.timer = c.g.NewTimer("evict pod", evict)
	e.timer.Reset(wait)
}

// cancel takes a deletion back and tells of it (cancelWorkWithEvent). A deletion that was carried
// out cannot be taken back, so nothing is told.
func (c *Controller) cancel(key controller.Key) {
	e, ok := c.work[key]
	if !ok {
		return
	}
	delete(c.work, key)
	if e.timer == nil {
		return
	}
	e.timer.Stop()
	c.recorder.Eventf(reference(key), v1.EventTypeNormal, "TaintManagerEviction", "Cancelling deletion of Pod %s", key.String())
}

// evict deletes a pod (deletePodHandler). One that was is remembered until it
// is gone; one that could not be is forgotten. The event comes before the deletion.
func (c *Controller) evict(ctx context.Context, e *eviction) {
	c.recorder.Eventf(reference(e.key), v1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s", e.key.String())
	var err error
	for range retries {
		if err = c.delete(ctx, e.key); err == nil {
			break
		}
		if c.l.Sleep(ctx, retryDelay) != nil {
			return
		}
	}
	if err != nil {
		c.election.Cut()
	}
	if c.work[e.key] != e {
		return
	}
	if err != nil {
		delete(c.work, e.key)
		return
	}
	e.timer = nil
}

// delete marks a pod as disrupted and deletes it (addConditionAndDeletePod). The condition is
// written first, so that the pod's owner can tell an eviction from a failure (KEP-3329).
func (c *Controller) delete(ctx context.Context, key controller.Key) error {
	pod, err := controller.Get[*v1.Pod](ctx, c.api, apiserver.KindPod, key)
	if err != nil {
		return fmt.Errorf("deleting pod %s: %w", key, err)
	}
	status, changed := controller.WithPodCondition(&pod.Status, v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation,
		Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint",
	}, c.l.Now())
	if changed {
		if err := controller.PatchPodStatus(ctx, c.api, pod, &status); err != nil {
			return err
		}
	}
	if err := controller.Delete(ctx, c.api, pod, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting pod %s: %w", key, err)
	}
	return nil
}

func reference(key controller.Key) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: key.Namespace, Name: key.Name}
}
