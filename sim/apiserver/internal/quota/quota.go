// Package quota measures what objects use of ResourceQuotas, for the admission that
// charges it and the controller that counts it (pkg/quota/v1/evaluator/core,
// k8s.io/apiserver/pkg/quota/v1/generic).
package quota

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Evaluator measures objects of one kind.
type Evaluator struct {
	counted []v1.ResourceName // by each object: count/KIND, and what it was called before
	// more is what else an object uses.
	more func(obj kind.Object, now time.Time) v1.ResourceList
	// resources reports whether a resource, other than counted, is one of the kind's.
	resources func(v1.ResourceName) bool
	// scope reports whether an object is in a scope; nil: none is.
	scope func(obj kind.Object, s v1.ScopedResourceSelectorRequirement) bool
	// missing says which resources an object must state and doesn't.
	missing func(required []v1.ResourceName, obj kind.Object) string
	// updates reports whether an update may change what is used.
	updates func(obj, old kind.Object, sub string) bool
}

// Of returns the evaluator of a kind.
func Of(in *kind.Info) Evaluator {
	e := Evaluator{counted: []v1.ResourceName{countName(in.GroupResource())}}
	if in.Group == resourcev1.GroupName && in.Resource == "resourceclaims" {
		return deviceEvaluator(e)
	}
	if in.Group != "" {
		return e
	}
	switch in.Resource {
	case "pods":
		return podEvaluator(e)
	case "services":
		return serviceEvaluator(e)
	case "persistentvolumeclaims":
		return claimEvaluator(e)
	case "configmaps", "resourcequotas", "replicationcontrollers", "secrets":
		e.counted = append(e.counted, v1.ResourceName(in.Resource))
	}
	return e
}

// countName is the resource that counts the objects of a kind.
func countName(gr schema.GroupResource) v1.ResourceName {
	return v1.ResourceName("count/" + gr.String())
}

// Matches reports whether a quota is about an object.
func (e Evaluator) Matches(q *v1.ResourceQuota, obj kind.Object) bool {
	return len(e.Resources(fields.SortedKeys(q.Status.Hard))) > 0 && e.InScopes(&q.Spec, obj)
}

// InScopes reports whether an object is in all scopes of a quota.
func (e Evaluator) InScopes(spec *v1.ResourceQuotaSpec, obj kind.Object) bool {
	return !slices.ContainsFunc(selectors(spec), func(s v1.ScopedResourceSelectorRequirement) bool { return e.scope == nil || !e.scope(obj, s) })
}

// selectors are a quota's scopes, of both fields.
func selectors(spec *v1.ResourceQuotaSpec) []v1.ScopedResourceSelectorRequirement {
	var out []v1.ScopedResourceSelectorRequirement
	for _, s := range spec.Scopes {
		out = append(out, v1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: v1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		out = append(out, spec.ScopeSelector.MatchExpressions...)
	}
	return out
}

// Resources returns those of the names that are the kind's.
func (e Evaluator) Resources(names []v1.ResourceName) []v1.ResourceName {
	var out []v1.ResourceName
	for _, n := range names {
		if slices.Contains(e.counted, n) || e.resources != nil && e.resources(n) {
			out = append(out, n)
		}
	}
	return out
}

// Missing says which of the required resources an object must state and doesn't.
func (e Evaluator) Missing(required []v1.ResourceName, obj kind.Object) string {
	if e.missing == nil {
		return ""
	}
	return e.missing(required, obj)
}

// Updates reports whether an update may change what an object uses.
func (e Evaluator) Updates(obj, old kind.Object, sub string) bool {
	return e.updates != nil && e.updates(obj, old, sub)
}

// Usage is what an object uses.
func (e Evaluator) Usage(obj kind.Object, now time.Time) v1.ResourceList {
	out := v1.ResourceList{}
	for _, n := range e.counted {
		out[n] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	if e.more != nil {
		Add(out, e.more(obj, now))
	}
	return out
}

// Add adds amounts to a list.
func Add(to, more v1.ResourceList) {
	for _, n := range fields.SortedKeys(more) {
		q, ok := to[n]
		if !ok {
			to[n] = more[n].DeepCopy()
			continue
		}
		q.Add(more[n])
		to[n] = q
	}
}

// Less is by how much a list is more than another; nothing is negative.
func Less(a, b v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for _, n := range fields.SortedKeys(a) {
		q := a[n].DeepCopy()
		if q.Sub(b[n]); q.Sign() < 0 {
			q = resource.Quantity{Format: q.Format}
		}
		out[n] = q
	}
	return out
}

// Kinds is what Count reads.
type Kinds interface {
	Kinds() *kind.Table
	Each(k kind.Kind, fn func(kind.Object) bool)
}

// Count counts what a quota's namespace uses of the quota's resources. It costs a look
// at all objects of the kinds that the quota names.
func Count(c Kinds, q *v1.ResourceQuota, now time.Time) v1.ResourceList {
	used := v1.ResourceList{}
	for _, n := range fields.SortedKeys(q.Spec.Hard) {
		used[n] = resource.Quantity{Format: resource.DecimalSI}
	}
	for _, in := range c.Kinds().All() {
		e := Of(in)
		names := e.Resources(fields.SortedKeys(q.Spec.Hard))
		if !in.Namespaced || len(names) == 0 {
			continue
		}
		c.Each(in.Kind, func(obj kind.Object) bool {
			if obj.GetNamespace() == q.Namespace && e.InScopes(&q.Spec, obj) {
				uses := e.Usage(obj, now)
				for _, n := range names {
					if amount, ok := uses[n]; ok {
						Add(used, v1.ResourceList{n: amount})
					}
				}
			}
			return true
		})
	}
	return used
}

// selects reports whether a scope with an operator on values selects one of them; no
// value: the object names none.
func selects(s v1.ScopedResourceSelectorRequirement, value string) bool {
	set := labels.Set{}
	if value != "" {
		set[string(s.ScopeName)] = value
	}
	ops := map[v1.ScopeSelectorOperator]selection.Operator{
		v1.ScopeSelectorOpIn: selection.In, v1.ScopeSelectorOpNotIn: selection.NotIn,
		v1.ScopeSelectorOpExists: selection.Exists, v1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	req, err := labels.NewRequirement(string(s.ScopeName), ops[s.Operator], s.Values)
	return err == nil && req.Matches(set)
}

// expired reports whether an object's deletion is overdue.
func expired(m *metav1.ObjectMeta, now time.Time) bool {
	return m.DeletionTimestamp != nil && m.DeletionGracePeriodSeconds != nil &&
		now.After(m.DeletionTimestamp.Add(time.Duration(*m.DeletionGracePeriodSeconds)*time.Second))
}

// missingText writes what containers don't state: "cpu for: a,b; memory for: a".
func missingText(missing map[v1.ResourceName][]string) string {
	text := ""
	for i, name := range fields.SortedKeys(missing) {
		if i > 0 {
			text += "; "
		}
		containers := missing[name]
		slices.Sort(containers)
		text += fmt.Sprintf("%s for: %s", name, join(slices.Compact(containers)))
	}
	return text
}
