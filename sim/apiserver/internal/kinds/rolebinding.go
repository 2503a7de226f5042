package kinds

import (
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// RoleBinding and ClusterRoleBinding are the kinds of role bindings. As roles, they
// are kept and checked only.
const (
	RoleBinding        kind.Kind = "RoleBinding"
	ClusterRoleBinding kind.Kind = "ClusterRoleBinding"
)

// roleBinding returns the row of RoleBinding (pkg/registry/rbac/rolebinding/strategy.go).
func roleBinding() *kind.Info {
	type binding = rbacv1.RoleBinding
	check := func(b *binding) field.ErrorList {
		return validateBinding(&b.RoleRef, b.Subjects, true, "Role", "ClusterRole")
	}
	return &kind.Info{
		Kind: RoleBinding, Meta: kind.MetaAgain, Group: rbacv1.GroupName, Version: "v1", Resource: "rolebindings", Namespaced: true, CheckName: roleName, Inert: kind.InertAlways,
		Strategy: &kind.Typed[binding, *binding]{
			Defaults: func(b *binding) { b.Subjects = defaultBinding(&b.RoleRef, b.Subjects) },
			Check:    check,
			CheckUpdate: func(b, old *binding, _ string) field.ErrorList {
				return append(check(b), validateSameRole(b.RoleRef, old.RoleRef)...)
			},
			Table: append([]kind.Column[binding]{
				kind.NameColumn[binding](),
				{Name: "Role", Type: "string", Description: rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"], Cell: func(b *binding, _ time.Time) any {
					return b.RoleRef.Kind + "/" + b.RoleRef.Name
				}},
				kind.AgeColumn[binding](),
			}, subjectColumns("roleBinding", func(b *binding) []rbacv1.Subject { return b.Subjects })...),
		},
	}
}

// clusterRoleBinding returns the row of ClusterRoleBinding
// (pkg/registry/rbac/clusterrolebinding/strategy.go).
func clusterRoleBinding() *kind.Info {
	type binding = rbacv1.ClusterRoleBinding
	check := func(b *binding) field.ErrorList {
		return validateBinding(&b.RoleRef, b.Subjects, false, "ClusterRole")
	}
	return &kind.Info{
		Kind: ClusterRoleBinding, Meta: kind.MetaAgain, Group: rbacv1.GroupName, Version: "v1", Resource: "clusterrolebindings", CheckName: roleName, Inert: kind.InertAlways,
		Strategy: &kind.Typed[binding, *binding]{
			Defaults: func(b *binding) { b.Subjects = defaultBinding(&b.RoleRef, b.Subjects) },
			Check:    check,
			CheckUpdate: func(b, old *binding, _ string) field.ErrorList {
				return append(check(b), validateSameRole(b.RoleRef, old.RoleRef)...)
			},
			Table: append([]kind.Column[binding]{
				kind.NameColumn[binding](),
				{Name: "Role", Type: "string", Description: rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"], Cell: func(b *binding, _ time.Time) any {
					return b.RoleRef.Kind + "/" + b.RoleRef.Name
				}},
				kind.AgeColumn[binding](),
			}, subjectColumns("clusterRoleBinding", func(b *binding) []rbacv1.Subject { return b.Subjects })...),
		},
	}
}

// subjectColumns are those of wide tables: who is bound, by kind (SubjectsStrings of
// pkg/apis/rbac).
func subjectColumns[T any](noun string, of func(*T) []rbacv1.Subject) []kind.Column[T] {
	column := func(name, kindName string, say func(s rbacv1.Subject) string) kind.Column[T] {
		return kind.Column[T]{Name: name, Type: "string", Priority: 1, Description: name + " in the " + noun, Cell: func(o *T, _ time.Time) any {
			var out []string
			for _, s := range of(o) {
				if s.Kind == kindName {
					out = append(out, say(s))
				}
			}
			return strings.Join(out, ", ")
		}}
	}
	name := func(s rbacv1.Subject) string { return s.Name }
	return []kind.Column[T]{
		column("Users", rbacv1.UserKind, name), column("Groups", rbacv1.GroupKind, name),
		column("ServiceAccounts", rbacv1.ServiceAccountKind, func(s rbacv1.Subject) string { return s.Namespace + "/" + s.Name }),
	}
}

// defaultBinding is that of pkg/apis/rbac/v1/defaults.go. It returns the subjects,
// which may be a manifest's own.
func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) []rbacv1.Subject {
	fields.Default(&ref.APIGroup, rbacv1.GroupName)
	out := slices.Clone(subjects)
	for i := range out {
		if k := out[i].Kind; k == rbacv1.UserKind || k == rbacv1.GroupKind {
			fields.Default(&out[i].APIGroup, rbacv1.GroupName)
		}
	}
	return out
}

// validateBinding is ValidateRoleBinding (pkg/apis/rbac/validation).
func validateBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool, roles ...string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(roles, ref.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind, roles))
	}
	errs = append(errs, validatePathSegment(ref.Name, path.Child("name"))...)
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

// validateSubject is ValidateRoleBindingSubject. A service account's namespace may be
// the binding's, if that has one.
func validateSubject(s *rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			errs = append(errs, fields.Invalid(path.Child("name"), s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))...)
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(errs, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	if s.Kind == rbacv1.ServiceAccountKind && !namespaced && s.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	return errs
}

// validateSameRole has a binding keep its role: another one is another binding.
func validateSameRole(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), fields.GoNames(ref), "cannot change roleRef")}
}
