package kinds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// FlowSchema is the kind that says which requests have which priority. The load model
// reads it; without one, requests cost nothing and nobody does.
const FlowSchema kind.Kind = "FlowSchema"

// flowSchema returns the row of FlowSchema
// (pkg/registry/flowcontrol/flowschema/strategy.go).
func flowSchema() *kind.Info {
	type schema = flowcontrolv1.FlowSchema
	return &kind.Info{
		Kind: FlowSchema, Group: flowcontrolv1.GroupName, Version: "v1", Resource: "flowschemas", Inert: kind.InertWithoutLoad,
		Strategy: &kind.Typed[schema, *schema]{
			CountsSpec: true,
			Halves: kind.SpecAndStatus(func(f *schema) (*flowcontrolv1.FlowSchemaSpec, *flowcontrolv1.FlowSchemaStatus) {
				return &f.Spec, &f.Status
			}),
			Defaults: func(f *schema) { fields.Default(&f.Spec.MatchingPrecedence, defaultPrecedence) },
			Check:    validateFlowSchema,
			CheckUpdate: func(f, _ *schema, sub string) field.ErrorList {
				if sub == "status" {
					return validateFlowSchemaStatus(f)
				}
				return validateFlowSchema(f)
			},
			Table: flowSchemaTable(),
		},
	}
}

func flowSchemaTable() []kind.Column[flowcontrolv1.FlowSchema] {
	type schema = flowcontrolv1.FlowSchema
	doc := flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()
	return []kind.Column[schema]{
		kind.NameColumn[schema](),
		{Name: "PriorityLevel", Type: "string", Description: flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
			Cell: func(f *schema, _ time.Time) any { return f.Spec.PriorityLevelConfiguration.Name }},
		{Name: "MatchingPrecedence", Type: "string", Description: doc["matchingPrecedence"],
			Cell: func(f *schema, _ time.Time) any { return int64(f.Spec.MatchingPrecedence) }},
		{Name: "DistinguisherMethod", Type: "string", Description: doc["distinguisherMethod"], Cell: func(f *schema, _ time.Time) any {
			if f.Spec.DistinguisherMethod == nil {
				return none
			}
			return string(f.Spec.DistinguisherMethod.Type)
		}},
		kind.AgeColumn[schema](),
		{Name: "MissingPL", Type: "string", Description: "references a broken or non-existent PriorityLevelConfiguration", Cell: func(f *schema, _ time.Time) any {
			for _, c := range f.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
					return string(c.Status)
				}
			}
			return "?"
		}},
	}
}

// defaultPrecedence is the precedence of a schema that states none.
const defaultPrecedence = 1000

// validateFlowSchema is ValidateFlowSchema (pkg/apis/flowcontrol/validation). The two
// schemas that the server can't do without are what they are.
func validateFlowSchema(f *flowcontrolv1.FlowSchema) field.ErrorList {
	spec, path := &f.Spec, field.NewPath("spec")
	var errs field.ErrorList
	at := path.Child("matchingPrecedence")
	if spec.MatchingPrecedence <= 0 {
		errs = append(errs, field.Invalid(at, spec.MatchingPrecedence, "must be a positive value"))
	}
	if spec.MatchingPrecedence > flowcontrolv1.FlowSchemaMaxMatchingPrecedence {
		errs = append(errs, field.Invalid(at, spec.MatchingPrecedence, fmt.Sprintf("must not be greater than %v", flowcontrolv1.FlowSchemaMaxMatchingPrecedence)))
	}
	if spec.MatchingPrecedence == 1 && f.Name != flowcontrolv1.FlowSchemaNameExempt {
		errs = append(errs, field.Invalid(at, spec.MatchingPrecedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
	}
	if m := spec.DistinguisherMethod; m != nil && m.Type != flowcontrolv1.FlowDistinguisherMethodByNamespaceType && m.Type != flowcontrolv1.FlowDistinguisherMethodByUserType {
		errs = append(errs, field.NotSupported(path.Child("distinguisherMethod", "type"), fields.GoNames(m), []flowcontrolv1.FlowDistinguisherMethodType{
			flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}))
	}
	if at := path.Child("priorityLevelConfiguration", "name"); spec.PriorityLevelConfiguration.Name == "" {
		errs = append(errs, field.Required(at, "must reference a priority level"))
	} else {
		errs = append(errs, fields.DNSName(spec.PriorityLevelConfiguration.Name, at)...)
	}
	for i := range spec.Rules {
		errs = append(errs, validateFlowRule(&spec.Rules[i], path.Child("rules").Index(i))...)
	}
	for _, fixed := range bootstrap.MandatoryFlowSchemas {
		if f.Name == fixed.Name && !equality.Semantic.DeepEqual(*spec, fixed.Spec) {
			errs = append(errs, field.Invalid(path, fields.GoNames(*spec), fmt.Sprintf("spec of '%s' must equal the fixed value", f.Name)))
		}
	}
	return append(errs, validateFlowSchemaStatus(f)...)
}

// validateFlowSchemaStatus is ValidateFlowSchemaStatus.
func validateFlowSchemaStatus(f *flowcontrolv1.FlowSchema) field.ErrorList {
	types := make([]string, len(f.Status.Conditions))
	for i, c := range f.Status.Conditions {
		types[i] = string(c.Type)
	}
	return validateConditionTypes(types)
}

// validateConditionTypes requires that each condition has a type of its own.
func validateConditionTypes(types []string) field.ErrorList {
	var errs field.ErrorList
	for i, t := range types {
		at := field.NewPath("status", "conditions").Index(i).Child("type")
		if slices.Contains(types[:i], t) {
			errs = append(errs, field.Duplicate(at, t))
		}
		if t == "" {
			errs = append(errs, field.Required(at, ""))
		}
	}
	return errs
}

// validateFlowRule is ValidateFlowSchemaPolicyRulesWithSubjects.
func validateFlowRule(r *flowcontrolv1.PolicyRulesWithSubjects, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		errs = append(errs, validateFlowSubject(&r.Subjects[i], path.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0 {
		errs = append(errs, field.Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range r.ResourceRules {
		errs = append(errs, validateResourceRule(&r.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range r.NonResourceRules {
		errs = append(errs, validateNonResourceRule(&r.NonResourceRules[i], path.Child("nonResourceRules").Index(i))...)
	}
	return errs
}

// validateFlowSubject is ValidateFlowSchemaSubject: what the kind names is there, and
// nothing else.
func validateFlowSubject(s *flowcontrolv1.Subject, path *field.Path) field.ErrorList {
	parts := []struct {
		kind  flowcontrolv1.SubjectKind
		name  string
		there bool
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil},
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil},
	}
	var errs, others field.ErrorList
	known := false
	for _, p := range parts {
		at := path.Child(p.name)
		switch is := p.kind == s.Kind; {
		case is && !p.there:
			errs = append(errs, field.Required(at, fmt.Sprintf("%s is required when subject kind is '%s'", p.name, p.kind)))
		case is:
			errs = append(errs, validateSubjectName(s, at)...)
		case p.there:
			others = append(others, field.Forbidden(at, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", p.name, p.kind)))
		}
		known = known || p.kind == s.Kind
	}
	if !known {
		return field.ErrorList{field.NotSupported(path.Child("kind"), s.Kind, []flowcontrolv1.SubjectKind{
			flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser})}
	}
	return append(errs, others...)
}

// validateSubjectName checks what a subject's kind names.
func validateSubjectName(s *flowcontrolv1.Subject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name := path.Child("name")
	switch s.Kind {
	case flowcontrolv1.SubjectKindUser:
		if s.User.Name == "" {
			errs = append(errs, field.Required(name, ""))
		}
	case flowcontrolv1.SubjectKindGroup:
		if s.Group.Name == "" {
			errs = append(errs, field.Required(name, ""))
		}
	default:
		a := s.ServiceAccount
		if a.Name == "" {
			errs = append(errs, field.Required(name, ""))
		} else if a.Name != flowcontrolv1.NameAll {
			errs = append(errs, fields.Invalid(name, a.Name, apivalidation.ValidateServiceAccountName(a.Name, false))...)
		}
		if a.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), "must specify namespace for service account"))
		} else {
			errs = append(errs, fields.Invalid(path.Child("namespace"), a.Namespace, apivalidation.ValidateNamespaceName(a.Namespace, false))...)
		}
	}
	return errs
}

const wildcard = "*"

// alone requires that a wildcard is the only one of its list.
func alone(list []string, path *field.Path, what string) field.ErrorList {
	if len(list) > 1 && slices.Contains(list, wildcard) {
		return field.ErrorList{field.Invalid(path, list, fmt.Sprintf("if '*' is present, must not specify other %s", what))}
	}
	return nil
}

// validateFlowVerbs requires verbs of requests.
func validateFlowVerbs(verbs []string, path *field.Path) field.ErrorList {
	known := []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
	switch {
	case len(verbs) == 0:
		return field.ErrorList{field.Required(path, "verbs must contain at least one value")}
	case slices.Contains(verbs, wildcard):
		return alone(verbs, path, "verbs")
	case slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(known, v) }):
		return field.ErrorList{field.NotSupported(path, verbs, known)}
	}
	return nil
}

// validateResourceRule is ValidateFlowSchemaResourcePolicyRule.
func validateResourceRule(r *flowcontrolv1.ResourcePolicyRule, path *field.Path) field.ErrorList {
	errs := validateFlowVerbs(r.Verbs, path.Child("verbs"))
	if len(r.APIGroups) == 0 {
		errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	errs = append(errs, alone(r.APIGroups, path.Child("apiGroups"), "api groups")...)
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	errs = append(errs, alone(r.Resources, path.Child("resources"), "resources")...)
	at := path.Child("namespaces")
	switch {
	case len(r.Namespaces) == 0 && !r.ClusterScope:
		errs = append(errs, field.Required(at, "resource rules that are not cluster scoped must supply at least one namespace"))
	case slices.Contains(r.Namespaces, wildcard):
		errs = append(errs, alone(r.Namespaces, at, "namespaces")...)
	default:
		for i, ns := range r.Namespaces {
			for _, text := range apivalidation.ValidateNamespaceName(ns, false) {
				errs = append(errs, field.Invalid(at.Index(i), ns, "each member of this list must be '*' or a DNS-1123 label; "+text))
			}
		}
	}
	return errs
}

// validateNonResourceRule is ValidateFlowSchemaNonResourcePolicyRule.
func validateNonResourceRule(r *flowcontrolv1.NonResourcePolicyRule, path *field.Path) field.ErrorList {
	errs := validateFlowVerbs(r.Verbs, path.Child("verbs"))
	at := path.Child("nonResourceURLs")
	switch {
	case len(r.NonResourceURLs) == 0:
		errs = append(errs, field.Required(at, "nonResourceURLs must contain at least one value"))
	case slices.Contains(r.NonResourceURLs, wildcard):
		errs = append(errs, alone(r.NonResourceURLs, at, "non-resource URLs")...)
	default:
		for i, url := range r.NonResourceURLs {
			if text := wrongURL(url); text != "" {
				errs = append(errs, field.Invalid(at.Index(i), url, text))
			}
		}
	}
	return errs
}

// wrongURL is ValidateNonResourceURLPath: what is wrong with a path, or "".
func wrongURL(path string) string {
	stars := strings.Count(path, wildcard)
	switch {
	case path == "":
		return "must not be empty"
	case path == "/":
		return ""
	case !strings.HasPrefix(path, "/"):
		return "must start with slash"
	case strings.Contains(path, " "):
		return "must not contain white-space"
	case strings.Contains(path, "//"):
		return "must not contain double slash"
	case stars > 1 || stars == 1 && !strings.HasSuffix(path, "/*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}
