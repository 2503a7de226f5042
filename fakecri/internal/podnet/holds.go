package podnet

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// This file says which answers of stated programs stay as they are, so that who
// asks again and again need not.

// OnAnswerChange is Runtime.OnAnswerChange. The callback comes once for each reliance: who still
// wants to rely asks again.
func (r *Net) OnAnswerChange(g *loop.Group, fn func(containerID string)) {
	r.answerWatchers.Add(g, fn)
}

// AnswersChanged is called when a container's process p is gone; its network goes no sooner.
// Relied is set by holds, so an answer that nobody relied on costs nothing.
func (r *Net) AnswersChanged(c *records.Container, p *records.Process) {
	if p == nil || !p.Relied {
		return
	}
	p.Relied = false
	r.answerWatchers.Tell(c.ID)
}

// holds reports whether the answer stays the same while its container's process
// and network last, and notes that somebody relies on that. Only the container
// that was asked itself counts: any other could get a rival.
//
// A port that begins or ends later, a latency that is drawn, a function that answers: each of
// them could give another answer. An error holds never, as somebody else may begin to listen.
func (a *answer) holds(containerID string) bool {
	// With elision off, everything is asked each time.
	if a.err != nil || a.port == nil || a.port.Answer != nil || a.of.ID != containerID || a.r.noElide {
		return false
	}
	if l := a.port.Latency; l.Max > l.Min {
		return false
	}
	p := a.of.Process
	for i := range p.Behaviour.Ports {
		if x := &p.Behaviour.Ports[i]; !settled(a.at, x.After, x.Until) {
			return false
		}
	}
	for i := range a.port.HTTP {
		if x := &a.port.HTTP[i]; !settled(a.at, x.After, x.Until) {
			return false
		}
	}
	for i := range a.port.GRPC {
		if x := &a.port.GRPC[i]; !settled(a.at, x.After, x.Until) {
			return false
		}
	}
	p.Relied = true
	return true
}

// settled reports whether a span, see during, begins and ends no more after t. Spans are
// half-open: a port is open from after until, not including, until.
func settled(t, after, until time.Duration) bool { return t >= after && (until == 0 || t >= until) }
