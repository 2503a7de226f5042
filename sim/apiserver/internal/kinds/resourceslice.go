package kinds

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ResourceSlice is the kind of what drivers say of their devices. A driver watches those of
// its node.
const ResourceSlice kind.Kind = "ResourceSlice"

// resourceSlice returns the row of ResourceSlice
// (pkg/registry/resource/resourceslice/strategy.go).
func resourceSlice() *kind.Info {
	type slice = resourcev1.ResourceSlice
	doc := resourcev1.ResourceSliceSpec{}.SwaggerDoc()
	node := func(s *slice) string {
		if s.Spec.NodeName == nil {
			return ""
		}
		return *s.Spec.NodeName
	}
	return &kind.Info{
		Kind: ResourceSlice, Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices", ReturnsDeleted: true, Watch: kind.ByNode,
		Strategy: &kind.Typed[slice, *slice]{
			Node:  node,
			Reset: dropGatedDevices,
			Keep: func(s, _ *slice, sub string) bool {
				dropGatedDevices(s)
				return sub == ""
			},
			Stored:  stampTaints,
			Updated: func(now time.Time, s, _ *slice, _ string) { stampTaints(now, s) },
			Generation: func(s, old *slice, _ string) bool {
				return !equality.Semantic.DeepEqual(s.Spec, old.Spec)
			},
			Check: func(s *slice) field.ErrorList { return validateResourceSlice(s, nil) },
			CheckUpdate: func(s, old *slice, _ string) field.ErrorList {
				spec := field.NewPath("spec")
				errs := validateResourceSlice(s, old)
				errs = append(errs, fields.Immutable(s.Spec.Pool.Name, old.Spec.Pool.Name, spec.Child("pool", "name"))...)
				errs = append(errs, fields.Immutable(s.Spec.Driver, old.Spec.Driver, spec.Child("driver"))...)
				return append(errs, fields.Immutable(s.Spec.NodeName, old.Spec.NodeName, spec.Child("nodeName"))...)
			},
			Warn: func(s, _ *slice, _ string) []string {
				if d := s.Spec.Driver; d != strings.ToLower(d) {
					return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", d)}
				}
				return nil
			},
			Fields: func(s *slice) selectable.Set {
				return selectable.Set{resourcev1.ResourceSliceSelectorNodeName: node(s), resourcev1.ResourceSliceSelectorDriver: s.Spec.Driver}
			},
			Table: []kind.Column[slice]{
				kind.NameColumn[slice](),
				{Name: "Node", Type: "string", Description: doc["nodeName"], Cell: func(s *slice, _ time.Time) any { return node(s) }},
				{Name: "Driver", Type: "string", Description: doc["driver"], Cell: func(s *slice, _ time.Time) any { return s.Spec.Driver }},
				{Name: "Pool", Type: "string", Description: resourcev1.ResourcePool{}.SwaggerDoc()["name"], Cell: func(s *slice, _ time.Time) any { return s.Spec.Pool.Name }},
				kind.AgeColumn[slice](),
			},
			Gated: func(s *slice) []string {
				c := s.DeepCopy()
				dropGatedDevices(c)
				if !equality.Semantic.DeepEqual(s.Spec, c.Spec) {
					return []string{"spec.devices: lists of attributes' values (DRAListTypeAttributes), nodeAllocatableResourceMappings (DRANodeAllocatableResources)"}
				}
				return nil
			},
		},
	}
}

// stampTaints notes since when devices have their taints (SetDefaults_DeviceTaint).
func stampTaints(now time.Time, s *resourcev1.ResourceSlice) {
	at := asjson.Time(now)
	for i := range s.Spec.Devices {
		for j := range s.Spec.Devices[i].Taints {
			fields.DefaultPtr(&s.Spec.Devices[i].Taints[j].TimeAdded, metav1.Time{Time: at.Truncate(time.Second)})
		}
	}
}

// dropGatedDevices takes out what the gates DRAListTypeAttributes and
// DRANodeAllocatableResources, which are off, keep out.
func dropGatedDevices(s *resourcev1.ResourceSlice) {
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		d.NodeAllocatableResourceMappings = nil
		for name, a := range d.Attributes { //drydock:unordered each by itself
			a.BoolValues, a.IntValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
			d.Attributes[name] = a
		}
	}
}

// oneOfPlaces requires that exactly one field says where devices are.
type oneOfPlaces struct {
	set  []string
	errs field.ErrorList
}

func (o *oneOfPlaces) node(name *string, p *field.Path, empty string) {
	switch {
	case name == nil:
	case *name == "":
		o.errs = append(o.errs, field.Invalid(p, *name, empty))
	default:
		o.set = append(o.set, "`nodeName`")
		o.errs = append(o.errs, fields.DNSName(*name, p)...)
	}
}

func (o *oneOfPlaces) selector(s *v1.NodeSelector, p *field.Path) {
	if s != nil {
		o.set = append(o.set, "`nodeSelector`")
		o.errs = append(o.errs, podspec.ValidateNodeSelector(s, p)...)
	}
}

func (o *oneOfPlaces) flag(v *bool, name string, p *field.Path) {
	switch {
	case v == nil:
	case *v:
		o.set = append(o.set, "`"+name+"`")
	default:
		o.errs = append(o.errs, field.Invalid(p.Child(name), *v, "must be either unset or set to true"))
	}
}

func (o *oneOfPlaces) judge(p *field.Path, none, many string) field.ErrorList {
	switch len(o.set) {
	case 0:
		o.errs = append(o.errs, field.Required(p, none))
	case 1:
	default:
		o.errs = append(o.errs, field.Invalid(p, "{"+strings.Join(o.set, ", ")+"}", many))
	}
	return o.errs
}

// validateResourceSlice is ValidateResourceSlice, and ValidateResourceSliceUpdate of
// one that was old.
func validateResourceSlice(slice, old *resourcev1.ResourceSlice) field.ErrorList {
	s, p := &slice.Spec, field.NewPath("spec")
	errs := validateDriverName(s.Driver, p.Child("driver"))
	pool := p.Child("pool")
	errs = append(errs, validatePool(s.Pool.Name, pool.Child("name"))...)
	if n := s.Pool.ResourceSliceCount; n <= 0 {
		errs = append(errs, field.Invalid(pool.Child("resourceSliceCount"), n, "must be greater than zero"))
	}
	if n := s.Pool.Generation; n < 0 {
		errs = append(errs, field.Invalid(pool.Child("generation"), n, "must be greater than or equal to zero"))
	}
	var place oneOfPlaces
	place.node(s.NodeName, p.Child("nodeName"), "must be either unset or set to a non-empty string")
	place.selector(s.NodeSelector, p.Child("nodeSelector"))
	// Slices of one pool are merged, which two terms would make hard.
	if n := s.NodeSelector; n != nil && len(n.NodeSelectorTerms) != 1 {
		place.errs = append(place.errs, field.Invalid(p.Child("nodeSelector", "nodeSelectorTerms"), fields.GoNames(n.NodeSelectorTerms), "must have exactly one node selector term"))
	}
	place.flag(s.AllNodes, "allNodes", p)
	place.flag(s.PerDeviceNodeSelection, "perDeviceNodeSelection", p)
	const one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	errs = append(errs, place.judge(p, one, one+", but multiple fields are set")...)
	if s.SharedCounters != nil && s.Devices != nil {
		errs = append(errs, field.Invalid(p, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	most := resourcev1.ResourceSliceMaxDevices
	was := map[string]*resourcev1.Device{}
	for i := range s.Devices {
		if len(s.Devices[i].Taints)+len(s.Devices[i].ConsumesCounters) > 0 {
			most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	if old != nil {
		for i := range old.Spec.Devices {
			was[old.Spec.Devices[i].Name] = &old.Spec.Devices[i]
		}
	}
	single := s.PerDeviceNodeSelection != nil && *s.PerDeviceNodeSelection
	errs = append(errs, eachOnce(s.Devices, most, p.Child("devices"), func(d *resourcev1.Device) string { return d.Name },
		func(d *resourcev1.Device, p *field.Path) field.ErrorList {
			return validateDevice(d, was[d.Name], single, p)
		})...)
	return append(errs, eachOnce(s.SharedCounters, resourcev1.ResourceSliceMaxCounterSets, p.Child("sharedCounters"), func(c *resourcev1.CounterSet) string { return c.Name },
		func(c *resourcev1.CounterSet, p *field.Path) field.ErrorList {
			return append(validateCounterName(c.Name, p.Child("name")), validateCounters(c.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet, p.Child("counters"))...)
		})...)
}

func validateCounterName(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	return fields.DNSLabel(name, p)
}

func validateCounters(m map[string]resourcev1.Counter, most int, p *field.Path) field.ErrorList {
	switch n := len(m); {
	case n == 0:
		return field.ErrorList{field.Required(p, "")}
	case n > most:
		return field.ErrorList{field.TooMany(p, n, most)}
	}
	var errs field.ErrorList
	for _, name := range fields.SortedKeys(m) {
		errs = append(errs, fields.DNSLabel(name, p)...)
	}
	return errs
}

// validateDevice checks a device, which may say where it is if the slice leaves that
// to its devices.
func validateDevice(d, old *resourcev1.Device, single bool, p *field.Path) field.ErrorList {
	errs := fields.DNSLabel(d.Name, p.Child("name"))
	if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(errs, field.Invalid(p, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)))
	}
	if n := len(d.Attributes); n > resourcev1.ResourceSliceMaxAttributeValuesPerDevice {
		errs = append(errs, field.Invalid(p, n, fmt.Sprintf("the total number of attribute values must not exceed %d", resourcev1.ResourceSliceMaxAttributeValuesPerDevice)))
	}
	const longest = resourcev1.DeviceMaxDomainLength + 1 + resourcev1.DeviceMaxIDLength
	for _, name := range fields.SortedKeys(d.Attributes) {
		q := p.Child("attributes")
		errs = append(errs, validateQualified(string(name), q)...)
		errs = append(errs, validateAttribute(d.Attributes[name], q.Key(shortened(string(name), longest)))...)
	}
	for _, name := range fields.SortedKeys(d.Capacity) {
		q := p.Child("capacity")
		errs = append(errs, validateQualified(string(name), q)...)
		c, q := d.Capacity[name], q.Key(shortened(string(name), longest)).Child("requestPolicy")
		switch {
		case c.RequestPolicy == nil:
		case d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations:
			errs = append(errs, field.Forbidden(q, "allowMultipleAllocations must be true"))
		default:
			errs = append(errs, validateRequestPolicy(c.Value, c.RequestPolicy, q)...)
		}
	}
	// Taints that were taken once are kept.
	if old == nil || !equality.Semantic.DeepEqual(old.Taints, d.Taints) {
		errs = append(errs, each(d.Taints, resourcev1.DeviceTaintsMaxLength, p.Child("taints"), func(t *resourcev1.DeviceTaint, p *field.Path) field.ErrorList {
			errs := metavalidation.ValidateLabelName(t.Key, p.Child("key"))
			errs = append(errs, fields.Invalid(p.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
			return append(errs, validateTaintEffect(t.Effect, p.Child("effect"))...)
		})...)
	}
	errs = append(errs, eachOnce(d.ConsumesCounters, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, p.Child("consumesCounters"),
		func(c *resourcev1.DeviceCounterConsumption) string { return c.CounterSet },
		func(c *resourcev1.DeviceCounterConsumption, p *field.Path) field.ErrorList {
			return append(validateCounterName(c.CounterSet, p.Child("counterSet")), validateCounters(c.Counters, resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption, p.Child("counters"))...)
		})...)
	switch {
	case single:
		var place oneOfPlaces
		place.node(d.NodeName, p.Child("nodeName"), "must not be empty")
		place.selector(d.NodeSelector, p.Child("nodeSelector"))
		place.flag(d.AllNodes, "allNodes", p)
		const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
		errs = append(errs, place.judge(p, one, one)...)
	case d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil:
		errs = append(errs, field.Invalid(p, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"))
	}
	return append(errs, validateBindings(d.BindingConditions, d.BindingFailureConditions, p)...)
}

// semver is a version of semver.org, 2.0.0.
const semver = `^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`

func validateAttribute(a resourcev1.DeviceAttribute, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	for _, set := range []bool{a.BoolValue != nil, a.IntValue != nil, a.StringValue != nil, a.VersionValue != nil} {
		if set {
			n++
		}
	}
	long := func(v *string, p *field.Path) {
		if len(*v) > resourcev1.DeviceAttributeMaxValueLength {
			errs = append(errs, field.TooLong(p, "", resourcev1.DeviceAttributeMaxValueLength))
		}
	}
	if v := a.StringValue; v != nil {
		long(v, p.Child("string"))
	}
	if v := a.VersionValue; v != nil {
		if !regexp.MustCompile(semver).MatchString(*v) {
			errs = append(errs, field.Invalid(p.Child("version"), *v, "must be a string compatible with semver.org spec 2.0.0"))
		}
		long(v, p.Child("version"))
	}
	switch n {
	case 0:
		errs = append(errs, field.Invalid(p, "", "exactly one value must be specified"))
	case 1:
	default:
		errs = append(errs, field.Invalid(p, fields.GoNames(a), "exactly one value must be specified"))
	}
	return errs
}

// validateRequestPolicy checks how much of a capacity one may ask for.
func validateRequestPolicy(capacity resource.Quantity, policy *resourcev1.CapacityRequestPolicy, p *field.Path) field.ErrorList {
	switch {
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		return field.ErrorList{field.Forbidden(p, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case len(policy.ValidValues) > 0 && policy.Default == nil:
		return field.ErrorList{field.Required(p.Child("default"), "required when validValues is defined")}
	case len(policy.ValidValues) > 0:
		return validateAmounts(*policy.Default, capacity, policy.ValidValues, p.Child("validValues"))
	case policy.ValidRange != nil && policy.Default == nil:
		return field.ErrorList{field.Required(p.Child("default"), "required when validRange is defined")}
	case policy.ValidRange != nil:
		return validateRange(*policy.Default, capacity, policy.ValidRange, p.Child("validRange"))
	}
	return nil
}

// maxRequestValues bounds what one may choose from (pkg/apis/resource/types.go
// CapacityRequestPolicyDiscreteMaxOptions).
const maxRequestValues = 10

func validateAmounts(usual, capacity resource.Quantity, list []resource.Quantity, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range len(list) - 1 {
		if list[i].Cmp(list[i+1]) > 0 {
			errs = append(errs, field.Invalid(p.Index(i+1), list[i+1].String(), "values must be sorted in ascending order"))
		}
	}
	found := false
	errs = append(errs, eachOnce(list, maxRequestValues, p,
		func(q *resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) },
		func(q *resource.Quantity, p *field.Path) field.ErrorList {
			found = found || q.Cmp(usual) == 0
			if q.Cmp(capacity) > 0 {
				return field.ErrorList{field.Invalid(p, q.String(), "option is larger than capacity value: "+capacity.String())}
			}
			return nil
		})...)
	if !found {
		errs = append(errs, field.Invalid(p, usual.String(), "default value is not valid according to the requestPolicy"))
	}
	return errs
}

func validateRange(usual, capacity resource.Quantity, r *resourcev1.CapacityRequestPolicyRange, p *field.Path) field.ErrorList {
	if r.Min == nil {
		return field.ErrorList{field.Required(p.Child("min"), "required when validRange is defined")}
	}
	var errs field.ErrorList
	larger := func(a, b resource.Quantity, name string, value resource.Quantity, text string) {
		if a.Cmp(b) > 0 {
			errs = append(errs, field.Invalid(p.Child(name), value.String(), text))
		}
	}
	larger(*r.Min, capacity, "min", *r.Min, "min is larger than capacity value: "+capacity.String())
	larger(*r.Min, usual, "min", usual, "default is less than min: "+r.Min.String())
	if r.Max != nil {
		larger(*r.Min, *r.Max, "max", *r.Min, "min is larger than max: "+r.Max.String())
		larger(*r.Max, capacity, "max", *r.Max, "max is larger than capacity value: "+capacity.String())
		larger(usual, *r.Max, "max", usual, "default is more than max: "+r.Max.String())
	}
	if r.Step == nil {
		return errs
	}
	first := r.Min.DeepCopy()
	first.Add(*r.Step)
	larger(first, capacity, "step", *r.Step, fmt.Sprintf("one step %s is larger than capacity value: %s", first.String(), capacity.String()))
	// A step of nothing would never arrive; upstream divides by it.
	for _, q := range []*resource.Quantity{&usual, r.Max} {
		if q != nil && r.Step.Value() != 0 && (q.Value()-r.Min.Value())%r.Step.Value() != 0 {
			errs = append(errs, field.Invalid(p.Child("step"), q.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step.String(), r.Min.String())))
		}
	}
	return errs
}
