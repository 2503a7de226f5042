package kinds

import (
	"maps"
	"slices"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	v1 "k8s.io/api/core/v1"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Namespace is the kind of namespaces. The finalizer that keeps one until its
// content is gone is in its spec, and only the subresource finalize changes it.
// Status and spec share one update, as the namespace controller is the only one
// that writes the status.
const Namespace kind.Kind = "Namespace"

// namespace returns the row of Namespace (pkg/registry/core/namespace/strategy.go).
// Its name is a DNS label, since it is a part of services' names.
func namespace() *kind.Info {
	return &kind.Info{
		Kind: Namespace, Version: "v1", Resource: "namespaces", Subresources: []string{"finalize"}, ShortNames: []string{"ns"}, Meta: kind.MetaAgain, CheckName: apivalidation.ValidateNamespaceName,
		ReadByAdmission: true, // pod security is by labels
		Strategy: &kind.Typed[v1.Namespace, *v1.Namespace]{
			Fields:   func(ns *v1.Namespace) selectable.Set { return selectable.Set{"status.phase": string(ns.Status.Phase)} },
			Defaults: setNamespaceDefaults,
			Reset: func(ns *v1.Namespace) {
				ns.Status = v1.NamespaceStatus{Phase: v1.NamespaceActive}
				if !slices.Contains(ns.Spec.Finalizers, v1.FinalizerKubernetes) {
					ns.Spec.Finalizers = append(ns.Spec.Finalizers, v1.FinalizerKubernetes)
				}
			},
			Keep: func(ns, old *v1.Namespace, sub string) bool {
				switch sub {
				case "":
					ns.Spec.Finalizers, ns.Status = old.Spec.Finalizers, old.Status
				case "status":
					ns.Spec = old.Spec
				case "finalize": // only it changes the finalizers
					ns.Status = old.Status
				}
				return sub == "" || sub == "status" || sub == "finalize"
			},
			Check:       validateNamespace,
			CheckUpdate: validateNamespaceUpdate,
			Table:       namespaceTable(),
		},
	}
}

func namespaceTable() []kind.Column[v1.Namespace] {
	return []kind.Column[v1.Namespace]{
		kind.NameColumn[v1.Namespace](),
		{Name: "Status", Type: "string", Description: "The status of the namespace", Cell: func(ns *v1.Namespace, _ time.Time) any { return string(ns.Status.Phase) }},
		kind.AgeColumn[v1.Namespace](),
	}
}

// validateNamespace is ValidateNamespace.
func validateNamespace(ns *v1.Namespace) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "finalizers")
	for _, f := range ns.Spec.Finalizers {
		errs = append(errs, kind.ValidateFinalizer(string(f), path)...)
	}
	return errs
}

// validateNamespaceUpdate is ValidateNamespaceUpdate, or that of the status: the phase
// follows from the deletion.
func validateNamespaceUpdate(ns, _ *v1.Namespace, sub string) field.ErrorList {
	path := field.NewPath("status", "Phase")
	switch {
	case sub != "status":
		return validateNamespace(ns)
	case ns.DeletionTimestamp.IsZero() && ns.Status.Phase != v1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case !ns.DeletionTimestamp.IsZero() && ns.Status.Phase != v1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}

// setNamespaceDefaults labels a namespace with its name, by which selectors find
// it.
func setNamespaceDefaults(ns *v1.Namespace) {
	if ns.Name == "" || ns.Labels[v1.LabelMetadataName] == ns.Name {
		return
	}
	labels := maps.Clone(ns.Labels) // a manifest's may be shared
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1.LabelMetadataName] = ns.Name
	ns.Labels = labels
}
