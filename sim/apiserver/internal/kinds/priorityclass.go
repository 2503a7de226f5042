package kinds

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// PriorityClass is the kind of priority classes. Admission reads one into each pod
// that names it, so that almost nothing of it may change.
const PriorityClass kind.Kind = "PriorityClass"

// priorityClass returns the row of PriorityClass
// (pkg/registry/scheduling/priorityclass).
func priorityClass() *kind.Info {
	return &kind.Info{
		Kind: PriorityClass, Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", ShortNames: []string{"pc"}, ReadByAdmission: true,
		Strategy: &kind.Typed[schedulingv1.PriorityClass, *schedulingv1.PriorityClass]{
			Defaults:    func(pc *schedulingv1.PriorityClass) { fields.DefaultPtr(&pc.PreemptionPolicy, v1.PreemptLowerPriority) },
			Users:       validateUsersClass,
			Generation:  func(_, _ *schedulingv1.PriorityClass, _ string) bool { return false }, // it is 1 for ever
			Check:       validatePriorityClass,
			CheckUpdate: validatePriorityClassUpdate,
			Table:       priorityClassTable(),
		},
	}
}

func priorityClassTable() []kind.Column[schedulingv1.PriorityClass] {
	type class = schedulingv1.PriorityClass
	doc := class{}.SwaggerDoc()
	return []kind.Column[class]{
		kind.NameColumn[class](),
		{Name: "Value", Type: "integer", Description: doc["value"], Cell: func(pc *class, _ time.Time) any { return int64(pc.Value) }},
		{Name: "Global-Default", Type: "boolean", Description: doc["globalDefault"], Cell: func(pc *class, _ time.Time) any { return pc.GlobalDefault }},
		kind.AgeColumn[class](),
		{Name: "PreemptionPolicy", Type: "string", Description: doc["preemptionPolicy"], Cell: func(pc *class, _ time.Time) any {
			return string(*pc.PreemptionPolicy)
		}},
	}
}

const (
	// SystemCriticalPriority is the least priority of the system's own classes.
	SystemCriticalPriority = int32(2000000000)

	highestUserPriority = int32(1000000000)
)

// validateUsersClass keeps the system's names and priorities to the system. A class that
// is just one of the system's own is let through (IsKnownSystemPriorityClass).
func validateUsersClass(pc *schedulingv1.PriorityClass) field.ErrorList {
	if strings.HasPrefix(pc.Name, "system-") {
		value, known := map[string]int32{"system-cluster-critical": SystemCriticalPriority, "system-node-critical": SystemCriticalPriority + 1000}[pc.Name]
		why := ""
		switch {
		case !known:
			why = fmt.Sprintf("%v is not a known system priority class", pc.Name)
		case pc.Value != value:
			why = fmt.Sprintf("value of %v PriorityClass must be %v", pc.Name, value)
		case pc.GlobalDefault:
			why = fmt.Sprintf("globalDefault of %v PriorityClass must be false", pc.Name)
		default:
			return nil
		}
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "priority class names with 'system-' prefix are reserved for system use only. error: "+why)}
	}
	// Above it are the system's own, which nothing of a user's may preempt.
	if pc.Value > highestUserPriority {
		return field.ErrorList{field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestUserPriority))}
	}
	return nil
}

// validatePriorityClass checks what the system's own classes must keep, too.
func validatePriorityClass(pc *schedulingv1.PriorityClass) field.ErrorList {
	if pc.PreemptionPolicy == nil {
		return nil
	}
	return fields.OneOf(*pc.PreemptionPolicy, field.NewPath("preemptionPolicy"), v1.PreemptLowerPriority, v1.PreemptNever)
}

// validatePriorityClassUpdate lets nothing change that admission has read into
// pods.
func validatePriorityClassUpdate(pc, old *schedulingv1.PriorityClass, _ string) field.ErrorList {
	var errs field.ErrorList
	if pc.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	return append(errs, fields.Immutable(pc.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}
