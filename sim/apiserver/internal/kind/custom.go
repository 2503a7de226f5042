package kind

import (
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Custom is what a row of custom resources has beyond others. Such a row stands for one
// version of their definition; they are stored in one, and served in any.
type Custom struct {
	// Versions are the rows of the versions that are served, the most mature first
	// (version.CompareKubeAwareVersionStrings).
	Versions []*Info
	// Coerce does in place to what was decoded what decoding does to an object with a
	// Go type: what the schema of the object's own version doesn't know is dropped, and
	// told by its paths if that is asked for. The error says what can't be metadata.
	Coerce func(o Object, tell bool) (unknown []string, err error)
	// Convert returns a copy of an object, of whichever version, that is of the row's:
	// fields are called alike in all versions (the conversion strategy None).
	Convert func(Object) Object
	// Hook, unless nil, converts instead (the strategy Webhook). Adopt returns what is
	// made of its answer about an object; the error is what is wrong with it.
	Hook  *apiextensionsv1.WebhookConversion
	Adopt func(in, answer Object) (Object, error)
	// Schema returns what the version says of its resources; nil: nothing.
	Schema func() *spec.Schema
	// Singular and List are the names beside the row's own.
	Singular, List string
	// Deprecated is what clients of the version are warned of.
	Deprecated string
	// Scale is the subresource; nil: there is none.
	Scale *CustomScale
}

// CustomScale is where custom resources keep what their scale says
// (CustomResourceSubresourceScale).
type CustomScale struct {
	// Replicas is the path of the number that is asked for.
	Replicas []string
	// Of returns an object's scale; its number is UnsetReplicas where the object doesn't
	// say how many are asked for. The error names a field of another type.
	Of func(Object) (*autoscalingv1.Scale, error)
	// Set sets, in an object that is the caller's own, how many are asked for.
	Set func(o Object, replicas int32) error
}

// UnsetReplicas is a number that nobody can ask for.
const UnsetReplicas = math.MinInt32

// Path is where the number is, as definitions have it: ".spec.replicas".
func (c *CustomScale) Path() string { return "." + strings.Join(c.Replicas, ".") }

// Served returns the row of an object's version; nil: that version isn't served.
func (in *Info) Served(version string) *Info {
	if in.Custom == nil || in.Version == version {
		return in
	}
	for _, v := range in.Custom.Versions {
		if v.Version == version {
			return v
		}
	}
	return nil
}
