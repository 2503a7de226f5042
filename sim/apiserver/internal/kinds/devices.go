package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// What claims, classes and slices of devices share
// (pkg/apis/resource/validation/validation.go).

// each checks the items of a list that has so many at most; fewer than 0: as many as
// one likes.
func each[T any](list []T, most int, p *field.Path, check func(v *T, p *field.Path) field.ErrorList) field.ErrorList {
	if most >= 0 && len(list) > most {
		return field.ErrorList{field.TooMany(p, len(list), most)}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, check(&list[i], p.Index(i))...)
	}
	return errs
}

// eachOnce is each of a list whose items differ in their key.
func eachOnce[T any, K comparable](list []T, most int, p *field.Path, key func(v *T) K, check func(v *T, p *field.Path) field.ErrorList) field.ErrorList {
	errs := each(list, most, p, check)
	if most >= 0 && len(list) > most {
		return errs
	}
	seen := map[K]bool{}
	for i := range list {
		k := key(&list[i])
		if seen[k] {
			errs = append(errs, field.Duplicate(p.Index(i), k))
		}
		seen[k] = true
	}
	return errs
}

func itself(v *string) string { return *v }

// shortened is a key of a map as a path names it.
func shortened(key string, most int) string {
	most = max(most, 16)
	if len(key) <= most {
		return key
	}
	const dots = "..."
	left := most - len(dots)
	return key[:(left+1)/2] + dots + key[len(key)-left/2:]
}

// setRequestDefaults fills in how many devices a request is for
// (pkg/apis/resource/v1/defaults.go).
func setRequestDefaults(claim *resourcev1.DeviceClaim) {
	count := func(mode *resourcev1.DeviceAllocationMode, n *int64) {
		fields.Default(mode, resourcev1.DeviceAllocationModeExactCount)
		if *mode == resourcev1.DeviceAllocationModeExactCount {
			fields.Default(n, 1)
		}
	}
	tolerations := func(list []resourcev1.DeviceToleration) {
		for i := range list {
			fields.Default(&list[i].Operator, resourcev1.DeviceTolerationOpEqual)
		}
	}
	for i := range claim.Requests {
		r := &claim.Requests[i]
		if e := r.Exactly; e != nil {
			count(&e.AllocationMode, &e.Count)
			tolerations(e.Tolerations)
		}
		for j := range r.FirstAvailable {
			count(&r.FirstAvailable[j].AllocationMode, &r.FirstAvailable[j].Count)
			tolerations(r.FirstAvailable[j].Tolerations)
		}
	}
}

// requestNames are the names of requests, with those of their alternatives.
type requestNames map[string][]string

func namesOfRequests(claim *resourcev1.DeviceClaim) requestNames {
	out := requestNames{}
	for _, r := range claim.Requests {
		out[r.Name] = nil
		for _, sub := range r.FirstAvailable {
			out[r.Name] = append(out[r.Name], sub.Name)
		}
	}
	return out
}

// checkRef requires the name of a request, or "request/alternative"
// (validateRequestNameRef).
func (n requestNames) checkRef(name *string, p *field.Path) field.ErrorList {
	missing := field.Invalid(p, *name, "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'")
	parts := strings.Split(*name, "/")
	if len(parts) > 2 {
		return field.ErrorList{missing}
	}
	var errs field.ErrorList
	for _, part := range parts {
		errs = append(errs, fields.DNSLabel(part, p)...)
	}
	subs, ok := n[parts[0]]
	if !ok || len(parts) == 2 && !slices.Contains(subs, parts[1]) {
		errs = append(errs, missing)
	}
	return errs
}

// validateDeviceClaim checks what a claim, or a template of one, asks for
// (validateDeviceClaim).
func validateDeviceClaim(claim *resourcev1.DeviceClaim, p *field.Path) field.ErrorList {
	names := namesOfRequests(claim)
	errs := eachOnce(claim.Requests, resourcev1.DeviceRequestsMaxSize, p.Child("requests"),
		func(r *resourcev1.DeviceRequest) string { return r.Name }, validateDeviceRequest)
	errs = append(errs, each(claim.Constraints, resourcev1.DeviceConstraintsMaxSize, p.Child("constraints"), func(c *resourcev1.DeviceConstraint, p *field.Path) field.ErrorList {
		errs := eachOnce(c.Requests, resourcev1.DeviceRequestsMaxSize, p.Child("requests"), itself, names.checkRef)
		switch {
		case c.MatchAttribute != nil:
			errs = append(errs, validateFullName(string(*c.MatchAttribute), p.Child("matchAttribute"))...)
		case c.DistinctAttribute != nil:
			errs = append(errs, validateFullName(string(*c.DistinctAttribute), p.Child("distinctAttribute"))...)
		default:
			errs = append(errs, field.Required(p, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
		}
		return errs
	})...)
	return append(errs, each(claim.Config, resourcev1.DeviceConfigMaxSize, p.Child("config"), func(c *resourcev1.DeviceClaimConfiguration, p *field.Path) field.ErrorList {
		errs := eachOnce(c.Requests, resourcev1.DeviceRequestsMaxSize, p.Child("requests"), itself, names.checkRef)
		return append(errs, validateDeviceConfig(&c.DeviceConfiguration, p)...)
	})...)
}

func validateDeviceRequest(r *resourcev1.DeviceRequest, p *field.Path) field.ErrorList {
	errs := fields.DNSLabel(r.Name, p.Child("name"))
	switch e := r.Exactly; {
	case e == nil && len(r.FirstAvailable) == 0:
		errs = append(errs, field.Required(p, "exactly one of `exactly` or `firstAvailable` is required"))
	case e != nil && len(r.FirstAvailable) > 0:
		errs = append(errs, field.Invalid(p, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
	case e != nil:
		errs = append(errs, validateRequestedDevices(e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Tolerations, p.Child("exactly"))...)
	default:
		errs = append(errs, eachOnce(r.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize, p.Child("firstAvailable"),
			func(s *resourcev1.DeviceSubRequest) string { return s.Name },
			func(s *resourcev1.DeviceSubRequest, p *field.Path) field.ErrorList {
				return append(fields.DNSLabel(s.Name, p.Child("name")),
					validateRequestedDevices(s.DeviceClassName, s.Selectors, s.AllocationMode, s.Count, s.Tolerations, p)...)
			})...)
	}
	return errs
}

// validateRequestedDevices checks what both forms of a request have.
func validateRequestedDevices(class string, selectors []resourcev1.DeviceSelector, mode resourcev1.DeviceAllocationMode, count int64, tolerations []resourcev1.DeviceToleration, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if class == "" {
		errs = append(errs, field.Required(p.Child("deviceClassName"), ""))
	} else {
		errs = append(errs, fields.DNSName(class, p.Child("deviceClassName"))...)
	}
	errs = append(errs, validateSelectors(selectors, p.Child("selectors"))...)
	switch {
	case mode == resourcev1.DeviceAllocationModeAll && count != 0:
		errs = append(errs, field.Invalid(p.Child("count"), count, fmt.Sprintf("must not be specified when allocationMode is '%s'", mode)))
	case mode == resourcev1.DeviceAllocationModeExactCount && count <= 0:
		errs = append(errs, field.Invalid(p.Child("count"), count, "must be greater than zero"))
	default:
		errs = append(errs, fields.Supported(mode, p.Child("allocationMode"), resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount)...)
	}
	return append(errs, each(tolerations, -1, p.Child("tolerations"), validateDeviceToleration)...)
}

func validateDeviceToleration(t *resourcev1.DeviceToleration, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, p.Child("key"))...)
	}
	switch t.Operator {
	case resourcev1.DeviceTolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, "must be empty for operator `Exists`"))
		}
	case resourcev1.DeviceTolerationOpEqual:
		errs = append(errs, fields.Invalid(p.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	default:
		errs = append(errs, fields.OneOf(t.Operator, p.Child("operator"), resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists)...)
	}
	if t.Effect != "" {
		errs = append(errs, validateTaintEffect(t.Effect, p.Child("effect"))...)
	}
	return errs
}

func validateTaintEffect(e resourcev1.DeviceTaintEffect, p *field.Path) field.ErrorList {
	return fields.OneOf(e, p, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone)
}

// validateSelectors compiles what selects devices, and refuses what could take too
// long.
func validateSelectors(list []resourcev1.DeviceSelector, p *field.Path) field.ErrorList {
	return each(list, resourcev1.DeviceSelectorsMaxSize, p, func(s *resourcev1.DeviceSelector, p *field.Path) field.ErrorList {
		if s.CEL == nil {
			return field.ErrorList{field.Required(p.Child("cel"), "")}
		}
		text, p := s.CEL.Expression, p.Child("cel", "expression")
		if len(text) > resourcev1.CELSelectorExpressionMaxLength {
			return field.ErrorList{field.TooLong(p, "", resourcev1.CELSelectorExpressionMaxLength)}
		}
		// The compiler is made with the first expression, and costs what that of
		// custom resources' rules costs.
		compiled := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true}).CompileCELExpression(text, dracel.Options{EnvType: new(environment.NewExpressions)})
		switch {
		case compiled.Error != nil:
			return field.ErrorList{celError(p, text, compiled.Error)}
		case compiled.MaxCost > resourcev1.CELSelectorExpressionMaxCost:
			return field.ErrorList{field.Forbidden(p, "too complex, exceeds cost limit")}
		}
		return nil
	})
}

func celError(p *field.Path, text string, err error) *field.Error {
	var e *cel.Error
	if errors.As(err, &e) {
		switch e.Type {
		case cel.ErrorTypeRequired:
			return field.Required(p, e.Detail)
		case cel.ErrorTypeInvalid:
			return field.Invalid(p, text, e.Detail)
		}
	}
	return field.InternalError(p, err)
}

// validateDeviceConfig checks what a driver is told (validateDeviceConfiguration).
func validateDeviceConfig(c *resourcev1.DeviceConfiguration, p *field.Path) field.ErrorList {
	p = p.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	errs := validateDriverName(c.Opaque.Driver, p.Child("driver"))
	return append(errs, validateRaw(c.Opaque.Parameters, resourcev1.OpaqueParametersMaxLength, p.Child("parameters"))...)
}

// validateRaw requires a JSON object (validateRawExtension).
func validateRaw(raw runtime.RawExtension, most int, p *field.Path) field.ErrorList {
	var v any
	switch {
	case len(raw.Raw) == 0:
		return field.ErrorList{field.Required(p, "")}
	case len(raw.Raw) > most:
		return field.ErrorList{field.TooLong(p, "", most)}
	}
	if err := json.Unmarshal(raw.Raw, &v); err != nil {
		return field.ErrorList{field.Invalid(p, "<value omitted>", fmt.Sprintf("error parsing data as JSON: %v", err))}
	}
	if v == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	if _, ok := v.(map[string]any); !ok {
		return field.ErrorList{field.Invalid(p, "<value omitted>", "must be a valid JSON object")}
	}
	return nil
}

// validateQualified checks the name of an attribute or a capacity: an identifier,
// with the domain that it is known in (validateQualifiedName).
func validateQualified(name string, p *field.Path) field.ErrorList {
	parts := strings.Split(name, "/")
	switch len(parts) {
	case 1:
		return validateIdentifier(name, p)
	case 2:
		var errs field.ErrorList
		if parts[0] == "" {
			errs = append(errs, field.Invalid(p, "", "the domain must not be empty"))
		} else {
			errs = append(errs, validateDriverName(parts[0], p)...)
		}
		if parts[1] == "" {
			return append(errs, field.Invalid(p, "", "the name must not be empty"))
		}
		return append(errs, validateIdentifier(parts[1], p)...)
	}
	return nil // upstream takes more slashes
}

func validateFullName(name string, p *field.Path) field.ErrorList {
	errs := validateQualified(name, p)
	if !strings.Contains(name, "/") {
		errs = append(errs, field.Invalid(p, name, "a fully qualified name must be a domain and a name separated by a slash"))
	}
	return errs
}

func validateIdentifier(id string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(p, "", resourcev1.DeviceMaxIDLength))
	}
	return append(errs, fields.Invalid(p, id, content.IsCIdentifier(id))...)
}

// validatePool checks a pool's name: DNS subdomains, separated by slashes.
func validatePool(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(p, "", resourcev1.PoolNameMaxLength))
	}
	for _, part := range strings.Split(name, "/") {
		errs = append(errs, fields.DNSName(part, p)...)
	}
	return errs
}

// validateBindings checks which conditions of a device bind a pod, and which give it
// up (validateDeviceBindingParameters).
func validateBindings(conditions, failures []string, p *field.Path) field.ErrorList {
	label := func(v *string, p *field.Path) field.ErrorList { return metavalidation.ValidateLabelName(*v, p) }
	good, bad := p.Child("bindingConditions"), p.Child("bindingFailureConditions")
	errs := eachOnce(conditions, resourcev1.BindingConditionsMaxSize, good, itself, label)
	errs = append(errs, eachOnce(failures, resourcev1.BindingFailureConditionsMaxSize, bad, itself, label)...)
	for i, c := range failures {
		if slices.Contains(conditions, c) {
			errs = append(errs, field.Invalid(bad.Index(i), c, "bindingFailureConditions must not overlap with bindingConditions"))
		}
	}
	switch {
	case len(conditions) == 0 && len(failures) > 0:
		errs = append(errs, field.Invalid(good, conditions, "bindingConditions are required to use bindingFailureConditions"))
	case len(failures) == 0 && len(conditions) > 0:
		errs = append(errs, field.Invalid(bad, failures, "bindingFailureConditions are required to use bindingConditions"))
	}
	return errs
}
