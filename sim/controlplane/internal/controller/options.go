package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Options are what every controller is made of. All get the same ones, so that a
// row of the control plane's table is enough to start one.
type Options struct {
	// Group is what the controller dies with: the controller manager's. The
	// controller runs on the group's loop, which is the API's.
	Group *loop.Group
	// API is the controller's own client, with rate limits of its own.
	API *apiserver.Component
	// Election is told when the API can't be reached. Nil: nobody asks.
	Election *Election
	// Closed: no client from outside comes, so what nobody in the simulation does nobody does.
	Closed bool
	// Warn, if any, takes a word, one line, about what users may not expect.
	Warn func(text string)
	// Indexes are shared by the controllers of one manager. Nil will do for
	// controllers that use none.
	*Indexes
}

// Indexes are what upstream's controllers share as informers' indexers. Each is
// made for the first controller that asks for it: a cluster without workload
// controllers keeps none of them up to date.
//
// An index hears of a change before the controllers that asked for it, because
// hooks are called in the order in which they were registered. So a controller
// asks in New, before it registers its own.
type Indexes struct {
	srv         *apiserver.Server
	pods        *Pods
	replicaSets *Owned[*appsv1.ReplicaSet]
	revisions   *Owned[*appsv1.ControllerRevision]
	jobs        *Owned[*batchv1.Job]
}

// NewIndexes returns the indexes of one controller manager.
func NewIndexes(srv *apiserver.Server) *Indexes { return &Indexes{srv: srv} }

// Pods are all pods by their controller.
func (x *Indexes) Pods() *Pods {
	if x.pods == nil {
		x.pods = NewPods(x.srv)
	}
	return x.pods
}

// ReplicaSets are the ReplicaSets by their Deployment.
func (x *Indexes) ReplicaSets() *Owned[*appsv1.ReplicaSet] {
	if x.replicaSets == nil {
		x.replicaSets = NewOwned[*appsv1.ReplicaSet](x.srv, apiserver.KindReplicaSet)
	}
	return x.replicaSets
}

// Revisions are the ControllerRevisions by their StatefulSet or DaemonSet.
func (x *Indexes) Revisions() *Owned[*appsv1.ControllerRevision] {
	if x.revisions == nil {
		x.revisions = NewOwned[*appsv1.ControllerRevision](x.srv, apiserver.KindControllerRevision)
	}
	return x.revisions
}

// Jobs are the Jobs by their CronJob.
func (x *Indexes) Jobs() *Owned[*batchv1.Job] {
	if x.jobs == nil {
		x.jobs = NewOwned[*batchv1.Job](x.srv, apiserver.KindJob)
	}
	return x.jobs
}
