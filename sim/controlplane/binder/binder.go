package binder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/loop"
)

// retryInterval is the least time between two tries of pods that did not fit:
// kube-scheduler's first back-off.
const retryInterval = time.Second

// Options configure a Binder.
type Options struct {
	// Server is the API; the binder runs on its loop.
	Server *apiserver.Server
	// Delay is the time from a pod's creation to its binding. Zero binds in
	// the next step of the loop.
	Delay time.Duration
	// SchedulerName is whose pods are bound. Zero means default-scheduler.
	SchedulerName string
}

// Binder binds pods.
type Binder struct {
	opts    Options
	srv     *apiserver.Server
	l       *loop.Loop
	nodes   map[string]*nodeInfo
	order   []*nodeInfo // by age
	heap    heap
	classes map[*v1.Container]*class
	fresh   []key // pods not yet tried
	waiting []key // pods that fitted nowhere, in the order of trying
	known   map[types.UID]bool
	timer   *loop.Timer
	retry   *loop.Timer
	wave    uint64
	last    time.Time
	aged    int
}

type key struct {
	namespace, name string
	uid             types.UID
	priority        int32
}

// New returns a binder that works from now on, also on the pods that are there.
func New(opts Options) *Binder {
	if opts.SchedulerName == "" {
		opts.SchedulerName = v1.DefaultSchedulerName
	}
	b := &Binder{
		opts: opts, srv: opts.Server, l: opts.Server.Loop(),
		nodes: map[string]*nodeInfo{}, classes: map[*v1.Container]*class{}, known: map[types.UID]bool{},
	}
	b.timer = b.l.Root().NewTimer("binder", b.bindFresh)
	b.retry = b.l.Root().NewTimer("binder retry", b.bindWaiting)
	for _, n := range b.srv.Nodes() {
		b.onNode(n, nil)
	}
	for _, p := range b.srv.Pods() {
		b.onPod(p, nil)
	}
	b.srv.OnChange(b.onChange)
	return b
}

// Pending returns how many pods wait for a node.
func (b *Binder) Pending() int { return len(b.known) }

func (b *Binder) onChange(c apiserver.Change) {
	switch c.Kind {
	case apiserver.KindNode:
		if c.Type == watch.Deleted {
			b.dropNode(c.New.GetName())
			return
		}
		b.onNode(c.New.(*v1.Node), c.Old)
	case apiserver.KindPod:
		if c.Type == watch.Deleted {
			b.onPod(nil, c.Old.(*v1.Pod))
			return
		}
		var old *v1.Pod
		if c.Old != nil {
			old = c.Old.(*v1.Pod)
		}
		b.onPod(c.New.(*v1.Pod), old)
	}
}

func (b *Binder) onNode(node *v1.Node, _ apiserver.Object) {
	n := b.info(node.Name)
	if n.set(node) {
		b.heap.fix(n)
		b.tryAgain()
	}
}

// info returns what is kept of a node. Pods may name a node before it is there.
func (b *Binder) info(name string) *nodeInfo {
	n := b.nodes[name]
	if n == nil {
		n = &nodeInfo{pos: -1, index: b.aged}
		b.aged++
		b.nodes[name] = n
		b.order = append(b.order, n)
	}
	return n
}

func (b *Binder) dropNode(name string) {
	n := b.nodes[name]
	if n == nil {
		return
	}
	n.node, n.ready = nil, false
	b.heap.fix(n)
	if n.used == (amounts{}) {
		delete(b.nodes, name)
		b.order = slices.DeleteFunc(b.order, func(o *nodeInfo) bool { return o == n })
	}
}

// holds tells whether a pod takes up room on a node.
func holds(p *v1.Pod) bool {
	return p != nil && p.Spec.NodeName != "" && p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed
}

func (b *Binder) onPod(pod, old *v1.Pod) {
	was, is := holds(old), holds(pod)
	switch {
	case was && !is:
		b.count(old, -1)
		b.tryAgain()
	case is && !was:
		b.count(pod, 1)
	case is && &pod.Spec.Containers[0] != &old.Spec.Containers[0]: // resized
		b.count(old, -1)
		b.count(pod, 1)
		b.tryAgain()
	}
	if pod == nil {
		delete(b.known, old.UID)
		return
	}
	if !b.ours(pod) {
		delete(b.known, pod.UID)
		return
	}
	if !b.known[pod.UID] {
		b.known[pod.UID] = true
		b.fresh = append(b.fresh, keyOf(pod))
		if !b.timer.Set() {
			b.timer.Reset(b.opts.Delay)
		}
	}
}

func keyOf(pod *v1.Pod) key {
	k := key{pod.Namespace, pod.Name, pod.UID, 0}
	if pod.Spec.Priority != nil {
		k.priority = *pod.Spec.Priority
	}
	return k
}

// ours tells whether a pod is to be bound.
func (b *Binder) ours(p *v1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Spec.SchedulerName == b.opts.SchedulerName && len(p.Spec.SchedulingGates) == 0
}

func (b *Binder) count(p *v1.Pod, sign int64) {
	n := b.info(p.Spec.NodeName)
	n.add(b.class(p), sign)
	b.heap.fix(n)
}

// class returns what pods that share p's containers have in common.
func (b *Binder) class(p *v1.Pod) *class {
	id := &p.Spec.Containers[0]
	c := b.classes[id]
	if c == nil {
		if len(b.classes) >= 4096 {
			clear(b.classes)
		}
		c = newClass(p)
		b.classes[id] = c
	}
	return c
}

// tryAgain has the waiting pods tried again, a second after the last time.
func (b *Binder) tryAgain() {
	if len(b.waiting) > 0 && !b.retry.Set() {
		b.retry.ResetAt(b.last.Add(retryInterval))
	}
}

func (b *Binder) bindFresh() {
	todo := b.fresh
	b.fresh = nil
	b.bindAll(todo)
}

func (b *Binder) bindWaiting() {
	todo := b.waiting
	b.waiting = nil
	b.bindAll(todo)
}

// bindAll tries pods by priority, then in their order.
func (b *Binder) bindAll(todo []key) {
	b.wave++
	b.last = b.l.Now()
	slices.SortStableFunc(todo, func(x, y key) int { return int(y.priority) - int(x.priority) })
	for _, k := range todo {
		pod := b.srv.Pod(k.namespace, k.name)
		if pod == nil || pod.UID != k.uid || !b.ours(pod) {
			continue
		}
		if !b.bind(pod) {
			b.waiting = append(b.waiting, k)
		}
	}
}

func (b *Binder) bind(pod *v1.Pod) bool {
	c := b.class(pod)
	if c.failed == b.wave {
		b.unschedulable(pod, c.message)
		return false
	}
	n := b.heap.search(func(n *nodeInfo) bool {
		ok, _ := n.fits(c, pod)
		return ok
	})
	if n == nil {
		c.failed, c.message = b.wave, b.explain(c, pod)
		b.unschedulable(pod, c.message)
		return false
	}
	node := n.node.Name
	if _, err := b.srv.Bind(pod.Namespace, pod.Name, pod.UID, node); err != nil {
		return false
	}
	b.event(pod, v1.EventTypeNormal, "Scheduled", fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node))
	return true
}

// explain says why a pod fits nowhere, in kube-scheduler's words.
func (b *Binder) explain(c *class, pod *v1.Pod) string {
	counts := map[string]int{}
	total := 0
	for _, n := range b.order {
		if n.node == nil {
			continue
		}
		total++
		_, why := n.fits(c, pod)
		for _, w := range why {
			counts[w]++
		}
	}
	if total == 0 {
		return "no nodes available to schedule pods"
	}
	var parts []string
	for why, n := range counts { //drydock:unordered sorted below
		parts = append(parts, fmt.Sprintf("%d %s", n, why))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", total, strings.Join(parts, ", "))
}

// unschedulable sets the pod's condition, with an event, unless it says the
// same already.
func (b *Binder) unschedulable(pod *v1.Pod, message string) {
	want := v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message,
		ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(b.l.Now()),
	}
	conds := append([]v1.PodCondition(nil), pod.Status.Conditions...)
	found := false
	for i := range conds {
		if conds[i].Type != v1.PodScheduled {
			continue
		}
		if conds[i].Reason == want.Reason && conds[i].Message == message {
			return
		}
		if conds[i].Status == want.Status {
			want.LastTransitionTime = conds[i].LastTransitionTime
		}
		conds[i], found = want, true
	}
	if !found {
		conds = append(conds, want)
	}
	status := pod.Status
	status.Conditions = conds
	b.event(pod, v1.EventTypeWarning, "FailedScheduling", message)
	// The pod was just read on this loop: the only errors are of a pod that is gone.
	_, _ = b.srv.PatchPodStatus(pod.Namespace, pod.Name, pod.UID, &pod.Status, &status)
}

func (b *Binder) event(pod *v1.Pod, typ, reason, message string) {
	now := b.l.Now()
	ev := &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, now.UnixNano())},
		InvolvedObject: v1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Reason: reason, Message: message, Type: typ, Count: 1,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
		Source:              v1.EventSource{Component: b.opts.SchedulerName},
		ReportingController: b.opts.SchedulerName,
	}
	// A namespace that is being deleted takes no events.
	_, _ = b.srv.CreateEvent(ev)
}
