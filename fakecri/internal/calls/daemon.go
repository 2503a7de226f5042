package calls

import (
	"context"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// Daemon is the runtime's daemon: where calls arrive, meet faults and take
// their time.
type Daemon struct {
	Loop     *loop.Loop
	Recorder *trace.Recorder
	fields   []trace.Field   // of the record being made: memory for the next
	lat      []program.Range // by method; nil: all are as usual
	Life     *Life           // nil while it is down
	faults   []*fault
	changed  func() // what a call could answer may be another
}

// Life is one life of the daemon.
type Life struct {
	Group *loop.Group
	Down  loop.Event
}

// New returns a daemon that is down. changed is called whenever what a call could
// answer may be another.
func New(l *loop.Loop, rec *trace.Recorder, latency map[string]program.Range, changed func()) *Daemon {
	r := &Daemon{Loop: l, Recorder: rec, changed: changed}
	if len(latency) > 0 {
		r.lat = make([]program.Range, methodCount)
		for m := range methods {
			r.lat[m] = methods[m].latency
			if d, ok := latency[methods[m].name]; ok {
				r.lat[m] = d
			}
		}
	}
	return r
}

// Latency is how long a method takes.
func (r *Daemon) Latency(m Method) program.Range {
	if r.lat == nil {
		return methods[m].latency
	}
	return r.lat[m]
}

// gate is where faults act: what it returns is the call's error.
func (r *Daemon) gate(ctx context.Context, d *Life, m Method, s *Subject) error {
	if len(r.faults) == 0 {
		return nil
	}
	var (
		delay time.Duration
		hangs []*fault
		err   error
	)
	for _, f := range r.faults {
		if !f.matches(m, s) || !f.hit() {
			continue
		}
		if f.spent() {
			r.changed()
		}
		r.recordFault(f, "hit", s)
		if f.OnHit != nil {
			f.OnHit()
		}
		delay += r.Loop.Between(f.Latency.Min, f.Latency.Max, "fault", f.Name, uint64(f.seen))
		if f.Hang {
			hangs = append(hangs, f)
		}
		if err == nil && f.Error != nil {
			err = f.Error.err()
		}
	}
	if delay > 0 {
		if serr := r.Loop.Sleep(ctx, delay); serr != nil {
			return CtxError(serr)
		}
	}
	for _, f := range hangs {
		if _, werr := loop.WaitAny(ctx, &d.Down, &f.end); werr != nil {
			return CtxError(werr)
		}
	}
	if d.Down.Fired() {
		return errLost
	}
	return err
}

// Pause passes a call's latency.
func (r *Daemon) Pause(ctx context.Context, m Method, s *Subject) error {
	return r.Loop.Sleep(ctx, r.latencyOf(m, s))
}

// latencyOf draws a call's latency.
func (r *Daemon) latencyOf(m Method, s *Subject) time.Duration {
	return time.Duration(s.Draw(r.Loop, r.Latency(m), methods[m].name))
}

// ShortPause passes the latency of a stop that found nothing to stop.
func (r *Daemon) ShortPause(ctx context.Context, m Method, s *Subject) error {
	return r.Loop.Sleep(ctx, time.Duration(s.Draw(r.Loop, r.Latency(m), methods[m].name)/RepeatShare))
}

// PauseRegardless passes a call's latency also if the call is cancelled.
func (r *Daemon) PauseRegardless(m Method, s *Subject) {
	ctx := r.daemonGroup().Background()
	_ = r.Pause(ctx, m, s)
}

// daemonGroup is whose tasks complete what a dead caller began; while the daemon is
// down, the loop's.
func (r *Daemon) daemonGroup() *loop.Group {
	if r.Life != nil {
		return r.Life.Group
	}
	return r.Loop.Root()
}

// Faulted reports whether an active fault names the method.
func (r *Daemon) Faulted(m Method) bool {
	return slices.ContainsFunc(r.faults, func(f *fault) bool { return f.active && f.methods[m] })
}

// Untroubled reports whether a call would be answered by what it asks for, if late:
// the daemon is up, and no active fault names the method.
func (r *Daemon) Untroubled(m Method) bool { return r.Life != nil && !r.Faulted(m) }

// Faultless reports whether that holds for every method, for there are no faults.
func (r *Daemon) Faultless() bool { return r.Life != nil && len(r.faults) == 0 }

// Prompt reports whether a call would be answered at once and leave no trace.
func (r *Daemon) Prompt(m Method) bool {
	if r.Life == nil || r.Latency(m).Max > 0 || r.Latency(m).Min > 0 || r.Recorder.TraceReads() {
		return false
	}
	return !slices.ContainsFunc(r.faults, func(f *fault) bool { return f.active && f.methods[m] })
}

// AwaitEvent waits until an event has happened, or the daemon is gone.
func AwaitEvent(ctx context.Context, d *Life, e *loop.Event) error {
	i, err := loop.WaitAny(ctx, e, &d.Down)
	if err != nil {
		return CtxError(err)
	}
	if i == 1 {
		return errLost
	}
	return nil
}
