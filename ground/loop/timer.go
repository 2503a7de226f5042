package loop

import "time"

// Timer is a callback that a loop will run once, at a time. A stopped or fired
// timer can be set again with Reset.
type Timer struct {
	g      *Group
	fn     func()
	task   *Task
	stream uint64
	seq    uint64 // grows with each time that the timer is set; decides last
	idx    int32
	pooled bool // a message: the timer goes back to the loop once fired
	name   string
}

func (t *Timer) what() string {
	if t.task != nil {
		return "task " + t.task.name
	}
	if t.name == "" {
		return "a callback of group " + t.g.name
	}
	return "callback " + t.name
}

// After runs fn once after d. The callback must not wait.
func (g *Group) After(d time.Duration, fn func()) *Timer {
	return g.AfterInStream(g.l.NewStream(), d, fn)
}

// AfterInStream is After in a stream of NewStream: callbacks of one stream
// that are due at one instant run in the order in which they were scheduled.
func (g *Group) AfterInStream(stream uint64, d time.Duration, fn func()) *Timer {
	t := &Timer{g: g, fn: fn, idx: -1, stream: stream}
	if !g.dead {
		g.l.schedule(t, g.l.now+int64(max(d, 0)))
	}
	return t
}

// At runs fn once at the given time, or at once if that has passed.
func (g *Group) At(at time.Time, fn func()) *Timer {
	return g.After(time.Duration(at.UnixNano()-g.l.now), fn)
}

// NewTimer returns a timer that is not set: Reset sets it.
func (g *Group) NewTimer(name string, fn func()) *Timer {
	return &Timer{g: g, fn: fn, idx: -1, stream: g.l.NewStream(), name: name}
}

// Reset sets the timer to fire after d from now, whether or not it is set.
func (t *Timer) Reset(d time.Duration) {
	if !t.g.dead {
		t.g.l.schedule(t, t.g.l.now+int64(max(d, 0)))
	}
}

// ResetAt sets the timer to fire at a time, or at once if that has passed.
func (t *Timer) ResetAt(at time.Time) { t.Reset(time.Duration(at.UnixNano() - t.g.l.now)) }

// Stop unsets the timer; it tells whether it was set.
func (t *Timer) Stop() bool {
	if t.idx < 0 {
		return false
	}
	t.g.l.heap.remove(int(t.idx))
	return true
}

// When returns when a timer that is set fires.
func (t *Timer) When() time.Time { return time.Unix(0, t.g.l.heap.items[t.idx].at).UTC() }

// Set tells whether the timer is set.
func (t *Timer) Set() bool { return t.idx >= 0 }

// Ticker runs a callback periodically.
type Ticker struct {
	timer  Timer
	period int64
	jitter float64
	next   int64 // when the tick that is set (or was parked) is due
	n      uint64
	fn     func()
}

// Every runs fn, which must not wait, every period; first after one period. A
// jitter above 0 lengthens each period by up to jitter×period, drawn anew each
// time. Without jitter the ticks stay on one grid. A tick allocates nothing.
func (g *Group) Every(name string, period time.Duration, jitter float64, fn func()) *Ticker {
	k := g.newTicker(name, period, jitter, fn)
	k.next = g.l.now
	k.arm()
	return k
}

// EveryNow is Every with the first tick at once.
func (g *Group) EveryNow(name string, period time.Duration, jitter float64, fn func()) *Ticker {
	k := g.newTicker(name, period, jitter, fn)
	k.next = g.l.now
	if !g.dead {
		g.l.schedule(&k.timer, k.next)
	}
	return k
}

func (g *Group) newTicker(name string, period time.Duration, jitter float64, fn func()) *Ticker {
	if period <= 0 {
		panic("loop: ticker " + name + " with a period that is not positive")
	}
	k := &Ticker{period: int64(period), jitter: jitter, fn: fn}
	k.timer = Timer{g: g, idx: -1, stream: g.l.NewStream(), name: name}
	k.timer.fn = k.tick
	return k
}

func (k *Ticker) tick() {
	k.arm()
	k.fn()
}

func (k *Ticker) arm() {
	l := k.timer.g.l
	d := k.period
	if k.jitter > 0 {
		d = int64(l.Jitter(time.Duration(d), k.jitter, "ticker", k.timer.name, k.n))
	}
	k.n++
	k.next += d
	if k.next <= l.now { // the loop stood still for longer than a period
		k.next = l.now + d
	}
	if !k.timer.g.dead {
		l.schedule(&k.timer, k.next)
	}
}

// SkipTo has the next tick at the first instant of the grid after t, and after
// now: those before are left out, or set again. A tick that is due at this
// instant stays. t is in nanoseconds since the Unix epoch. It is for tickers
// without jitter, parked ones too.
func (k *Ticker) SkipTo(t int64) {
	l := k.timer.g.l
	if k.timer.g.dead || k.timer.Set() && k.next <= l.now {
		return
	}
	next := k.next + k.period*(floorDiv(max(t, l.now)-k.next, k.period)+1)
	if next == k.next && k.timer.Set() {
		return
	}
	k.next = next
	l.schedule(&k.timer, next)
}

// TickedSince tells whether the grid of a ticker without jitter has an instant
// after t, up to now, be it that the tick was left out.
func (k *Ticker) TickedSince(t int64) bool {
	now := k.timer.g.l.now
	return floorDiv(now-k.next, k.period) > floorDiv(t-k.next, k.period)
}

// After returns the first instant of a grid of ticks without jitter after t. Both
// are in nanoseconds since the Unix epoch.
func (k *Ticker) After(t int64) int64 { return k.next + k.period*(floorDiv(t-k.next, k.period)+1) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Stop ends the ticks.
func (k *Ticker) Stop() { k.timer.Stop() }

// Park suspends the ticks; Unpark resumes them on the same grid.
func (k *Ticker) Park() { k.timer.Stop() }

// Parked tells whether no tick is set.
func (k *Ticker) Parked() bool { return !k.timer.Set() }

// Unpark resumes parked ticks at the next instant of the grid after now.
func (k *Ticker) Unpark() {
	if k.timer.Set() || k.timer.g.dead {
		return
	}
	l := k.timer.g.l
	if k.next <= l.now {
		k.next += ((l.now-k.next)/k.period + 1) * k.period
	}
	l.schedule(&k.timer, k.next)
}
