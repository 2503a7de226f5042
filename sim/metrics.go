package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet/qos"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Metrics is what a run did to its pods and nodes, as a user could see it: from
// the API's objects and events, and from the trace. Times are since the start of
// the run; lists are in the order of time, or of names.
type Metrics struct {
	// Evictions are those of pods that were there. Pods that a node under
	// pressure did not let in are among the Rejections.
	Evictions []PodEnd
	// Preemptions are pods that gave way to a critical one, Shutdowns those that
	// ended because their node was shut down.
	Preemptions, Shutdowns []PodEnd
	// Rejections are pods that a kubelet did not admit.
	Rejections []PodEnd
	// OOMKills are containers that ended as OOMKilled. SystemOOMs counts the
	// nodes' events of that reason.
	OOMKills   []OOMKill
	SystemOOMs int64
	// Restarts are of containers, by pod; pods without are left out.
	Restarts []PodRestarts
	// Pressure has a node's conditions that were not as they should be.
	Pressure []Pressure
	// Pulls are of images, over all nodes; images without are left out.
	Pulls []ImagePulls
	// Availability is of every workload, by its name, and of every pod that is none's.
	Availability []Availability
	// Kubelets is what the kubelets count themselves, at the end.
	Kubelets []KubeletSeries
}

// PodEnd is the end of a pod that it did not choose.
type PodEnd struct {
	At             time.Duration
	Pod, UID, Node string
	// Workload is whose replica the pod was; its zero value: nobody's.
	Workload Workload
	QoS      v1.PodQOSClass
	// Reason is what the node was low on (memory, ephemeral-storage, inodes,
	// pids), or OverItsLimit; the status' reason for what is
	// no eviction.
	Reason  string
	Message string
}

// OOMKill is a container that the kernel killed.
type OOMKill struct {
	At                   time.Duration
	Pod, Container, Node string
	Workload             Workload
}

// PodRestarts counts the restarts of the containers of all pods of one name.
type PodRestarts struct {
	Pod      string
	Workload Workload
	Restarts int64
}

// Pressure is how long a condition of a node was as it should not be:
// MemoryPressure, DiskPressure or PIDPressure True, or, as NotReady, Ready not
// True after it was once.
type Pressure struct {
	Node, Condition string
	// Times counts how often that began.
	Times int64
	For   time.Duration
}

// ImagePulls are the pulls of an image that came to an end well.
type ImagePulls struct {
	Image string
	// Pulls counts them; Bytes is the size of those that were not there yet.
	Pulls, Bytes int64
}

// pressures are the conditions that Pressure tells of.
var pressures = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure, v1.NodeReady}

// notReady is what Pressure calls a node whose condition Ready is not True.
const notReady = "NotReady"

// What kubelets write of pods' ends, by which they are told apart.
const (
	reasonEvicted     = "Evicted"
	reasonPreempting  = "Preempting"
	reasonTerminated  = "Terminated" // by a node's shutdown
	rejectedPrefix    = "Pod was rejected: "
	underPressure     = "The node had condition: " // of an event about a pod that was not let in
	lowOnPrefix       = "The node was low on resource: "
	preemptedMessage  = "Pod was preempted by Kubelet to accommodate a critical pod." // of the condition
	terminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// OverItsLimit is the reason of an eviction for what the pod itself may not do,
// such as to outgrow an emptyDir's sizeLimit.
const OverItsLimit = "limit"

// meter makes Metrics of what happens.
type meter struct {
	out Metrics
	// pods: by UID; those that are asked for.
	pods map[string]*podMeter
	// ended: kubeletUID of those whose end is noted.
	ended   map[string]bool
	names   map[string]*Availability
	works   *workloads
	restart map[string]int64 // by namespace/name
	nodes   map[string]*[4]conditionMeter
	find    func(namespace, name string) *v1.Pod
}

type podMeter struct {
	// asked, ready: since when; ready is negative if it is not.
	asked, ready time.Duration
	total        time.Duration
	work         *replicas // nil of a pod that is nobody's
}

type conditionMeter struct {
	Pressure
	on, was bool
	since   time.Duration
}

// newMeter returns a meter; find is the API's pod of that name, or nil.
func newMeter(find func(namespace, name string) *v1.Pod) *meter {
	return &meter{
		pods: map[string]*podMeter{}, ended: map[string]bool{}, names: map[string]*Availability{}, works: newWorkloads(), restart: map[string]int64{}, nodes: map[string]*[4]conditionMeter{},
		find: find,
	}
}

// change takes a committed write to the API.
func (m *meter) change(c *apiserver.Change, at time.Duration) {
	if c.Verb == "expire" {
		return
	}
	switch o := c.New.(type) {
	case *v1.Pod:
		old, _ := c.Old.(*v1.Pod)
		m.pod(old, o, c.Type == watch.Deleted, at)
	case *v1.Node:
		m.node(o, c.Type == watch.Deleted, at)
	case *v1.Event:
		if c.Type != watch.Deleted {
			old, _ := c.Old.(*v1.Event)
			m.event(old, o, at)
		}
	default:
		m.works.change(c.New, c.Type == watch.Deleted, at)
	}
}

// kubeletUID is by what a kubelet knows a pod, and its events do: a static pod
// not by its mirror pod's UID.
func kubeletUID(p *v1.Pod) string {
	if hash := p.Annotations[v1.MirrorPodAnnotationKey]; hash != "" {
		return hash
	}
	return string(p.UID)
}

// measure begins what Options.Metrics and Options.Census ask for.
func (c *Cluster) measure(l *loop.Loop) {
	if c.opts.Metrics {
		c.meter = newMeter(c.Store().Pod)
		c.api.OnChange(func(x apiserver.Change) { c.meter.change(&x, l.Since(c.start)) })
		c.Records(func(r *trace.Record) { c.meter.record(r, c.start) })
	}
	if c.opts.Census {
		c.gone = newDeparted()
		c.api.OnChange(func(x apiserver.Change) { c.gone.change(&x, l.Since(c.start)) })
	}
}

// keep is Options.Keep, and what the metrics and KeepAlso want.
func (c *Cluster) keep() func(trace.Kind, string, []trace.Field) bool {
	keep := c.opts.Keep
	if keep == nil {
		return nil
	}
	return func(kind trace.Kind, verb string, fields []trace.Field) bool {
		if c.opts.Metrics && measured(kind, verb, fields) {
			return true
		}
		for _, also := range c.alsoKeep {
			if also(kind, verb, fields) {
				return true
			}
		}
		return keep(kind, verb, fields)
	}
}

// KeepAlso has records that fn wants kept beside those that Options.Keep does.
// It is for use between runs; fn is called on every loop.
func (c *Cluster) KeepAlso(fn func(kind trace.Kind, verb string, fields []trace.Field) bool) {
	c.alsoKeep = append(c.alsoKeep, fn)
}

// Metrics tells what the run came to so far. It is for use between runs, and nil
// unless Options.Metrics asked for it.
func (c *Cluster) Metrics() *Metrics {
	if c.meter == nil {
		return nil
	}
	c.collector.Flush(c.start.Add(c.Now()).UnixNano() + 1)
	m := c.meter.metrics(c.Store().Pods(), c.Now())
	m.Pulls = c.pulls()
	m.Kubelets = c.KubeletSeries()
	return &m
}

// pulls are the nodes' pulls, by image.
func (c *Cluster) pulls() []ImagePulls {
	sums := map[string]*ImagePulls{}
	for _, n := range c.nodes {
		if n.rt == nil {
			continue
		}
		for _, p := range n.rt.Pulls() {
			if sums[p.Image] == nil {
				sums[p.Image] = &ImagePulls{Image: p.Image}
			}
			sums[p.Image].Pulls += p.Pulls
			sums[p.Image].Bytes += p.Bytes
		}
	}
	var out []ImagePulls
	for _, s := range sums { //drydock:unordered sorted below
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b ImagePulls) int { return cmp.Compare(a.Image, b.Image) })
	return out
}

func podName(p *v1.Pod) string { return p.Namespace + "/" + p.Name }

func (m *meter) pod(old, p *v1.Pod, gone bool, at time.Duration) {
	uid := string(p.UID)
	x := m.pods[uid]
	if old == nil && !gone {
		x = &podMeter{asked: at, ready: -1}
		m.pods[uid] = x
		if x.work = m.works.ofPod(p, at); x.work == nil {
			if m.names[podName(p)] == nil {
				m.names[podName(p)] = &Availability{Workload: Workload{"Pod", podName(p)}}
			}
			m.names[podName(p)].QoS = classOf(p)
		}
	}
	if old != nil && !gone {
		m.restart[podName(p)] += restartsBetween(old, p)
		m.end(p, at)
	}
	if x == nil {
		return
	}
	// One that was evicted did not succeed, whatever its containers exited with.
	over := gone || p.DeletionTimestamp != nil || p.Status.Phase == v1.PodSucceeded && !m.ended[kubeletUID(p)]
	ready := !over && conditionTrue(p)
	if x.work != nil && ready != (x.ready >= 0) {
		x.work.setReady(ready, at)
	}
	switch {
	case ready && x.ready < 0:
		x.ready = at
	case !ready && x.ready >= 0:
		x.total += at - x.ready
		x.ready = -1
	}
	if over {
		m.close(podName(p), x, at)
		delete(m.pods, uid)
	}
}

// close adds what a pod that is nobody's came to to those of its name.
func (m *meter) close(name string, x *podMeter, at time.Duration) {
	if x.work != nil {
		return
	}
	if x.ready >= 0 {
		x.total += at - x.ready
	}
	a := m.names[name]
	a.Asked += at - x.asked
	a.Ready += x.total
}

func conditionTrue(p *v1.Pod) bool {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == v1.PodReady {
			return p.Status.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

// restartsBetween is by how much the containers' restart counts grew.
func restartsBetween(old, now *v1.Pod) (n int64) {
	was, is := &old.Status, &now.Status
	for _, lists := range [][2][]v1.ContainerStatus{
		{was.InitContainerStatuses, is.InitContainerStatuses}, {was.ContainerStatuses, is.ContainerStatuses}, {was.EphemeralContainerStatuses, is.EphemeralContainerStatuses},
	} {
		for i := range lists[1] {
			s := &lists[1][i]
			before := int32(0)
			for k := range lists[0] {
				if lists[0][k].Name == s.Name {
					before = lists[0][k].RestartCount
				}
			}
			n += int64(max(s.RestartCount-before, 0))
		}
	}
	return n
}

// end notes what a pod's status tells of its end.
func (m *meter) end(p *v1.Pod, at time.Duration) {
	st := &p.Status
	if st.Phase != v1.PodFailed && st.Phase != v1.PodSucceeded || m.ended[kubeletUID(p)] {
		return
	}
	switch {
	case st.Reason == "":
		m.disrupted(p, at)
	case strings.HasPrefix(st.Message, rejectedPrefix):
		m.note(&m.out.Rejections, p, at, st.Reason, strings.TrimPrefix(st.Message, rejectedPrefix))
	case st.Reason == reasonEvicted:
		m.note(&m.out.Evictions, p, at, lowOn(st.Message), st.Message)
	case st.Reason == reasonPreempting:
		m.note(&m.out.Preemptions, p, at, st.Reason, st.Message)
	case st.Reason == reasonTerminated && st.Message == terminatedMessage:
		m.note(&m.out.Shutdowns, p, at, st.Reason, st.Message)
	}
}

// disrupted notes pods whose containers all ended well when they were told to:
// what is left then of the reason is the condition.
func (m *meter) disrupted(p *v1.Pod, at time.Duration) {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != v1.DisruptionTarget || c.Status != v1.ConditionTrue || c.Reason != v1.PodReasonTerminationByKubelet {
			continue
		}
		switch c.Message {
		case preemptedMessage:
			m.note(&m.out.Preemptions, p, at, reasonPreempting, c.Message)
		case terminatedMessage:
			m.note(&m.out.Shutdowns, p, at, reasonTerminated, c.Message)
		}
	}
}

func (m *meter) note(list *[]PodEnd, p *v1.Pod, at time.Duration, reason, message string) {
	m.ended[kubeletUID(p)] = true
	*list = append(*list, PodEnd{At: at, Pod: podName(p), UID: string(p.UID), Node: p.Spec.NodeName, QoS: classOf(p), Reason: reason, Message: message})
}

func classOf(p *v1.Pod) v1.PodQOSClass {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass
	}
	return qos.Class(p)
}

// lowOn is the resource that an eviction's message names.
func lowOn(message string) string {
	rest, ok := strings.CutPrefix(message, lowOnPrefix)
	if !ok {
		return OverItsLimit
	}
	resource, _, _ := strings.Cut(rest, ". ")
	return strings.TrimSuffix(resource, ".")
}

// event notes what only events tell: a pod that was evicted and whose containers
// all ended well has Succeeded without a reason.
func (m *meter) event(old, e *v1.Event, at time.Duration) {
	n := int64(max(e.Count, 1))
	if old != nil {
		n -= int64(max(old.Count, 1))
	}
	o := &e.InvolvedObject
	switch {
	case n <= 0:
	case e.Reason == "SystemOOM" && o.Kind == "Node":
		m.out.SystemOOMs += n
	case e.Reason == reasonEvicted && o.Kind == "Pod" && !strings.HasPrefix(e.Message, underPressure):
		m.evictionEvent(e, at)
	}
}

func (m *meter) evictionEvent(e *v1.Event, at time.Duration) {
	o := &e.InvolvedObject
	if m.ended[string(o.UID)] {
		return
	}
	if p := m.find(o.Namespace, o.Name); p != nil && kubeletUID(p) == string(o.UID) {
		m.note(&m.out.Evictions, p, at, lowOn(e.Message), e.Message)
		return
	}
	m.ended[string(o.UID)] = true
	m.out.Evictions = append(m.out.Evictions, PodEnd{At: at, Pod: o.Namespace + "/" + o.Name, UID: string(o.UID), Node: e.Source.Host, Reason: lowOn(e.Message), Message: e.Message})
}

func (m *meter) node(n *v1.Node, gone bool, at time.Duration) {
	x := m.nodes[n.Name]
	if x == nil {
		x = &[4]conditionMeter{}
		for i, t := range pressures {
			x[i].Pressure = Pressure{Node: n.Name, Condition: string(t)}
		}
		x[3].Condition = notReady
		m.nodes[n.Name] = x
	}
	for i, t := range pressures {
		status := v1.ConditionUnknown
		for k := range n.Status.Conditions {
			if n.Status.Conditions[k].Type == t {
				status = n.Status.Conditions[k].Status
			}
		}
		on := status == v1.ConditionTrue
		if t == v1.NodeReady {
			x[i].was = x[i].was || on
			on = x[i].was && !on
		}
		x[i].set(on && !gone, at)
	}
}

func (c *conditionMeter) set(on bool, at time.Duration) {
	switch {
	case on && !c.on:
		c.Times++
		c.since = at
	case !on && c.on:
		c.For += at - c.since
	}
	c.on = on
}

// record takes a record of the trace.
func (m *meter) record(r *trace.Record, start time.Time) {
	if !measured(r.Kind, r.Verb, r.Fields) {
		return
	}
	name := strings.TrimPrefix(r.Object, "container ")
	i := strings.LastIndexByte(name, '/')
	m.out.OOMKills = append(m.out.OOMKills, OOMKill{At: time.Duration(r.At - start.UnixNano()), Pod: name[:max(i, 0)], Container: name[i+1:], Node: r.Node})
}

// measured tells which records a meter wants: the ends of containers that ran
// out of memory.
func measured(kind trace.Kind, verb string, fields []trace.Field) bool {
	if kind != trace.KindProcess || verb != "exit" {
		return false
	}
	for _, f := range fields {
		if f.Key == "reason" {
			return f.Value == "OOMKilled"
		}
	}
	return false
}

// metrics is what it came to up to at; pods are the API's. The meter can go on.
func (m *meter) metrics(pods []*v1.Pod, at time.Duration) Metrics {
	out := m.out
	for _, list := range []*[]PodEnd{&out.Evictions, &out.Preemptions, &out.Shutdowns, &out.Rejections} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Workload = m.works.of[(*list)[i].Pod]
		}
	}
	out.OOMKills = slices.Clone(out.OOMKills)
	for i := range out.OOMKills {
		out.OOMKills[i].Workload = m.works.of[out.OOMKills[i].Pod]
	}
	out.Availability = m.works.availability(at)
	names := map[string]Availability{}
	for name, a := range m.names { //drydock:unordered copies a map
		names[name] = *a
	}
	for _, p := range pods {
		if x := m.pods[string(p.UID)]; x != nil && x.work == nil {
			a := names[podName(p)]
			a.Asked += at - x.asked
			a.Ready += x.total
			if x.ready >= 0 {
				a.Ready += at - x.ready
			}
			names[podName(p)] = a
		}
	}
	for _, a := range names { //drydock:unordered sorted below
		out.Availability = append(out.Availability, a)
	}
	slices.SortFunc(out.Availability, func(a, b Availability) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind)) })
	for pod, n := range m.restart { //drydock:unordered sorted below
		if n > 0 {
			out.Restarts = append(out.Restarts, PodRestarts{pod, m.works.of[pod], n})
		}
	}
	slices.SortFunc(out.Restarts, func(a, b PodRestarts) int { return cmp.Compare(a.Pod, b.Pod) })
	for _, x := range m.nodes { //drydock:unordered sorted below
		for _, c := range x {
			if c.on {
				c.For += at - c.since
			}
			if c.Times > 0 {
				out.Pressure = append(out.Pressure, c.Pressure)
			}
		}
	}
	slices.SortFunc(out.Pressure, func(a, b Pressure) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Condition, b.Condition))
	})
	return out
}
