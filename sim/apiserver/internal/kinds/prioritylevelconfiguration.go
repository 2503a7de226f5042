package kinds

import (
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// PriorityLevelConfiguration is the kind of priority levels, among which the load model
// shares its seats out.
const PriorityLevelConfiguration kind.Kind = "PriorityLevelConfiguration"

// priorityLevelConfiguration returns the row of PriorityLevelConfiguration
// (pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go).
func priorityLevelConfiguration() *kind.Info {
	type level = flowcontrolv1.PriorityLevelConfiguration
	return &kind.Info{
		Kind: PriorityLevelConfiguration, Group: flowcontrolv1.GroupName, Version: "v1", Resource: "prioritylevelconfigurations", Inert: kind.InertWithoutLoad,
		Strategy: &kind.Typed[level, *level]{
			CountsSpec: true,
			Halves: kind.SpecAndStatus(func(l *level) (*flowcontrolv1.PriorityLevelConfigurationSpec, *flowcontrolv1.PriorityLevelConfigurationStatus) {
				return &l.Spec, &l.Status
			}),
			Defaults: setPriorityLevelDefaults,
			Check:    validatePriorityLevel,
			CheckUpdate: func(l, _ *level, sub string) field.ErrorList {
				if sub == "status" {
					return validatePriorityLevelStatus(l)
				}
				return validatePriorityLevel(l)
			},
			Table: priorityLevelTable(),
		},
	}
}

func priorityLevelTable() []kind.Column[flowcontrolv1.PriorityLevelConfiguration] {
	type level = flowcontrolv1.PriorityLevelConfiguration
	queuing := flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()
	queue := func(l *level) *flowcontrolv1.QueuingConfiguration {
		if l.Spec.Limited == nil {
			return nil
		}
		return l.Spec.Limited.LimitResponse.Queuing
	}
	column := func(name, doc string, of func(q *flowcontrolv1.QueuingConfiguration) int32) kind.Column[level] {
		return kind.Column[level]{Name: name, Type: "string", Description: doc, Cell: func(l *level, _ time.Time) any {
			if q := queue(l); q != nil {
				return int64(of(q))
			}
			return none
		}}
	}
	return []kind.Column[level]{
		kind.NameColumn[level](),
		{Name: "Type", Type: "string", Description: flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"],
			Cell: func(l *level, _ time.Time) any { return string(l.Spec.Type) }},
		{Name: "NominalConcurrencyShares", Type: "string", Description: flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"],
			Cell: func(l *level, _ time.Time) any {
				if l.Spec.Limited == nil {
					return none
				}
				return int64(*l.Spec.Limited.NominalConcurrencyShares)
			}},
		column("Queues", queuing["queues"], func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.Queues }),
		column("HandSize", queuing["handSize"], func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.HandSize }),
		column("QueueLengthLimit", queuing["queueLengthLimit"], func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.QueueLengthLimit }),
		kind.AgeColumn[level](),
	}
}

// setPriorityLevelDefaults is that of pkg/apis/flowcontrol/v1/defaults.go.
func setPriorityLevelDefaults(l *flowcontrolv1.PriorityLevelConfiguration) {
	if e := l.Spec.Exempt; e != nil {
		own := *e
		fields.DefaultPtr(&own.NominalConcurrencyShares, 0)
		fields.DefaultPtr(&own.LendablePercent, 0)
		l.Spec.Exempt = &own
	}
	if m := l.Spec.Limited; m != nil {
		own := *m
		fields.DefaultPtr(&own.NominalConcurrencyShares, 30)
		fields.DefaultPtr(&own.LendablePercent, 0)
		if q := m.LimitResponse.Queuing; q != nil {
			queuing := *q
			fields.Default(&queuing.HandSize, 8)
			fields.Default(&queuing.Queues, 64)
			fields.Default(&queuing.QueueLengthLimit, 50)
			own.LimitResponse.Queuing = &queuing
		}
		l.Spec.Limited = &own
	}
}

const notNegative = "must be a non-negative integer"

// validatePriorityLevel is ValidatePriorityLevelConfiguration
// (pkg/apis/flowcontrol/validation).
func validatePriorityLevel(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	var errs field.ErrorList
	if _, ok := l.Annotations[flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey]; ok { // of old versions
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations"), fmt.Sprintf("annotation '%s' is forbidden", flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey)))
	}
	spec, path := &l.Spec, field.NewPath("spec")
	if (l.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) != (spec.Type == flowcontrolv1.PriorityLevelEnablementExempt) {
		errs = append(errs, field.Invalid(path.Child("type"), spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	switch spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if spec.Limited != nil {
			errs = append(errs, field.Forbidden(path.Child("limited"), "must be nil if the type is not Limited"))
		}
		if e, at := spec.Exempt, path.Child("exempt"); e != nil {
			if s := e.NominalConcurrencyShares; s != nil && *s < 0 {
				errs = append(errs, field.Invalid(at.Child("nominalConcurrencyShares"), *s, notNegative))
			}
			errs = append(errs, validateLendable(e.LendablePercent, at)...)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if spec.Exempt != nil {
			errs = append(errs, field.Forbidden(path.Child("exempt"), "must be nil if the type is Limited"))
		}
		if spec.Limited == nil {
			errs = append(errs, field.Required(path.Child("limited"), "must not be empty when type is Limited"))
		} else {
			errs = append(errs, validateLimitedLevel(spec.Limited, path.Child("limited"))...)
		}
	default:
		errs = append(errs, fields.OneOf(spec.Type, path.Child("type"), flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)...)
	}
	errs = append(errs, validateFixedLevel(l)...)
	return append(errs, validatePriorityLevelStatus(l)...)
}

// validateFixedLevel is ValidateIfMandatoryPriorityLevelConfigurationObject: the levels
// that the server can't do without are what they are, but for the share of those that
// are exempt.
func validateFixedLevel(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	for _, fixed := range bootstrap.MandatoryPriorityLevelConfigurations {
		if fixed.Name != l.Name {
			continue
		}
		spec, text := l.Spec, "spec of '%s' must equal the fixed value"
		if l.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt {
			spec.Exempt, text = fixed.Spec.Exempt, "spec of '%s' except the 'spec.exempt' field must equal the fixed value"
		}
		if !equality.Semantic.DeepEqual(spec, fixed.Spec) {
			return field.ErrorList{field.Invalid(field.NewPath("spec"), fields.GoNames(l.Spec), fmt.Sprintf(text, l.Name))}
		}
	}
	return nil
}

func validateLendable(percent *int32, path *field.Path) field.ErrorList {
	if percent != nil && (*percent < 0 || *percent > 100) {
		return field.ErrorList{field.Invalid(path.Child("lendablePercent"), *percent, "must be between 0 and 100, inclusive")}
	}
	return nil
}

// validateLimitedLevel is ValidateLimitedPriorityLevelConfiguration.
func validateLimitedLevel(m *flowcontrolv1.LimitedPriorityLevelConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s := m.NominalConcurrencyShares; s != nil && *s < 0 {
		errs = append(errs, field.Invalid(path.Child("nominalConcurrencyShares"), *s, notNegative))
	}
	response, at := &m.LimitResponse, path.Child("limitResponse")
	switch queuing := at.Child("queuing"); response.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		if response.Queuing != nil {
			errs = append(errs, field.Forbidden(queuing, "must be nil if limited.limitResponse.type is not Limited"))
		}
	case flowcontrolv1.LimitResponseTypeQueue:
		if response.Queuing == nil {
			errs = append(errs, field.Required(queuing, "must not be empty if limited.limitResponse.type is Limited"))
		} else {
			errs = append(errs, validateQueuing(response.Queuing, queuing)...)
		}
	default:
		errs = append(errs, fields.OneOf(response.Type, at.Child("type"), flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
	}
	errs = append(errs, validateLendable(m.LendablePercent, path)...)
	if p := m.BorrowingLimitPercent; p != nil && *p < 0 {
		errs = append(errs, field.Invalid(path.Child("borrowingLimitPercent"), *p, "if specified, "+notNegative))
	}
	return errs
}

// maxQueues bounds the queues of a level.
const maxQueues = 10_000_000

// validateQueuing is ValidatePriorityLevelQueuingConfiguration: a flow's hand of queues
// must be found by one hash.
func validateQueuing(q *flowcontrolv1.QueuingConfiguration, path *field.Path) field.ErrorList {
	const positive = "must be positive"
	var errs field.ErrorList
	if q.QueueLengthLimit <= 0 {
		errs = append(errs, field.Invalid(path.Child("queueLengthLimit"), q.QueueLengthLimit, positive))
	}
	switch at := path.Child("queues"); {
	case q.Queues <= 0:
		errs = append(errs, field.Invalid(at, q.Queues, positive))
	case q.Queues > maxQueues:
		errs = append(errs, field.Invalid(at, q.Queues, fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	at := path.Child("handSize")
	if q.HandSize <= 0 {
		return append(errs, field.Invalid(at, q.HandSize, positive))
	}
	if q.HandSize > q.Queues {
		return append(errs, field.Invalid(at, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
	}
	if bits := shufflesharding.RequiredEntropyBits(int(q.Queues), int(q.HandSize)); bits > shufflesharding.MaxHashBits {
		errs = append(errs, field.Invalid(at, q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, shufflesharding.MaxHashBits)))
	}
	return errs
}

// validatePriorityLevelStatus is ValidatePriorityLevelConfigurationStatus.
func validatePriorityLevelStatus(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	types := make([]string, len(l.Status.Conditions))
	for i, c := range l.Status.Conditions {
		types[i] = string(c.Type)
	}
	return validateConditionTypes(types)
}
