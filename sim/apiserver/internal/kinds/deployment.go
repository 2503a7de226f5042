package kinds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// Deployment is the kind of deployments.
const Deployment kind.Kind = "Deployment"

// deployment returns the row of Deployment
// (pkg/registry/apps/deployment/strategy.go). Its annotations count as its spec
// does, because they are copied to its replica sets.
func deployment(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: Deployment, Group: "apps", Version: "v1", Resource: "deployments", ShortNames: []string{"deploy"}, Categories: []string{"all"}, Namespaced: true,
		StatusKeeps: kind.KeepsLabels,
		Strategy: &kind.Typed[appsv1.Deployment, *appsv1.Deployment]{
			Defaults: func(o *appsv1.Deployment) { setDeploymentDefaults(o, on) },
			Halves: kind.SpecAndStatus(func(o *appsv1.Deployment) (*appsv1.DeploymentSpec, *appsv1.DeploymentStatus) {
				return &o.Spec, &o.Status
			}),
			Generation: func(d, old *appsv1.Deployment, sub string) bool { // annotations count too (pkg/registry/apps/deployment/strategy.go)
				return sub == "" && (!equality.Semantic.DeepEqual(d.Annotations, old.Annotations) || !equality.Semantic.DeepEqual(&d.Spec, &old.Spec))
			},
			Check: validateDeployment,
			CheckUpdate: func(o, old *appsv1.Deployment, sub string) field.ErrorList {
				if sub != "" {
					return validateDeploymentStatus(&o.Status, &old.Status)
				}
				return append(validateDeployment(o), fields.Immutable(o.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
			},
			Scaled: func(o *appsv1.Deployment) kind.Scale {
				return kind.Scale{Replicas: &o.Spec.Replicas, Status: o.Status.Replicas, Selector: o.Spec.Selector}
			},
			Warn: func(o, old *appsv1.Deployment, sub string) []string {
				switch {
				case sub != "" || old != nil && old.Generation == o.Generation:
					return nil
				case old != nil:
					return podspec.TemplateWarnings(&o.Spec.Template, templatePath())
				}
				return append(hostNameWarnings(o.Name), podspec.TemplateWarnings(&o.Spec.Template, templatePath())...)
			},
			Table: deploymentTable(),
		},
	}
}

// setDeploymentDefaults is SetDefaults_Deployment: rolling updates by a quarter.
func setDeploymentDefaults(d *appsv1.Deployment, on features.Gates) {
	s := &d.Spec
	podspec.DefaultTemplate(&s.Template, on)
	fields.DefaultPtr(&s.Replicas, 1)
	fields.Default(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	// Recreate has no parameters, and validation refuses them.
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if s.Strategy.RollingUpdate == nil {
			s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		fields.DefaultPtr(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		fields.DefaultPtr(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	fields.DefaultPtr(&s.RevisionHistoryLimit, 10)
	fields.DefaultPtr(&s.ProgressDeadlineSeconds, 600)
}

// validateDeployment is ValidateDeploymentSpec. Progress needs longer than it takes
// a pod to count as available, or every rollout would fail.
func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	s, path := &d.Spec, field.NewPath("spec")
	errs := fields.NonNegativePtr(s.Replicas, path.Child("replicas"))
	errs = append(errs, podspec.ValidateSelector(s.Selector, "deployment", path.Child("selector"))...)
	errs = append(errs, validateReplicas(&s.Template, s.Selector, path)...)
	errs = append(errs, validateDeploymentStrategy(&s.Strategy, path.Child("strategy"))...)
	errs = append(errs, fields.NonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, fields.NonNegativePtr(s.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if p := s.ProgressDeadlineSeconds; p != nil {
		errs = append(errs, fields.NonNegativePtr(p, path.Child("progressDeadlineSeconds"))...)
		if *p <= s.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

// validateDeploymentStrategy is ValidateDeploymentStrategy. With neither a pod more
// nor a pod fewer than wanted, no rollout could move.
func validateDeploymentStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	r := s.RollingUpdate
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if r != nil {
			return field.ErrorList{field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		path = path.Child("rollingUpdate")
		errs := fields.CountOrPercent(r.MaxUnavailable, path.Child("maxUnavailable"))
		errs = append(errs, fields.CountOrPercent(r.MaxSurge, path.Child("maxSurge"))...)
		if fields.NumberIn(r.MaxUnavailable) == 0 && fields.NumberIn(r.MaxSurge) == 0 {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
		return append(errs, fields.AtMost100Percent(r.MaxUnavailable, path.Child("maxUnavailable"))...)
	}
	return field.ErrorList{field.NotSupported(path, fields.GoNames(*s), []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
}

// validateDeploymentStatus is ValidateDeploymentStatusUpdate.
func validateDeploymentStatus(s, was *appsv1.DeploymentStatus) field.ErrorList {
	updated, ready, available := count{"updatedReplicas", s.UpdatedReplicas}, count{"readyReplicas", s.ReadyReplicas}, count{"availableReplicas", s.AvailableReplicas}
	errs := validateCounts(s.ObservedGeneration, count{"replicas", s.Replicas}, updated, ready, available,
		count{"unavailableReplicas", s.UnavailableReplicas}, count{"terminatingReplicas", valueOf(s.TerminatingReplicas)})
	errs = append(errs, atMost(s.Replicas, "status.replicas", updated, ready, available)...)
	errs = append(errs, atMost(s.ReadyReplicas, "readyReplicas", available)...)
	return append(errs, validateCollisions(s.CollisionCount, was.CollisionCount)...)
}

func deploymentTable() []kind.Column[appsv1.Deployment] {
	type deployment = appsv1.Deployment
	doc := appsv1.DeploymentStatus{}.SwaggerDoc()
	columns := []kind.Column[deployment]{
		kind.NameColumn[deployment](),
		textColumn("Ready", "Number of the pod with ready state", func(d *deployment) string {
			return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, valueOf(d.Spec.Replicas))
		}),
		numberColumn("Up-to-date", "string", doc["updatedReplicas"], func(d *deployment) int32 { return d.Status.UpdatedReplicas }),
		numberColumn("Available", "string", doc["availableReplicas"], func(d *deployment) int32 { return d.Status.AvailableReplicas }),
		kind.AgeColumn[deployment](),
	}
	columns = append(columns, containerColumns(func(d *deployment) *v1.PodTemplateSpec { return &d.Spec.Template })...)
	return append(columns, wide(textColumn("Selector", appsv1.DeploymentSpec{}.SwaggerDoc()["selector"], func(d *deployment) string {
		s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			return "<invalid>"
		}
		return s.String()
	})))
}
