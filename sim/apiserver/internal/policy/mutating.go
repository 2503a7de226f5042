package policy

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Mutating is a compiled MutatingAdmissionPolicy.
type Mutating struct {
	compiler   *plugincel.CompositedCompiler
	conditions matchconditions.Matcher // nil: there are none
	steps      []patch.Patcher
}

// NewMutating compiles a policy. It costs milliseconds.
func NewMutating(p *admissionregistrationv1.MutatingAdmissionPolicy) (*Mutating, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	vars := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	c.CompileAndStoreVariables(variables(p.Spec.Variables), vars, environment.StoredExpressions)
	out := &Mutating{compiler: c, conditions: conditions(c, p.Spec.MatchConditions, vars, p.Spec.FailurePolicy, "policy", p.Name)}
	vars.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			out.steps = append(out.steps, patch.NewJSONPatcher(c.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, vars, environment.StoredExpressions)))
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			out.steps = append(out.steps, patch.NewApplyConfigurationPatcher(c.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, vars, environment.StoredExpressions)))
		}
	}
	return out, nil
}

// Mutate returns what a policy makes of a request's object, with a parameter or nil.
// types knows the types of the object's fields. The object itself is not written to.
func (m *Mutating) Mutate(in *Input, param runtime.Object, types managedfields.TypeConverter) (kind.Object, error) {
	ctx, allow := m.compiler.CreateContext(context.Background()), authorizerfactory.NewAlwaysAllowAuthorizer()
	obj := in.Object
	if m.conditions != nil {
		r := m.conditions.Match(ctx, in.attributes(obj), param, allow)
		if r.Error != nil || !r.Matches {
			return obj, r.Error
		}
	}
	for _, step := range m.steps {
		a := in.attributes(obj)
		made, err := step.Patch(ctx, patch.Request{
			MatchedResource: a.GetResource(), VersionedAttributes: a, ObjectInterfaces: rowTypes{in.Kind},
			OptionalVariables: plugincel.OptionalVariableBindings{VersionedParams: param, Authorizer: allow},
			Namespace:         plugincel.CreateNamespaceObject(in.Namespace), TypeConverter: types,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return obj, err
		}
		if obj, err = typedAs(in.Kind, made); err != nil {
			return in.Object, err
		}
		in.Kind.SetDefaults(obj)
	}
	return obj, nil
}

// typedAs returns an object as the kind has it in Go.
func typedAs(in *kind.Info, obj runtime.Object) (kind.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || in.CustomKind != "" {
		return obj.(kind.Object), nil
	}
	out := in.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("object of a policy: %w", err)
	}
	out.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind())
	return out, nil
}

// rowTypes are what the library asks of types, by a kind's row.
type rowTypes struct{ in *kind.Info }

var _ admission.ObjectInterfaces = rowTypes{}

// GetObjectCreater implements admission.ObjectInterfaces.
func (r rowTypes) GetObjectCreater() runtime.ObjectCreater { return r }

// GetObjectTyper implements admission.ObjectInterfaces.
func (r rowTypes) GetObjectTyper() runtime.ObjectTyper { return r }

// GetObjectDefaulter implements admission.ObjectInterfaces; the others are not asked for.
func (rowTypes) GetObjectDefaulter() runtime.ObjectDefaulter                   { return nil }
func (rowTypes) GetObjectConvertor() runtime.ObjectConvertor                   { return nil }
func (rowTypes) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return nil }

// New implements runtime.ObjectCreater.
func (r rowTypes) New(schema.GroupVersionKind) (runtime.Object, error) { return r.in.New(), nil }

// ObjectKinds implements runtime.ObjectTyper.
func (r rowTypes) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{r.in.GroupVersionKind()}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (r rowTypes) Recognizes(gvk schema.GroupVersionKind) bool { return gvk == r.in.GroupVersionKind() }
