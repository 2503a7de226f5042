package report

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/trace"
)

// podKey names a pod. Its strings are the object's own. Names rather than UIDs: records of the
// trace have names only. A name that comes again while its pod is still followed cannot be: the
// API has one object of a name at a time.
type podKey struct{ namespace, name string }

// startingPod is a pod that is on its way to run. Times are since the start of
// the run; 0 is not yet. It is kept only until the pod's start is a record of 32
// bytes, or the pod is gone. Some hundred bytes; at the height of start-up there is one for each
// pod on its way.
type startingPod struct {
	created, bound time.Duration
	// sandbox, init: sandbox ready, first init container started.
	sandbox, init time.Duration
	// main, lastMain: first and last other container started. Containers of a restarted pod may
	// start again before it was seen running; the last start counts for lastMain, the first for
	// main.
	main, lastMain time.Duration
	// last: the last of these, or a pull's end.
	last time.Duration
	pull time.Duration // sum
	// pulledInInit: of it, after the first init container's start.
	pulledInInit time.Duration
	seen         time.Duration // when a watcher has it running
	node         int
	flags        uint32
	containers   []v1.Container
}

// settle is how long after a pod's start its records are waited for: they come
// once per virtual second. Records come with the node's trace after the window in
// which they were made. Two seconds are one flush and a margin.
const settle = 2 * time.Second

// pod takes a change of a pod. Old is nil for a pod that came; a pod that went is
// counted out of what it was. Counters of intervals are changed here and nowhere else, so a
// phase's count is always the sum of comings and goings.
func (k *Collector) pod(old, p *v1.Pod, gone bool, now time.Duration) {
	o := &k.over.now
	if old != nil {
		o.Pods[phaseOf(old)]--
		o.Terminating -= terminating(old)
	}
	if !gone {
		o.Pods[phaseOf(p)]++
		o.Terminating += terminating(p)
	}
	switch {
	case gone:
		o.Deleted++
		// An object that was not told to end before, such as one evicted while
		// pending, may get its last status with its deletion.
		k.ended(old, p)
		if x := k.pending[keyOf(p)]; x != nil && x.seen == 0 {
			k.forget(keyOf(p))
		}
		// A pod that was seen running stays pending until its records have come.
		return
	case old == nil:
		o.Created++
		k.created(p, now)
		return
	}
	if old.Spec.NodeName == "" && p.Spec.NodeName != "" {
		// A pod created with a node's name was never scheduled.
		o.Scheduled++
	}
	if n := restartsBetween(old, p); n > 0 {
		o.Restarts += n
		k.nodeOf(p).restarts += n
	}
	k.ended(old, p)
	if len(k.pending) > 0 {
		k.progress(p, now)
	}
}

// keyOf is a pod's key.
func keyOf(p *v1.Pod) podKey { return podKey{p.Namespace, p.Name} }

// phaseOf is what charts call a pod's state. The empty phase, which pods have at creation before
// the API's default, counts as Pending.
func phaseOf(p *v1.Pod) Phase {
	switch p.Status.Phase {
	case v1.PodRunning:
		return Running
	case v1.PodSucceeded:
		return Succeeded
	case v1.PodFailed:
		return Failed
	case v1.PodUnknown:
		return Unknown
	}
	if p.Spec.NodeName == "" {
		return Unscheduled
	}
	return Starting
}

// terminating is 1 for a pod that is being deleted.
func terminating(p *v1.Pod) int64 {
	if p.DeletionTimestamp != nil {
		return 1
	}
	return 0
}

// created begins to follow a pod. A mirror pod tells of one that was started
// without the API. A pod that is first seen running, from before the collector's time, has no
// creation to count from.
func (k *Collector) created(p *v1.Pod, now time.Duration) {
	if _, mirror := p.Annotations[v1.MirrorPodAnnotationKey]; mirror || phaseOf(p) > Starting {
		return
	}
	x := &startingPod{created: now, containers: p.Spec.Containers, flags: statefulFlag(p)}
	if p.Spec.NodeName != "" {
		x.bound = now
	}
	k.pending[keyOf(p)] = x
	k.peak = max(k.peak, len(k.pending))
	k.noteScheduling(x, p)
}

// noteScheduling notes that a pod could not be scheduled as it came, which the
// SLO calls schedulable. The SLO: "schedulable pod: by definition a Pod that can be scheduled in
// the cluster without causing any preemption" (sig-scalability/slos/pod_startup_latency.md); one
// that was told once that it could not be scheduled is none.
func (k *Collector) noteScheduling(x *startingPod, p *v1.Pod) {
	if len(p.Spec.SchedulingGates) > 0 {
		x.flags |= unschedulable
		return
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			x.flags |= unschedulable
		}
	}
}

// statefulFlag tells pods with volumes of other sources than secret, config map,
// downward API and empty dir, which the SLO calls stateful. Projected ones are
// made of the former. The SLO: a stateful pod has a volume of any other source than those.
func statefulFlag(p *v1.Pod) uint32 {
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; v.Secret == nil && v.ConfigMap == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.Projected == nil {
			return stateful
		}
	}
	return 0
}

// progress follows a pod that is starting. A pod's changes come in the order of the writes, so
// each time is set once.
func (k *Collector) progress(p *v1.Pod, now time.Duration) {
	x := k.pending[keyOf(p)]
	if x == nil || x.seen > 0 {
		return
	}
	if x.bound == 0 && p.Spec.NodeName != "" {
		x.bound = now
	}
	if p.Spec.NodeName == "" {
		k.noteScheduling(x, p)
	}
	switch {
	case started(p):
		// One delay drawn per pod, as for a watcher of pods.
		x.seen = now + k.deliver()
		x.node = k.nodeIndex(p.Spec.NodeName)
		k.over.now.Started++
		k.nodes[x.node].started++
		k.running = append(k.running, keyOf(p))
	case phaseOf(p) >= Succeeded:
		k.forget(keyOf(p)) // it never ran
	}
}

// started reports whether all containers are reported as started. The SLO wants all containers
// "reported as started and observed via watch"; one that started and ended already counts.
func started(p *v1.Pod) bool {
	if p.Status.Phase == v1.PodPending || p.Status.Phase == "" || len(p.Status.ContainerStatuses) < len(p.Spec.Containers) {
		return false
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if s.ContainerID == "" || s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil {
			return false
		}
	}
	return true
}

// record takes a record of the trace. Records come later than changes, by up to a second of
// virtual time; their own time counts.
func (k *Collector) record(r *trace.Record) {
	if !wants(r.Kind, r.Verb, r.Fields) {
		return
	}
	at := time.Duration(r.At - k.start)
	if r.Kind == trace.KindProcess {
		k.over.at(at)
		k.over.now.OOMKills++
		k.nodes[k.nodeIndex(r.Node)].oomKills++
		return
	}
	key, container := split(r.Object)
	x := k.pending[key]
	// A record from before the binding is of another pod of that name.
	if x == nil || x.bound == 0 || at < x.bound || x.seen > 0 && at > x.seen {
		return
	}
	x.act(r, container, at)
}

// split takes the names out of "container default/web-0/main" and "pod default/web-0".
func split(object string) (key podKey, container string) {
	kind, rest, _ := strings.Cut(object, " ")
	key.namespace, rest, _ = strings.Cut(rest, "/")
	if kind != "container" {
		key.name = rest
		return key, ""
	}
	key.name, container, _ = strings.Cut(rest, "/")
	return key, container
}

// act notes the end of a call to the runtime. The time since the act before it
// is the pull's when it is a pull's, with waiting for others' pulls and backing
// off; while init containers run, only the call itself is. Calls come in the kubelet's order
// within one pod: sandbox, then for each container its pull and its start. So the spans between
// ends of calls can be given to what ended each.
//
// Pulls by others: the kubelet pulls in turn (serializeImagePulls) unless told, so a pod may wait
// for other pods' pulls, with no call of its own; that waiting shows as the span before its own.
func (x *startingPod) act(r *trace.Record, container string, at time.Duration) {
	took, failed := outcome(r.Fields)
	before := x.last
	switch r.Verb {
	case "RunPodSandbox":
		if !failed {
			// A sandbox may fail and be made anew; what went before is all part of Sandbox.
			x.sandbox, x.last = at, at // of several the last
		}
	case "PullImage":
		switch {
		// While init containers run, the time between calls is theirs.
		case x.init > 0 && x.main == 0:
			x.pull += took
			x.pulledInInit += took
		case before > 0:
			x.pull += at - before
		}
		x.last = at
	case "StartContainer":
		switch {
		case failed:
			return
		case hasContainer(x.containers, container):
			x.main = cmp.Or(x.main, at)
			x.lastMain = at
		case x.init == 0:
			x.init = at
		}
		x.last = at
	}
}

// outcome reads how long a call took, to the millisecond, and whether it failed.
func outcome(fields []trace.Field) (took time.Duration, failed bool) {
	for _, f := range fields {
		switch f.Key {
		case "error":
			failed = true
		case "tookMs":
			ms, _ := strconv.ParseInt(f.Value, 10, 64) // written by trace.Int
			took = time.Duration(ms) * time.Millisecond
		}
	}
	return took, failed
}

// hasContainer reports whether a container of that name is among them.
func hasContainer(list []v1.Container, name string) bool {
	for i := range list {
		if list[i].Name == name {
			return true
		}
	}
	return false
}

// settled makes the records of starts of those pods whose records have come. The list is in order
// of seen, nearly: deliveries differ by milliseconds, which settle covers.
func (k *Collector) settled(now time.Duration) {
	n := 0
	for _, key := range k.running {
		if x := k.pending[key]; x != nil && x.seen > 0 {
			if x.seen+settle > now {
				break
			}
			k.starts.add(x.start())
			k.forget(key)
		}
		n++
	}
	k.running = k.running[n:]
	if len(k.running) == 0 {
		k.running = nil
	}
}

// forget drops a pod. A map that was much larger is made anew, since maps don't
// shrink. At the end of start-up the map would otherwise hold the memory of all
// pods at once. Go's maps never give buckets back.
func (k *Collector) forget(key podKey) {
	delete(k.pending, key)
	if k.peak < 1024 || len(k.pending) > k.peak/8 {
		return
	}
	left := make(map[podKey]*startingPod, len(k.pending))
	maps.Copy(left, k.pending)
	k.pending, k.peak = left, len(left)
}

// start returns the compact record. The parts are made to add up to the total exactly: Containers
// takes what is left over.
func (x *startingPod) start() start {
	out := startOf(x.node, x.created, x.flags)
	out.parts[Scheduling] = ticks(x.bound - x.created)
	// Records may be missing if the trace does not have them.
	if x.sandbox == 0 || x.lastMain == 0 {
		out.parts[Containers] = ticks(x.seen - x.bound)
		out.node |= untold
		return out
	}
	var init time.Duration
	if x.init > 0 {
		init = max(x.main-x.init-x.pulledInInit, 0)
	}
	// What went on before the last sandbox leaves nothing. Pulls can begin before the last
	// sandbox, when that one was made anew; Pulling is then cut to what is left, so that no part
	// is negative.
	pull := min(x.pull, max(x.lastMain-x.sandbox-init, 0))
	out.parts[Sandbox] = ticks(x.sandbox - x.bound)
	out.parts[Pulling] = ticks(pull)
	out.parts[Init] = ticks(init)
	out.parts[Containers] = ticks(x.lastMain - x.sandbox - pull - init)
	out.parts[Reporting] = ticks(x.seen - x.lastMain)
	return out
}
