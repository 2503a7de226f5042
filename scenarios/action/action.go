package action

import (
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Action is what one entry of a timeline does.
type Action interface {
	// Do does it. It is called between runs of the engine, when no loop runs and
	// all clocks show the action's time. The error is the API's or a node's; it
	// fails the scenario, and the run goes on.
	Do(s Stage) error
}

// Checked is an action that has something to check or to fill in once the
// document is decoded.
type Checked interface{ Check(at Place) }

// Place is where an action is written, and what its check may ask of the rest.
type Place struct {
	decode.Place
	Scope *value.Scope
	// Begin is the action's time.
	Begin time.Duration
}

// Creator is an action that creates pods, which a run's start-up waits for. Pods
// is how many at least, in a cluster of so many nodes.
type Creator interface {
	Pods(nodes int) int
}

// Applier is an action whose objects may be in files: two documents that say the
// same may still differ in them.
type Applier interface {
	Applied() []runtime.Object
}

// OnlySimulated marks an action that a machine outside does not know.
type OnlySimulated interface{ OnlySimulated() }

// Kind is an entry of the catalogue: the name of an action's field, and how one
// is made.
type Kind struct {
	Name string
	New  func() Action
}

// kind is the catalogue's entry of an action's type.
func kind[T any, P interface {
	*T
	Action
}]() Kind {
	return Kind{nameOf(reflect.TypeFor[T]()), func() Action { return P(new(T)) }}
}

// Name is the name of an action's field, such as "restartKubelet".
func Name(a Action) string { return nameOf(reflect.TypeOf(a).Elem()) }

func nameOf(t reflect.Type) string {
	if name := t.Name(); name == strings.ToUpper(name) { // NFS
		return strings.ToLower(name)
	}
	return strings.ToLower(t.Name()[:1]) + t.Name()[1:]
}

// New returns an empty action of a name, or nil if there is none of it.
func New(name string) Action {
	for _, k := range Catalogue() {
		if k.Name == name {
			return k.New()
		}
	}
	return nil
}
