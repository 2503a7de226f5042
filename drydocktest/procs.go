package drydocktest

import (
	"context"
	"errors"
	"time"
)

// proc is a function that runs beside the test, as a process does.
type proc struct {
	c      *Cluster
	name   string
	fn     func(context.Context) error
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of fn, when done is closed
}

// Go runs fn beside the test, as a process of this name. Its context ends with the test;
// fn then has a minute of the cluster's time to return. An error of fn, unless it is that
// of the context, fails the test.
func (c *Cluster) Go(name string, fn func(ctx context.Context) error) {
	p := &proc{c: c, name: name, fn: fn}
	c.procs = append(c.procs, p)
	p.start()
}

func (p *proc) start() {
	ctx, cancel := context.WithCancel(p.c.ctx)
	p.cancel, p.done = cancel, make(chan struct{})
	go func() {
		defer close(p.done)
		p.err = p.fn(ctx)
		if p.err != nil && !errors.Is(p.err, context.Canceled) {
			p.c.t.Errorf("%s: %v", p.name, p.err)
		}
	}()
}

// endsWithin is how long a process may take to end.
const endsWithin = time.Minute

// end has a process end, and waits for it.
func (p *proc) end() {
	p.cancel()
	select {
	case <-p.done:
	case <-time.After(endsWithin):
		p.c.t.Errorf("drydocktest: %s has not returned %v after its context ended", p.name, endsWithin)
	}
}
