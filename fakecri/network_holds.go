package fakecri

import (
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// This file says which answers of stated programs stay as they are, so that who
// asks again and again need not.

// OnAnswerChange is Runtime.OnAnswerChange.
func (r *podNet) OnAnswerChange(g *loop.Group, fn func(containerID string)) {
	r.answerWatchers.add(g, fn)
}

// answersChanged is called when a container's process p is gone or its network.
func (r *podNet) answersChanged(c *container, p *process) {
	if p == nil || !p.relied {
		return
	}
	p.relied = false
	r.answerWatchers.tell(c.id)
}

func (r *podNet) networkDown(s *sandbox) {
	for _, c := range s.containers {
		r.answersChanged(c, c.process)
	}
}

// holds tells whether the answer stays the same while its container's process
// and network last, and notes that somebody relies on that. Only the container
// that was asked itself counts: any other could get a rival.
func (a *answer) holds(containerID string) bool {
	if a.err != nil || a.port == nil || a.port.answer != nil || a.of.id != containerID || a.r.noElide {
		return false
	}
	if l := a.port.Latency; l.Max > l.Min {
		return false
	}
	p := a.of.process
	for i := range p.b.Ports {
		if x := &p.b.Ports[i]; !settled(a.at, x.After, x.Until) {
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
	p.relied = true
	return true
}

// settled tells whether a span, see during, begins and ends no more after t.
func settled(t, after, until time.Duration) bool { return t >= after && (until == 0 || t >= until) }
