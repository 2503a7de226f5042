package kinds

import (
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ReplicationController is the kind of what replica sets are made after.
const ReplicationController kind.Kind = "ReplicationController"

// replicationController returns the row of ReplicationController
// (pkg/registry/core/replicationcontroller/strategy.go).
func replicationController(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: ReplicationController, Version: "v1", CheckName: longName, Resource: "replicationcontrollers", ShortNames: []string{"rc"}, Categories: []string{"all"},
		Namespaced: true, OrphansByDefault: true, ResetFields: map[string][]string{"status": {"spec"}},
		Strategy: &kind.Typed[v1.ReplicationController, *v1.ReplicationController]{
			Defaults: func(o *v1.ReplicationController) { setReplicationControllerDefaults(o, on) },
			Halves: kind.SpecAndStatus(func(rc *v1.ReplicationController) (*v1.ReplicationControllerSpec, *v1.ReplicationControllerStatus) {
				return &rc.Spec, &rc.Status
			}),
			CountsSpec: true,
			Check:      validateReplicationController,
			CheckUpdate: func(rc, _ *v1.ReplicationController, sub string) field.ErrorList {
				if sub == "status" {
					return validateReplicationStatus(&rc.Status)
				}
				return validateReplicationController(rc)
			},
			Scaled: func(rc *v1.ReplicationController) kind.Scale {
				return kind.Scale{Replicas: &rc.Spec.Replicas, Status: rc.Status.Replicas, Selector: &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}}
			},
			Fields: func(rc *v1.ReplicationController) selectable.Set {
				return selectable.Set{"status.replicas": strconv.Itoa(int(rc.Status.Replicas))}
			},
			Warn:  replicationControllerWarnings,
			Table: replicationControllerTable(),
		},
	}
}

// setReplicationControllerDefaults is SetDefaults_ReplicationController: what is not
// said of labels is the template's.
func setReplicationControllerDefaults(rc *v1.ReplicationController, on features.Gates) {
	fields.DefaultPtr(&rc.Spec.Replicas, 1)
	t := rc.Spec.Template
	if t == nil {
		return
	}
	podspec.DefaultTemplate(t, on)
	if t.Labels == nil {
		return
	}
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = t.Labels
	}
	if len(rc.Labels) == 0 {
		rc.Labels = t.Labels
	}
}

func replicationControllerTable() []kind.Column[v1.ReplicationController] {
	type controller = v1.ReplicationController
	spec, status := v1.ReplicationControllerSpec{}.SwaggerDoc(), v1.ReplicationControllerStatus{}.SwaggerDoc()
	containers := func(rc *controller) []v1.Container {
		if rc.Spec.Template == nil {
			return nil
		}
		return rc.Spec.Template.Spec.Containers
	}
	return []kind.Column[controller]{
		kind.NameColumn[controller](),
		{Name: "Desired", Type: "integer", Description: spec["replicas"], Cell: func(rc *controller, _ time.Time) any { return int64(*rc.Spec.Replicas) }},
		{Name: "Current", Type: "integer", Description: status["replicas"], Cell: func(rc *controller, _ time.Time) any { return int64(rc.Status.Replicas) }},
		{Name: "Ready", Type: "integer", Description: status["readyReplicas"], Cell: func(rc *controller, _ time.Time) any { return int64(rc.Status.ReadyReplicas) }},
		kind.AgeColumn[controller](),
		{Name: "Containers", Type: "string", Description: "Names of each container in the template.", Priority: 1, Cell: func(rc *controller, _ time.Time) any {
			return joined(containers(rc), func(c v1.Container) string { return c.Name })
		}},
		{Name: "Images", Type: "string", Description: "Images referenced by each container in the template.", Priority: 1, Cell: func(rc *controller, _ time.Time) any {
			return joined(containers(rc), func(c v1.Container) string { return c.Image })
		}},
		{Name: "Selector", Type: "string", Description: spec["selector"], Priority: 1, Cell: func(rc *controller, _ time.Time) any { return labels.FormatLabels(rc.Spec.Selector) }},
	}
}

// replicationControllerWarnings are those of the name, which pods get, and of the
// template. An update that changes the spec is told of the old one, as upstream does.
func replicationControllerWarnings(rc, old *v1.ReplicationController, sub string) []string {
	path := templatePath()
	switch {
	case sub != "" || old != nil && old.Generation == rc.Generation:
		return nil
	case old != nil:
		return podspec.TemplateWarnings(old.Spec.Template, path)
	}
	return append(hostNameWarnings(rc.Name), podspec.TemplateWarnings(rc.Spec.Template, path)...)
}

// joined is how tables show something of each of a list.
func joined[T any](list []T, text func(T) string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = text(v)
	}
	return strings.Join(out, ",")
}

// validateReplicationController is ValidateReplicationControllerSpec.
func validateReplicationController(rc *v1.ReplicationController) field.ErrorList {
	s, path := &rc.Spec, field.NewPath("spec")
	errs := fields.NonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))
	if len(s.Selector) == 0 {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	}
	errs = append(errs, fields.NonNegativePtr(s.Replicas, path.Child("replicas"))...)
	if s.Template == nil {
		return append(errs, field.Required(path.Child("template"), ""))
	}
	// The selector's labels are not checked by themselves, only against the template's.
	tmpl := path.Child("template")
	if len(s.Selector) > 0 && !labels.SelectorFromSet(s.Selector).Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(tmpl.Child("metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, podspec.ValidateTemplate(s.Template, tmpl)...)
	return append(errs, podspec.ValidateEndless(s.Template, "ReplicationController", tmpl)...)
}

// validateReplicationStatus is ValidateReplicationControllerStatus: there are no more
// replicas of a sort than of all.
func validateReplicationStatus(s *v1.ReplicationControllerStatus) field.ErrorList {
	var errs field.ErrorList
	status := field.NewPath("status")
	for _, n := range []struct {
		name  string
		value int64
		part  bool // of the replicas
	}{
		{"replicas", int64(s.Replicas), false}, {"fullyLabeledReplicas", int64(s.FullyLabeledReplicas), true}, {"readyReplicas", int64(s.ReadyReplicas), true},
		{"availableReplicas", int64(s.AvailableReplicas), true}, {"observedGeneration", s.ObservedGeneration, false},
	} {
		errs = append(errs, fields.NonNegative(n.value, status.Child(n.name))...)
		if n.part && n.value > int64(s.Replicas) {
			errs = append(errs, field.Invalid(status.Child(n.name), n.value, "cannot be greater than status.replicas"))
		}
	}
	if s.AvailableReplicas > s.ReadyReplicas {
		errs = append(errs, field.Invalid(status.Child("availableReplicas"), s.AvailableReplicas, "cannot be greater than readyReplicas"))
	}
	return errs
}
