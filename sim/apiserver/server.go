package apiserver

import (
	"cmp"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Options configure a Server.
type Options struct {
	// Loop is the server's own loop.
	Loop *loop.Loop
	// Recorder takes a record of each write. Nil records nothing.
	Recorder *trace.Recorder
	// LatencyMin and LatencyMax bound the time that a message takes one way.
	// Zero means 5 ms; a LatencyMax under LatencyMin means LatencyMin. With an
	// Engine, LatencyMin must not be under its lookahead.
	LatencyMin, LatencyMax time.Duration
	// RequestTimeout is when a request that gets no answer fails. Zero means
	// 30 s, the time that a dial takes to fail.
	RequestTimeout time.Duration
	// HeartbeatTimeout is the same for calls on nodes and leases. Zero means
	// 10 s, what the kubelet's heartbeat client has.
	HeartbeatTimeout time.Duration
	// WatchTimeout is when a watch that is cut off breaks. Zero means 45 s
	// (HTTP/2: 30 s without a frame, then 15 s for a ping). If the partition
	// heals before, what happened meanwhile is delivered late.
	WatchTimeout time.Duration
	// EventTTL is as in StoreOptions.
	EventTTL time.Duration
	// Load says what requests cost the server. Nil has each handled as it
	// arrives, in no time.
	Load *flow.Load
	// Gates are the feature gates that can be set.
	Gates Gates
	// EventLimits are those of the admission plugin EventRateLimit; none leaves
	// it out, as kube-apiserver does by default.
	EventLimits []admission.EventLimit
}

// Server is the API on a loop of its own. Its methods are for use on that
// loop, or while no driver runs it.
type Server struct {
	opts    Options
	l       *loop.Loop
	rec     *trace.Recorder
	notes   *kind.Notes // for rec
	store   *store.Store
	watches *hub
	tokens  Tokens
	faults  *wire.Faults
	askers  askers
	by      string // the node whose request is being served
	// component is the same of a component's.
	component string
	expire    *loop.Timer
	traffic   []traffic // by Kinds.Index
	counted   []Kind    // whose traffic that is
	requests  uint64
	stats     *stats.Counters
	flow      *flow.Control // nil without a load model
	outcome   error         // of the request that was handled last
	authority *Authority    // nil before somebody asks
	open      bool          // see OpenDoor
	onOpen    []func()
}

// traffic is what changes of one kind come to.
type traffic struct {
	writes uint64
	// informers are the components that hear of every change.
	informers []informers
	toNodes   *stats.WatchStats // nil before the first event
}

// informers are those of one component.
type informers struct {
	user   string
	events *stats.WatchStats // nil before the first event
}

// New returns a server with an empty cluster: the system namespaces and
// priority classes only.
func New(opts Options) *Server {
	def := func(d *time.Duration, v time.Duration) {
		*d = cmp.Or(*d, v)
	}
	def(&opts.LatencyMin, 5*time.Millisecond)
	opts.LatencyMax = max(opts.LatencyMax, opts.LatencyMin)
	def(&opts.RequestTimeout, 30*time.Second)
	def(&opts.HeartbeatTimeout, 10*time.Second)
	def(&opts.WatchTimeout, 45*time.Second)
	s := &Server{
		opts:   opts,
		l:      opts.Loop,
		rec:    opts.Recorder,
		store:  store.New(store.Options{Seed: opts.Loop.Seed(), Start: opts.Loop.Now(), EventTTL: opts.EventTTL, Gates: opts.Gates}),
		faults: wire.NewFaults(opts.Loop),
		stats:  stats.New(opts.Loop.UnixNano()),
	}
	s.tokens.srv = s
	s.askers.s = s
	s.notes = kind.NewNotes(s.store.Kinds())
	s.countKinds()
	s.expire = s.l.Root().NewTimer("event expiry", s.expireEvents)
	if opts.Load != nil {
		s.flow = flow.New(s.l, s.stats, weighed{s.store}, *opts.Load)
	}
	s.watches = &hub{
		l: s.l, store: s.store, stats: s.stats, flow: s.flow, faults: s.faults, timeout: opts.WatchTimeout,
		peers: map[string][]*peer{}, byObject: map[watchID][]*subscription{},
	}
	if len(opts.EventLimits) > 0 {
		limits := admission.NewEventLimits(opts.EventLimits)
		s.store.AdmitEvents(func(now time.Time, ev *v1.Event) error { return limits.Admit(now, s.userName(), ev) })
	}
	s.store.OnChangeBare(s.onChange) // the first
	watchDefinitions(s.store, s.l, s.countKinds)
	watchFlowConfig(s)
	return s
}

// OpenDoor has the API serve clients from now on, which costs more than components
// alone: managed fields are kept, and pods have service accounts with tokens.
func (s *Server) OpenDoor() {
	if s.open {
		return
	}
	s.open = true
	s.store.KeepManagedFields()
	s.store.UseServiceAccounts()
	s.store.TaintNewNodes() // real clusters do, whoever takes the taint away
	for _, fn := range s.onOpen {
		fn()
	}
	s.onOpen = nil
}

// DoorOpen reports whether the API serves clients.
func (s *Server) DoorOpen() bool { return s.open }

// OnDoor has fn called when the API begins to serve clients; at once if it does.
func (s *Server) OnDoor(fn func()) {
	if s.open {
		fn()
		return
	}
	s.onOpen = append(s.onOpen, fn)
}

// Caller is who a request is from, as admission sees it.
type Caller = admission.Caller

// What a request that admission webhooks are asked about takes; see package admission.
type (
	WebhookCalls  = admission.Calls
	WebhookCall   = admission.Call
	WebhookAnswer = admission.Answer
)

// ErrWebhookCalls is admission.ErrCalls.
var ErrWebhookCalls = admission.ErrCalls

// ConversionFailed is admission.ConversionFailed.
func ConversionFailed(obj metav1.Object, err error) error {
	return admission.ConversionFailed(obj, err)
}

// CallerNamed returns a caller whom nobody answers.
func CallerNamed(user string) *Caller {
	return &Caller{User: authenticationv1.UserInfo{Username: user}}
}

// Calling has what fn does admitted as requests of a caller.
func (s *Server) Calling(c *Caller, fn func()) { s.store.Calling(c, fn) }

// Loop returns the server's loop.
func (s *Server) Loop() *loop.Loop { return s.l }

// Store returns the state machine behind the server.
func (s *Server) Store() *store.Store { return s.store }

// Requests returns how many requests of nodes and components have arrived.
func (s *Server) Requests() uint64 { return s.requests }

// Writes returns how many writes to objects of a kind were committed.
func (s *Server) Writes(k Kind) uint64 { return s.traffic[s.store.Kinds().Index(k)].writes }

func (s *Server) now() time.Time { return s.l.Now() }

// countKinds has the traffic of each kind of the table counted, by its present index.
func (s *Server) countKinds() {
	of := map[Kind]traffic{}
	for i, k := range s.counted {
		of[k] = s.traffic[i]
	}
	s.counted, s.traffic = nil, nil
	for _, in := range s.store.Kinds().All() {
		s.counted, s.traffic = append(s.counted, in.Kind), append(s.traffic, of[in.Kind])
	}
}

// onChange is the first hook: the trace, then the watches. Of an event that
// expires it may not get to see the object.
func (s *Server) onChange(c Change) {
	on := s.store.Kinds().Index(c.Kind)
	in, t := s.store.Kinds().All()[on], &s.traffic[on]
	t.writes++
	for i := range t.informers {
		u := &t.informers[i]
		s.stats.Sent(&u.events, u.user, in.Resource, s.l.UnixNano(), 1)
	}
	s.record(c)
	switch {
	case in.Watch == kind.ByNode:
		if node := in.NodeName(c.New); node != "" {
			s.watches.notify(c, in, t, node)
		}
	case in.Watch != kind.NotByNodes:
		s.watches.notifyObject(c, in, t)
	case c.Kind == KindEvent:
		if !s.expire.Set() && s.store.EventTTL() > 0 {
			s.expire.Reset(s.store.EventTTL())
		}
	}
}

func (s *Server) expireEvents() {
	if next := s.store.ExpireEvents(s.now()); !next.IsZero() {
		s.expire.ResetAt(next)
	}
}

// transmit has fn run on to after d. In tests one loop may be both ends.
func transmit(from, to *loop.Loop, stream uint64, d time.Duration, fn func()) {
	if from == to {
		to.Root().AfterInStream(stream, d, fn)
		return
	}
	from.Send(to, d, stream, fn)
}

// peer is the server's side of one Client. Only the server's loop touches it.
type peer struct {
	node    string
	c       *Client
	replies uint64
	subs    []*subscription
	asks    *flow.Asker // with a load model
	shows   *credential // nil: it is known by its name
}

// asker is who the node's kubelet is to flow control.
func (p *peer) asker() *flow.Asker {
	if p.asks == nil {
		p.asks = &flow.Asker{User: nodeUser + p.node, Groups: []string{user.NodesGroup, user.AllAuthenticated}, Node: p.node}
	}
	return p.asks
}

// latency draws how long a message to the node takes.
func (p *peer) latency() time.Duration {
	p.replies++
	return p.c.server.Between(p.c.opts.LatencyMin, p.c.opts.LatencyMax, "api/reply", p.node, p.replies)
}

// timeout returns how long a request waits for its answer.
func (o *Options) timeout(r *wire.Request) time.Duration {
	if r.Heartbeat {
		return o.HeartbeatTimeout
	}
	return o.RequestTimeout
}

// caller is who made a request.
type caller interface {
	// handle runs the request, unless it is given an error, and returns what is to
	// run on the node's loop. It runs on the server's.
	handle(err error) func()
}

// serve handles a request that has arrived. r is read until it is answered and
// handled, whichever is last.
func (s *Server) serve(p *peer, r *wire.Request, from caller) {
	s.requests++
	arrived := s.l.UnixNano()
	series := s.stats.Series(stats.UserKubelet, r.Verb, r.Resource)
	s.stats.Arrive(series, arrived, r.Throttled)
	f := s.faults.FateOf(p.node, r)
	if f.Err == nil && p.shows.refuses(r, arrived) {
		f.Err = wire.ErrUnauthorized()
	}
	left := max(s.opts.timeout(r)-time.Duration(s.l.UnixNano()-r.Sent), s.opts.LatencyMin)
	switch {
	case f.Drop:
		s.stats.Answered(series, arrived, 0, 0)
		s.reply(p, left, from.handle(wire.ErrTimeout(r)))
	case f.Refuse:
		s.stats.Answered(series, arrived, 0, 0)
		s.reply(p, p.latency(), from.handle(wire.ErrRefused(r)))
	case f.Latency >= left:
		// The caller gives up before the request is handled.
		s.reply(p, left, from.handle(wire.ErrTimeout(r)))
		s.l.Root().After(f.Latency, func() {
			s.handle(p, r, f, from)
			s.answered(series, arrived, 0)
		})
	case f.Latency > 0:
		s.l.Root().After(f.Latency, func() { s.execute(p, r, series, arrived, left-f.Latency, f, from) })
	default:
		s.execute(p, r, series, arrived, left, f, from)
	}
}

// execute handles a request once there are seats for it.
func (s *Server) execute(p *peer, r *wire.Request, series *stats.RequestStats, arrived int64, left time.Duration, f wire.Fate, from caller) {
	if s.flow != nil {
		s.queue(p, r, series, arrived, left, f, from)
		return
	}
	s.reply(p, p.latency(), s.handle(p, r, f, from))
	s.answered(series, arrived, 0)
}

func (s *Server) queue(p *peer, r *wire.Request, series *stats.RequestStats, arrived int64, left time.Duration, f wire.Fate, from caller) {
	s.flow.Admit(p.asker(), r, left-s.opts.LatencyMin, func(service time.Duration) {
		s.reply(p, p.latency()+service, s.handle(p, r, f, from))
		s.answered(series, arrived, service)
	}, func(err error) {
		s.reply(p, p.latency(), from.handle(err))
		s.outcome = err
		s.answered(series, arrived, 0)
	})
}

// answered counts the answer to the request that was handled last; it leaves
// after the request's service time.
func (s *Server) answered(series *stats.RequestStats, arrived int64, service time.Duration) {
	s.stats.Answered(series, arrived, time.Duration(s.l.UnixNano()-arrived)+service, stats.CodeOf(series.Verb, s.outcome))
}

// handle runs a request and returns what tells the node of it.
func (s *Server) handle(p *peer, r *wire.Request, f wire.Fate, from caller) func() {
	s.by = p.node
	defer func() { s.by = "" }()
	if f.Lose && f.Err == nil {
		from.handle(nil)
		return from.handle(wire.ErrLost(r))
	}
	return from.handle(f.Err)
}

func (s *Server) reply(p *peer, d time.Duration, fn func()) {
	p.replies++
	transmit(s.l, p.c.l, loop.Hash(0, nil, p.c.base, p.replies), d, fn)
}

// Client returns the API as a node's loop sees it. nodeName is what faults
// and partitions go by.
func (s *Server) Client(nodeLoop *loop.Loop, nodeName string) *Client {
	p := &peer{node: nodeName}
	c := &Client{
		srv: s, kinds: s.store.Kinds(), l: nodeLoop, node: nodeName, peer: p, opts: s.opts, server: s.l,
		base: loop.Hash(nodeLoop.Seed(), []string{"api client", nodeName}, uint64(len(s.watches.all))),
	}
	p.c, c.podCertificates.c = c, c
	s.watches.peers[nodeName] = append(s.watches.peers[nodeName], p)
	s.watches.all = append(s.watches.all, p)
	return c
}

// AddFault makes a fault act from now on until the function returned is
// called.
func (s *Server) AddFault(f wire.Fault) (remove func()) {
	drop := s.faults.Add(f)
	s.askers.allUntold()
	s.watches.review()
	return func() {
		if drop() {
			s.watches.review()
		}
	}
}

// Partition cuts a node off the API ("" cuts all nodes off) until the function
// returned is called.
func (s *Server) Partition(node string) (heal func()) {
	return s.AddFault(wire.Fault{Node: node, Drop: true})
}

// Outage has the API refuse connections until the function returned is called.
func (s *Server) Outage() (end func()) { return s.AddFault(wire.Fault{Refuse: true}) }

// Informers has it counted that a component's informers watch kinds, and no
// others: each change of theirs is one event, however many of the component's
// controllers hear of it.
func (s *Server) Informers(user string, kinds ...Kind) {
	for i, in := range s.store.Kinds().All() {
		t := &s.traffic[i]
		t.informers = slices.DeleteFunc(t.informers, func(u informers) bool { return u.user == user })
		if slices.Contains(kinds, in.Kind) {
			t.informers = append(t.informers, informers{user: user})
		}
	}
}

// Stats returns a copy of the statistics so far. It costs some milliseconds at
// most; counting costs a request no allocation.
func (s *Server) Stats() *stats.Stats { return s.stats.Snapshot(s.now()) }

// weighed counts what the load model weighs lists by.
type weighed struct{ *Store }

func (s weighed) Pods() int              { return len(s.Store.Pods()) }
func (s weighed) Services() int          { return len(Objects[*v1.Service](s.Store, KindService)) }
func (s weighed) PodsOn(node string) int { return len(s.PodsOnNode(node)) }

// GroupOf is the group of a resource that the cluster itself asks for.
func (s weighed) GroupOf(resource string) string {
	for _, in := range s.Kinds().All() {
		if in.Resource == resource {
			return in.Group
		}
	}
	return ""
}
