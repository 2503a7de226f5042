package action

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Patch patches an object in the API.
//
// In the timeline: patches an object in the API.
type Patch struct {
	// The object's kind.
	Kind value.Kind `json:"kind" required:""`
	// The object's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The object's name.
	Name string `json:"name" required:""`
	// How the patch is meant. strategic unless said.
	Type string `json:"type,omitempty" enum:"strategic,merge,json"`
	// The patch: a part of the object, or, for type json, a list of operations.
	Patch value.JSON `json:"patch" required:""`
	// The subresource that is patched.
	Subresource string `json:"subresource,omitempty" enum:"status,resize,ephemeralcontainers"`
}

// Check fills in the type and the namespace, and wants the patch to be of the
// type's form.
func (a *Patch) Check(at Place) {
	a.Type = cmp.Or(a.Type, "strategic")
	a.Namespace = value.Namespace(at.Place, string(a.Kind), a.Namespace)
	switch list := a.Type == "json"; {
	case len(a.Patch) == 0:
	case list && a.Patch[0] != '[':
		at.Field("patch").Errorf("a patch of type json is a list of operations")
	case !list && a.Patch[0] != '{':
		at.Field("patch").Errorf("a patch of type %s is a part of the object, a mapping", a.Type)
	}
}

// Do patches the object, which the API answers at once.
func (a *Patch) Do(s Stage) error {
	t := map[string]types.PatchType{"strategic": types.StrategicMergePatchType, "merge": types.MergePatchType, "json": types.JSONPatchType}[a.Type]
	note(s, objectName(string(a.Kind), a.Namespace, a.Name), "patch", trace.Str("subresource", a.Subresource))
	_, err := s.Cluster().API().Patch(apiserver.Kind(a.Kind), a.Namespace, a.Name, t, a.Patch, a.Subresource)
	return err
}
