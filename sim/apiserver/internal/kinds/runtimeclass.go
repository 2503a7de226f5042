package kinds

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// RuntimeClass is the kind of runtime classes. Admission reads overhead and
// scheduling into pods; kubelets watch all of them, for their handlers.
const RuntimeClass kind.Kind = "RuntimeClass"

// runtimeClass returns the row of RuntimeClass (pkg/registry/node/runtimeclass).
func runtimeClass() *kind.Info {
	return &kind.Info{
		Kind: RuntimeClass, AnyFinalizer: true, Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses", CreatesOnUpdate: true, NeedsVersion: true, ReadByAdmission: true, Watch: kind.Whole,
		Strategy: &kind.Typed[nodev1.RuntimeClass, *nodev1.RuntimeClass]{
			Check: validateRuntimeClass,
			Warn:  runtimeClassWarnings,
			Table: runtimeClassTable(),
			CheckUpdate: func(rc, old *nodev1.RuntimeClass, _ string) field.ErrorList {
				// Pods run by the handler that they were admitted with.
				return append(validateRuntimeClass(rc), fields.Immutable(rc.Handler, old.Handler, field.NewPath("handler"))...)
			},
		},
	}
}

func runtimeClassTable() []kind.Column[nodev1.RuntimeClass] {
	return []kind.Column[nodev1.RuntimeClass]{
		kind.NameColumn[nodev1.RuntimeClass](),
		// Upstream looks for the text where there is none.
		{Name: "Handler", Type: "string", Cell: func(rc *nodev1.RuntimeClass, _ time.Time) any { return rc.Handler }},
		kind.AgeColumn[nodev1.RuntimeClass](),
	}
}

// validateRuntimeClass checks a class (pkg/apis/node/validation
// ValidateRuntimeClass). A handler is a name in the configuration of runtimes, and
// stays the same for a class: pods run by it.
func validateRuntimeClass(rc *nodev1.RuntimeClass) field.ErrorList {
	var errs field.ErrorList
	if handler := field.NewPath("handler"); rc.Handler == "" {
		errs = append(errs, field.Required(handler, ""))
	} else {
		errs = append(errs, fields.DNSLabel(rc.Handler, handler)...)
	}
	if o := rc.Overhead; o != nil {
		errs = append(errs, podspec.ValidateOverhead(o.PodFixed, field.NewPath("overhead"))...)
	}
	s, path := rc.Scheduling, field.NewPath("scheduling")
	if s == nil {
		return errs
	}
	errs = append(errs, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	path = path.Child("tolerations")
	errs = append(errs, podspec.ValidateTolerations(s.Tolerations, path)...)
	for i, t := range s.Tolerations {
		if slices.ContainsFunc(s.Tolerations[:i], func(o v1.Toleration) bool {
			return o.Key == t.Key && o.Operator == t.Operator && o.Value == t.Value && o.Effect == t.Effect
		}) {
			errs = append(errs, field.Duplicate(path.Index(i), fields.GoNames(t)))
		}
	}
	return errs
}

// runtimeClassWarnings tells of labels of nodes that have other names by now.
func runtimeClassWarnings(rc, _ *nodev1.RuntimeClass, _ string) []string {
	if rc.Scheduling == nil {
		return nil
	}
	var out []string
	for _, k := range fields.SortedKeys(rc.Scheduling.NodeSelector) {
		if text := podspec.DeprecatedNodeLabel(k); text != "" {
			out = append(out, "scheduling.nodeSelector: "+text)
		}
	}
	return out
}
