package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/policy"
)

// policies are the plugins MutatingAdmissionPolicy and ValidatingAdmissionPolicy
// (k8s.io/apiserver, pkg/admission/plugin/policy). Policies are compiled when they are
// first asked, and again when they have changed.
type policies struct {
	cluster    Cluster
	validating map[string]compiled[*policy.Validating]
	mutating   map[string]compiled[*policy.Mutating]
	types      managedfields.TypeConverter // see UseTypes
}

// compiled is a policy as of a resource version.
type compiled[T any] struct {
	version string
	policy  T
}

// UseTypes has mutating policies know the types of fields from now on; without, they
// are deduced from values.
func (p *Plugins) UseTypes(t managedfields.TypeConverter) { p.policies.types = t }

// exempt are the kinds that no policy and no webhook is asked about: who made a mistake
// in one must be able to mend it.
var exempt = sets.New(kinds.ValidatingWebhookConfiguration, kinds.MutatingWebhookConfiguration,
	kinds.ValidatingAdmissionPolicy, kinds.ValidatingAdmissionPolicyBinding, kinds.MutatingAdmissionPolicy, kinds.MutatingAdmissionPolicyBinding)

// inputOf is a request as policies see it.
func inputOf(c Cluster, r *Request) *policy.Input {
	in := &policy.Input{
		Kind: r.Kind, Subresource: r.Subresource, Operation: upstream.Operation(r.Operation), Name: requestName(r),
		Object: r.Object, Old: r.Old, DryRun: r.DryRun, Options: optionsOf(r),
	}
	if r.Kind.Namespaced {
		in.Namespace = c.Namespace(r.Namespace)
	}
	u := &user.DefaultInfo{}
	if r.Caller != nil {
		u.Name, u.UID, u.Groups = r.Caller.User.Username, r.Caller.User.UID, r.Caller.User.Groups
		for k, v := range r.Caller.User.Extra { //drydock:unordered copies a map
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			u.Extra[k] = v
		}
	}
	in.User = u
	return in
}

// requestName is the name that a request says: none, if it has one made.
func requestName(r *Request) string {
	if r.Old == nil && r.Object.GetGenerateName() != "" && Name(r.Object) == r.Object.GetGenerateName() {
		return ""
	}
	return subject(r).GetName()
}

// subject is the request's object, or the one that it deletes.
func subject(r *Request) kind.Object {
	if r.Object != nil {
		return r.Object
	}
	return r.Old
}

// optionsOf are the request's options, or empty ones.
func optionsOf(r *Request) runtime.Object {
	if o, ok := r.Options.(runtime.Object); ok {
		return o
	}
	meta := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind} }
	switch {
	case r.Object == nil:
		return &metav1.DeleteOptions{TypeMeta: meta("DeleteOptions")}
	case r.Old == nil:
		return &metav1.CreateOptions{TypeMeta: meta("CreateOptions")}
	}
	return &metav1.UpdateOptions{TypeMeta: meta("UpdateOptions")}
}

// params are the parameters that a binding names for a request; one nil stands for none.
func (s *policies) params(pk *admissionregistrationv1.ParamKind, ref *admissionregistrationv1.ParamRef, namespace string) ([]runtime.Object, error) {
	if pk == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	var in *kind.Info
	for _, row := range s.cluster.Kinds().All() {
		if row.APIVersion() == pk.APIVersion && row.Written() == pk.Kind {
			in = row
		}
	}
	switch {
	case in == nil:
		return nil, fmt.Errorf("paramKind kind `%v` not known", pk.String())
	case in.Namespaced && ref.Namespace != "":
		namespace = ref.Namespace
	case in.Namespaced && namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	case !in.Namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	}
	var out []runtime.Object
	if ref.Name != "" {
		if obj := s.cluster.Lookup(in.Kind, namespace, ref.Name); obj != nil {
			out = append(out, obj)
		}
	} else {
		sel, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, err
		}
		s.cluster.Each(in.Kind, func(obj kind.Object) bool {
			if (!in.Namespaced || obj.GetNamespace() == namespace) && sel.Matches(labels.Set(obj.GetLabels())) {
				out = append(out, obj)
			}
			return true
		})
	}
	if len(out) == 0 && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return out, nil
}

// ignores reports whether what goes wrong with a policy is no reason to refuse.
func ignores(p *admissionregistrationv1.FailurePolicyType) bool {
	return p != nil && *p == admissionregistrationv1.Ignore
}

// sorted returns the objects of a kind by name.
func sorted[T kind.Object](c Cluster, k kind.Kind) []T {
	var out []T
	c.Each(k, func(o kind.Object) bool {
		out = append(out, o.(T))
		return true
	})
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// denial is why a policy refuses a request.
type denial struct {
	message string
	reason  metav1.StatusReason
}

// validate is the plugin ValidatingAdmissionPolicy.
func (s *policies) validate(r *Request) error {
	if exempt.Has(r.Kind.Kind) {
		return nil
	}
	in := inputOf(s.cluster, r)
	var denials []denial
	bindings := sorted[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](s.cluster, kinds.ValidatingAdmissionPolicyBinding)
	for _, p := range sorted[*admissionregistrationv1.ValidatingAdmissionPolicy](s.cluster, kinds.ValidatingAdmissionPolicy) {
		failed := func(binding, what string, err error) {
			if !ignores(p.Spec.FailurePolicy) {
				denials = append(denials, denial{deniedBy(p.Name, binding) + fmt.Sprintf("failed to configure %s: %v", what, err), ""})
			}
		}
		matches, err := policy.Matches(p.Spec.MatchConstraints, in)
		if err != nil {
			failed("", "policy", err)
			continue
		}
		if !matches {
			continue
		}
		audits := map[string][]string{}
		for _, b := range bindings {
			if b.Spec.PolicyName != p.Name {
				continue
			}
			if matches, err := policy.Matches(b.Spec.MatchResources, in); err != nil || !matches {
				if err != nil {
					failed(b.Name, "binding", err)
				}
				continue
			}
			params, err := s.params(p.Spec.ParamKind, b.Spec.ParamRef, r.Namespace)
			if err != nil {
				failed(b.Name, "binding", err)
				continue
			}
			v, err := compiledOf(s.validating, p.Name, p.ResourceVersion, func() (*policy.Validating, error) { return policy.NewValidating(p) })
			if err != nil {
				failed("", "policy", err)
				continue
			}
			for _, param := range params {
				denials = append(denials, act(r, p, b, v.Validate(in, param), audits)...)
			}
		}
		for _, key := range slices.Sorted(keysOf(audits)) {
			r.Audit(p.Name+"/"+key, strings.Join(audits[key], ", "))
		}
	}
	if len(denials) == 0 {
		return nil
	}
	first := denials[0]
	err := apierrors.NewForbidden(r.Kind.Asked().GroupResource(), Name(subject(r)), errors.New(first.message))
	err.ErrStatus.Reason = first.reason
	if first.reason == "" {
		err.ErrStatus.Reason = metav1.StatusReasonInvalid
	}
	err.ErrStatus.Code = policy.CodeOf(err.ErrStatus.Reason)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: first.message})
	return err
}

func keysOf(m map[string][]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m { //drydock:unordered sorted by who asks
			if !yield(k) {
				return
			}
		}
	}
}

func deniedBy(name, binding string) string {
	if binding == "" {
		return fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: ", name)
	}
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: ", name, binding)
}

// maxAuditValue bounds the value of an annotation.
const maxAuditValue = 10 << 10

// act does what a binding wants of a policy's result, and returns what refuses the
// request.
func act(r *Request, p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, result policy.Result, audits map[string][]string) []denial {
	var out []denial
	for i, d := range result.Decisions {
		if d.Action != validating.ActionDeny {
			continue
		}
		for _, action := range b.Spec.ValidationActions {
			switch action {
			case admissionregistrationv1.Deny:
				out = append(out, denial{deniedBy(p.Name, b.Name) + d.Message, d.Reason})
			case admissionregistrationv1.Warn:
				r.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.Name, b.Name, d.Message))
			case admissionregistrationv1.Audit:
				text, err := json.Marshal([]validating.ValidationFailureValue{{
					ExpressionIndex: i, Message: d.Message, ValidationActions: b.Spec.ValidationActions, Binding: b.Name, Policy: p.Name,
				}})
				if err == nil {
					r.Audit("validation.policy.admission.k8s.io/validation_failure", string(text))
				}
			}
		}
	}
	for _, a := range result.AuditAnnotations {
		switch a.Action {
		case validating.AuditAnnotationActionPublish:
			value := a.Value[:min(len(a.Value), maxAuditValue)]
			if !slices.Contains(audits[a.Key], value) {
				audits[a.Key] = append(audits[a.Key], value)
			}
		case validating.AuditAnnotationActionError:
			out = append(out, denial{deniedBy(p.Name, b.Name) + a.Error, ""})
		}
	}
	return out
}

// compiledOf returns a policy as it is now.
func compiledOf[T any](cache map[string]compiled[T], name, version string, compile func() (T, error)) (T, error) {
	if c, ok := cache[name]; ok && c.version == version {
		return c.policy, nil
	}
	made, err := compile()
	if err == nil {
		cache[name] = compiled[T]{version, made}
	}
	return made, err
}

// mutate is the plugin MutatingAdmissionPolicy. A policy that wants to be asked again is,
// once, when others have changed the object after it.
func (s *policies) mutate(r *Request) error {
	if exempt.Has(r.Kind.Kind) || r.Object == nil {
		return nil
	}
	list := sorted[*admissionregistrationv1.MutatingAdmissionPolicy](s.cluster, kinds.MutatingAdmissionPolicy)
	bindings := sorted[*admissionregistrationv1.MutatingAdmissionPolicyBinding](s.cluster, kinds.MutatingAdmissionPolicyBinding)
	var wrong []denial
	asked := map[string]bool{}
	for round := range 2 {
		changed := false
		for _, p := range list {
			if round > 0 && (p.Spec.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy || !asked[p.Name]) {
				continue
			}
			did, why := s.mutateBy(r, p, bindings)
			asked[p.Name] = true
			changed = changed || did
			wrong = append(wrong, why...)
		}
		if !changed {
			break
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	err := apierrors.NewForbidden(r.Kind.Asked().GroupResource(), r.name(), errors.New("admission request denied by policy"))
	err.ErrStatus.Message = wrong[0].message
	if wrong[0].reason != "" {
		err.ErrStatus.Reason = wrong[0].reason
	}
	for _, d := range wrong {
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: d.message})
	}
	return err
}

// mutateBy has a policy change the request's object by each of its bindings. It reports
// whether it did, and what went wrong.
func (s *policies) mutateBy(r *Request, p *admissionregistrationv1.MutatingAdmissionPolicy, bindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding) (changed bool, wrong []denial) {
	failed := func(binding, text string, reason metav1.StatusReason) {
		switch {
		case ignores(p.Spec.FailurePolicy):
		case binding == "":
			wrong = append(wrong, denial{fmt.Sprintf("policy %q denied request: %s", p.Name, text), reason})
		default:
			wrong = append(wrong, denial{fmt.Sprintf("policy '%s' with binding '%s' denied request: %s", p.Name, binding, text), reason})
		}
	}
	in := inputOf(s.cluster, r)
	matches, err := policy.Matches(p.Spec.MatchConstraints, in)
	if err != nil {
		failed("", fmt.Sprintf("failed to configure policy: %v", err), "")
	}
	if err != nil || !matches {
		return false, wrong
	}
	for _, b := range bindings {
		if b.Spec.PolicyName != p.Name {
			continue
		}
		matches, err := policy.Matches(b.Spec.MatchResources, in)
		var params []runtime.Object
		if err == nil && matches {
			params, err = s.params(p.Spec.ParamKind, b.Spec.ParamRef, r.Namespace)
		}
		if err != nil {
			failed(b.Name, fmt.Sprintf("failed to configure binding: %v", err), "")
			continue
		}
		m, err := compiledOf(s.mutating, p.Name, p.ResourceVersion, func() (*policy.Mutating, error) { return policy.NewMutating(p) })
		if err != nil {
			failed("", fmt.Sprintf("failed to configure policy: %v", err), "")
			continue
		}
		for _, param := range params {
			in := inputOf(s.cluster, r)
			made, err := m.Mutate(in, param, s.typesOf(r.Kind))
			if err != nil {
				failed(b.Name, err.Error(), metav1.StatusReasonInvalid)
				continue
			}
			changed = replace(r.Object, made) || changed
		}
	}
	return changed, wrong
}

func (s *policies) typesOf(in *kind.Info) managedfields.TypeConverter {
	if s.types == nil || in.CustomKind != "" || in.Of != nil {
		return managedfields.NewDeducedTypeConverter()
	}
	return s.types
}

// replace has an object say what another says, and reports whether it said something
// else. Both are of one type.
func replace(to, from kind.Object) bool {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	if to == from || reflect.DeepEqual(a.Interface(), b.Interface()) {
		return false
	}
	a.Set(b)
	return true
}
