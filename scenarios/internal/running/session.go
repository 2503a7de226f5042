package running

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/result"
	"github.com/drydock-sim/drydock/sim"
)

// SessionOptions say how a session begins.
type SessionOptions struct {
	// Start is the virtual time at its beginning. Zero means loop.Epoch.
	Start time.Time
	// Seed, Workers, Timeline and Verbose are those of Options.
	Seed     *uint64
	Workers  int
	Timeline io.Writer
	Verbose  bool
	// NoWatchdog has nobody look by the wall clock whether the engine gets on, for
	// callers who do so themselves, or who run it for moments.
	NoWatchdog bool
}

// Session is a scenario's cluster in somebody else's hands: who opened it runs the
// engine, and has the timeline happen. It has no end, and expectations are not judged.
// All methods but Parse are for use while no loop runs.
type Session struct {
	p        *performance
	compiler *expect.Compiler // of Judge; nil before the first
}

// Open makes a scenario's cluster, at its beginning. The scenario is only read.
func Open(s *document.Scenario, opts SessionOptions) (*Session, error) {
	open := *s
	open.Spec.Expect = nil
	p := &performance{
		s: &open, seed: s.Spec.Seed, steady: -1, endless: true, result: &result.Result{},
		opts: Options{Start: opts.Start, Workers: opts.Workers, Timeline: opts.Timeline, Verbose: opts.Verbose},
	}
	if opts.Seed != nil {
		p.seed = *opts.Seed
	}
	if opts.NoWatchdog {
		p.watchdog = -1
	}
	if err := p.build(); err != nil {
		if p.cluster != nil {
			p.cluster.Close()
		}
		return nil, fmt.Errorf("scenario %s: %w", s.Metadata.Name, err)
	}
	return &Session{p: p}, nil
}

// Cluster returns the session's cluster.
func (s *Session) Cluster() *sim.Cluster { return s.p.cluster }

// Next returns when RunDue is to be called next; the zero time: never.
func (s *Session) Next() time.Time {
	if len(s.p.agenda.items) == 0 {
		return time.Time{}
	}
	return s.p.cluster.Start().Add(s.p.agenda.next())
}

// RunDue does what the timeline has to do by now. Its error is an internal one; what the
// API or a node refuses is a notice.
func (s *Session) RunDue() error { return s.p.agenda.runDue(s.p.cluster.Now()) }

// Parse reads an action as document.ParseAction does.
func (s *Session) Parse(data []byte) (*document.Action, error) {
	return document.ParseAction(data, s.p.s)
}

// Act does something that a timeline can do, now. The error is the API's or a node's.
func (s *Session) Act(a *document.Action) error { return a.Does.Do(stage{s.p, a.Pos.String()}) }

// Judge judges an expression in CEL over the cluster's state, as of now. The error is
// what is wrong with the expression. What looks back (phases, transitions) or at calls of
// the runtime is refused, since a session keeps neither.
func (s *Session) Judge(expr string) (expect.Verdict, error) {
	if s.compiler == nil {
		c, err := expect.NewCompiler()
		if err != nil {
			return expect.Verdict{}, err
		}
		s.compiler = c
	}
	now := s.p.cluster.Now()
	x, errs := s.compiler.Compile(expect.Source{Form: expect.At, T: now, Expr: strings.TrimSpace(expr)})
	switch {
	case len(errs) > 0:
		return expect.Verdict{}, fmt.Errorf("line %d, column %d: %w", errs[0].Line, errs[0].Column, errs[0])
	case x.NeedsCRICalls():
		return expect.Verdict{}, errors.New("criCalls() is for scenario files: here nobody keeps them")
	case x.NeedsHistory():
		return expect.Verdict{}, errors.New("what was before (phases, transitions) is for scenario files: here nobody keeps it")
	}
	e := expect.New([]*expect.Expectation{x}, s.p.state, expect.Options{})
	e.Begin()
	return e.Finish(now, false)[0], nil
}

// Notices returns what of the timeline failed, and warnings, that it has not returned
// before.
func (s *Session) Notices() []string {
	out := append(s.p.result.Errors, s.p.journal.warnings...)
	s.p.result.Errors, s.p.journal.warnings = nil, nil
	return out
}

// Counts returns how many nodes there are, how many of them are ready, and the numbers
// of pods by phase.
func (s *Session) Counts() (nodes, ready int, pods map[v1.PodPhase]int) {
	pods = map[v1.PodPhase]int{}
	for phase, n := range s.p.state.phase { //drydock:unordered each key is set once
		if n != 0 {
			pods[phase] = n
		}
	}
	return len(s.p.cluster.Nodes()), s.p.state.ready, pods
}

// Close ends the session. The error is that of writing the timeline.
func (s *Session) Close() error {
	s.p.cluster.Close()
	return s.p.journal.close()
}
