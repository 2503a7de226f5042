package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// batch is how many pods are tried in one step of the loop.
const batch = 256

// Options configure a Scheduler.
type Options struct {
	// Group is what it dies with. It runs on the group's loop, the API's.
	Group *loop.Group
	// API is where it reads, binds and evicts. Events is where its events go:
	// kube-scheduler has a client of its own for them, with the same limits.
	// Nil means API.
	API, Events *apiserver.Component
	// Closed is as controller.Options.Closed: it decides which claims get node storage, at once.
	Closed bool
	// Config is what it goes by. Nil means upstream's defaults.
	Config *schedulerconfig.Config
	// Unserved, if any, is told of each scheduler name that pods without a node ask
	// for and no profile has, once.
	Unserved func(schedulerName string)
	// CycleTime is how long the scheduling of one pod takes. Zero takes no time.
	CycleTime time.Duration
}

// Scheduler assigns pods to nodes. All of it belongs to the API's loop: hooks and
// timers of that loop are the only ones who call. The scratch fields are slices
// that one cycle after the other uses again.
type Scheduler struct {
	opts     Options
	server   *apiserver.Server
	l        *loop.Loop
	queue    *queue
	profiles profiles
	// unserved are the scheduler names that Options.Unserved was told of.
	unserved map[string]bool
	// pending are the pods without a node, also those being bound.
	pending     map[types.UID]*queued
	arrivals    []arrival
	lastArrival int64 // ns
	timer       *loop.Timer
	flusher     *loop.Timer
	started     int64 // ns
	requests    pump
	recorder    *recorder

	store   *apiserver.Store
	table   nodeTable
	labels  labelIndex
	classes classTable
	devices deviceTable
	volumes volumeTable
	// waitingFor are the pods that are kept out of the queue by a claim.
	waitingFor map[types.NamespacedName][]*queued
	// start: index into the nodes where the next search begins.
	start   int
	assumed map[types.UID]*assumption
	// resized: what pods ask for while that is not what their class does.
	resized map[types.UID]*request
	// priorities counts the pods on nodes by priority.
	priorities map[int32]int
	// version: of all that decides where pods fit.
	version uint64
	events  uint64

	cycle           cycle
	feasibleScratch []*nodeInfo
	refused         []*nodeInfo
	seenScratch     []verdict
	totalScratch    []int64
	rawScratch      []rawScores
	spreadScratch   []int64
	domainScratch   [][]int64
	zoneScratch     []float64
}

// assumption is a pod that is placed and not yet bound. It takes up its room from
// the moment of the decision, so that the next cycle counts it; the binding may
// still fail (pkg/scheduler/backend/cache, AssumePod).
type assumption struct {
	pod  *v1.Pod
	node *nodeInfo
	// reserved: its claims; nil: it has none.
	reserved *reservation
	// volumes: what its claims need; nil: nothing.
	volumes *volumePlan
	// giveUp ends its waiting for volumes and devices; nil: it doesn't wait.
	giveUp context.CancelFunc
}

// New returns a scheduler that works from now on, also on the pods that are
// there. Nodes are taken over before pods: a pod on a node that is not known yet
// would make a placeholder for it.
func New(opts Options) *Scheduler {
	if opts.Config == nil {
		opts.Config = schedulerconfig.Default()
	}
	opts.Events = cmp.Or(opts.Events, opts.API)
	srv := opts.API.Server()
	s := &Scheduler{
		opts: opts, server: srv, store: srv.Store(), l: opts.Group.Loop(), queue: newQueue(opts.Config.PodInitialBackoff, opts.Config.PodMaxBackoff),
		profiles: newProfiles(opts.Config), unserved: map[string]bool{},
		pending: map[types.UID]*queued{}, assumed: map[types.UID]*assumption{},
		resized: map[types.UID]*request{}, priorities: map[int32]int{}, version: 1,
		waitingFor: map[types.NamespacedName][]*queued{}, devices: newDeviceTable(srv.Store()),
	}
	s.volumes = newVolumeTable(s)
	s.started = s.l.UnixNano()
	s.table = newNodeTable()
	s.labels = newLabelIndex(&s.table, s.store)
	s.classes = newClassTable(s.profiles, &s.table, &s.labels, s.store, s.devices.mapping)
	s.timer = opts.Group.NewTimer("kube-scheduler", s.step)
	s.flusher = opts.Group.NewTimer("kube-scheduler flush", s.flush)
	s.requests = pump{group: opts.Group, name: "kube-scheduler request"}
	s.recorder = newRecorder(opts.Group, opts.Events)
	for _, n := range s.server.Nodes() {
		s.setNode(n)
	}
	for _, svc := range apiserver.Objects[*v1.Service](s.store, apiserver.KindService) {
		s.classes.services[svc.Namespace]++
	}
	for _, c := range apiserver.Objects[*resourcev1.ResourceClaim](s.store, apiserver.KindResourceClaim) {
		s.devices.set(c.UID, c.Status.Allocation)
		if pod := extendedOwner(c); pod != "" {
			s.devices.extended[pod] = c
		}
	}
	for _, c := range apiserver.Objects[*resourcev1.DeviceClass](s.store, apiserver.KindDeviceClass) {
		s.onDeviceClass(c, nil)
	}
	for _, n := range apiserver.Objects[*storagev1.CSINode](s.store, apiserver.KindCSINode) {
		s.volumes.onCSINode(n, nil)
	}
	for _, p := range s.server.Pods() {
		s.onPod(p, nil)
	}
	s.server.OnChange(s.onChange, apiserver.KindPod, apiserver.KindNode, apiserver.KindService, apiserver.KindReplicaSet, apiserver.KindStatefulSet, apiserver.KindReplicationController, apiserver.KindNamespace, apiserver.KindPersistentVolumeClaim,
		apiserver.KindResourceClaim, apiserver.KindResourceSlice, apiserver.KindDeviceClass,
		apiserver.KindPersistentVolume, apiserver.KindStorageClass, apiserver.KindCSINode, apiserver.KindCSIStorageCapacity, apiserver.KindVolumeAttachment)
	return s
}

// Pending returns how many pods wait for a node, those being bound with them.
func (s *Scheduler) Pending() int { return len(s.pending) }

// QueueLengths returns how many pods wait to be tried, back off, and are
// unschedulable until something changes.
func (s *Scheduler) QueueLengths() (active, backoff, unschedulable int) {
	return len(s.queue.active.items) + len(s.arrivals), len(s.queue.backoff.items) + len(s.queue.errors.items), len(s.queue.unschedulable)
}

// onChange is the hook. Changes are taken over at once, as an informer that is
// never behind; what is late is the waking of pods, which takes a watch's
// latency.
func (s *Scheduler) onChange(c apiserver.Change) {
	if s.opts.Group.Dead() {
		return
	}
	switch c.Kind {
	case apiserver.KindPod:
		pod, _ := c.New.(*v1.Pod)
		old, _ := c.Old.(*v1.Pod)
		if c.Type == watch.Deleted {
			pod = nil
		}
		s.onPod(pod, old)
	case apiserver.KindNode:
		if c.Type == watch.Deleted {
			s.dropNode(c.New.GetName())
		} else {
			s.setNode(c.New.(*v1.Node))
		}
	case apiserver.KindService:
		s.classes.onService(&c)
	case apiserver.KindReplicaSet, apiserver.KindStatefulSet, apiserver.KindReplicationController:
		if c.Type != watch.Modified || controllerSelector(c.New) != controllerSelector(c.Old) {
			s.classes.selectorGen++
		}
	case apiserver.KindPersistentVolumeClaim:
		s.version++ // what a pod waits for may be another thing
		if c.Type != watch.Deleted {
			s.moved(event{kind: claimChange, volumeClaim: c.New.(*v1.PersistentVolumeClaim)})
		}
	case apiserver.KindPersistentVolume, apiserver.KindStorageClass, apiserver.KindCSINode, apiserver.KindCSIStorageCapacity, apiserver.KindVolumeAttachment:
		s.volumes.onStorage(&c)
	case apiserver.KindResourceClaim:
		s.onClaim(&c, c.Type == watch.Deleted)
	case apiserver.KindResourceSlice:
		s.devices.slicesChanged()
		if c.Type != watch.Deleted {
			s.moved(event{kind: deviceChange})
		}
	case apiserver.KindDeviceClass:
		s.devices.slicesChanged()
		class, _ := c.New.(*resourcev1.DeviceClass)
		old, _ := c.Old.(*resourcev1.DeviceClass)
		if c.Type == watch.Deleted {
			s.onDeviceClass(nil, class)
		} else {
			s.onDeviceClass(class, old)
			s.moved(event{kind: deviceChange, class: class, oldClass: old})
		}
	case apiserver.KindNamespace:
		if c.Type == watch.Modified && !sameLabels(c.New.GetLabels(), c.Old.GetLabels()) {
			s.labels.forgetTallies()
			s.classes.forget()
			s.version++
		}
	}
}

// onService counts services: what they select decides the default spreading.
func (cs *classTable) onService(c *apiserver.Change) {
	switch c.Type {
	case watch.Added:
		cs.services[c.New.GetNamespace()]++
	case watch.Deleted:
		if ns := c.New.GetNamespace(); cs.services[ns] > 1 {
			cs.services[ns]--
		} else {
			delete(cs.services, ns)
		}
	default:
		if sameLabels(c.New.(*v1.Service).Spec.Selector, c.Old.(*v1.Service).Spec.Selector) {
			return
		}
	}
	cs.selectorGen++
}

// controllerSelector returns what identifies a controller's selector.
func controllerSelector(o apiserver.Object) string {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		if o.Spec.Selector != nil {
			return labels.Set(o.Spec.Selector.MatchLabels).String()
		}
	case *appsv1.StatefulSet:
		if o.Spec.Selector != nil {
			return labels.Set(o.Spec.Selector.MatchLabels).String()
		}
	case *v1.ReplicationController:
		return labels.Set(o.Spec.Selector).String()
	}
	return ""
}

// holds reports whether a pod takes up room on a node.
func holds(p *v1.Pod) bool {
	return p != nil && p.Spec.NodeName != "" && p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed
}

// ours reports whether a pod is one to place. One that is being deleted, for which only somebody's
// finalizers wait, is one as long as it is there.
func (s *Scheduler) ours(p *v1.Pod) bool {
	return p.Spec.NodeName == "" && s.profiles.named(p.Spec.SchedulerName) != nil
}

// foreign tells of the scheduler name of a pod that no profile is for. Upstream says nothing of
// such pods: another scheduler may place them.
func (s *Scheduler) foreign(p *v1.Pod) {
	name := p.Spec.SchedulerName
	if s.opts.Unserved == nil || p.Spec.NodeName != "" || p.DeletionTimestamp != nil || s.unserved[name] || s.profiles.named(name) != nil {
		return
	}
	s.unserved[name] = true
	s.opts.Unserved(name)
}

// onPod takes a pod's change over; pod is nil when it is gone. A pod passes
// through at most three states here: without a node and ours to place, on a node,
// gone or ended. Each branch handles one way between them; the labels of the old
// version are dropped last, since counts still name them.
func (s *Scheduler) onPod(pod, old *v1.Pod) {
	// Only pods that hold room are counted; ended ones let it go at once, before
	// they are deleted.
	was, is := holds(old), holds(pod)
	switch {
	case is && !was:
		s.arrived(pod)
	case was && !is:
		n := s.table.info(old.Spec.NodeName)
		s.labels.drop(s.place(old, n, -1))
		delete(s.resized, old.UID)
		s.version++
		s.moved(event{kind: podGone, node: n, pod: old})
		s.table.release(n)
	case is && was:
		s.changed(pod, old)
	}
	if pod == nil || !s.ours(pod) {
		if pod != nil && old == nil {
			s.foreign(pod)
		}
		s.leaves(pod, old)
		return
	}
	s.known(pod, old)
}

// leaves drops a pod that is not to be placed any more: it has a node, is gone, or
// was never ours. Room that was kept for it is free.
func (s *Scheduler) leaves(pod, old *v1.Pod) {
	last := old
	if pod != nil {
		last = pod
	}
	unbound := last.Spec.NodeName == ""
	a := s.assumed[last.UID]
	if a != nil && unbound {
		s.unassume(a)
	}
	if s.forget(last.UID) && unbound && a == nil && old != nil && old.Status.NominatedNodeName != "" {
		s.moved(event{kind: denominated, pod: old})
	}
	if pod == nil && unbound {
		s.labels.drop(s.labels.of(old))
	}
}

// arrived counts a pod that has a node now, by our hand or another's. One that we
// assumed there is counted already. If somebody bound it elsewhere, the
// assumption was wrong and is taken back first.
func (s *Scheduler) arrived(pod *v1.Pod) {
	if a := s.assumed[pod.UID]; a != nil {
		// Our own binding has come back: it is counted already.
		if a.node.name == pod.Spec.NodeName {
			delete(s.assumed, pod.UID)
			a.node.assumed = slices.DeleteFunc(a.node.assumed, func(p *v1.Pod) bool { return p == a.pod })
			if !sameLabels(a.pod.Labels, pod.Labels) { // with its node's zone, say
				s.labels.drop(s.place(a.pod, a.node, -1))
				s.place(pod, a.node, 1)
				s.version++
			}
			s.moved(event{kind: podPlaced, node: a.node, pod: pod})
			return
		}
		s.unassume(a)
	}
	n := s.table.info(pod.Spec.NodeName)
	s.place(pod, n, 1)
	s.version++
	s.moved(event{kind: podPlaced, node: n, pod: pod})
}

// unassume takes a pod off the node that it was not bound to.
func (s *Scheduler) unassume(a *assumption) {
	delete(s.assumed, a.pod.UID)
	a.node.assumed = slices.DeleteFunc(a.node.assumed, func(p *v1.Pod) bool { return p == a.pod })
	s.place(a.pod, a.node, -1)
	s.version++
	s.moved(event{kind: podGone, node: a.node, pod: a.pod})
	s.table.release(a.node)
}

// changed takes over a change of a pod on a node.
func (s *Scheduler) changed(pod, old *v1.Pod) {
	n := s.table.info(pod.Spec.NodeName)
	if !sameLabels(pod.Labels, old.Labels) {
		s.labels.drop(s.place(old, n, -1))
		s.place(pod, n, 1)
		s.version++
		s.moved(event{kind: podRelabel, node: n, pod: pod, oldPod: old})
	} else if pod.DeletionTimestamp != nil && old.DeletionTimestamp == nil {
		s.labels.populate(s.labels.of(pod), n, -1, 1)
		s.version++
	}
	if &pod.Spec.Containers[0] != &old.Spec.Containers[0] || pod.Spec.Resources != old.Spec.Resources || resizing(pod) || resizing(old) {
		s.resize(pod, old, n)
	}
}

// place counts a pod in on a node (sign 1) or out (-1). It is the only way in
// which a node's sums and the counts by labels change, so what comes in by it
// goes out the same. It returns the pod's label set, for who wants to drop it.
func (s *Scheduler) place(p *v1.Pod, n *nodeInfo, sign int64) *labelSet {
	ls := s.labels.of(p)
	c := s.classes.of(p, ls)
	n.count(s.requestOf(p, c), c.ports, sign)
	live, dying := int32(sign), int32(0)
	if p.DeletionTimestamp != nil {
		live, dying = 0, live
	}
	s.labels.populate(ls, n, live, dying)
	for _, k := range c.carries {
		k.add(n, int32(sign))
	}
	priority := corev1helper.PodPriority(p)
	if s.priorities[priority] += int(sign); s.priorities[priority] == 0 {
		delete(s.priorities, priority)
	}
	return ls
}

// lowest returns the lowest priority of the pods on nodes; false: there are none.
// Preemption asks first: where nobody has a lower priority, no node need be
// tried.
func (s *Scheduler) lowest() (int32, bool) {
	var low int32
	found := false
	for p, k := range s.priorities { //drydock:unordered minimum
		if k > 0 && (!found || p < low) {
			low, found = p, true
		}
	}
	return low, found
}

// podsOn returns the pods that take up room on a node, also those that are to be
// bound to it. The slice is good until the next write.
func (s *Scheduler) podsOn(n *nodeInfo) []*v1.Pod {
	out := lists.Filter(s.store.PodsOnNode(n.name), holds)
	return append(out, n.assumed...)
}

// podOf returns the pod that waits; nil when it is gone.
func (s *Scheduler) podOf(q *queued) *v1.Pod {
	p := s.server.Pod(q.namespace, q.name)
	if p == nil || p.UID != q.uid {
		return nil
	}
	return p
}

// delivery draws how late a change is heard of.
func (s *Scheduler) delivery() time.Duration { return s.opts.API.Delivery() }

// wake has the queue worked on after d at the latest.
func (s *Scheduler) wake(d time.Duration) {
	if !s.timer.Set() || s.timer.When().Sub(s.l.Now()) > d {
		s.timer.Reset(d)
	}
}

// step tries the next pods. It gives the loop back after a batch, or after each
// pod where a cycle takes time. While the API is out of reach no watch brings
// anything, and the queue waits.
func (s *Scheduler) step() {
	if s.opts.API.Cut() {
		s.timer.Reset(time.Second) // nothing new is heard
		return
	}
	now := s.l.UnixNano()
	s.admit(now)
	if s.labels.trim(now) {
		s.classes.forget()
	}
	// The loop's other tasks get their turn after a batch, at the same virtual
	// instant.
	for range batch {
		q := s.queue.pop(now)
		if q == nil {
			break
		}
		s.schedule(q)
		if s.opts.CycleTime > 0 {
			break
		}
	}
	// What wakes the scheduler next: pods to be tried, arrivals, ends of
	// back-off.
	s.armFlush()
	if len(s.queue.active.items)+len(s.queue.backoff.items) > 0 {
		s.wake(s.opts.CycleTime)
	}
	if len(s.arrivals) > 0 {
		s.wake(max(0, time.Duration(s.arrivals[0].at-now)))
	}
	if len(s.queue.errors.items) > 0 {
		s.wake(max(0, time.Duration(s.queue.backoffEnd(s.queue.errors.items[0])+int64(backoffWindow)-now)))
	}
}

// schedule is one cycle: the pod is placed, or told why not. A pod that fits is
// assumed on its node at once and bound behind the cycle, as upstream's binding
// goroutine does.
func (s *Scheduler) schedule(q *queued) {
	pod := s.podOf(q)
	if pod == nil || !s.ours(pod) || s.assumed[q.uid] != nil {
		return
	}
	// It is in no queue then until it changes (skipPodSchedule).
	if pod.DeletionTimestamp != nil {
		s.failedScheduling(pod, fmt.Sprintf("skip schedule deleting pod: %v/%v", pod.Namespace, pod.Name))
		return
	}
	// A claim may have gone since the pod came into the queue.
	if s.gatedByClaims(q, pod) {
		q.attempts--
		s.queue.put(q, gated)
		return
	}
	cy := s.newCycle(q, pod)
	r := cy.run()
	if r.node == nil {
		s.refuse(q, pod, &r)
		return
	}
	// It no longer waits for the node that it cleared.
	s.nominate(q, "")
	a := &assumption{pod: pod, node: r.node, reserved: cy.reserve(r.node), volumes: cy.reserveVolumes(r.node)}
	s.assumed[q.uid] = a
	r.node.assumed = append(r.node.assumed, pod)
	s.place(pod, r.node, 1)
	s.version++
	binding{s, q, a}.start()
}

// refuse puts a pod aside that fits nowhere (handleSchedulingFailure). The
// plugins that refused it are noted, because only their events can make it fit
// (queueing hints). One that no plugin refused failed by an error and backs off.
func (s *Scheduler) refuse(q *queued, pod *v1.Pod, r *result) {
	q.timestamp = s.l.UnixNano()
	q.rejectors = r.plugins
	if r.plugins == 0 {
		q.errors++
		s.queue.put(q, errorBackoff)
	} else {
		q.unschedulable++
		q.errors = 0
		s.queue.put(q, unschedulable)
	}
	if r.nominate {
		s.nominate(q, r.nominated)
	}
	// The nomination holds the node for the pod while its victims end.
	if r.victims != nil {
		s.evict(q, pod, r.victims)
	}
	reason := v1.PodReasonUnschedulable
	if r.broken {
		reason = v1.PodReasonSchedulerError
	}
	s.tell(pod, reason, r.message, r.nominate, r.nominated)
}
