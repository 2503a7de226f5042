package kinds

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// count is a number of a status, by its field's name.
type count struct {
	name string
	n    int32
}

// validateCounts checks the numbers of a workload's status.
func validateCounts(generation int64, counts ...count) field.ErrorList {
	var errs field.ErrorList
	if generation < 0 {
		errs = append(errs, fields.NonNegative(generation, field.NewPath("status", "observedGeneration"))...)
	}
	for _, a := range counts {
		if a.n < 0 {
			errs = append(errs, fields.NonNegative(int64(a.n), field.NewPath("status", a.name))...)
		}
	}
	return errs
}

// atMost says of each of the counts that is greater than n what n is.
func atMost(n int32, what string, counts ...count) field.ErrorList {
	var errs field.ErrorList
	for _, a := range counts {
		if a.n > n {
			errs = append(errs, field.Invalid(field.NewPath("status", a.name), a.n, "cannot be greater than "+what))
		}
	}
	return errs
}

// validateCollisions checks how many names a workload has found taken: never fewer.
func validateCollisions(now, was *int32) field.ErrorList {
	path, n := field.NewPath("status", "collisionCount"), valueOf(now)
	errs := fields.NonNegativePtr(now, path)
	if was != nil && (now == nil || *now < *was) {
		errs = append(errs, field.Invalid(path, n, "cannot be decremented"))
	}
	return errs
}

// valueOf is what p points to; without, the zero value.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// hostNameWarnings are about the name of a workload that its pods' names begin with.
func hostNameWarnings(name string) []string {
	if texts := validation.IsDNS1123Label(name); len(texts) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", texts)}
	}
	return nil
}

// longName checks the names of kinds whose rules are declared with their types, which say
// nothing of what names are generated from.
func longName(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}

// templatePath is where workloads have the template of their pods.
func templatePath() *field.Path { return field.NewPath("spec", "template") }

// textColumn is a column of words.
func textColumn[T any](name, doc string, cell func(*T) string) kind.Column[T] {
	return kind.Column[T]{Name: name, Type: "string", Description: doc, Cell: func(o *T, _ time.Time) any { return cell(o) }}
}

// numberColumn is a column of numbers, whatever type it is said to be of.
func numberColumn[T any](name, typ, doc string, cell func(*T) int32) kind.Column[T] {
	return kind.Column[T]{Name: name, Type: typ, Description: doc, Cell: func(o *T, _ time.Time) any { return int64(cell(o)) }}
}

// containerColumns say what containers a workload's pods have. Only wide tables show
// them.
func containerColumns[T any](of func(*T) *v1.PodTemplateSpec) []kind.Column[T] {
	list := func(o *T, part func(v1.Container) string) string { return joined(of(o).Spec.Containers, part) }
	return []kind.Column[T]{
		wide(textColumn("Containers", "Names of each container in the template.", func(o *T) string {
			return list(o, func(c v1.Container) string { return c.Name })
		})),
		wide(textColumn("Images", "Images referenced by each container in the template.", func(o *T) string {
			return list(o, func(c v1.Container) string { return c.Image })
		})),
	}
}

// selectorColumn says what a workload selects. Only wide tables show it.
func selectorColumn[T any](doc string, of func(*T) *metav1.LabelSelector) kind.Column[T] {
	return wide(textColumn("Selector", doc, func(o *T) string { return metav1.FormatLabelSelector(of(o)) }))
}

// wide has only wide tables show a column.
func wide[T any](c kind.Column[T]) kind.Column[T] {
	c.Priority = 1
	return c
}
