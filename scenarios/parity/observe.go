package parity

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// observer sees what the recordings' proxy and watches saw. Its callbacks run on the API's loop
// and where records are collected, while the cluster stands still.
type observer struct {
	c      *sim.Cluster
	zero   time.Time
	pods   map[string]*PodObservation
	order  []string
	uids   map[string][]types.UID
	events map[string]*EventSeen
	images map[string]string // the names of the images that were there at first, by id
	ips    map[string]string // the last pod IP by pod, for events that came before it was published
	node   Observation
	warn   func(text string)
	// plugins says that the case has plugins, of which more was recorded.
	plugins bool
	// watching ends before the calls do. The recorder's watches were closed before its proxy.
	watching bool
}

// newObserver returns an observer that hears of every change of the cluster;
// times count from zero.
func newObserver(c *sim.Cluster, zero time.Duration, warn func(string)) *observer {
	o := &observer{c: c, warn: warn, watching: true, zero: c.Start().Add(zero), pods: map[string]*PodObservation{}, uids: map[string][]types.UID{}, events: map[string]*EventSeen{}, ips: map[string]string{}}
	o.images = map[string]string{}
	for _, n := range c.Nodes() {
		for _, i := range n.Runtime().PresentImages() {
			o.images[i.ID] = i.Names[0]
		}
	}
	c.API().OnChange(o.change)
	c.Records(o.record)
	return o
}

// result returns what was seen, in the form of a node case or a pod case. Addresses are blurred
// last, as events may come before the address is published.
func (o *observer) result(ofNode bool) *Observation {
	for _, key := range o.order {
		if ip := o.ips[key]; ip != "" {
			for _, e := range o.pods[key].Events {
				e.Message = strings.ReplaceAll(e.Message, ip, "<pod-ip>")
			}
		}
	}
	if !ofNode {
		if len(o.order) == 0 {
			return &Observation{PodObservation: *newPodObservation()}
		}
		p := o.pods[o.order[0]]
		for i := range p.Status {
			p.Status[i].UID = "" // only node cases tell the objects of a name apart
		}
		return &Observation{PodObservation: *p}
	}
	o.node.Pods = o.pods
	return &o.node
}

// pod is what was seen of a pod so far.
func (o *observer) pod(key string) *PodObservation {
	p := o.pods[key]
	if p == nil {
		p = newPodObservation()
		o.pods[key], o.order = p, append(o.order, key)
	}
	return p
}

// newPodObservation is one whose lists are empty and not null.
func newPodObservation() *PodObservation {
	return &PodObservation{Status: []StatusSeen{}, Events: []*EventSeen{}, CRI: []CallSeen{}}
}

// at is a time as recordings have it: in tenths of a second, and -1 for
// whatever was before the case's start.
func (o *observer) at(t time.Time) float64 {
	return max(-1, math.Round(t.Sub(o.zero).Seconds()*10)/10)
}

// change notes a committed change, as a watch of the recorder's would have.
func (o *observer) change(c apiserver.Change) {
	if !o.watching {
		return
	}
	at := o.at(o.c.API().Loop().Now())
	switch obj := c.New.(type) {
	case *v1.Pod:
		o.seePod(at, obj, c.Type == watch.Deleted)
	case *v1.Event:
		o.seeEvent(at, obj, c.Type == watch.Deleted)
	case *v1.Node:
		seen := NodeSeen{At: at, Conditions: map[string][3]string{}}
		for _, x := range obj.Status.Conditions {
			seen.Conditions[string(x.Type)] = [3]string{string(x.Status), x.Reason, x.Message}
		}
		// Of the sets from before the start only the last counts: it is what the
		// case found.
		if n := len(o.node.Node); n > 0 && reflect.DeepEqual(o.node.Node[n-1].Conditions, seen.Conditions) {
			return
		} else if n > 0 && at == -1 {
			o.node.Node = o.node.Node[:0]
		}
		o.node.Node = append(o.node.Node, seen)
	case *coordinationv1.Lease:
		// The same goes for renewals.
		if at == -1 {
			o.node.Leases = o.node.Leases[:0]
		}
		o.node.Leases = append(o.node.Leases, LeaseSeen{At: at})
	}
}

// seePod notes a pod's status, unless it shows what the last one did. A status that shows nothing
// new is left out, as in the recordings.
func (o *observer) seePod(at float64, pod *v1.Pod, deleted bool) {
	key := pod.Namespace + "/" + pod.Name
	p := o.pod(key)
	if deleted {
		p.Status = append(p.Status, StatusSeen{At: at, Deleted: true, Phase: string(pod.Status.Phase)})
		return
	}
	st := &pod.Status
	if st.PodIP != "" {
		o.ips[key] = st.PodIP
	}
	s := StatusSeen{
		At: at, Phase: string(st.Phase), Reason: st.Reason, Message: normalise(pod, st.Message), QOSClass: string(st.QOSClass),
		Conditions: map[string]ConditionSeen{}, HasPodIP: st.PodIP != "",
		Init: seeContainers(pod, st.InitContainerStatuses, o.plugins), Containers: seeContainers(pod, st.ContainerStatuses, o.plugins), Ephemeral: seeContainers(pod, st.EphemeralContainerStatuses, o.plugins),
	}
	for _, c := range st.Conditions {
		s.Conditions[string(c.Type)] = ConditionSeen{string(c.Status), c.Reason, normalise(pod, c.Message)}
	}
	if pod.DeletionTimestamp != nil {
		s.Deleting = pod.DeletionGracePeriodSeconds
	}
	if o.plugins {
		s.Claims = st.ResourceClaimStatuses
		for _, list := range [...]map[string]ContainerSeen{s.Init, s.Containers, s.Ephemeral} {
			for name, c := range list { //drydock:unordered each is on its own
				c.Message = dataDir.ReplaceAllString(c.Message, "<data-dir>")
				list[name] = c
			}
		}
	}
	_, s.Mirror = pod.Annotations[v1.MirrorPodAnnotationKey]
	// Objects of one name are numbered as they appear, because UIDs themselves
	// are drawn.
	uids := o.uids[key]
	i := 0
	for i < len(uids) && uids[i] != pod.UID {
		i++
	}
	if i == len(uids) {
		o.uids[key] = append(uids, pod.UID)
	}
	s.UID = "uid-" + strconv.Itoa(i+1)
	if n := len(p.Status); n > 0 {
		// The time alone makes no new status.
		before := p.Status[n-1]
		if before.At = at; reflect.DeepEqual(before, s) {
			return
		}
	}
	p.Status = append(p.Status, s)
}

// seeContainers is what a status shows of containers, by name.
func seeContainers(pod *v1.Pod, list []v1.ContainerStatus, plugins bool) map[string]ContainerSeen {
	if len(list) == 0 {
		return nil
	}
	out := map[string]ContainerSeen{}
	for i := range list {
		c := &list[i]
		s := ContainerSeen{State: "waiting", Restarts: c.RestartCount, Ready: c.Ready, Started: c.Started}
		switch st := &c.State; {
		case st.Running != nil:
			s.State = "running"
		case st.Terminated != nil:
			t := st.Terminated
			s.State, s.Reason, s.ExitCode, s.Signal, s.Message = "terminated", t.Reason, &t.ExitCode, t.Signal, normalise(pod, t.Message)
		case st.Waiting != nil:
			s.Reason, s.Message = st.Waiting.Reason, normalise(pod, st.Waiting.Message)
		}
		if t := c.LastTerminationState.Terminated; t != nil {
			s.Last = &LastSeen{ExitCode: t.ExitCode, Reason: t.Reason}
			if plugins {
				s.Last.Message = normalise(pod, t.Message)
			}
		}
		if plugins {
			s.Devices = c.AllocatedResourcesStatus
		}
		out[c.Name] = s
	}
	return out
}

// seeEvent notes an event, each with its count.
func (o *observer) seeEvent(at float64, e *v1.Event, deleted bool) {
	if deleted {
		return
	}
	ref := &e.InvolvedObject
	seen := o.events[e.Namespace+"/"+e.Name]
	if seen == nil {
		seen = &EventSeen{At: at}
		o.events[e.Namespace+"/"+e.Name] = seen
		if ref.Kind == "Node" {
			o.node.NodeEvents = append(o.node.NodeEvents, seen)
		} else {
			p := o.pod(ref.Namespace + "/" + ref.Name)
			p.Events = append(p.Events, seen)
		}
	}
	seen.Last, seen.Type, seen.Reason, seen.Field, seen.Count = at, e.Type, e.Reason, ref.FieldPath, e.Count
	about := o.c.API().Pod(ref.Namespace, ref.Name)
	// A pod that is gone leaves no IP to blur.
	if about == nil {
		about = &v1.Pod{}
	}
	seen.Message = normalise(about, e.Message)
}

var (
	hexID = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	// A static pod's UID is a hash.
	uuid = regexp.MustCompile(`\b([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b`)
	span = regexp.MustCompile(`\b[0-9.]+(ms|s)\b`)
)

// normalise blurs what differs from run to run, as it is in the recordings. What is blurred is
// what is drawn: ids, addresses, times.
func normalise(pod *v1.Pod, s string) string {
	if s == "" {
		return s
	}
	s = uuid.ReplaceAllString(hexID.ReplaceAllString(s, "<id>"), "<uid>")
	s = strings.ReplaceAll(s, "unix /run/containerd/containerd.sock", "unix <cri-socket>")
	if pod.Status.PodIP != "" {
		s = strings.ReplaceAll(s, pod.Status.PodIP, "<pod-ip>")
	}
	if strings.Contains(s, "pulled image") {
		s = span.ReplaceAllString(s, "<$1>")
	}
	return s
}

// record sees the runtime's calls. Only calls that change something are recorded by the runtime's
// trace.
func (o *observer) record(r *trace.Record) {
	switch {
	case r.Kind == trace.KindWarning && o.warn != nil:
		o.warn(r.Verb)
		return
	case r.Kind != trace.KindCRI:
		return
	}
	if r.Verb == "UpdatePodSandboxResources" {
		return // the recorder and its referee don't know it
	}
	call := CallSeen{At: o.at(time.Unix(0, r.At)), Method: r.Verb}
	for _, f := range r.Fields {
		n, _ := strconv.Atoi(f.Value)
		switch f.Key {
		case "attempt":
			call.Attempt = &n
		case "timeout":
			call.Timeout = &n
		case "image":
			call.Image = f.Value
		case "error":
			call.Error = f.Value
		case "tookMs":
			// Seconds, cut to hundredths.
			call.Took = float64(n/10) / 100
		case "message":
			if strings.HasPrefix(f.Value, "connection error") {
				return // it never came to the proxy
			}
		}
	}
	kind, name, _ := strings.Cut(r.Object, " ")
	switch {
	case r.Verb == "RemoveImage":
		if name := o.images[call.Image]; name != "" {
			call.Image = name
		}
		o.node.Images = append(o.node.Images, ImageSeen{call.At, call.Image})
	case r.Verb == "PullImage" && kind == "pod":
		// A pull comes before the container of which there could be an attempt.
		call.Attempt = nil
		fallthrough
	case kind == "pod" || kind == "container":
		// The name is namespace/pod, and for a container that and its name.
		parts := strings.Split(name, "/")
		if len(parts) == 3 {
			call.Container = parts[2]
		}
		p := o.pod(parts[0] + "/" + parts[1])
		p.CRI = append(p.CRI, call)
	}
}
