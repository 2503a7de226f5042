package apiserver

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Request names a request as faults, statistics and errors see it. Resource is
// the plural, with a subresource after a slash: "pods", "pods/status".
type Request struct {
	Verb, Resource, Namespace, Name string
	// Group is the resource's API group; "" is the one that has a resource of this name
	// among what the cluster itself asks for.
	Group string
	// By is who asks, where that isn't a component or node of this name.
	By *Asker
}

// Component is the API as a part of the control plane uses it (the scheduler,
// the controller manager). It runs on the server's loop. Reads cost nothing: an
// informer's cache that is never behind. Requests wait for the client's rate
// limiter and take the latency of a message both ways; faults whose Node is the
// component's name, or "", hit them.
type Component struct {
	s       *Server
	name    string
	limiter *rate.Limiter // nil: no limit
	n       uint64
	asks    *flow.Asker // with a load model
}

// Component returns the API for a component. qps and burst are client-go's;
// qps of 0 or less is no limit.
func (s *Server) Component(name string, qps float64, burst int) *Component {
	c := &Component{s: s, name: name}
	if qps > 0 {
		c.limiter = rate.NewLimiter(rate.Limit(qps), max(burst, 1))
	}
	return c
}

// Name returns the component's name.
func (c *Component) Name() string { return c.name }

// Server returns the server, for reading.
func (c *Component) Server() *Server { return c.s }

// Do makes a request: fn runs when it arrives at the server. The error is that
// of fn, of a fault (an API status, or *url.Error when no answer came), or of ctx.
func (c *Component) Do(ctx context.Context, req Request, fn func(s *Server) error) error {
	for try := 0; ; try++ {
		err := c.do(ctx, req, fn)
		d, again := wire.Retry(err, try)
		if !again || c.s.l.Sleep(ctx, d) != nil {
			return err
		}
	}
}

func (c *Component) do(ctx context.Context, req Request, fn func(s *Server) error) error {
	r := wire.Request{Verb: req.Verb, Resource: req.Resource, Namespace: req.Namespace, Name: req.Name}
	if c.limiter != nil {
		if err := wire.Throttle(ctx, c.s.l, c.limiter, &r); err != nil {
			return err
		}
	}
	r.Sent = c.s.l.UnixNano()
	if err := c.s.l.Sleep(ctx, c.latency("api/request")); err != nil {
		return wire.ErrTransport(&r, err)
	}
	err := c.serve(ctx, &r, fn)
	if e := c.s.l.Sleep(ctx, c.latency("api/reply")); e != nil && err == nil {
		err = wire.ErrTransport(&r, e)
	}
	return err
}

// serve is Server.serve for a caller on the same loop.
func (c *Component) serve(ctx context.Context, r *wire.Request, fn func(s *Server) error) error {
	c.s.requests++
	arrived := c.s.l.UnixNano()
	series := c.s.stats.Series(c.name, r.Verb, r.Resource)
	c.s.stats.Arrive(series, arrived, r.Throttled)
	f := c.s.faults.FateOf(c.name, r)
	left := max(c.s.opts.timeout(r)-time.Duration(c.s.l.UnixNano()-r.Sent), c.s.opts.LatencyMin)
	switch {
	case f.Drop:
		c.s.stats.Answered(series, arrived, 0, 0)
		if err := c.s.l.Sleep(ctx, left); err != nil {
			return wire.ErrTransport(r, err)
		}
		return wire.ErrTimeout(r)
	case f.Refuse:
		c.s.stats.Answered(series, arrived, 0, 0)
		return wire.ErrRefused(r)
	case f.Latency > 0:
		if err := c.s.l.Sleep(ctx, min(f.Latency, left)); err != nil {
			return wire.ErrTransport(r, err)
		}
		if f.Latency >= left {
			return wire.ErrTimeout(r)
		}
	}
	service, err := c.wait(ctx, r, left-f.Latency)
	if err == nil {
		if err = f.Err; err == nil {
			c.s.component = c.name
			err = fn(c.s)
			c.s.component = ""
			if f.Lose {
				err = wire.ErrLost(r)
			}
		}
	}
	c.s.outcome = err
	c.s.answered(series, arrived, service)
	if service > 0 {
		if e := c.s.l.Sleep(ctx, service); e != nil && err == nil {
			err = wire.ErrTransport(r, e)
		}
	}
	return err
}

// wait waits until there are seats for a request and returns its service time.
func (c *Component) wait(ctx context.Context, r *wire.Request, left time.Duration) (service time.Duration, err error) {
	if c.s.flow == nil {
		return 0, nil
	}
	var done loop.Event
	if c.asks == nil {
		c.asks = askerOf(componentUser(c.name))
	}
	c.s.flow.Admit(c.asks, r, left, func(d time.Duration) {
		service = d
		done.Fire()
	}, func(e error) {
		err = e
		done.Fire()
	})
	if e := done.Wait(ctx); e != nil {
		return 0, wire.ErrTransport(r, e)
	}
	return service, err
}

func (c *Component) latency(purpose string) time.Duration {
	c.n++
	return c.s.l.Between(c.s.opts.LatencyMin, c.s.opts.LatencyMax, purpose, c.name, c.n)
}

// Delivery draws how long a watch event takes to the component.
func (c *Component) Delivery() time.Duration { return c.latency("api/watch") }

// Cut reports whether a fault that always hits keeps the component from the API
// now.
func (c *Component) Cut() bool {
	drop, refuse := c.s.faults.Cuts(c.name, "")
	return drop || refuse
}
