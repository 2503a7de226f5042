package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/policy"
)

// What policies and webhook configurations share: which requests they are for
// (pkg/apis/admissionregistration/validation).

// setMatchDefaults fills in what a MatchResources left out.
func setMatchDefaults(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	fields.DefaultPtr(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	fields.DefaultPtr(&m.NamespaceSelector, metav1.LabelSelector{})
	fields.DefaultPtr(&m.ObjectSelector, metav1.LabelSelector{})
	for _, list := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range list {
			fields.DefaultPtr(&list[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
}

// validateMatch checks a MatchResources, if there is one.
func validateMatch(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := validateMatchPolicy(m.MatchPolicy, path.Child("matchPolicy"))
	strict := metavalidation.LabelSelectorValidationOptions{}
	errs = append(errs, metavalidation.ValidateLabelSelector(m.NamespaceSelector, strict, path.Child("namespaceSelector"))...)
	errs = append(errs, metavalidation.ValidateLabelSelector(m.ObjectSelector, strict, path.Child("objectSelector"))...)
	for i := range m.ResourceRules {
		errs = append(errs, validateNamedRule(&m.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateNamedRule(&m.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateMatchPolicy(p *admissionregistrationv1.MatchPolicyType, path *field.Path) field.ErrorList {
	if p == nil {
		return nil // defaulted
	}
	return oneOf(*p, path, admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)
}

func validateFailurePolicy(p *admissionregistrationv1.FailurePolicyType, path *field.Path) field.ErrorList {
	if p == nil {
		return nil // defaulted
	}
	return oneOf(*p, path, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)
}

// oneOf refuses a value that is none of these, which are sorted.
func oneOf[T ~string](v T, path *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, v, values)}
}

func validateNamedRule(r *admissionregistrationv1.NamedRuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, name := range r.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		errs = append(errs, fields.Invalid(at, name, content.IsPathSegmentName(name))...)
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		seen.Insert(name)
	}
	return append(errs, validateRule(&r.RuleWithOperations, path)...)
}

// validateRule is validateRuleWithOperations.
func validateRule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	list := func(child, others string, is []string) {
		switch {
		case len(is) == 0:
			errs = append(errs, field.Required(path.Child(child), ""))
		case len(is) > 1 && slices.Contains(is, "*"):
			errs = append(errs, field.Invalid(path.Child(child), is, "if '*' is present, must not specify other "+others))
		}
	}
	operations := path.Child("operations")
	switch {
	case len(r.Operations) == 0:
		errs = append(errs, field.Required(operations, ""))
	case len(r.Operations) > 1 && slices.Contains(r.Operations, admissionregistrationv1.OperationAll):
		errs = append(errs, field.Invalid(operations, r.Operations, "if '*' is present, must not specify other operations"))
	}
	for i, op := range r.Operations {
		errs = append(errs, oneOf(op, operations.Index(i), admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Delete, admissionregistrationv1.Update)...)
	}
	list("apiGroups", "API groups", r.APIGroups)
	list("apiVersions", "API versions", r.APIVersions)
	for i, v := range r.APIVersions {
		if v == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateRuleResources(r.Resources, path.Child("resources"))...)
	if r.Scope != nil {
		errs = append(errs, oneOf(*r.Scope, path.Child("scope"), admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)...)
	}
	return errs
}

// validateRuleResources is validateResources: nothing may be said twice.
func validateRuleResources(resources []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	allSubs, allResources := sets.New[string](), sets.New[string]() // x/*, */x
	plain := false
	for i, r := range resources {
		if r == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		resource, sub, ok := strings.Cut(r, "/")
		if !ok {
			plain = r != "*"
			continue
		}
		if allSubs.Has(resource) {
			errs = append(errs, field.Invalid(path.Index(i), r, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, r)))
		}
		if allResources.Has(sub) {
			errs = append(errs, field.Invalid(path.Index(i), r, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, r)))
		}
		if sub == "*" {
			allSubs.Insert(resource)
		}
		if resource == "*" {
			allResources.Insert(sub)
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if slices.Contains(resources, "*") && plain {
		errs = append(errs, field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

// maxMatchConditions is how many conditions there may be.
const maxMatchConditions = 64

// validateMatchConditions checks conditions, which may name parameters if there are any.
func validateMatchConditions(list []admissionregistrationv1.MatchCondition, params bool, path *field.Path) field.ErrorList {
	if len(list) == 0 {
		return nil
	}
	var errs field.ErrorList
	if len(list) > maxMatchConditions {
		errs = append(errs, field.TooMany(path, len(list), maxMatchConditions))
	}
	check, err := policy.NewChecker(params) // without variables
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	seen := sets.New[string]()
	for i, c := range list {
		at := path.Index(i)
		if text := strings.TrimSpace(c.Expression); text == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else {
			errs = append(errs, check.Condition(text, at.Child("expression"))...)
		}
		if c.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		}
		errs = append(errs, fields.Invalid(at.Child("name"), c.Name, validation.IsQualifiedName(c.Name))...)
		if seen.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		seen.Insert(c.Name)
	}
	return errs
}

// validateParamKind checks the kind of a policy's parameters.
func validateParamKind(p *admissionregistrationv1.ParamKind, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	group, version, found := strings.Cut(p.APIVersion, "/")
	if !found {
		group, version = "", p.APIVersion
	}
	at := path.Child("apiVersion")
	switch {
	case p.APIVersion == "":
		errs = append(errs, field.Required(at, ""))
	case strings.Count(p.APIVersion, "/") > 1:
		errs = append(errs, field.Invalid(at, p.APIVersion, "unexpected GroupVersion string: "+p.APIVersion))
	default:
		if texts := validation.IsDNS1123Subdomain(group); group != "" && len(texts) > 0 {
			errs = append(errs, field.Invalid(at, group, strings.Join(texts, ",")))
		}
		if version == "" {
			errs = append(errs, field.Invalid(at, p.APIVersion, "version must be specified"))
		} else if texts := validation.IsDNS1035Label(version); len(texts) > 0 {
			errs = append(errs, field.Invalid(at, version, strings.Join(texts, ",")))
		}
	}
	if p.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), ""))
	} else if texts := validation.IsDNS1035Label(strings.ToLower(p.Kind)); len(texts) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), p.Kind, "may have mixed case, but should otherwise match: "+strings.Join(texts, ",")))
	}
	return errs
}

// validateParamRef checks which parameters a binding names.
func validateParamRef(r *admissionregistrationv1.ParamRef, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Name != "" {
		errs = append(errs, fields.Invalid(path.Child("name"), r.Name, content.IsPathSegmentName(r.Name))...)
		if r.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child("name"), "name and selector are mutually exclusive"))
		}
	}
	if r.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(r.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if r.Name != "" {
			errs = append(errs, field.Forbidden(path.Child("selector"), "name and selector are mutually exclusive"))
		}
	}
	if r.Name == "" && r.Selector == nil {
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	action := path.Child("parameterNotFoundAction")
	if r.ParameterNotFoundAction == nil || *r.ParameterNotFoundAction == "" {
		return append(errs, field.Required(action, ""))
	}
	return append(errs, oneOf(*r.ParameterNotFoundAction, action, admissionregistrationv1.DenyAction, admissionregistrationv1.AllowAction)...)
}

// validatePolicyName checks which policy a binding is of.
func validatePolicyName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return fields.Invalid(path, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// validateVariables checks a policy's variables, which what is checked after them knows.
func validateVariables(list []admissionregistrationv1.Variable, check *policy.Checker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range list {
		at := path.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			errs = append(errs, field.Required(at.Child("name"), "name is not specified"))
		} else if !celIdentifier(v.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
		} else {
			errs = append(errs, check.Variable(v.Name, v.Expression, at.Child("expression"))...)
		}
	}
	return errs
}

var (
	celName = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")
	// celReserved are words of CEL's own.
	celReserved = []string{"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while"}
)

func celIdentifier(name string) bool {
	return celName.MatchString(name) && !slices.Contains(celReserved, name)
}

// paramKindCell and paramRefCell are what tables say of parameters.
func paramKindCell(p *admissionregistrationv1.ParamKind) string {
	if p == nil {
		return unset
	}
	return p.APIVersion + "/" + p.Kind
}

func paramRefCell(r *admissionregistrationv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Name != "" && r.Namespace != "":
		return r.Namespace + "/" + r.Name
	case r.Name != "":
		return "*/" + r.Name
	case r.Selector != nil:
		return r.Selector.String()
	}
	return unset
}

const unset = "<unset>"
