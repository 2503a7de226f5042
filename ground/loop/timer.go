package loop

import "time"

// Timer is a callback that a loop will run once, at a time. A stopped or fired
// timer can be set again with Reset.
type Timer struct {
	g      *Group
	do     doer
	stream uint64
	seq    uint64 // grows with each time that the timer is set; decides last
	idx    int32
	pooled bool // a message: the timer goes back to the loop once fired
	name   string
}

// doer is what a timer fires: a *Task that goes on, a *Periodic of which a pass is
// due, or a callback. It is an interface, since a method value would be an object
// of its own for each Periodic.
type doer interface{ fire() }

// callback is a function that a timer calls.
type callback func()

func (fn callback) fire() { fn() }

func (t *Timer) what() string {
	if task, ok := t.do.(*Task); ok {
		return "task " + task.name
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
	t := &Timer{g: g, do: callback(fn), idx: -1, stream: stream}
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
	return &Timer{g: g, do: callback(fn), idx: -1, stream: g.l.NewStream(), name: name}
}

// Reset sets the timer to fire after d from now, whether or not it is set.
func (t *Timer) Reset(d time.Duration) {
	if !t.g.dead {
		t.g.l.schedule(t, t.g.l.now+int64(max(d, 0)))
	}
}

// ResetAt sets the timer to fire at a time, or at once if that has passed.
func (t *Timer) ResetAt(at time.Time) { t.Reset(time.Duration(at.UnixNano() - t.g.l.now)) }

// Stop unsets the timer; it reports whether it was set.
func (t *Timer) Stop() bool {
	if t.idx < 0 {
		return false
	}
	t.g.l.heap.remove(int(t.idx))
	return true
}

// When returns when a timer that is set fires.
func (t *Timer) When() time.Time { return time.Unix(0, t.g.l.heap.items[t.idx].at).UTC() }

// Set reports whether the timer is set.
func (t *Timer) Set() bool { return t.idx >= 0 }
