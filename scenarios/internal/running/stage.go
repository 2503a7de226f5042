package running

import (
	"cmp"
	"fmt"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/sim"
)

// stage is what an action of the timeline gets to act upon (action.Stage). It is made for each
// action, with the action's own place for errors.
type stage struct {
	*performance
	// who is the action's place in the file, which errors name.
	who string
}

func (s stage) Cluster() *sim.Cluster                   { return s.cluster }
func (s stage) Nodes() []string                         { return s.s.NodeNames() }
func (s stage) Seed() uint64                            { return s.seed }
func (s stage) Later(at time.Duration, do func() error) { s.agenda.add(at, false, do) }
func (s stage) Warn(text string)                        { s.journal.warn(text) }
func (s stage) AtEnd(do func())                         { s.atEnd = append(s.atEnd, do) }

// Missed warns with the action's place.
func (s stage) Missed(what string) { s.journal.warn(cmp.Or(s.who, "spec.api.faults") + ": " + what) }

// Host is the machine outside, if the run has one.
func (s stage) Host() *sim.Host {
	if s.opts.Real == nil {
		return nil
	}
	return s.opts.Real.Host
}

// Fail notes an error in the result and in the timeline.
func (s stage) Fail(who string, err error) {
	who = cmp.Or(who, s.who)
	s.result.Errors = append(s.result.Errors, fmt.Sprintf("%s: %v", who, err))
	s.cluster.Recorder().Record(trace.KindAction, "scenario", "error", trace.Str("message", err.Error()))
}

// act does one action of the timeline. What the API or a node answers with an
// error is noted; the run goes on. That is as with kubectl: the script of a timeline is not a
// transaction.
func (p *performance) act(a *document.Action) {
	s := stage{p, a.Pos.String()}
	if err := a.Does.Do(s); err != nil {
		s.Fail("", err)
	}
}
