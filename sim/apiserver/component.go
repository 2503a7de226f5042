package apiserver

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Request names a request as faults, statistics and errors see it. Resource is
// the plural, with a subresource after a slash: "pods", "pods/status".
type Request struct {
	Verb, Resource, Namespace, Name string
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
		d, again := retry(err, try)
		if !again || c.s.l.Sleep(ctx, d) != nil {
			return err
		}
	}
}

func (c *Component) do(ctx context.Context, req Request, fn func(s *Server) error) error {
	r := request{verb: req.Verb, resource: req.Resource, namespace: req.Namespace, name: req.Name}
	if c.limiter != nil {
		if err := throttle(ctx, c.s.l, c.limiter, &r); err != nil {
			return err
		}
	}
	r.sent = c.s.l.UnixNano()
	if err := c.s.l.Sleep(ctx, c.latency("api/request")); err != nil {
		return urlError(&r, err)
	}
	err := c.serve(ctx, &r, fn)
	if e := c.s.l.Sleep(ctx, c.latency("api/reply")); e != nil && err == nil {
		err = urlError(&r, e)
	}
	return err
}

// serve is Server.serve for a caller on the same loop.
func (c *Component) serve(ctx context.Context, r *request, fn func(s *Server) error) error {
	c.s.requests++
	arrived := c.s.l.UnixNano()
	series := c.s.stats.series(c.name, r.verb, r.resource)
	c.s.stats.arrive(series, arrived, r.throttled)
	f := c.s.fate(c.name, r)
	left := max(r.timeout(&c.s.opts)-time.Duration(c.s.l.UnixNano()-r.sent), c.s.opts.LatencyMin)
	switch {
	case f.drop:
		c.s.stats.answered(series, arrived, 0, 0)
		if err := c.s.l.Sleep(ctx, left); err != nil {
			return urlError(r, err)
		}
		return errTimeout(r)
	case f.refuse:
		c.s.stats.answered(series, arrived, 0, 0)
		return errRefused(r)
	case f.latency > 0:
		if err := c.s.l.Sleep(ctx, min(f.latency, left)); err != nil {
			return urlError(r, err)
		}
		if f.latency >= left {
			return errTimeout(r)
		}
	}
	service, err := c.wait(ctx, r, left-f.latency)
	if err == nil {
		if err = f.err; err == nil {
			c.s.component = c.name
			err = fn(c.s)
			c.s.component = ""
		}
	}
	c.s.outcome = err
	c.s.answered(series, arrived, service)
	if service > 0 {
		if e := c.s.l.Sleep(ctx, service); e != nil && err == nil {
			err = urlError(r, e)
		}
	}
	return err
}

// wait waits until there are seats for a request and returns its service time.
func (c *Component) wait(ctx context.Context, r *request, left time.Duration) (service time.Duration, err error) {
	if c.s.flow == nil {
		return 0, nil
	}
	var done loop.Event
	c.s.flow.admit(c.name, "", r, left, func(d time.Duration) {
		service = d
		done.Fire()
	}, func(e error) {
		err = e
		done.Fire()
	})
	if e := done.Wait(ctx); e != nil {
		return 0, urlError(r, e)
	}
	return service, err
}

func (c *Component) latency(purpose string) time.Duration {
	c.n++
	return c.s.l.Between(c.s.opts.LatencyMin, c.s.opts.LatencyMax, purpose, c.name, c.n)
}

// Delivery draws how long a watch event takes to the component.
func (c *Component) Delivery() time.Duration { return c.latency("api/watch") }

// Cut tells whether a fault that always hits keeps the component from the API
// now.
func (c *Component) Cut() bool {
	r := request{verb: "watch"}
	for _, f := range c.s.faults {
		if f.Probability == 0 && (f.Drop || f.Refuse) && f.matches(c.name, &r) {
			return true
		}
	}
	return false
}
