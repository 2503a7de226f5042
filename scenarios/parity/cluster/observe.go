package cluster

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Observation is what was seen of one run. Times are seconds since the case's start. Its JSON is that
// of recordings, so the two are compared as JSON.
type Observation struct {
	// Objects are the distinct states of each object, by KIND/NAME, Nodes and Endpoints those of nodes
	// and endpoint slices by name.
	Objects   map[string][]object `json:"objects,omitempty"`
	Pods      []*PodSeen          `json:"pods,omitempty"`
	Nodes     map[string][]object `json:"nodes,omitempty"`
	Endpoints map[string][]object `json:"endpoints,omitempty"`
	Events    []*EventSeen        `json:"events,omitempty"`
	Responses []*ResponseSeen     `json:"responses,omitempty"`
}

// PodSeen is what became of a pod. Times that are nil didn't come.
type PodSeen struct {
	Name             string   `json:"name"`
	Owner            *string  `json:"owner"`
	Node             *string  `json:"node"`
	Image            string   `json:"image"`
	Created          float64  `json:"created"`
	Revision         string   `json:"revision,omitempty"`
	Index            *int     `json:"index,omitempty"`
	Phase            string   `json:"phase,omitempty"`
	Nominated        [][]any  `json:"nominated,omitempty"`
	Unscheduled      [][]any  `json:"unscheduled,omitempty"`
	Bound            *float64 `json:"bound,omitempty"`
	Running          *float64 `json:"running,omitempty"`
	Ready            [][]any  `json:"ready,omitempty"`
	Deleting         *float64 `json:"deleting,omitempty"`
	Grace            *int64   `json:"grace,omitempty"`
	DisruptionTarget []string `json:"disruptionTarget,omitempty"`
	Ended            *float64 `json:"ended,omitempty"`
	Gone             *float64 `json:"gone,omitempty"`
	Reason           []string `json:"reason,omitempty"`
	OwnerChanges     [][]any  `json:"ownerChanges,omitempty"`

	lastReady, lastNominated string
	lastUnscheduled          [3]string
	lastOwner                *string
}

// EventSeen is equal events, over all objects whose names differ only in what was generated.
type EventSeen struct {
	At      float64 `json:"at"`
	Last    float64 `json:"last"`
	Type    string  `json:"type"`
	Reason  string  `json:"reason"`
	Object  string  `json:"object"`
	Message string  `json:"message"`
	Count   int32   `json:"count"`
	By      string  `json:"by"`
}

// ResponseSeen is an answer to an action.
type ResponseSeen struct {
	At      float64     `json:"at"`
	Do      string      `json:"do"`
	Code    int32       `json:"code"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Causes  [][3]string `json:"causes,omitempty"`
}

// observer sees what watches of the recorder's saw. Its callbacks run on the API's loop.
type observer struct {
	c     *sim.Cluster
	zero  time.Time
	names *names
	seen  Observation
	pods  map[types.UID]*PodSeen
	// events by what makes them equal; counts are of each event object.
	events map[EventSeen]*EventSeen
	counts map[types.NamespacedName]int32
	uids   map[string][]types.UID
	// nodes are the states of the nodes before the case began.
	nodes map[string]object
}

// newObserver returns an observer that hears of every change of the cluster; times count from zero.
func newObserver(c *sim.Cluster, zero time.Duration) *observer {
	o := &observer{
		c: c, zero: c.Start().Add(zero), names: newNames(), pods: map[types.UID]*PodSeen{}, events: map[EventSeen]*EventSeen{},
		counts: map[types.NamespacedName]int32{}, uids: map[string][]types.UID{}, nodes: map[string]object{},
		seen: Observation{Objects: map[string][]object{}, Nodes: map[string][]object{}, Endpoints: map[string][]object{}},
	}
	c.API().OnChange(o.change)
	return o
}

// result returns what was seen. Texts get their names now: an event may come before what it names.
func (o *observer) result() *Observation {
	for _, e := range o.events { //drydock:unordered sorted below
		o.seen.Events = append(o.seen.Events, e)
	}
	slices.SortFunc(o.seen.Events, func(a, b *EventSeen) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), cmp.Compare(a.By, b.By))
	})
	for name, row := range o.nodes { //drydock:unordered fills a map
		row["at"] = 0.0
		o.seen.Nodes[name] = append([]object{row}, o.seen.Nodes[name]...)
	}
	return &o.seen
}

// at is the time now as recordings have it, in hundredths of a second.
func (o *observer) at() float64 {
	return math.Round(o.c.API().Loop().Now().Sub(o.zero).Seconds()*100) / 100
}

// change notes a committed change, as a watch would show it.
func (o *observer) change(c apiserver.Change) {
	at := o.at()
	gone := c.Type == watch.Deleted
	o.names.see(c.New)
	switch obj := c.New.(type) {
	case *v1.Event:
		if at >= 0 && !gone {
			o.seeEvent(at, obj)
		}
	case *v1.Node:
		row := nodeRow(obj)
		if at < 0 {
			o.nodes[obj.Name] = row
			return
		}
		if before := o.nodes[obj.Name]; before != nil && !gone && len(o.seen.Nodes[obj.Name]) == 0 && reflect.DeepEqual(before, row) {
			return
		}
		note(o.seen.Nodes, obj.Name, at, row, gone)
	case *v1.Pod:
		if at >= 0 {
			o.seePod(at, obj, gone)
		}
	case *discoveryv1.EndpointSlice:
		if at >= 0 {
			note(o.seen.Endpoints, o.name(obj), at, o.endpointsRow(obj), gone)
		}
	default:
		// What was there before the case is in no recording.
		if created := obj.GetCreationTimestamp(); at < 0 || created.Time.Before(o.zero.Truncate(time.Second)) {
			return
		}
		if row := o.objectRow(c.New); row != nil {
			note(o.seen.Objects, string(c.Kind)+"/"+o.name(obj), at, row, gone)
		}
	}
}

// name is what stands for an object's name, with its namespace unless that is the usual one.
func (o *observer) name(obj apiserver.Object) string {
	return inNamespace(obj.GetNamespace(), o.names.of(obj.GetUID(), obj.GetName()))
}

func inNamespace(ns, name string) string {
	if ns == "" || ns == recordedNamespace {
		return name
	}
	return ns + "/" + name
}

// note adds a state to those of an object, unless it is the last one's.
func note(all map[string][]object, key string, at float64, row object, gone bool) {
	if gone {
		row = object{"deleted": true}
	}
	row["at"] = at
	rows := all[key]
	if n := len(rows); n > 0 {
		before := maps.Clone(rows[n-1])
		before["at"] = at
		if reflect.DeepEqual(before, row) {
			return
		}
	}
	all[key] = append(rows, row)
}

// seePod notes what happened to a pod.
func (o *observer) seePod(at float64, pod *v1.Pod, gone bool) {
	s := o.pods[pod.UID]
	if s == nil {
		s = &PodSeen{Name: o.name(pod), Created: at, Owner: o.controller(pod), Image: pod.Spec.Containers[0].Image, lastReady: "False"}
		s.Revision = o.names.revision(pod.Labels["controller-revision-hash"])
		if i, err := strconv.Atoi(completionIndex(pod)); err == nil {
			s.Index = &i
		}
		s.lastOwner = s.Owner
		o.pods[pod.UID] = s
		o.seen.Pods = append(o.seen.Pods, s)
	}
	once := func(t **float64) {
		if *t == nil {
			*t = &at
		}
	}
	if pod.DeletionTimestamp != nil && s.Deleting == nil {
		s.Deleting, s.Grace = &at, pod.DeletionGracePeriodSeconds
	}
	if gone {
		s.Gone = &at
		return
	}
	s.Image = pod.Spec.Containers[0].Image
	if owner := o.controller(pod); !reflect.DeepEqual(owner, s.lastOwner) {
		s.lastOwner = owner
		s.OwnerChanges = append(s.OwnerChanges, []any{at, owner})
	}
	if pod.Spec.NodeName != "" && s.Bound == nil {
		s.Bound, s.Node = &at, &pod.Spec.NodeName
	}
	st := &pod.Status
	if n := st.NominatedNodeName; n != s.lastNominated {
		s.lastNominated = n
		var node any // null when it ends
		if n != "" {
			node = n
		}
		s.Nominated = append(s.Nominated, []any{at, node})
	}
	// A kubelet says of a pod that never ran, once it has been deleted, that it failed. The recorded
	// nodes removed such pods without a word.
	if s.Running != nil || s.Deleting == nil {
		s.Phase = string(st.Phase)
	}
	switch phase := v1.PodPhase(s.Phase); phase {
	case v1.PodRunning:
		once(&s.Running)
	case v1.PodSucceeded, v1.PodFailed:
		once(&s.Ended)
	}
	if st.Reason != "" {
		s.Reason = []string{st.Reason, st.Message}
	}
	for i := range st.Conditions {
		c := &st.Conditions[i]
		switch c.Type {
		case v1.PodReady:
			if string(c.Status) != s.lastReady {
				s.lastReady = string(c.Status)
				s.Ready = append(s.Ready, []any{at, s.lastReady})
			}
		case v1.DisruptionTarget:
			s.DisruptionTarget = []string{string(c.Status), c.Reason, o.names.text(c.Message)}
		case v1.PodScheduled:
			why := [3]string{string(c.Status), c.Reason, o.names.text(c.Message)}
			if s.Bound == nil && why != s.lastUnscheduled {
				s.lastUnscheduled = why
				s.Unscheduled = append(s.Unscheduled, []any{at, why[0], why[1], why[2]})
			}
		}
	}
}

// watchLag is after how long the recorder, who chose pods by what its watches had shown, knew of a
// deletion.
const watchLag = 0.03

// seenDeleted reports whether the recorder knew that a pod was being deleted.
func (o *observer) seenDeleted(pod *v1.Pod) bool {
	s := o.pods[pod.UID]
	return pod.DeletionTimestamp != nil && (s == nil || s.Deleting == nil || o.at()-*s.Deleting >= watchLag)
}

// controller is an object's controller, as KIND/NAME; nil if it has none.
func (o *observer) controller(obj apiserver.Object) *string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return nil
	}
	s := ref.Kind + "/" + o.names.of(ref.UID, ref.Name)
	return &s
}

// seeEvent notes an event and its count. What kubelets tell is left out: the recorded nodes told
// nothing.
func (o *observer) seeEvent(at float64, e *v1.Event) {
	by := cmp.Or(e.ReportingController, e.Source.Component)
	if by == "kubelet" {
		return
	}
	ref := &e.InvolvedObject
	name := o.names.event(ref.Name)
	key := EventSeen{Type: e.Type, Reason: e.Reason, Object: ref.Kind + "/" + inNamespace(ref.Namespace, name), Message: o.names.event(e.Message), By: by}
	s := o.events[key]
	if s == nil {
		s = &EventSeen{At: at, Type: key.Type, Reason: key.Reason, Object: key.Object, Message: key.Message, By: by}
		o.events[key] = s
	}
	id := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	count := max(e.Count, 1)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	s.Last = at
	s.Count += max(count-o.counts[id], 0)
	o.counts[id] = count
}

// answer notes the answer to an action; nil is that it was done.
func (o *observer) answer(a *Action, refused apierrors.APIStatus) {
	r := &ResponseSeen{At: o.at(), Do: a.Do, Code: 201}
	if refused != nil {
		st := refused.Status()
		r.Code, r.Reason, r.Message = st.Code, string(st.Reason), o.names.text(st.Message)
		if st.Details != nil {
			for _, c := range st.Details.Causes {
				r.Causes = append(r.Causes, [3]string{string(c.Type), c.Field, o.names.text(c.Message)})
			}
		}
	}
	o.seen.Responses = append(o.seen.Responses, r)
}
