package apiserver

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Every node renews its lease every ten seconds, and no other request is made
// as often. So a renewal takes no task, and what it needs is made once.

// renewal is an update of a lease under way.
type renewal struct {
	c      *Client
	lease  *coordinationv1.Lease
	at     time.Time
	try    int
	busy   bool
	req    wire.Request
	answer func(*coordinationv1.Lease, string, error)
	slot   *store.LeaseSlot // for the server only
	// What was answered.
	stored  *coordinationv1.Lease
	version string
	// The steps as functions: at the server, and back on the node's loop.
	arrive, told func()
}

// RenewLease is UpdateLease of a lease, as it was last answered, with another
// renew time. It does not wait: answer is called on the node's loop. It is given
// the lease, or nil and the new version of the one that was given: that differs
// from it in nothing else but the time.
func (c *Client) RenewLease(lease *coordinationv1.Lease, at time.Time, answer func(updated *coordinationv1.Lease, version string, err error)) {
	r := c.renewal
	if r == nil || r.busy {
		r = &renewal{c: c}
		r.arrive, r.told = r.atServer, r.atNode
		c.renewal = r
	}
	r.lease, r.at, r.answer, r.try, r.busy = lease, at, answer, 0, true
	r.send()
}

func (r *renewal) send() {
	r.req = wire.Request{Verb: "update", Resource: "leases", Namespace: r.lease.Namespace, Name: r.lease.Name, Heartbeat: true, Sent: r.c.l.UnixNano()}
	r.c.tell(r.arrive)
}

func (r *renewal) atServer() { r.c.srv.serve(r.c.peer, &r.req, r) }

// handle is that of caller.
func (r *renewal) handle(err error) func() {
	s := r.c.srv
	var stored *coordinationv1.Lease
	var version string
	if err == nil {
		stored, version, err = s.store.RenewLease(s.now(), r.lease, r.at, &r.slot)
	}
	s.outcome = err
	if err != nil {
		return func() { r.failed(err) }
	}
	r.stored, r.version = stored, version
	return r.told
}

func (r *renewal) atNode() {
	stored, version, answer := r.stored, r.version, r.answer
	r.stored, r.version, r.lease, r.answer, r.busy = nil, "", nil, nil, false
	answer(stored, version, nil)
}

// failed leaves the renewal busy for ever: it may still run at the server.
func (r *renewal) failed(err error) {
	if d, again := wire.Retry(err, r.try); again {
		r.try++
		r.c.l.Root().After(d, r.send)
		return
	}
	r.answer(nil, "", err)
}
