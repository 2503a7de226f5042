package apiserver

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// hub is the server's side of all watches: it knows who watches what.
type hub struct {
	l       *loop.Loop
	store   *Store
	stats   *stats.Counters
	flow    *flow.Control // nil without a load model
	faults  *wire.Faults
	timeout time.Duration      // Options.WatchTimeout
	peers   map[string][]*peer // by node name
	all     []*peer            // in the order of their making
	remotes []*Remote
	// byObject are the watches of single objects, and of kinds as a whole.
	byObject map[watchID][]*subscription
}

// subscription is the server's end of one watch.
type subscription struct {
	p    *peer
	id   uint64
	conn uint64 // the watcher's connection
	in   *kind.Info
	// namespace and name are what is watched: of nodes the name, of pods their
	// spec.nodeName, of services nothing (that is, all of them).
	namespace, name string
	w               *watcher
	stream          uint64
	last            int64 // when the last message arrives
	stalled         bool
	held            []func()
	cut             *loop.Timer
}

// send hands fn to the node's loop after a drawn latency, never before what
// was sent earlier.
func (h *hub) send(sub *subscription, fn func()) { h.sendAfter(sub, 0, fn) }

// sendAfter is send for what waits for d before.
func (h *hub) sendAfter(sub *subscription, d time.Duration, fn func()) {
	if sub.stalled {
		sub.held = append(sub.held, fn)
		return
	}
	at := h.l.UnixNano() + int64(sub.p.latency()+d)
	sub.last = max(sub.last, at)
	transmit(h.l, sub.p.c.l, sub.stream, time.Duration(sub.last-h.l.UnixNano()), fn)
}

// notify sends a change to those who watch the node's objects.
func (h *hub) notify(c Change, in *kind.Info, t *traffic, node string) {
	typ := c.Type
	if typ == watch.Modified && in.NodeName(c.Old) == "" {
		typ = watch.Added // it comes into the node's view
	}
	for _, p := range h.peers[node] {
		for _, sub := range p.subs {
			if sub.in == in && sub.name == node {
				h.stats.Sent(&t.toNodes, stats.UserKubelet, in.Resource, h.l.UnixNano(), 1)
				h.sendAfter(sub, h.flow.FanOut(in.Resource), delivery(sub.w, sub.conn, typ, c.New))
			}
		}
	}
}

// delivery is a watch event on its way to the node.
func delivery(w *watcher, conn uint64, typ watch.EventType, obj Object) func() {
	return func() { w.deliver(conn, typ, obj) }
}

// subscribe lists and begins a watch. The list is the first message of the
// watch's stream.
func (h *hub) subscribe(p *peer, w *watcher, conn uint64) {
	sub := &subscription{p: p, id: w.id, conn: conn, in: w.in, namespace: w.namespace, name: w.name, w: w}
	sub.stream = loop.Hash(0, nil, p.c.base, w.id, conn)
	list := h.watched(w)
	h.unsubscribe(p, w.id)
	p.subs = append(p.subs, sub)
	h.indexSubscription(sub)
	h.send(sub, func() { w.connected(conn, list) })
	h.reviewWatch(sub)
}

func (h *hub) unsubscribe(p *peer, id uint64) {
	for i, sub := range p.subs {
		if sub.id == id {
			sub.drop()
			h.dropFromIndex(sub)
			p.subs = append(p.subs[:i:i], p.subs[i+1:]...)
			return
		}
	}
}

func (sub *subscription) drop() {
	if sub.cut != nil {
		sub.cut.Stop()
	}
	sub.held = nil
}

// review stalls, breaks or resumes watches after faults have changed.
func (h *hub) review() {
	for _, p := range h.all {
		for _, sub := range append([]*subscription(nil), p.subs...) {
			h.reviewWatch(sub)
		}
	}
	for _, r := range h.remotes {
		for _, w := range append([]*RemoteWatch(nil), r.watches...) {
			w.review()
		}
	}
}

func (h *hub) reviewWatch(sub *subscription) {
	drop, refuse := h.faults.Cuts(sub.p.node, sub.in.Resource)
	switch {
	case refuse && !drop:
		h.lose(sub)
	case drop && !sub.stalled:
		sub.stalled = true
		sub.cut = h.l.Root().After(h.timeout, func() { h.lose(sub) })
	case !drop && sub.stalled:
		h.resume(sub)
	}
}

// resume delivers what a stalled watch held back.
func (h *hub) resume(sub *subscription) {
	held := sub.held
	sub.drop()
	sub.stalled = false
	for _, fn := range held {
		h.send(sub, fn)
	}
}

// lose ends a watch; the node notices that its connection is gone.
func (h *hub) lose(sub *subscription) {
	h.unsubscribe(sub.p, sub.id)
	w, conn := sub.w, sub.conn
	sub.stalled = false
	h.send(sub, func() { w.broken(conn) })
}

// Backoff between connections of a reflector
// (client-go/tools/cache/reflector.go): doubled from the first to the last,
// each lengthened by up to its own length, reset after a time without a break.
const (
	firstBackoff = 800 * time.Millisecond
	lastBackoff  = 30 * time.Second
	backoffReset = 2 * time.Minute
)

// watcher is the node's end of a watch that reconnects by itself. List and watch
// are one request, as those of client-go's reflectors are (WatchListClient, on by
// default from 1.35 on).
type watcher struct {
	c               *Client
	g               *loop.Group
	id              uint64
	in              *kind.Info
	namespace, name string
	listed          func([]Object)
	event           func(watch.EventType, Object)
	stopped         bool
	token           bool // wire.Request.Token

	conn    uint64
	up      bool
	retry   *loop.Timer
	backoff time.Duration
	lastTry int64
	draws   uint64
}

func (c *Client) watch(g *loop.Group, k Kind, name string, listed func([]Object), event func(watch.EventType, Object)) {
	w := &watcher{c: c, g: g, in: c.kinds.Find(k), name: name, listed: listed, event: event}
	g.OnKill(w.close)
	w.begin()
}

// begin makes the first connection.
func (w *watcher) begin() {
	w.c.watches++
	w.id = w.c.watches
	w.retry = w.g.NewTimer("watch "+w.in.Resource, w.connect)
	w.connect()
}

// connect asks the server for a list and a watch.
func (w *watcher) connect() {
	w.conn++
	w.lastTry = w.c.l.UnixNano()
	x := &connection{w: w, conn: w.conn}
	x.req = wire.Request{Verb: "watch", Resource: w.in.Resource, Namespace: w.namespace, Token: w.token, Sent: w.lastTry}
	w.c.tell(x.arrive)
}

// connection is the request that begins a watch.
type connection struct {
	w    *watcher
	conn uint64
	req  wire.Request
}

func (x *connection) arrive() { x.w.c.srv.serve(x.w.c.peer, &x.req, x) }

// handle is that of caller. There is no answer but the watch's first message.
func (x *connection) handle(err error) func() {
	w := x.w
	w.c.srv.outcome = err
	if err == nil {
		w.c.srv.watches.subscribe(w.c.peer, w, x.conn)
		return func() {}
	}
	return func() { w.broken(x.conn) }
}

func (w *watcher) current(conn uint64) bool { return conn == w.conn && !w.stopped && !w.g.Dead() }

func (w *watcher) connected(conn uint64, list []Object) {
	if w.current(conn) {
		w.up = true
		w.listed(list)
	}
}

func (w *watcher) deliver(conn uint64, typ watch.EventType, obj Object) {
	if w.current(conn) && w.up {
		w.event(typ, obj)
	}
}

// broken sets the next try.
func (w *watcher) broken(conn uint64) {
	if !w.current(conn) || w.retry.Set() {
		return
	}
	w.up = false
	l := w.c.l
	if w.backoff == 0 || l.UnixNano()-w.lastTry > int64(backoffReset) {
		w.backoff = firstBackoff
	} else {
		w.backoff = min(2*w.backoff, lastBackoff)
	}
	w.draws++
	w.retry.Reset(l.Jitter(w.backoff, 1, "api/backoff", w.in.Resource, w.draws))
}

// close tells the server that nobody watches any more.
func (w *watcher) close() {
	p, id, srv := w.c.peer, w.id, w.c.srv
	w.c.tell(func() { srv.watches.unsubscribe(p, id) })
}
