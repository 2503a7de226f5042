package document

import (
	"errors"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// now is an action as it is written for what happens at once: without a time.
type now struct {
	Action `json:"-"`
}

// ParseAction reads an action of a timeline that is to happen at once in a scenario's
// cluster, such as {powerCut: {node: node-0}}. It can name no files. Errors are
// decode.Errors.
func ParseAction(data []byte, s *Scenario) (*Action, error) {
	const name = "action"
	l := newLoader(LoadOptions{
		ValidateKubelet: refusedByKubelet,
		ReadFile:        func(string) ([]byte, error) { return nil, errors.New("there are no files here") },
	})
	docs := l.r.Documents(name, data)
	if err := l.r.Err(); err != nil {
		return nil, err
	}
	if len(docs) != 1 || !docs[0].IsMapping() {
		l.r.Fail(name, "want one action, such as {powerCut: {node: node-0}}")
		return nil, l.r.Err()
	}
	var a now
	at := docs[0]
	before := at.Errors()
	at.Decode(&a)
	at.Settle(before)
	scope := &value.Scope{Duration: decode.MaxDuration, Nodes: s.NodeNames(), Imagefs: s.imagefs()}
	for _, check := range l.checks {
		check(scope)
	}
	l.checkObjects(s.Spec.API.Gates())
	if err := l.r.Err(); err != nil {
		return nil, err
	}
	return &a.Action, nil
}
