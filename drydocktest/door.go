package drydocktest

import (
	"context"
	"errors"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// door is the way of a facade to the API of a cluster in a bubble (facade.Door).
type door struct {
	p   *pump
	api *apiserver.Server
	l   *loop.Loop
	// sent counts each client's requests, in the order in which they are taken in.
	sent map[string]uint64
	// trace is a hash over all requests.
	trace    uint64
	requests uint64
}

func newDoor(p *pump) *door {
	api := p.session.Cluster().API()
	return &door{p: p, api: api, l: api.Loop(), sent: map[string]uint64{}}
}

// call is what a transport says of a request, in its context.
type call struct {
	who, key string
}

type callKey struct{}

// errClosed is the answer of a cluster whose test is over.
var errClosed = errors.New("drydocktest: the test is over")

// Do implements facade.Door.
func (d *door) Do(ctx context.Context, fn func()) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return errors.New("drydocktest: a request that is no client's")
	}
	done := make(chan struct{})
	x := &crossing{stamp: time.Now().UnixNano(), who: c.who, key: c.key}
	x.take = func() { d.arrive(x, fn, done) }
	d.p.put(x)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.p.stopped:
		return errClosed
	}
}

// arrive has a request reach the API after its latency, and its answer go back.
func (d *door) arrive(x *crossing, fn func(), done chan struct{}) {
	d.sent[x.who]++
	n := d.sent[x.who]
	d.requests++
	d.trace = loop.Hash(d.trace, []string{x.who, x.key}, uint64(x.stamp))
	at := x.stamp + int64(d.latency("client/request", x.who, n))
	stream := loop.Hash(d.l.Seed(), []string{"client/request", x.who}, n)
	d.l.Root().AfterInStream(stream, time.Duration(at-d.l.UnixNano()), func() {
		fn()
		d.p.deliver(d.l.UnixNano()+int64(d.latency("client/reply", x.who, n)), func() { close(done) })
	})
}

// Deliver implements facade.Door.
func (d *door) Deliver(_ context.Context, fn func()) {
	d.p.deliver(d.l.UnixNano()+d.p.lookahead, fn)
}

// latency draws how long a message takes.
func (d *door) latency(purpose, who string, n uint64) time.Duration {
	return time.Duration(d.p.lookahead)
}
