package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
)

// How long the API server takes to see that its configuration has changed, and how often
// it sees to what it suggests itself
// (pkg/registry/flowcontrol/rest/storage_flowcontrol.go).
const (
	flowConfigDelay  = time.Millisecond
	flowConfigPeriod = time.Minute
)

// flowConfig has flow control follow the flow schemas and priority levels that are stored,
// and tells in the schemas' status whether their level is there. It mirrors the
// configuration's producer (pkg/registry/flowcontrol/ensurer) and consumer
// (k8s.io/apiserver, pkg/util/flowcontrol/apf_controller.go).
type flowConfig struct {
	s   *Server
	due bool // a look is on its way
}

// watchFlowConfig has the configuration seen to.
func watchFlowConfig(s *Server) {
	c := &flowConfig{s: s}
	s.OnChange(func(Change) { c.later() }, kinds.FlowSchema, kinds.PriorityLevelConfiguration)
	s.OnDoor(func() {
		c.ensure()
		c.tellAll() // who comes first finds it told
		s.l.Root().Every("suggested flow schemas and priority levels", flowConfigPeriod, 0, c.ensure)
	})
}

// later has the configuration looked at once what changes together has changed.
func (c *flowConfig) later() {
	if c.due {
		return
	}
	c.due = true
	c.s.l.Root().After(flowConfigDelay, func() {
		c.due = false
		config := c.tellAll()
		if c.s.flow != nil {
			c.s.flow.Configure(config)
		}
	})
}

// tellAll brings the status of all schemas up to date and returns the configuration. As
// long as nobody makes the suggested objects, they act as if they were there.
func (c *flowConfig) tellAll() flow.Config {
	config := flow.Config{
		Levels:  slices.Clone(store.Objects[*flowcontrolv1.PriorityLevelConfiguration](c.s.store, kinds.PriorityLevelConfiguration)),
		Schemas: slices.Clone(store.Objects[*flowcontrolv1.FlowSchema](c.s.store, kinds.FlowSchema)),
	}
	if !c.s.open {
		config = flow.Bootstrap().With(config)
	}
	for _, f := range config.Schemas {
		if f.UID != "" {
			c.tell(f, config.HasLevel(f.Spec.PriorityLevelConfiguration.Name))
		}
	}
	return config
}

// tell says in a schema's status whether its level is there.
func (c *flowConfig) tell(f *flowcontrolv1.FlowSchema, found bool) {
	level := f.Spec.PriorityLevelConfiguration.Name
	want := flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, LastTransitionTime: asjson.Time(c.s.now()), Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
	}
	if !found {
		want.Status, want.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		want.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level)
	}
	at := -1
	for i, have := range f.Status.Conditions {
		if have.Type != want.Type {
			continue
		}
		if at = i; have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		if have == want {
			return
		}
	}
	next := f.DeepCopy()
	if at < 0 {
		next.Status.Conditions = append(next.Status.Conditions, want)
	} else {
		next.Status.Conditions[at] = want
	}
	c.s.Update(next, "status") //nolint:errcheck // it is there; what a policy refuses stays as it is
}

// ensure makes what is missing of the configuration that every API server begins with,
// brings up to date what nobody has taken over, and takes away what it doesn't know.
func (c *flowConfig) ensure() {
	boot := flow.Bootstrap()
	for _, l := range boot.Levels {
		ensure(c.s, l, func(have *flowcontrolv1.PriorityLevelConfiguration) (spec, want any, set func()) {
			return have.Spec, l.Spec, func() { have.Spec = *l.Spec.DeepCopy() }
		})
	}
	for _, f := range boot.Schemas {
		ensure(c.s, f, func(have *flowcontrolv1.FlowSchema) (spec, want any, set func()) {
			return have.Spec, f.Spec, func() { have.Spec = *f.Spec.DeepCopy() }
		})
	}
	sweep(c.s, kinds.FlowSchema, boot.Schemas)
	sweep(c.s, kinds.PriorityLevelConfiguration, boot.Levels)
}

// configObject is an object of the configuration.
type configObject[T any] interface {
	Object
	comparable
	DeepCopy() T
}

// ensure sees to one object. specs returns what is stored, what is wanted, and what puts
// the latter in the place of the former.
func ensure[T configObject[T]](s *Server, boot T, specs func(have T) (spec, want any, set func())) {
	const key = flowcontrolv1.AutoUpdateAnnotationKey
	row := s.store.Kinds().Of(boot)
	stored, ok := s.store.Lookup(row.Kind, "", boot.GetName()).(T)
	if !ok {
		made := boot.DeepCopy()
		made.SetAnnotations(map[string]string{key: "true"})
		s.Create(made) //nolint:errcheck // what a policy refuses is tried again
		return
	}
	have := stored.DeepCopy()
	mandatory := boot.GetName() == flowcontrolv1.FlowSchemaNameExempt || boot.GetName() == flowcontrolv1.FlowSchemaNameCatchAll // the levels' names, too
	said, err := strconv.ParseBool(have.GetAnnotations()[key])
	auto := mandatory || err == nil && said || err != nil && have.GetGeneration() == 1
	spec, want, set := specs(have)
	switch changed := auto && !equality.Semantic.DeepEqual(spec, want); {
	case changed:
		set()
	case err == nil && said == auto:
		return
	}
	notes := have.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[key] = strconv.FormatBool(auto)
	have.SetAnnotations(notes)
	s.Update(have, "") //nolint:errcheck // as above
}

// sweep deletes what says that the API server keeps it, and isn't known to it.
func sweep[T configObject[T]](s *Server, k Kind, known []T) {
	for _, have := range slices.Clone(store.Objects[T](s.store, k)) {
		if auto, err := strconv.ParseBool(have.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey]); err != nil || !auto {
			continue
		}
		found := false
		for _, b := range known {
			found = found || b.GetName() == have.GetName()
		}
		if !found {
			s.Delete(k, "", have.GetName(), metav1.DeleteOptions{}) //nolint:errcheck // it is there
		}
	}
}
