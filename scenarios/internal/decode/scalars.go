package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// special decodes the types that are written otherwise than their Go types say. It reports
// whether it did. The order matters: a Custom wins over a Shorthand, and Kubernetes' types are
// asked last, since their Go forms are structs that would be decoded field by field otherwise.
func (at Place) special(v reflect.Value) bool {
	scalar := at.node.Kind == yaml.ScalarNode
	switch x := v.Addr().Interface().(type) {
	case *time.Duration:
		if t, ok := at.Duration(); ok {
			*x = t
		}
		return true
	case Custom:
		return x.DecodeYAML(at)
	case Shorthand:
		if scalar {
			at.shorthand(v, x.Shorthand())
		}
		return scalar
	}
	return at.kubernetes(v)
}

// shorthand decodes a scalar into the field of v that to points to, with the
// field's enum. The enum is a tag of the field and not of the type, and decoding by a pointer
// does not see tags; so the field is found again by its address.
func (at Place) shorthand(v reflect.Value, to any) {
	at.Decode(to)
	if v.Kind() != reflect.Struct {
		return
	}
	t := at.doc.r.structType(v.Type())
	for _, name := range t.names {
		if f := t.fields[name]; len(f.enum) > 0 {
			if field := v.FieldByIndex(f.index); field.Addr().Interface() == to {
				at.enum(field, f.enum)
			}
		}
	}
}

// Scalar returns a scalar as it is written, whatever it is; false if the value
// is none.
func (at Place) Scalar() (string, bool) {
	return at.node.Value, at.node.Kind == yaml.ScalarNode
}

// IsText reports whether something other than null, a mapping or a list is
// written at the place.
func (at Place) IsText() bool {
	return at.node != nil && at.node.Kind == yaml.ScalarNode && !at.Null()
}

// Null reports whether the value is null, which stands for nothing written.
func (at Place) Null() bool {
	return at.node.Kind == yaml.ScalarNode && at.node.ShortTag() == "!!null"
}

// IsMapping and IsList report of what kind the value is.
func (at Place) IsMapping() bool { return at.node != nil && at.node.Kind == yaml.MappingNode }
func (at Place) IsList() bool    { return at.node != nil && at.node.Kind == yaml.SequenceNode }

// Line is the line that the value begins on.
func (at Place) Line() int { return at.node.Line }

// Node is the value's tree, for who compares documents; it must not be changed. It is the
// expanded tree.
func (at Place) Node() *yaml.Node { return at.node }

// YAML is the value as a file of its own would have it.
func (at Place) YAML() []byte {
	out, _ := yaml.Marshal(at.node) // it was parsed from YAML
	return out
}

// Text returns a text. What YAML takes for something else, such as 5 or yes,
// must be in quotes, so that nobody loses a leading zero. The YAML 1.1 traps: 010 would be a
// number and yes a truth value. An error now is better than a label "8" later.
func (at Place) Text() (string, bool) {
	n := at.node
	switch t := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode:
		at.Mismatch("a text")
	// Dates and << are texts to everyone but YAML.
	case t == "!!str" || t == "!!timestamp" || t == "!!merge" || at.isSet():
		return n.Value, true
	default:
		at.Refuse("want a text, got %s: put it in quotes", describe(n))
	}
	return "", false
}

// kubernetes decodes the special types of Kubernetes. It reports whether it did.
func (at Place) kubernetes(v reflect.Value) bool {
	n := at.node
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		if q, ok := at.Quantity(); ok {
			*x = q
		}
	case *resource.QuantityValue:
		if q, ok := at.Quantity(); ok {
			x.Quantity = q
		}
	// A percentage or a port's name is a text, everything else a number; "80" in quotes stays a
	// text, as in the API.
	case *intstr.IntOrString:
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
			var i int32
			if n.Decode(&i) != nil {
				at.Mismatch("a number or a text")
			}
			*x = intstr.FromInt32(i)
		} else if s, ok := at.Text(); ok {
			*x = intstr.FromString(s)
		}
	// A number is nanoseconds, a text a duration (component-base/logs/api/v1, flushFrequency of
	// KubeletConfiguration).
	case *logsapi.TimeOrMetaDuration:
		var ns int64
		if n.ShortTag() == "!!int" && n.Decode(&ns) == nil {
			x.Duration.Duration = time.Duration(ns)
			return true
		}
		at.Decode(&x.Duration)
		x.SerializeAsString = true
	case *metav1.Time:
		x.Time = at.timestamp()
	case *metav1.MicroTime:
		x.Time = at.timestamp()
	case *metav1.Duration:
		if s, ok := at.Text(); ok {
			t, err := time.ParseDuration(s)
			if err != nil {
				at.Refuse("%q is no duration such as 10s or 1m30s", Short(s))
			}
			x.Duration = t
		}
	// Parts of a CustomResourceDefinition's schema that have two forms.
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		if x.Allows = true; n.Kind == yaml.ScalarNode {
			at.Decode(&x.Allows)
		} else {
			at.Decode(&x.Schema)
		}
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		switch n.Kind {
		case yaml.SequenceNode:
			at.Decode(&x.JSONSchemas)
		case yaml.MappingNode:
			at.Decode(&x.Schema)
		default:
			at.Mismatch("a schema or a list of schemas")
		}
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		switch n.Kind {
		case yaml.SequenceNode:
			at.Decode(&x.Property)
		case yaml.MappingNode:
			at.Decode(&x.Schema)
		default:
			at.Mismatch("a schema or a list of fields")
		}
	// These types carry JSON of other schemas, so there is nothing to check.
	case *runtime.RawExtension:
		x.Raw, _ = json.Marshal(at.Plain())
	case *apiextensionsv1.JSON:
		x.Raw, _ = json.Marshal(at.Plain())
	case *metav1.FieldsV1:
		x.Raw, _ = json.Marshal(at.Plain())
	default:
		return false
	}
	return true
}

// timestamp reads a time as the API writes it.
func (at Place) timestamp() time.Time {
	if at.node.Kind != yaml.ScalarNode {
		at.Mismatch("a time such as 2026-01-01T00:00:00Z")
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, at.node.Value)
	if err != nil {
		at.Refuse("%q is no time such as 2026-01-01T00:00:00Z", Short(at.node.Value))
	}
	return t.UTC()
}

// MaxDuration bounds the times of a scenario: a year. Virtual times are int64 nanoseconds since
// the start; far below their limit no sum of some of them overflows.
const MaxDuration = 365 * 24 * time.Hour

// Duration returns a time such as 10s, of at most a year.
func (at Place) Duration() (time.Duration, bool) {
	if at.node.Kind != yaml.ScalarNode {
		at.Mismatch("a time such as 10s or 1m30s")
		return 0, false
	}
	return at.ParseDuration(at.node.Value)
}

// ParseDuration is Duration for a part of the place's text. What is refused is reported here, so
// callers go on with the next field.
func (at Place) ParseDuration(s string) (time.Duration, bool) {
	t, err := ParseTime(s)
	switch {
	// 10 might be meant as seconds or as milliseconds; it is asked rather than guessed.
	case err != nil && at.node.ShortTag() == "!!int":
		at.Refuse("want a time such as 10s or 1m30s, got %s: which unit?", describe(at.node))
	case err != nil:
		at.Refuse("%q is no time such as 10s or 1m30s", Short(s))
	case t < 0:
		at.Refuse("%s is negative", s)
	case t > MaxDuration:
		at.Refuse("%s is longer than a year", s)
	default:
		return t, true
	}
	return 0, false
}

// quantityForm keeps out what the library would take very long to parse. An exponent of a
// thousand digits would be a number of as many; the pattern allows two.
var quantityForm = regexp.MustCompile(`^[+-]?[0-9.]{1,40}([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

// Quantity returns a quantity of Kubernetes, such as 500m or 1Gi.
func (at Place) Quantity() (resource.Quantity, bool) {
	text, ok := at.Scalar()
	if !ok {
		at.Mismatch("a quantity such as 500m or 1Gi")
		return resource.Quantity{}, false
	}
	q, ok := ParseQuantity(text)
	if !ok {
		at.Refuse("%q is no quantity such as 500m or 1Gi", Short(at.node.Value))
		return q, false
	}
	// The text is remembered now, while nobody else can see the quantity. A Quantity caches its
	// text on first use. Objects are shared between loops, and a write there would be a data
	// race.
	_ = q.String()
	return q, true
}

// ParseQuantity parses a quantity; false means that the text is none, or one that
// nobody writes.
func ParseQuantity(s string) (resource.Quantity, bool) {
	if !quantityForm.MatchString(s) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

// ParseTime is time.ParseDuration that also knows days, which are 24 hours: 1d, 1d12h, 0.5d.
func ParseTime(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || n > MaxDuration.Hours() || n < -MaxDuration.Hours() || math.IsNaN(n) || strings.ContainsAny(days, "xXpPeE_") {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	d := time.Duration(n * 24 * float64(time.Hour))
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	if n < 0 {
		more = -more
	}
	return d + more, nil
}
