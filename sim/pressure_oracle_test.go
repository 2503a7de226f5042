package sim_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
)

// tally counts what runs showed, so that one that shows nothing is noticed.
type tally struct {
	Memory, Disk, PIDs, Limits, Ranked, Conditions, Succeeded, OOM int
}

func (t *tally) add(o tally) {
	t.Memory += o.Memory
	t.Disk += o.Disk
	t.PIDs += o.PIDs
	t.Limits += o.Limits
	t.Ranked += o.Ranked
	t.Conditions += o.Conditions
	t.Succeeded += o.Succeeded
	t.OOM += o.OOM
}

// span is a run of a pod's container, ns since the epoch; to is 0 while it lives.
type span struct{ from, to int64 }

// evicted is an eviction as the kubelet's log tells of it, at the instant of the
// pass.
type evicted struct {
	at      int64
	pod     string // as the API calls it
	message string
}

// oracle knows what every pod uses at any time from its curves, and judges by
// that what the kubelet did. What it computes, it computes anew.
type oracle struct {
	c                *sim.Cluster
	pods             map[string]*pressPod
	dedicated, split bool
	usage            sim.MachineUsage
	spans            map[string][]span
	evictions        []evicted
	restarts         []int64
	filled           bool // a disk was full: curves were cut
	reclaims         bool // there is a minimum reclaim
	under            map[v1.NodeConditionType]time.Time
	seen             tally
	failures         []string
}

func (o *oracle) init(c *sim.Cluster) {
	o.c, o.pods, o.spans = c, map[string]*pressPod{}, map[string][]span{}
	o.under = map[v1.NodeConditionType]time.Time{}
}

func (o *oracle) fail(format string, args ...any) {
	if len(o.failures) < 20 {
		o.failures = append(o.failures, fmt.Sprintf("%8.3f ", o.c.Now().Seconds())+fmt.Sprintf(format, args...))
	}
}

// named returns the pod that the API calls so: static ones have the node's name
// behind theirs.
func (o *oracle) named(name string) *pressPod { return o.pods[strings.TrimSuffix(name, "-n0")] }

var evictedLog = regexp.MustCompile(`^event Warning Evicted about Pod default/(\S+) : (.*)$`)

// record takes in a record of the trace.
func (o *oracle) record(rec *trace.Record) {
	switch rec.Kind {
	case trace.KindProcess:
		name := strings.Split(strings.TrimPrefix(rec.Object, "container "), "/")[1]
		list := o.spans[name]
		switch rec.Verb {
		case "start":
			o.spans[name] = append(list, span{from: rec.At})
		case "exit":
			list[len(list)-1].to = rec.At
		case "oom-kill":
			o.seen.OOM++
		}
	case trace.KindKubelet:
		o.restarts = append(o.restarts, rec.At)
	case trace.KindLog:
		if f := evictedLog.FindStringSubmatch(rec.Verb); f != nil && !strings.HasPrefix(f[2], "The node had condition") {
			o.evictions = append(o.evictions, evicted{rec.At, f[1], f[2]})
		}
	}
}

// accounts holds the node's sums to those over what runs.
func (o *oracle) accounts(n *sim.Node) {
	var memory, pids int64
	now := n.Loop().UnixNano()
	for _, c := range n.Runtime().Containers() {
		if p := o.named(c.Pod); c.Alive {
			t := time.Duration(now - c.StartedAt)
			memory += p.b.Memory.At(t, 0)
			pids += p.b.Processes.At(t, 0)
		}
	}
	u := n.Runtime().NodeUsage()
	for _, s := range n.Runtime().Sandboxes() {
		if s.Ready {
			pids++ // its pause process
		}
	}
	if u.PodsMemory != memory {
		o.fail("the pods use %d bytes of memory, their processes %d", u.PodsMemory, memory)
	}
	if u.PIDs < u.MaxPIDs && u.PodsPIDs != pids {
		o.fail("the pods have %d processes, summed up %d", u.PodsPIDs, pids)
	}
	o.disks(n)
}

// disks holds the disks to what is written on them: at least what the programs
// that run have written.
func (o *oracle) disks(n *sim.Node) {
	var written int64
	now := n.Loop().UnixNano()
	for _, c := range n.Runtime().Containers() {
		if p := o.named(c.Pod); c.Alive {
			t := time.Duration(now - c.StartedAt)
			written += layerBytes(&p.b, t)
			// The logs of an evicted pod may go while it ends, as upstream.
			if !slices.ContainsFunc(o.evictions, func(e evicted) bool { return e.pod == c.Pod }) {
				written += logsOf(&p.b, t)
			}
			// A new kubelet unmounts what belongs to no pod that it is told of,
			// as upstream's, while the containers may still end.
			if o.c.Store().Pod("default", c.Pod) != nil {
				written += p.volume
			}
		}
	}
	own := o.usage.Disk.At(o.c.Now(), 0)
	var used int64
	for _, d := range n.Disks() {
		u, size := d.Used(), d.Size()
		used += u.Bytes
		if u.Bytes > size.Bytes || u.Inodes > size.Inodes {
			o.fail("disk %s: %+v used of %+v", d.Device(), u, size)
		}
		if size.Bytes-u.Bytes < 50*mi || size.Inodes-u.Inodes < 1000 {
			o.filled = true
		}
	}
	if used -= own; used < written && !o.filled {
		o.fail("%d bytes are on the disks, the programs have written %d", used, written)
	}
}

// conditions holds a pressure condition to the time that it must stay. What the
// API shows is up to one status period late; a new kubelet knows nothing of the
// last one's.
func (o *oracle) conditions(node *v1.Node, period time.Duration) {
	if node == nil {
		return
	}
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure:
		default:
			continue
		}
		since, was := o.under[c.Type]
		switch is := c.Status == v1.ConditionTrue; {
		case is && !was:
			o.under[c.Type] = c.LastTransitionTime.Time
			o.seen.Conditions++
		case !is && was:
			delete(o.under, c.Type)
			stayed := c.LastTransitionTime.Sub(since)
			again := slices.ContainsFunc(o.restarts, func(at int64) bool { return at > since.Add(-10*time.Second).UnixNano() })
			if stayed < period-11*time.Second && !again {
				o.fail("%s stayed for %v only, the transition period is %v", c.Type, stayed, period)
			}
		}
	}
}

// band is what an amount was just before and at an instant.
type band struct{ lo, hi int64 }

func (b *band) take(v int64) { b.lo, b.hi = min(b.lo, v), max(b.hi, v) }

func (b band) plus(o band) band { return band{b.lo + o.lo, b.hi + o.hi} }

// running tells since when a pod's container ran at an instant, surely so.
func (o *oracle) running(name string, at int64) (from int64, ok bool) {
	for _, s := range o.spans[name] {
		if s.from < at-int64(100*time.Millisecond) && (s.to == 0 || s.to >= at) {
			return s.from, true
		}
	}
	return 0, false
}

// uses is what a pod used of a resource around an instant: at is a few
// milliseconds after the statistics were made.
func (o *oracle) uses(name string, at int64, what func(b *fakecri.Behaviour, t time.Duration) int64) (band, bool) {
	from, ok := o.running(name, at)
	if !ok {
		return band{}, false
	}
	out := band{math.MaxInt64, math.MinInt64}
	for _, before := range []time.Duration{100 * time.Millisecond, 50 * time.Millisecond, 0} {
		out.take(what(&o.named(name).b, max(0, time.Duration(at-from)-before)))
	}
	return out, true
}

func memoryOf(b *fakecri.Behaviour, t time.Duration) int64    { return b.Memory.At(t, 0) }
func processesOf(b *fakecri.Behaviour, t time.Duration) int64 { return b.Processes.At(t, 0) }
func logsOf(b *fakecri.Behaviour, t time.Duration) int64      { return b.LogBytes.At(t, 0) }

func layerOf(b *fakecri.Behaviour, t time.Duration) (bytes, inodes int64) {
	for _, w := range b.Writes {
		if strings.HasPrefix(w.Path, "/data") {
			return w.Bytes.At(t, 0), w.Inodes.At(t, 0)
		}
	}
	return 0, 0
}

func layerBytes(b *fakecri.Behaviour, t time.Duration) int64  { n, _ := layerOf(b, t); return n }
func layerInodes(b *fakecri.Behaviour, t time.Duration) int64 { _, n := layerOf(b, t); return n }

// want is how a rank is made of a pod.
type want struct {
	exceeds band // 1: surely or maybe
	over    band
}

// rankOf is what a pod is ranked by, ok if its containers surely ran.
func (o *oracle) rankOf(name string, at int64, res string, ofImage bool) (w want, priority int32, ok bool) {
	p := o.named(name)
	if p.pod.Spec.Priority != nil {
		priority = *p.pod.Spec.Priority
	}
	var u band
	requests := p.pod.Spec.Containers[0].Resources.Requests
	var request int64
	switch res {
	case "memory":
		u, ok = o.uses(name, at, memoryOf)
		request = requests.Memory().Value()
	case "pids":
		u, ok = o.uses(name, at, processesOf)
		return want{over: u}, priority, ok
	case "ephemeral-storage", "inodes":
		u, ok = o.disk(name, at, res, ofImage)
	}
	w.over = band{u.lo - request, u.hi - request}
	if u.lo > request {
		w.exceeds.lo = 1
	}
	if u.hi > request {
		w.exceeds.hi = 1
	}
	return w, priority, ok
}

// disk is a pod's use of the disk that counts: of a disk of their own images
// and layers, of the other logs and volumes, of a single one all.
func (o *oracle) disk(name string, at int64, res string, ofImage bool) (band, bool) {
	layer, logs, volume := layerBytes, logsOf, o.named(name).volume
	few := band{0, 2 * mi} // what the kubelet and the runtime write for any pod
	if res == "inodes" {
		layer = layerInodes
		logs = func(*fakecri.Behaviour, time.Duration) int64 { return 0 }
		volume, few = 0, band{0, 100}
	}
	own, ok := o.uses(name, at, layer)
	log, _ := o.uses(name, at, logs)
	if runs := len(o.spans[name]); runs > 1 { // the log of a run is kept until its container is removed
		log.hi += int64(runs) * o.named(name).b.LogBytes.Peak()
	}
	from, _ := o.running(name, at)
	vol := band{0, volume} // measured at times only
	if at-from > int64(5*time.Second) {
		vol.lo = volume
	}
	switch {
	case o.dedicated && !o.split && ofImage:
		return own.plus(few), ok
	case o.split && ofImage:
		return band{}, ok
	case o.dedicated && !o.split:
		return log.plus(vol).plus(few), ok
	}
	return own.plus(log).plus(vol).plus(few), ok
}

// before reports whether a surely ranks before b.
func before(a, b want, pa, pb int32, slack int64) bool {
	switch {
	case a.exceeds.lo > b.exceeds.hi:
		return true
	case a.exceeds.lo != a.exceeds.hi || b.exceeds.lo != b.exceeds.hi || a.exceeds.lo < b.exceeds.lo:
		return false
	case pa != pb:
		return pa < pb
	}
	return a.over.lo > b.over.hi+slack
}

var (
	lowOn     = regexp.MustCompile(`^The node was low on resource: (\S+)\. (?:Threshold quantity: (\S+), available: (\S+)\. )?`)
	overLimit = regexp.MustCompile(`^(Usage of EmptyDir volume "cache" exceeds the limit "\S+"|Pod ephemeral local storage usage exceeds the total limit of containers \S+|Container main exceeded its local ephemeral storage limit "\S+")\. $`)
)

// judge holds every eviction to the rules.
func (o *oracle) judge() {
	for i := range o.evictions {
		e := &o.evictions[i]
		p := o.named(e.pod)
		if critical(p) {
			o.fail("critical pod %s was evicted: %s", e.pod, e.message)
			continue
		}
		if overLimit.MatchString(e.message) {
			o.seen.Limits++
			if p.limit == 0 || p.volume+8<<10 <= p.limit { // du counts the directory too
				o.fail("pod %s, which is within its limits (%d of %d), was evicted: %s", e.pod, p.volume, p.limit, e.message)
			}
			continue
		}
		f := lowOn.FindStringSubmatch(e.message)
		if f == nil {
			o.fail("pod %s was evicted with %q", e.pod, e.message)
			continue
		}
		o.low(e, f[1], f[2], f[3])
	}
}

// low judges an eviction because of what the node was low on.
func (o *oracle) low(e *evicted, res, quantity, available string) {
	switch res {
	case "memory":
		o.seen.Memory++
	case "pids":
		o.seen.PIDs++
	default:
		o.seen.Disk++
	}
	want, have := resource.MustParse(quantity), resource.MustParse(available)
	reclaim := int64(0)
	if o.reclaims { // 5% of the most that there is of anything
		reclaim = map[string]int64{"memory": 6 * gi, "pids": 2000, "inodes": 400000, "ephemeral-storage": 40 * gi}[res] / 20
	}
	if have.Value() >= want.Value()+reclaim {
		o.fail("pod %s was evicted though no threshold is met: %s", e.pod, e.message)
	}
	if o.filled && (res == "ephemeral-storage" || res == "inodes") {
		return
	}
	for name := range o.spans {
		if name == e.pod || critical(o.named(name)) {
			continue
		}
		ranks := false
		for _, ofImage := range []bool{false, true} {
			v, pv, ok := o.rankOf(e.pod, e.at, res, ofImage)
			q, pq, other := o.rankOf(name, e.at, res, ofImage)
			if !ok || !other || !o.active(name, e.at) {
				ranks = false
				break
			}
			o.seen.Ranked++
			ranks = before(q, v, pq, pv, slack(res))
			if !ranks {
				break // right by one of the two ways to measure
			}
		}
		if ranks {
			v, _, _ := o.rankOf(e.pod, e.at, res, true)
			q, _, _ := o.rankOf(name, e.at, res, true)
			o.fail("pod %s %+v was evicted at %.3f before %s %+v: %s", e.pod, v, float64(e.at-o.c.Start().UnixNano())/1e9, name, q, e.message)
		}
	}
}

// slack is what may be between two pods that count as equal.
func slack(res string) int64 {
	switch res {
	case "pids":
		return 2 // the pause process
	case "inodes":
		return 100
	}
	return mi
}

// active reports whether a pod surely was one that could be evicted: evicted ones
// are ending.
func (o *oracle) active(name string, at int64) bool {
	return !slices.ContainsFunc(o.evictions, func(e evicted) bool { return e.pod == name && e.at <= at })
}

func critical(p *pressPod) bool {
	return p.static || p.pod.Spec.Priority != nil && *p.pod.Spec.Priority >= 2000000000
}

// settled is what holds of evicted pods in the end.
func (o *oracle) settled(c *sim.Cluster, n *sim.Node) {
	for _, e := range o.evictions {
		interrupted := slices.ContainsFunc(o.restarts, func(at int64) bool { return at > e.at && at < e.at+int64(40*time.Second) })
		// A pod that was about to end by itself keeps its own status, as upstream:
		// what an eviction says is heard before its end begins only.
		if _, ran := o.running(e.pod, e.at); n.Loop().UnixNano()-e.at < int64(90*time.Second) || interrupted || !ran {
			continue
		}
		p := c.Store().Pod("default", e.pod)
		for _, ctr := range n.Runtime().Containers() {
			if ctr.Pod == e.pod && (ctr.Alive || p == nil || p.Status.Phase == v1.PodFailed) {
				o.fail("pod %s was evicted, its container %s is there, alive %v", e.pod, ctr.Name, ctr.Alive)
			}
		}
		if p == nil {
			continue // deleted
		}
		clean := true
		for _, s := range p.Status.ContainerStatuses {
			clean = clean && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		}
		switch {
		case p.Status.Phase == v1.PodFailed && p.Status.Reason == "Evicted" && p.Status.Message == e.message:
		case p.Status.Phase == v1.PodFailed && p.Status.Reason == "Preempting": // while it ended: the last word counts
		case p.Status.Phase == v1.PodSucceeded && clean && p.Status.Reason == "" && p.Status.Message == "":
			o.seen.Succeeded++
		default:
			o.fail("pod %s was evicted (%s) and ended %s %s %q, clean %v", e.pod, e.message, p.Status.Phase, p.Status.Reason, p.Status.Message, clean)
		}
	}
}
