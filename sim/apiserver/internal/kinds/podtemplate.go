package kinds

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// PodTemplate is the kind of templates that stand by themselves. Nothing makes pods
// of them, upstream neither.
const PodTemplate kind.Kind = "PodTemplate"

// podTemplate returns the row of PodTemplate (pkg/registry/core/podtemplate/strategy.go).
func podTemplate(on features.Gates) *kind.Info {
	type template = v1.PodTemplate
	check := func(t *template) field.ErrorList {
		return podspec.ValidateTemplate(&t.Template, field.NewPath("template"))
	}
	return &kind.Info{
		Kind: PodTemplate, Version: "v1", Resource: "podtemplates", Namespaced: true, ReturnsDeleted: true, Inert: kind.InertAlways,
		Strategy: &kind.Typed[template, *template]{
			Defaults: func(t *template) { podspec.DefaultTemplate(&t.Template, on) },
			Generation: func(t, old *template, _ string) bool {
				return !equality.Semantic.DeepEqual(t.Template, old.Template)
			},
			Check: check,
			Warn: func(t, old *template, _ string) []string {
				if old != nil && old.Generation == t.Generation {
					return nil
				}
				return podspec.TemplateWarnings(&t.Template, field.NewPath("template"))
			},
			Table: []kind.Column[template]{
				kind.NameColumn[template](),
				{Name: "Containers", Type: "string", Description: "Names of each container in the template.", Cell: func(t *template, _ time.Time) any {
					return joined(t.Template.Spec.Containers, func(c v1.Container) string { return c.Name })
				}},
				{Name: "Images", Type: "string", Description: "Images referenced by each container in the template.", Cell: func(t *template, _ time.Time) any {
					return joined(t.Template.Spec.Containers, func(c v1.Container) string { return c.Image })
				}},
				{Name: "Pod Labels", Type: "string", Description: "The labels for the pod template.", Cell: func(t *template, _ time.Time) any { return labels.FormatLabels(t.Template.Labels) }},
			},
		},
	}
}
