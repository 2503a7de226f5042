package apiserver

import (
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Remote is the API's side of a client that is no loop of the engine, such as a
// controller in a test. Latency, faults whose Node is the client's name, or "", and the
// load model act on its requests as on those of nodes. Its methods are for use on the
// server's loop, or while no driver runs it.
type Remote struct {
	s       *Server
	name    string
	near    bool // its messages take no latency of the cluster's
	n       uint64
	watches []*RemoteWatch
}

// RemoteOf returns the API's side of a client of this name.
func RemoteOf(s *Server, name string) *Remote {
	for _, r := range s.watches.remotes {
		if r.name == name {
			return r
		}
	}
	r := &Remote{s: s, name: name}
	s.watches.remotes = append(s.watches.remotes, r)
	return r
}

// NearRemoteOf is RemoteOf for a client whose messages have been on their way already, on a
// network that isn't the cluster's.
func NearRemoteOf(s *Server, name string) *Remote {
	r := RemoteOf(s, name)
	r.near = true
	return r
}

// latency draws how long a message takes.
func (r *Remote) latency(purpose string) time.Duration {
	if r.near {
		return 0
	}
	r.n++
	return r.s.l.Between(r.s.opts.LatencyMin, r.s.opts.LatencyMax, purpose, r.name, r.n)
}

// Send has a request that was sent at a time, in nanoseconds since the Unix epoch, arrive
// after its latency. do handles it, which may be never, or after the client has given up.
// answer is told when the answer leaves the client's hands: how long from then on it is
// under way, and the error that the client gets in the place of what do has answered: an
// API status, or *url.Error when no answer came.
func (r *Remote) Send(req Request, sent int64, do func(), answer func(after time.Duration, err error)) {
	at := sent + int64(r.latency("remote/request"))
	stream := loop.Hash(r.s.l.Seed(), []string{"remote/request", r.name}, r.n)
	r.s.l.Root().AfterInStream(stream, time.Duration(at-r.s.l.UnixNano()), func() {
		r.arrive(req, sent, do, answer)
	})
}

// Arrive has a request that was sent now arrive, as Send does after its latency.
func (r *Remote) Arrive(req Request, do func(), answer func(after time.Duration, err error)) {
	r.arrive(req, r.s.l.UnixNano(), do, answer)
}

// arrive is Server.serve for a remote client.
func (r *Remote) arrive(asked Request, sent int64, do func(), answer func(after time.Duration, err error)) {
	s, by := r.s, asked.By
	if by == nil {
		by = askerOf(r.name)
	}
	req := &wire.Request{Verb: asked.Verb, Resource: asked.Resource, Group: asked.Group, Namespace: asked.Namespace, Name: asked.Name, Sent: sent}
	s.requests++
	arrived := s.l.UnixNano()
	series := s.stats.Series(r.name, req.Verb, req.Resource)
	s.stats.Arrive(series, arrived, 0)
	f := s.faults.FateOf(r.name, req)
	left := max(s.opts.timeout(req)-time.Duration(arrived-req.Sent), s.opts.LatencyMin)
	handle := func(service time.Duration) {
		s.outcome = f.Err
		if f.Err == nil {
			do()
		}
		s.answered(series, arrived, service)
	}
	execute := func(left time.Duration) {
		reply := func(service time.Duration) {
			handle(service)
			err := f.Err
			if f.Lose {
				err = wire.ErrLost(req)
			}
			answer(service+r.latency("remote/reply"), err)
		}
		if s.flow == nil {
			reply(0)
			return
		}
		s.flow.Admit(by, req, left-s.opts.LatencyMin, reply, func(err error) {
			s.outcome = err
			s.answered(series, arrived, 0)
			answer(r.latency("remote/reply"), err)
		})
	}
	switch {
	case f.Drop:
		s.stats.Answered(series, arrived, 0, 0)
		answer(left, wire.ErrTimeout(req))
	case f.Refuse:
		s.stats.Answered(series, arrived, 0, 0)
		answer(r.latency("remote/reply"), wire.ErrRefused(req))
	case f.Latency >= left:
		answer(left, wire.ErrTimeout(req))
		s.l.Root().After(f.Latency, func() { handle(0) })
	case f.Latency > 0:
		s.l.Root().After(f.Latency, func() { execute(left - f.Latency) })
	default:
		execute(left)
	}
}

// RemoteWatch is a watch of a remote client.
type RemoteWatch struct {
	r        *Remote
	resource string
	send     func(after time.Duration, fn func())
	lost     func()
	held     []func() // while the client is cut off
	stalled  bool
	cut      *loop.Timer // when a watch that is stalled breaks
	last     int64       // when the last event arrives
}

// Watch begins a watch of a resource. send has fn run after a time; lost is called, after
// a time, when the connection breaks, and must end the watch.
func (r *Remote) Watch(resource string, send func(after time.Duration, fn func()), lost func()) *RemoteWatch {
	w := &RemoteWatch{r: r, resource: resource, send: send, lost: lost}
	r.watches = append(r.watches, w)
	w.review()
	return w
}

// Break breaks the client's watches of a resource, "" being all, as if its connections
// had.
func (r *Remote) Break(resource string) {
	for _, w := range slices.Clone(r.watches) {
		if resource == "" || w.resource == resource {
			w.lose()
		}
	}
}

// Deliver has fn run when an event that is sent now arrives at the client.
func (w *RemoteWatch) Deliver(fn func()) {
	if w.stalled {
		w.held = append(w.held, fn)
		return
	}
	s := w.r.s
	at := max(w.last, s.l.UnixNano()+int64(w.r.latency("remote/watch"))+int64(s.faults.Lag(w.r.name, w.resource)))
	w.last = at
	w.send(time.Duration(at-s.l.UnixNano()), fn)
}

// End ends a watch of which nothing more is to be heard.
func (w *RemoteWatch) End() {
	w.r.watches = slices.DeleteFunc(w.r.watches, func(o *RemoteWatch) bool { return o == w })
	if w.cut != nil {
		w.cut.Stop()
	}
	w.held, w.stalled = nil, false
}

// lose breaks the connection.
func (w *RemoteWatch) lose() {
	w.End()
	w.Deliver(w.lost)
}

// review is hub.reviewWatch for a remote client.
func (w *RemoteWatch) review() {
	s := w.r.s
	drop, refuse := s.faults.Cuts(w.r.name, w.resource)
	switch {
	case refuse && !drop:
		w.lose()
	case drop && !w.stalled:
		w.stalled = true
		w.cut = s.l.Root().After(s.opts.WatchTimeout, w.lose)
	case !drop && w.stalled:
		held := w.held
		w.held, w.stalled = nil, false
		w.cut.Stop()
		for _, fn := range held {
			w.Deliver(fn)
		}
	}
}
