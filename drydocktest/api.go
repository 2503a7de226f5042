package drydocktest

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// API is the cluster's API, for what may happen to it and to its clients' connections.
type API struct{ c *Cluster }

// API returns the cluster's API.
func (c *Cluster) API() API { return API{c} }

// Fault is something wrong with the API as clients see it.
type Fault struct {
	// Client is whose requests are hit: the name that Config was given, or a node's.
	// Verb ("get", "list", "watch", "create", "update", "patch", "delete",
	// "deletecollection"), Resource ("pods", "pods/status", "shops") and so on say
	// which. What is empty is any.
	Client, Verb, Resource, Namespace, Name string

	// Code, when not 0, is the HTTP status of the answer, such as 409, 429 or 500.
	Code int32
	// Reason is that of the status. Empty means the one that belongs to the code.
	Reason metav1.StatusReason
	// Latency is by how much later requests are handled. With the Verb watch, also by how
	// much later events arrive: a cache that is stale.
	Latency time.Duration
	// Drop has what is sent vanish, as in a partition: requests get no answer, watches
	// stall, and break after 45s.
	Drop bool
	// Refuse has connections refused; watches break.
	Refuse bool
	// LoseAnswer has requests take effect, but their answers lost with the connection.
	LoseAnswer bool
	// Probability is how likely a request is hit; 0 means always.
	Probability float64
	// For is how long the fault lasts. 0 means until it is ended.
	For time.Duration
}

// String is the fault in a few words.
func (f Fault) String() string {
	var what []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			what = append(what, fmt.Sprintf(format, args...))
		}
	}
	add(f.Drop, "partition")
	add(f.Refuse, "refusal of connections")
	add(f.Code != 0, "error %d", f.Code)
	add(f.LoseAnswer, "loss of answers")
	add(f.Latency > 0, "delay of %v", f.Latency)
	add(f.Probability > 0, "with probability %.2g", f.Probability)
	about := strings.Join(strings.Fields(strings.Join([]string{f.Verb, f.Resource, f.Namespace, f.Name}, " ")), " ")
	if about != "" {
		about = " for " + about
	}
	return strings.Join(what, ", ") + about
}

// Fault has something be wrong with the API until end is called, or for its time.
func (a API) Fault(f Fault) (end func()) {
	c := a.c
	c.t.Helper()
	switch {
	case !f.Drop && !f.Refuse && !f.LoseAnswer && f.Code == 0 && f.Latency == 0:
		c.t.Fatal("drydocktest: Fault: it has no effect: it needs Code, Latency, Drop, Refuse or LoseAnswer")
	case f.Code != 0 && (f.Code < 400 || f.Code > 599):
		c.t.Fatalf("drydocktest: Fault: the code %d is not within 400 and 599", f.Code)
	case f.Probability < 0 || f.Probability > 1:
		c.t.Fatalf("drydocktest: Fault: the probability %v is not within 0 and 1", f.Probability)
	}
	object := "api"
	if f.Client != "" {
		object = "client " + f.Client
	}
	note := func(verb string) { c.session.Cluster().Recorder().Record(trace.KindFault, object, f.String()+verb) }
	var remove func()
	over := func() {
		if remove != nil {
			remove()
			remove = nil
			note(" ends")
		}
	}
	c.mustBetween(func() {
		note(" begins")
		api := c.session.Cluster().API()
		remove = api.AddFault(apiserver.Fault{
			Node: f.Client, Verb: f.Verb, Resource: f.Resource, Namespace: f.Namespace, Name: f.Name,
			Code: f.Code, Reason: f.Reason, Latency: f.Latency, Drop: f.Drop, Refuse: f.Refuse, Lose: f.LoseAnswer, Probability: f.Probability,
		})
		if f.For > 0 {
			api.Loop().Root().After(f.For, over)
		}
	})
	return func() { c.mustBetween(over) }
}

// Partition cuts a client off from the API for a time.
func (a API) Partition(client string, d time.Duration) {
	a.c.t.Helper()
	a.Fault(Fault{Client: client, Drop: true, For: d})
}

// BreakWatches breaks a client's watches of a resource, "" being all, once. Clients go on
// from where they were, unless Forget is called as well.
func (a API) BreakWatches(client, resource string) {
	a.c.mustBetween(func() {
		a.c.session.Cluster().Recorder().Record(trace.KindFault, "client "+client, "watches break")
		apiserver.RemoteOf(a.c.session.Cluster().API(), client).Break(resource)
	})
}

// Forget has the API forget all versions but the present one, as a compaction and a
// restart do: watches that begin behind it are refused as expired, and clients list anew.
func (a API) Forget() { a.c.mustBetween(a.c.facade.Forget) }

// mustBetween is between for what has no error to return. After the cluster's end nothing
// happens.
func (c *Cluster) mustBetween(fn func()) {
	c.t.Helper()
	if err := c.between(fn); err != nil {
		c.t.Error(err)
	}
}
