package controller

import (
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// How kube-controller-manager leads (k8s.io/component-base config/v1alpha1
// RecommendedDefaultLeaderElectionConfiguration).
const (
	// RenewDeadline is how long a leader goes on without renewing its lease.
	RenewDeadline = 10 * time.Second
	// RetryPeriod is how often it tries.
	RetryPeriod = 2 * time.Second
)

// Election is what is seen of kube-controller-manager's leader election: one
// that is cut off the API for RenewDeadline exits, and the one that leads
// afterwards knows only what the API tells it. Nothing is written and nothing
// runs while the API can be reached; whoever notices that it can't says so.
type Election struct {
	api     *apiserver.Component
	l       *loop.Loop
	poll    *loop.Timer
	since   time.Time
	restart func()
}

// NewElection returns an election of a group that outlives the leader. restart
// has another leader take its place.
func NewElection(g *loop.Group, api *apiserver.Component, restart func()) *Election {
	e := &Election{api: api, l: g.Loop(), restart: restart}
	e.poll = g.NewTimer("leader election", e.look)
	return e
}

// Cut reports whether the API can't be reached; from then on the time counts.
func (e *Election) Cut() bool {
	if e == nil {
		return false
	}
	if e.poll.Set() {
		return true
	}
	if !e.api.Cut() {
		return false
	}
	e.since = e.l.Now()
	e.poll.Reset(RetryPeriod)
	return true
}

// look runs every RetryPeriod while the API was out of reach. When it is back in
// time, nobody has noticed; when not, another leader has taken over.
func (e *Election) look() {
	if e.api.Cut() {
		e.poll.Reset(RetryPeriod)
		return
	}
	if e.l.Since(e.since) >= RenewDeadline {
		e.restart()
	}
}
