package drydocktest

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
)

// pump has the time of a cluster's engine follow that of the bubble, window by window: a
// window is run when the bubble's clock has come to its end. It is a goroutine of the
// bubble; but for what mu guards, everything is its own.
type pump struct {
	session   *scenarios.Session
	engine    *loop.Engine
	lookahead int64
	failed    func(error) // told of the error that ends the pump

	wake    chan struct{}
	quit    chan struct{}
	stopped chan struct{}
	turns   *atomic.Uint64 // for the watchdog
	limit   time.Time      // when the test should have ended
	main    string         // the test's goroutine

	mu    sync.Mutex // held for moments
	inbox []*crossing

	out   deliveries
	taken map[int64]bool // when they are
}

// crossing is something on its way into the simulation: a request, or an act of the test.
type crossing struct {
	stamp int64 // when it was sent
	who   string
	key   string // verb, path and body: the order of what one client sends at one instant
	// take is called between two windows, when all that was sent before is known.
	take func()
}

// delivery is something on its way out.
type delivery struct {
	at int64
	fn func()
}

// apart is how far apart two deliveries are at least.
const apart = int64(time.Microsecond)

func newPump(s *scenarios.Session, turns *atomic.Uint64, failed func(error)) *pump {
	e := s.Cluster().Engine()
	return &pump{
		session: s, engine: e, lookahead: int64(e.Lookahead()), taken: map[int64]bool{}, failed: failed, turns: turns,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// put has a crossing taken in.
func (p *pump) put(c *crossing) {
	p.mu.Lock()
	p.inbox = append(p.inbox, c)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// deliver has fn run in the bubble at a time, or at the first instant after it that no
// other delivery has. It is called while the engine runs, or by crossings.
func (p *pump) deliver(at int64, fn func()) {
	for at = (at + apart - 1) / apart * apart; p.taken[at]; {
		at += apart
	}
	p.taken[at] = true
	heap.Push(&p.out, delivery{at, fn})
}

// run is the pump's goroutine.
func (p *pump) run() {
	defer close(p.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.turns.Add(1)
		now := time.Now().UnixNano()
		if err := p.turn(now); err != nil {
			p.failed(fmt.Errorf("the simulation failed: %w", err))
			return
		}
		if now > p.limit.UnixNano() {
			p.failed(fmt.Errorf("the test has not ended by %v of the cluster's time (Options.Limit). It is here:\n%s", p.limit.Format(time.RFC3339), brief(stackOf(p.main))))
			return
		}
		for len(p.out) > 0 && p.out[0].at <= now {
			d := heap.Pop(&p.out).(delivery)
			delete(p.taken, d.at)
			d.fn()
		}
		timer.Reset(time.Duration(p.next(now) - now))
		select {
		case <-timer.C:
		case <-p.wake:
		case <-p.quit:
			return
		}
	}
}

// turn takes in what was sent before the window of now, and runs the windows before it.
func (p *pump) turn(now int64) error {
	w := p.floor(now)
	due := p.takeIn(w)
	for _, c := range due {
		if c.who != "" { // arrives after its latency
			c.take()
		}
	}
	if err := p.advance(w); err != nil {
		return err
	}
	for _, c := range due { // the test's own acts, with all clocks at one time
		if c.who == "" {
			c.take()
		}
	}
	return nil
}

// floor is the beginning of the window that a time is in.
func (p *pump) floor(at int64) int64 { return at / p.lookahead * p.lookahead }

// takeIn returns what was sent before a time, in an order that doesn't depend on which
// goroutine ran first.
func (p *pump) takeIn(before int64) (due []*crossing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inbox) == 0 {
		return nil
	}
	later := p.inbox[:0]
	for _, c := range p.inbox {
		if c.stamp < before {
			due = append(due, c)
		} else {
			later = append(later, c)
		}
	}
	clear(p.inbox[len(later):])
	p.inbox = later
	slices.SortStableFunc(due, func(a, b *crossing) int {
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.who, b.who), cmp.Compare(a.key, b.key))
	})
	return due
}

// advance runs the engine up to a time, with what the scenario's timeline does on the way.
func (p *pump) advance(to int64) error {
	for {
		at := to
		if next := p.session.Next(); !next.IsZero() && next.UnixNano() <= to {
			at = next.UnixNano()
		}
		if at > p.engine.Now().UnixNano() {
			c := p.session.Cluster()
			if err := c.RunUntil(time.Unix(0, at).Sub(c.Start())); err != nil {
				return err
			}
		}
		if next := p.session.Next(); !next.IsZero() && next.UnixNano() <= at {
			if err := p.session.RunDue(); err != nil {
				return err
			}
			continue
		}
		if at == to {
			return nil
		}
	}
}

// next is when the pump has to look again.
func (p *pump) next(now int64) int64 {
	at := int64(1<<63 - 1)
	if len(p.out) > 0 {
		at = p.out[0].at
	}
	w := p.floor(now)
	if due, ok := p.engine.NextDue(); ok {
		at = min(at, max(p.floor(due.UnixNano()), w)+p.lookahead)
	}
	if next := p.session.Next(); !next.IsZero() {
		at = min(at, p.floor(next.UnixNano()-1)+p.lookahead)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inbox) > 0 {
		at = min(at, w+p.lookahead)
	}
	return at
}

// deliveries is a heap by time.
type deliveries []delivery

func (d deliveries) Len() int           { return len(d) }
func (d deliveries) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deliveries) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deliveries) Push(x any)        { *d = append(*d, x.(delivery)) }
func (d *deliveries) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = delivery{}
	*d = (*d)[:last]
	return x
}
