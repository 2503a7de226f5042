// Package fields is what the checks and the defaults of single fields have in
// common, whatever the kind. Errors say what upstream's say
// (k8s.io/apimachinery/pkg/api/validation and util/validation).
package fields

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// Default sets a field that has its zero value.
func Default[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// DefaultPtr points a nil field to v.
func DefaultPtr[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// OneOf requires v to be one of the values. An empty one is missing rather than
// wrong.
func OneOf[T ~string](v T, path *field.Path, values ...T) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if slices.Contains(values, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, v, values)}
}

// Supported requires v to be one of the values. An empty one is wrong, too.
func Supported[T ~string](v T, path *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, v, values)}
}

// Invalid makes an error of each text that says what is wrong with a value.
func Invalid(path *field.Path, value any, texts []string) (errs field.ErrorList) {
	for _, text := range texts {
		errs = append(errs, field.Invalid(path, value, text))
	}
	return errs
}

// DNSLabel requires v to be a DNS-1123 label.
func DNSLabel(v string, path *field.Path) field.ErrorList {
	return Invalid(path, v, validation.IsDNS1123Label(v))
}

// DNSName requires v to be a DNS-1123 subdomain.
func DNSName(v string, path *field.Path) field.ErrorList {
	return Invalid(path, v, validation.IsDNS1123Subdomain(v))
}

// NonNegative requires a number that is not negative.
func NonNegative(v int64, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(v, path)
}

// NonNegativePtr checks an optional number.
func NonNegativePtr[T int32 | int64](v *T, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	return NonNegative(int64(*v), path)
}

// Port requires a port's number.
func Port(v int32, path *field.Path) field.ErrorList {
	return Invalid(path, v, validation.IsValidPortNum(int(v)))
}

// PortOrName requires a port's number or its name (ValidatePortNumOrName).
func PortOrName(v intstr.IntOrString, path *field.Path) field.ErrorList {
	if v.Type == intstr.Int {
		return Port(v.IntVal, path)
	}
	return Invalid(path, v.StrVal, validation.IsValidPortName(v.StrVal))
}

// QualifiedName requires a name as labels' keys have it.
func QualifiedName(v string, path *field.Path) field.ErrorList {
	return Invalid(path, v, validation.IsQualifiedName(v))
}

// EndpointIP requires an address that traffic could go to (ValidateEndpointIP).
func EndpointIP(path *field.Path, v string) field.ErrorList {
	ip := netutils.ParseIPSloppy(v)
	if ip == nil {
		return field.ErrorList{field.Invalid(path, v, "must be a valid IP address")}
	}
	var errs field.ErrorList
	for _, c := range []struct {
		is   bool
		text string
	}{
		{ip.IsUnspecified(), "may not be unspecified (" + v + ")"},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if c.is {
			errs = append(errs, field.Invalid(path, v, c.text))
		}
	}
	return errs
}

// Immutable requires a field to stay what it was.
func Immutable(now, was any, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, GoNames(now), apivalidation.FieldImmutableErrorMsg)}
}

// SortedKeys returns the keys of m, sorted: errors about a map's entries come in
// the same order in each run.
func SortedKeys[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m { //drydock:unordered sorted below
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// CountOrPercent requires a number that is not negative, or a percentage
// (ValidatePositiveIntOrPercent).
func CountOrPercent(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v.Type == intstr.Int {
		return NonNegative(int64(v.IntVal), path)
	}
	return Invalid(path, v, validation.IsValidPercent(v.StrVal))
}

// percent returns the number before the sign; false: v is no percentage, or a
// malformed one, which CountOrPercent refuses.
func percent(v *intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(v.StrVal[:len(v.StrVal)-1])
	return n, err == nil
}

// NumberIn is the number, of a percentage too.
func NumberIn(v *intstr.IntOrString) int {
	if n, ok := percent(v); ok {
		return n
	}
	return v.IntValue()
}

// AtMost100Percent bounds a percentage, and leaves numbers alone
// (IsNotMoreThan100Percent).
func AtMost100Percent(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if n, ok := percent(v); ok && n > 100 {
		return field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return nil
}

// PlainLabel recognises a DNS-1123 label, for which the regular expressions of a
// full check, which finds words for what is wrong, would be a waste.
func PlainLabel(s string) bool {
	if len(s) == 0 || len(s) > validation.DNS1123LabelMaxLength || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// PlainSubdomain is plainLabel for DNS-1123 subdomains.
func PlainSubdomain(s string) bool {
	if len(s) > validation.DNS1123SubdomainMaxLength {
		return false
	}
	for more := true; more; {
		var label string
		if label, s, more = strings.Cut(s, "."); !PlainLabel(label) {
			return false
		}
	}
	return true
}

// Same reports whether two values say the same: an empty list is none.
func Same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
