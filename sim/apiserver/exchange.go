package apiserver

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// A node makes ten requests for each pod that it starts. So what a request needs
// on its way there and back is one struct, used again by the next one.

// exchange is a request of a Client and its answer. The node's loop has it, then
// the server's, then the node's again.
type exchange struct {
	c    *Client
	req  wire.Request
	args args
	run  handler
	v    any        // what run returned
	done loop.Event // the answer has come
	// failed is the error that was answered. It is not written by the server, which
	// may handle a request after it was given up.
	failed error
	// The steps as functions: at the server, and back on the node's loop.
	arrive, told func()
	next         *exchange // in Client.idle
}

// args are what the most frequent calls hand to the server, so that they need no
// closure for it.
type args struct {
	uid          types.UID
	base, status *v1.PodStatus
	room         *v1.Pod
	event        *v1.Event
}

// handler executes a request. It runs on the server's loop.
type handler func(s *store.Store, now time.Time, r *wire.Request, a *args) (any, error)

// maxIdle is how many exchanges a client keeps: the status manager and the event
// recorder each make one request at a time.
const maxIdle = 2

// exchange returns an idle exchange, or a new one.
func (c *Client) exchange() *exchange {
	if x := c.idle; x != nil {
		c.idle, x.next = x.next, nil
		c.idles--
		return x
	}
	x := &exchange{c: c}
	x.arrive, x.told = x.atServer, x.atNode
	return x
}

// release takes back an exchange that the server has nothing to do with any more.
func (c *Client) release(x *exchange) {
	if c.idles == maxIdle {
		return
	}
	x.req, x.args, x.run, x.v = wire.Request{}, args{}, nil, nil
	x.done.Reset()
	x.next, c.idle = c.idle, x
	c.idles++
}

func (x *exchange) atServer() { x.c.srv.serve(x.c.peer, &x.req, x) }

// handle is that of caller.
func (x *exchange) handle(err error) func() {
	s := x.c.srv
	var v any
	if err == nil {
		v, err = x.run(s.store, s.now(), &x.req, &x.args)
	}
	s.outcome = err
	if err != nil {
		return func() {
			x.failed = err
			x.done.Fire()
		}
	}
	x.v = v
	return x.told
}

func (x *exchange) atNode() { x.done.Fire() }

// ask makes a request, again as long as the server asks for that, as client-go
// does. run runs on the server's loop; it must not be a closure for what every
// pod needs.
func ask[T any](ctx context.Context, c *Client, r wire.Request, a args, run handler) (T, error) {
	for try := 0; ; try++ {
		v, err := c.askOnce(ctx, r, a, run)
		if err == nil {
			t, _ := v.(T)
			return t, nil
		}
		if d, again := wire.Retry(err, try); !again || c.l.Sleep(ctx, d) != nil {
			var zero T
			return zero, err
		}
	}
}

// call is ask for what is asked rarely.
func call[T any](ctx context.Context, c *Client, r wire.Request, fn func(s *store.Store, now time.Time) (T, error)) (T, error) {
	return ask[T](ctx, c, r, args{}, func(s *store.Store, now time.Time, _ *wire.Request, _ *args) (any, error) { return fn(s, now) })
}

// askOnce sends a request and waits for its answer. An exchange that has failed,
// or whose answer nobody waits for any more, is left to whoever still has it.
func (c *Client) askOnce(ctx context.Context, r wire.Request, a args, run handler) (any, error) {
	x := c.exchange()
	x.req, x.args, x.run = r, a, run
	if err := ctx.Err(); err != nil {
		return nil, wire.ErrTransport(&x.req, err)
	}
	if c.limiter != nil && wire.Limited(&x.req) {
		if err := wire.Throttle(ctx, c.l, c.limiter, &x.req); err != nil {
			return nil, err
		}
	}
	x.req.Sent = c.l.UnixNano()
	c.tell(x.arrive)
	if err := x.done.Wait(ctx); err != nil {
		return nil, wire.ErrTransport(&x.req, err)
	}
	if x.failed != nil {
		return nil, x.failed
	}
	v := x.v
	c.release(x)
	return v, nil
}
