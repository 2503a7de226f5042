package apiserver

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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
	req    request
	stored *coordinationv1.Lease
	answer func(*coordinationv1.Lease, error)
	// The steps as functions: at the server, there once seats are free, and
	// back on the node's loop.
	arrive, told func()
	run          func(error) func()
}

// RenewLease is UpdateLease of a lease, as it was last answered, with another
// renew time. It does not wait: answer is called on the node's loop.
func (c *Client) RenewLease(lease *coordinationv1.Lease, at time.Time, answer func(*coordinationv1.Lease, error)) {
	r := c.renewal
	if r == nil || r.busy {
		r = &renewal{c: c}
		r.arrive, r.told, r.run = r.atServer, r.atNode, r.handle
		c.renewal = r
	}
	r.lease, r.at, r.answer, r.try, r.busy = lease, at, answer, 0, true
	r.send()
}

func (r *renewal) send() {
	r.req = request{verb: "update", resource: "leases", namespace: r.lease.Namespace, name: r.lease.Name, heartbeat: true, sent: r.c.l.UnixNano()}
	r.c.tell(r.arrive)
}

func (r *renewal) atServer() { r.c.srv.serve(r.c.peer, r.req, r.run) }

func (r *renewal) handle(err error) func() {
	s := r.c.srv
	var stored *coordinationv1.Lease
	if err == nil {
		stored, err = s.store.RenewLease(s.now(), r.lease, r.at)
	}
	s.outcome = err
	if err != nil {
		return func() { r.failed(err) }
	}
	r.stored = stored
	return r.told
}

func (r *renewal) atNode() {
	stored, answer := r.stored, r.answer
	r.stored, r.lease, r.answer, r.busy = nil, nil, nil, false
	answer(stored, nil)
}

// failed leaves the renewal busy for ever: it may still run at the server.
func (r *renewal) failed(err error) {
	if d, again := retry(err, r.try); again {
		r.try++
		r.c.l.Root().After(d, r.send)
		return
	}
	r.answer(nil, err)
}

// RenewLease is UpdateLease of a lease, as it was last answered, with another
// renew time.
func (s *Store) RenewLease(now time.Time, lease *coordinationv1.Lease, at time.Time) (*coordinationv1.Lease, error) {
	old, ok := s.leases.get(lease.Namespace, lease.Name)
	if !ok || old != lease {
		c := *lease
		c.Spec.RenewTime = &metav1.MicroTime{Time: at}
		return s.UpdateLease(now, &c)
	}
	next := &struct { // in one piece
		lease coordinationv1.Lease
		at    metav1.MicroTime
	}{*old, metav1.MicroTime{Time: at.UTC().Truncate(time.Microsecond)}}
	next.lease.Spec.RenewTime = &next.at
	s.commit(watch.Modified, KindLease, old, &next.lease, "update", "")
	return &next.lease, nil
}
