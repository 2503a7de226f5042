package expect

import (
	"fmt"
	"time"
)

// Outcome is what came of an expectation. Undecided is neither good nor bad: the run was too
// short.
type Outcome string

// The outcomes.
const (
	Held      Outcome = "held"
	Failed    Outcome = "failed"
	Undecided Outcome = "undecided" // the run ended before its time
)

// Verdict is the judgement of one expectation. Values and Objects are for a report; neither
// changes the outcome.
type Verdict struct {
	Index       int
	Expectation *Expectation
	Outcome     Outcome
	// At is when that was decided: a virtual time since the start.
	At time.Duration
	// Reason says in a few words why it failed, or why it is undecided.
	Reason string
	// Values are the values of parts of a failed expression, when it failed.
	Values []Value
	// Objects are those that a failed expression is about, the first few.
	Objects []ObjectRef
}

// Value is a part of an expression and what it was.
type Value struct{ Expr, Value string }

// ObjectRef names an object.
type ObjectRef struct {
	Kind            Kind
	Namespace, Name string
}

// look evaluates a run's expression and judges what follows from it now. Errors count as false
// for by and for, which may wait for better times.
func (e *Engine) look(r *trial) {
	x := r.x
	if r.done || x.Form == At || e.now < x.From {
		return
	}
	e.eval(r)
	switch x.Form {
	case By:
		if r.value {
			e.decide(r, Held, e.now, "")
		}
	case Always:
		// What can't be evaluated may become so, for which by and for wait. For
		// always and never it is one moment too many.
		if r.err != nil {
			e.decide(r, Failed, e.now, "could not be evaluated: "+r.err.Error())
		} else if !r.value {
			e.decide(r, Failed, e.now, "was false at "+spell(e.now))
		}
	case Never:
		if r.err != nil {
			e.decide(r, Failed, e.now, "could not be evaluated: "+r.err.Error())
		} else if r.value {
			e.decide(r, Failed, e.now, "was true at "+spell(e.now))
		}
	case For:
		if !r.value {
			r.since = -1
		} else if r.since < 0 {
			r.since = e.now
			if x.Span == 0 {
				e.decide(r, Held, e.now, "")
			}
		}
	}
}

// expire judges what time alone decides. With inclusive, what is due at
// exactly `at` is decided too; without, a change at that time comes first. The two ways of
// calling make a change at a deadline count before the deadline does.
func (e *Engine) expire(r *trial, at time.Duration, inclusive bool) {
	x := r.x
	over := func(t time.Duration) bool { return t != End && (t < at || inclusive && t == at) }
	switch x.Form {
	case At:
		if over(x.T) {
			e.setNow(at)
			e.eval(r)
			e.decideAt(r)
		}
	case Always, Never:
		if over(x.Until) && x.Until >= x.From {
			e.decide(r, Held, x.Until, "")
		}
	case By:
		if over(x.T) {
			// A change at the very deadline still counts.
			if inclusive {
				e.setNow(at)
				e.look(r)
			}
			if !r.done {
				e.decide(r, Failed, x.T, "did not become true by "+spell(x.T)+r.because())
			}
		}
	case For:
		due := r.since + x.Span
		// That the span is full shows only now, when nothing has cut it short.
		if r.since >= 0 && due <= at && (x.T == End || due <= x.T) {
			e.decide(r, Held, due, "")
		} else if over(x.T) {
			e.decide(r, Failed, x.T, fmt.Sprintf("did not hold for %s in a row by %s%s", spell(x.Span), spell(x.T), r.because()))
		}
	}
}

// because is why an expression is false: that it could not be evaluated, if so.
func (r *trial) because() string {
	if r.err != nil {
		return ": could not be evaluated: " + r.err.Error()
	}
	return ""
}

// decideAt decides by the value at one time, for the form at.
func (e *Engine) decideAt(r *trial) {
	switch {
	case r.err != nil:
		e.decide(r, Failed, e.now, "could not be evaluated: "+r.err.Error())
	case r.value:
		e.decide(r, Held, e.now, "")
	default:
		e.decide(r, Failed, e.now, "was false at "+spell(e.now))
	}
}

// decide ends the judging of an expectation; a failed one is explained from the
// state as it is now, since the next change may hide why. It is called once for each trial.
func (e *Engine) decide(r *trial, o Outcome, at time.Duration, reason string) {
	r.done = true
	e.live--
	v := &r.verdict
	v.Outcome, v.At, v.Reason = o, at, reason
	if o == Failed {
		v.Values, v.Objects = e.explain(r)
	}
	// Tables are as large as the cluster was, and nobody counts for a decided
	// expectation.
	r.table, r.counts, r.aggs = nil, nil, nil
}

// plan finds when time alone can decide something about a run. A trial that nothing is due for is
// only woken by changes.
func (e *Engine) plan(r *trial) {
	r.due = farAway
	if r.done {
		return
	}
	x := r.x
	soon := func(t time.Duration) {
		if t != End {
			r.due = min(r.due, t)
		}
	}
	switch x.Form {
	case At, By:
		soon(x.T)
	case For:
		soon(x.T)
		if r.since >= 0 {
			soon(r.since + x.Span)
		}
	case Always, Never:
		soon(x.Until)
	}
	if e.now < x.From {
		soon(x.From)
	}
	if r.next != farAway {
		soon(r.next)
	}
}

// NextDeadline returns when Advance must be called, as a virtual time since
// the start, unless something changes before; false for never. The caller keeps one timer for all
// expectations.
func (e *Engine) NextDeadline() (time.Duration, bool) {
	next := farAway
	for _, r := range e.runs {
		if !r.done {
			next = min(next, r.due)
		}
	}
	return next, next != farAway
}

// Advance tells the engine that it is now that time, and judges what is due. Calling it early or
// twice does no harm.
func (e *Engine) Advance(now time.Duration) {
	if e.view == nil {
		return
	}
	for _, r := range e.runs {
		if r.done || r.due > now {
			continue
		}
		e.expire(r, now, true)
		if !r.done {
			e.setNow(now)
			if r.x.Form != At && (r.next <= now || !r.begun) {
				e.look(r)
			}
		}
		e.plan(r)
	}
	e.setNow(now)
}

// Finish ends the run at that time and returns all verdicts, in the order of
// the expectations. An early end leaves undecided what was to be judged later. After it the
// engine is of no more use.
func (e *Engine) Finish(end time.Duration, early bool) []Verdict {
	e.Advance(end)
	out := make([]Verdict, 0, len(e.runs))
	for _, r := range e.runs {
		if !r.done {
			e.finish(r, end, early)
		}
		out = append(out, r.verdict)
	}
	return out
}

// finish judges what only the end of the run decides. early is a run that was
// cut short, whose end decides nothing. Those with the time End are decided here as well.
func (e *Engine) finish(r *trial, end time.Duration, early bool) {
	x := r.x
	if early {
		r.verdict.At, r.verdict.Reason = end, "the run ended at "+spell(end)
		return
	}
	switch x.Form {
	case At:
		e.eval(r)
		e.decideAt(r)
	case By:
		e.look(r)
		if !r.done {
			e.decide(r, Failed, end, "did not become true by the end, "+spell(end)+r.because())
		}
	case For:
		e.decide(r, Failed, end, fmt.Sprintf("did not hold for %s in a row by the end, %s%s", spell(x.Span), spell(end), r.because()))
	case Always, Never:
		if x.From > end {
			r.verdict.Reason = "the run ended before " + spell(x.From)
			return
		}
		e.decide(r, Held, end, "")
	}
}

// Verdicts returns the verdicts as they are now.
func (e *Engine) Verdicts() []Verdict {
	out := make([]Verdict, 0, len(e.runs))
	for _, r := range e.runs {
		out = append(out, r.verdict)
	}
	return out
}

// spell writes a virtual time without noise: to the millisecond.
func spell(d time.Duration) string { return d.Truncate(time.Millisecond).String() }
