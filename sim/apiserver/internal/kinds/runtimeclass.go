package kinds

import (
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// RuntimeClass is the kind of runtime classes. Admission reads overhead and
// scheduling into pods; kubelets watch all of them, for their handlers.
const RuntimeClass kind.Kind = "RuntimeClass"

// runtimeClass returns the row of RuntimeClass (pkg/registry/node/runtimeclass).
func runtimeClass() *kind.Info {
	return &kind.Info{
		Kind: RuntimeClass, Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses", CreatesOnUpdate: true, NeedsVersion: true, ReadByAdmission: true, Watch: kind.Whole,
		Strategy: &kind.Typed[nodev1.RuntimeClass, *nodev1.RuntimeClass]{
			Check: validateRuntimeClass,
			CheckUpdate: func(rc, old *nodev1.RuntimeClass, _ string) field.ErrorList {
				// Pods run by the handler that they were admitted with.
				return append(validateRuntimeClass(rc), fields.Immutable(rc.Handler, old.Handler, field.NewPath("handler"))...)
			},
		},
	}
}

// validateRuntimeClass checks a class (pkg/apis/node/validation
// ValidateRuntimeClass). A handler is a name in the configuration of runtimes, and
// stays the same for a class: pods run by it.
func validateRuntimeClass(rc *nodev1.RuntimeClass) field.ErrorList {
	return lists.Map(validation.IsDNS1123Label(rc.Handler), func(text string) *field.Error {
		return field.Invalid(field.NewPath("handler"), rc.Handler, text)
	})
}
