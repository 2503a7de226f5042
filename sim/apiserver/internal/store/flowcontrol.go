package store

import (
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// MakeFlowControl makes the flow schemas and priority levels that every API server has:
// those that it can't do without, and those that upstream suggests
// (k8s.io/apiserver, pkg/apis/flowcontrol/bootstrap). It is called once, by who serves
// clients.
func (s *Store) MakeFlowControl(now time.Time) {
	for _, l := range append(bootstrap.MandatoryPriorityLevelConfigurations[:len(bootstrap.MandatoryPriorityLevelConfigurations):len(bootstrap.MandatoryPriorityLevelConfigurations)], bootstrap.SuggestedPriorityLevelConfigurations...) {
		mustMake(s, now, l)
	}
	for _, f := range append(bootstrap.MandatoryFlowSchemas[:len(bootstrap.MandatoryFlowSchemas):len(bootstrap.MandatoryFlowSchemas)], bootstrap.SuggestedFlowSchemas...) {
		made := mustMake(s, now, f).DeepCopyObject().(*flowcontrolv1.FlowSchema)
		made.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{{
			Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, LastTransitionTime: asjson.Time(now), Reason: "Found",
			Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", made.Spec.PriorityLevelConfiguration.Name),
		}}
		if _, err := s.Update(now, made, "status"); err != nil {
			panic(err) // a fault of this package
		}
	}
}

// mustMake makes a copy of one of the library's objects, which keeps itself up to date
// there.
func mustMake(s *Store, now time.Time, obj kind.Object) kind.Object {
	own := obj.DeepCopyObject().(kind.Object)
	own.SetAnnotations(map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"})
	made, err := s.Create(now, own)
	if err != nil {
		panic(err) // a fault of this package
	}
	return made
}
