package sim_test

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/trace"
)

// observation is what was seen of one run: of a pod case the one pod, of a
// node case all pods and the node. Times are seconds since the case's start.
type observation struct {
	podObservation
	Pods       map[string]*podObservation `json:"pods,omitempty"`
	Node       []nodeSeen                 `json:"node,omitempty"`
	NodeEvents []*eventSeen               `json:"nodeEvents,omitempty"`
	Leases     []leaseSeen                `json:"leases,omitempty"`
	Images     []imageSeen                `json:"images,omitempty"`
}

type podObservation struct {
	Status []statusSeen `json:"status"`
	Events []*eventSeen `json:"events"`
	CRI    []callSeen   `json:"cri"`
}

type statusSeen struct {
	At         float64                  `json:"at"`
	Deleted    bool                     `json:"deleted,omitempty"`
	Phase      string                   `json:"phase,omitempty"`
	Reason     string                   `json:"reason,omitempty"`
	Message    string                   `json:"message,omitempty"`
	QOSClass   string                   `json:"qosClass,omitempty"`
	Conditions map[string]conditionSeen `json:"conditions,omitempty"`
	Init       map[string]containerSeen `json:"initContainers,omitempty"`
	Containers map[string]containerSeen `json:"containers,omitempty"`
	Ephemeral  map[string]containerSeen `json:"ephemeralContainers,omitempty"`
	HasPodIP   bool                     `json:"hasPodIP"`
	Deleting   *int64                   `json:"deleting,omitempty"`
	UID        string                   `json:"uid,omitempty"`
	Mirror     bool                     `json:"mirror,omitempty"`
}

type conditionSeen struct {
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type containerSeen struct {
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	Signal   int32     `json:"signal,omitempty"`
	Message  string    `json:"message,omitempty"`
	Restarts int32     `json:"restartCount"`
	Ready    bool      `json:"ready"`
	Started  *bool     `json:"started,omitempty"`
	Last     *lastSeen `json:"last,omitempty"`
}

type lastSeen struct {
	ExitCode int32  `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
}

type eventSeen struct {
	At      float64 `json:"at"`
	Last    float64 `json:"last"`
	Type    string  `json:"type"`
	Reason  string  `json:"reason"`
	Field   string  `json:"field"`
	Message string  `json:"message"`
	Count   int32   `json:"count"`
}

type callSeen struct {
	At        float64 `json:"at"`
	Took      float64 `json:"took"`
	Method    string  `json:"method"`
	Container string  `json:"container,omitempty"`
	Attempt   *int    `json:"attempt,omitempty"`
	Timeout   *int    `json:"timeout,omitempty"`
	Image     string  `json:"image,omitempty"`
	Error     string  `json:"error,omitempty"`
}

type nodeSeen struct {
	At         float64              `json:"at"`
	Conditions map[string][3]string `json:"conditions"`
}

type leaseSeen struct {
	At float64 `json:"at"`
}

type imageSeen struct {
	At    float64 `json:"at"`
	Image string  `json:"image"`
}

// last is the time of the last that was seen.
func (o *observation) last() float64 {
	t := o.podObservation.last()
	for _, p := range o.Pods {
		t = max(t, p.last())
	}
	for _, l := range o.Leases {
		t = max(t, l.At)
	}
	return t
}

func (o *podObservation) last() float64 {
	var t float64
	for i := range o.Status {
		t = max(t, o.Status[i].At)
	}
	for _, e := range o.Events {
		t = max(t, e.Last)
	}
	for i := range o.CRI {
		t = max(t, o.CRI[i].At)
	}
	return t
}

// observer sees what the recordings' proxy and watches saw.
type observer struct {
	c      *sim.Cluster
	zero   time.Time
	pods   map[string]*podObservation
	order  []string
	uids   map[string][]types.UID
	events map[string]*eventSeen
	node   observation
}

func newObserver(c *sim.Cluster, zero time.Duration) *observer {
	o := &observer{c: c, zero: c.Start().Add(zero), pods: map[string]*podObservation{}, uids: map[string][]types.UID{}, events: map[string]*eventSeen{}}
	c.API().OnChange(o.change)
	c.Records(o.record)
	return o
}

// result returns what was seen, in the form of a node case or a pod case.
func (o *observer) result(ofNode bool) observation {
	if !ofNode {
		if len(o.order) == 0 {
			return observation{}
		}
		p := o.pods[o.order[0]]
		for i := range p.Status {
			p.Status[i].UID = "" // only node cases tell the objects of a name apart
		}
		return observation{podObservation: *p}
	}
	o.node.Pods = o.pods
	return o.node
}

func (o *observer) pod(key string) *podObservation {
	p := o.pods[key]
	if p == nil {
		p = &podObservation{Status: []statusSeen{}, Events: []*eventSeen{}, CRI: []callSeen{}}
		o.pods[key], o.order = p, append(o.order, key)
	}
	return p
}

// at is a time as recordings have it: in tenths of a second, and -1 for
// whatever was before the case's start.
func (o *observer) at(t time.Time) float64 {
	return max(-1, math.Round(t.Sub(o.zero).Seconds()*10)/10)
}

func (o *observer) change(c apiserver.Change) {
	at := o.at(o.c.API().Loop().Now())
	switch obj := c.New.(type) {
	case *v1.Pod:
		o.seePod(at, obj, c.Type == watch.Deleted)
	case *v1.Event:
		o.seeEvent(at, obj, c.Type == watch.Deleted)
	case *v1.Node:
		seen := nodeSeen{At: at, Conditions: map[string][3]string{}}
		for _, x := range obj.Status.Conditions {
			seen.Conditions[string(x.Type)] = [3]string{string(x.Status), x.Reason, x.Message}
		}
		if n := len(o.node.Node); n > 0 && reflect.DeepEqual(o.node.Node[n-1].Conditions, seen.Conditions) {
			return
		} else if n > 0 && at == -1 {
			o.node.Node = o.node.Node[:0]
		}
		o.node.Node = append(o.node.Node, seen)
	case *coordinationv1.Lease:
		if at == -1 {
			o.node.Leases = o.node.Leases[:0]
		}
		o.node.Leases = append(o.node.Leases, leaseSeen{At: at})
	}
}

func (o *observer) seePod(at float64, pod *v1.Pod, deleted bool) {
	key := pod.Namespace + "/" + pod.Name
	p := o.pod(key)
	if deleted {
		p.Status = append(p.Status, statusSeen{At: at, Deleted: true, Phase: string(pod.Status.Phase)})
		return
	}
	st := &pod.Status
	s := statusSeen{
		At: at, Phase: string(st.Phase), Reason: st.Reason, Message: normalise(pod, st.Message), QOSClass: string(st.QOSClass),
		Conditions: map[string]conditionSeen{}, HasPodIP: st.PodIP != "",
		Init: seeContainers(pod, st.InitContainerStatuses), Containers: seeContainers(pod, st.ContainerStatuses), Ephemeral: seeContainers(pod, st.EphemeralContainerStatuses),
	}
	for _, c := range st.Conditions {
		s.Conditions[string(c.Type)] = conditionSeen{string(c.Status), c.Reason, normalise(pod, c.Message)}
	}
	if pod.DeletionTimestamp != nil {
		s.Deleting = pod.DeletionGracePeriodSeconds
	}
	_, s.Mirror = pod.Annotations[v1.MirrorPodAnnotationKey]
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
		before := p.Status[n-1]
		if before.At = at; reflect.DeepEqual(before, s) {
			return
		}
	}
	p.Status = append(p.Status, s)
}

func seeContainers(pod *v1.Pod, list []v1.ContainerStatus) map[string]containerSeen {
	if len(list) == 0 {
		return nil
	}
	out := map[string]containerSeen{}
	for i := range list {
		c := &list[i]
		s := containerSeen{State: "waiting", Restarts: c.RestartCount, Ready: c.Ready, Started: c.Started}
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
			s.Last = &lastSeen{t.ExitCode, t.Reason}
		}
		out[c.Name] = s
	}
	return out
}

func (o *observer) seeEvent(at float64, e *v1.Event, deleted bool) {
	if deleted {
		return
	}
	ref := &e.InvolvedObject
	seen := o.events[e.Namespace+"/"+e.Name]
	if seen == nil {
		seen = &eventSeen{At: at}
		o.events[e.Namespace+"/"+e.Name] = seen
		if ref.Kind == "Node" {
			o.node.NodeEvents = append(o.node.NodeEvents, seen)
		} else {
			p := o.pod(ref.Namespace + "/" + ref.Name)
			p.Events = append(p.Events, seen)
		}
	}
	seen.Last, seen.Type, seen.Reason, seen.Field, seen.Count = at, e.Type, e.Reason, ref.FieldPath, e.Count
	seen.Message = normalise(&v1.Pod{}, e.Message)
}

var (
	hexID = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	uuid  = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	span  = regexp.MustCompile(`\b[0-9.]+(ms|s)\b`)
)

// normalise blurs what differs from run to run, as it is in the recordings.
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

// record sees the runtime's calls.
func (o *observer) record(r *trace.Record) {
	if r.Kind != trace.KindCRI {
		return
	}
	call := callSeen{At: o.at(time.Unix(0, r.At)), Method: r.Verb}
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
		o.node.Images = append(o.node.Images, imageSeen{call.At, call.Image})
	case r.Verb == "PullImage" && kind == "pod":
		call.Attempt = nil
		fallthrough
	case kind == "pod" || kind == "container":
		parts := strings.Split(name, "/")
		if len(parts) == 3 {
			call.Container = parts[2]
		}
		p := o.pod(parts[0] + "/" + parts[1])
		p.CRI = append(p.CRI, call)
	}
}

func resources(pairs ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}
