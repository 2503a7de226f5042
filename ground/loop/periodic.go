package loop

import (
	"context"
	"time"
)

// Periodic is a body that runs again and again until its group dies: on a grid
// of instants ([Group.Every]), or sliding, a period after its last pass ended
// ([Group.Until]). Each run is a pass. Between passes only a timer exists, and
// none at all while passes are elided, see [Periodic.Elide].
type Periodic struct {
	timer  Timer
	fn     func() // a pass, or what begins one
	period int64  // ns
	// next is when the pass that is set is due, or the first of those elided, in
	// ns since the Unix epoch. On a grid it is one of the grid's instants.
	next   int64
	jitter *jitter // nil: none

	by Elider // nil: every pass runs
	// due is when the pass is due that ends the parking, while the timer is set.
	due int64
	// reads has bit i set while the i-th of the versions read knows of it.
	reads   uint16
	parked  bool
	sliding bool
	// task: each pass is a task, hence a step of its own.
	task bool
}

// jitter lengthens each period by up to a fraction of it, drawn anew each time.
type jitter struct {
	fraction        float64
	purpose, object string
	n               uint64 // draws so far
}

// Every runs fn, which must not wait, every period; first after one period. A
// jitter above 0 lengthens each period by up to jitter×period, drawn anew each
// time. Without jitter the passes stay on one grid. A pass allocates nothing.
func (g *Group) Every(name string, period time.Duration, jitter float64, fn func()) *Periodic {
	p := g.newPeriodic(name, period, fn)
	p.next = g.l.now
	p.Jitter(jitter, "ticker", name)
	p.arm()
	return p
}

// EveryNow is Every with the first pass at once.
func (g *Group) EveryNow(name string, period time.Duration, jitter float64, fn func()) *Periodic {
	p := g.Grid(name, period, fn)
	p.Jitter(jitter, "ticker", name)
	p.Begin()
	return p
}

// Grid is Every without jitter of which no pass is set. BeginAfter sets the first.
func (g *Group) Grid(name string, period time.Duration, fn func()) *Periodic {
	return g.newPeriodic(name, period, fn)
}

// BeginAfter sets the first pass, after a time that need not be a period.
func (p *Periodic) BeginAfter(first time.Duration) {
	p.next = p.timer.g.l.now + int64(first)
	p.set(p.next)
}

// Until runs body as a task, first at once, then again a period after it
// returned, as apimachinery's wait.JitterUntil does (sliding).
func (g *Group) Until(name string, period time.Duration, jitter float64, body func(ctx context.Context)) *Periodic {
	p := g.Sliding(name, period, nil)
	pass := func(ctx context.Context) {
		body(ctx)
		p.Again()
	}
	p.fn = func() { p.timer.g.Start(p.timer.name, pass) }
	p.Tasks()
	p.Jitter(jitter, "until", name)
	p.Begin()
	return p
}

// Sliding returns a Periodic of which no pass is set. Begin sets the first. fn
// begins a pass and must not wait; when the pass has ended Again is called.
func (g *Group) Sliding(name string, period time.Duration, fn func()) *Periodic {
	p := g.newPeriodic(name, period, fn)
	p.sliding = true
	return p
}

func (g *Group) newPeriodic(name string, period time.Duration, fn func()) *Periodic {
	if period <= 0 {
		panic("loop: period of " + name + " is not positive")
	}
	p := &Periodic{fn: fn, period: int64(period)}
	p.timer = Timer{g: g, do: p, idx: -1, stream: g.l.NewStream(), name: name}
	return p
}

// Jitter lengthens each period from now on by up to fraction×period, drawn for
// the purpose and object.
func (p *Periodic) Jitter(fraction float64, purpose, object string) {
	if fraction > 0 {
		p.jitter = &jitter{fraction: fraction, purpose: purpose, object: object}
	}
}

// Tasks notes that each pass is a task, which begins one step after it is due.
func (p *Periodic) Tasks() { p.task = true }

// Begin sets the first pass, at once.
func (p *Periodic) Begin() {
	p.next = p.timer.g.l.now
	p.set(p.next)
}

// Again sets the pass after the one that ends now.
func (p *Periodic) Again() {
	p.next = p.timer.g.l.now + p.wait()
	p.set(p.next)
}

// Restart sets the next pass, at once, and has those after it come a new period apart.
// Without jitter.
func (p *Periodic) Restart(period time.Duration) {
	p.CatchUp()
	p.parked = false
	p.period = int64(period)
	p.Begin()
}

// Stop ends the passes.
func (p *Periodic) Stop() {
	p.timer.Stop()
	p.parked = false
}

// wait returns the time to the next pass; with jitter it is drawn.
func (p *Periodic) wait() int64 {
	j := p.jitter
	if j == nil {
		return p.period
	}
	j.n++
	return int64(p.timer.g.l.Jitter(time.Duration(p.period), j.fraction, j.purpose, j.object, j.n-1))
}

// set has the timer fire at a time, in ns since the Unix epoch.
func (p *Periodic) set(at int64) {
	if g := p.timer.g; !g.dead {
		g.l.schedule(&p.timer, max(at, g.l.now))
	}
}

// fire is called by the timer: a pass is due.
func (p *Periodic) fire() {
	if p.elide() {
		return
	}
	if !p.sliding {
		p.arm()
	}
	p.fn()
}

// arm sets the next instant of the grid.
func (p *Periodic) arm() {
	now, d := p.timer.g.l.now, p.wait()
	p.next += d
	if p.next <= now { // the loop stood still for longer than a period
		p.next = now + d
	}
	p.set(p.next)
}

// Ticks is a grid of instants to wait for, as one of several: it is ready once
// an instant has come since it was last taken, however many have.
type Ticks struct {
	Signal
	p  *Periodic
	by Elider // nil: there is a timer for each instant
	// seen is up to when instants that had no timer are accounted for, in ns since
	// the Unix epoch.
	seen int64
}

// Ticks returns the instants of a grid, of which the first is a period from now.
func (g *Group) Ticks(name string, period time.Duration) *Ticks {
	t := &Ticks{}
	t.p = g.Every(name, period, 0, t.Notify)
	return t
}

func (t *Ticks) take() bool {
	if now := t.p.timer.g.l.now; t.by != nil && now != t.seen {
		t.set = t.set || t.p.After(t.seen) <= now
		t.seen = now
	}
	return t.Signal.take()
}

func (t *Ticks) remove(task *Task) {
	t.Signal.remove(task)
	if t.by == nil {
		return
	}
	t.seen = t.p.timer.g.l.now
	if d, ok := t.by.(Deferrer); ok && d.Defers() {
		t.p.Wake()
	}
}

// Waited reports whether a task waits for a tick.
func (t *Ticks) Waited() bool { return len(t.w.tasks) > 0 && !t.set }
