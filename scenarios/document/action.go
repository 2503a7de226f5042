package document

import (
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Action is something that happens at a time. Besides `at` it has exactly one other field.
type Action struct {
	// When, after the scenario's start.
	At time.Duration `json:"at" required:""`

	// Does is the other field: what happens.
	Does action.Action `json:"-"`
	// Pos is where the action is written.
	Pos decode.Position `json:"-"`

	// written are the other fields as they were decoded: exactly one, once they
	// were checked.
	written []writtenAction
}

type writtenAction struct {
	action.Action
	at decode.Place
}

// Kind returns the name of the action's one field besides at, such as
// "restartKubelet".
func (a *Action) Kind() string {
	if a.Does == nil {
		return ""
	}
	return action.Name(a.Does)
}

// Keys are the names of all actions.
func (a *Action) Keys() []string {
	return lists.Map(action.Catalogue(), func(k action.Kind) string { return k.Name })
}

// Field makes the action of a name. One that is null is as good as not there.
func (a *Action) Field(key string, at decode.Place) any {
	x := action.New(key)
	if x == nil {
		return nil
	}
	if !at.Null() {
		a.written = append(a.written, writtenAction{x, at})
	}
	return x
}

// check wants one action. Where there are more, each is checked all the same, so
// that all mistakes are told at once.
func (a *Action) check(at decode.Place, s *value.Scope) {
	a.Pos = at.Pos()
	slices.SortFunc(a.written, func(x, y writtenAction) int { return strings.Compare(x.at.Name(), y.at.Name()) })
	names := lists.Map(a.written, func(x writtenAction) string { return x.at.Name() })
	switch len(names) {
	case 0:
		at.Errorf("says nothing that happens: besides at it needs apply, delete, fault or another action")
	case 1:
	default:
		at.Field(names[1]).Errorf("an action is one thing, but this is %s", strings.Join(names, " and "))
	}
	s.Late(at.Field("at"), a.At)
	for _, x := range a.written {
		a.Does = x.Action
		if c, ok := x.Action.(action.Checked); ok {
			c.Check(action.Place{Place: x.at, Scope: s, Begin: a.At})
		}
	}
	a.written = nil
}
