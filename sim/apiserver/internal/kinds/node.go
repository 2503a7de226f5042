package kinds

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// Node is the kind of nodes. A kubelet registers its own with a status, and watches
// it.
const Node kind.Kind = "Node"

// node returns the row of Node (pkg/registry/core/node/strategy.go). Nodes have no
// generation: upstream's neither.
func node() *kind.Info {
	return &kind.Info{
		Kind: Node, Version: "v1", Resource: "nodes", ShortNames: []string{"no"}, ChecksMetaAgain: true, Watch: kind.ByNode,
		Strategy: &kind.Typed[v1.Node, *v1.Node]{
			Defaults: func(n *v1.Node) {
				// What no kubelet has reserved anything of is allocatable as a
				// whole.
				if n.Status.Allocatable == nil && n.Status.Capacity != nil {
					n.Status.Allocatable = n.Status.Capacity.DeepCopy()
				}
			},
			Halves: kind.SpecAndStatus(func(n *v1.Node) (*v1.NodeSpec, *v1.NodeStatus) { return &n.Spec, &n.Status }),
			Reset: func(n *v1.Node) { // a kubelet registers its node with a status
				for i := range n.Status.Conditions {
					n.Status.Conditions[i] = asjson.NodeCondition(n.Status.Conditions[i])
				}
			},
			Check:       validateNode,
			CheckUpdate: validateNodeUpdate,
			Fields: func(n *v1.Node) selectable.Set {
				return selectable.Set{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
			},
			Node:  func(n *v1.Node) string { return n.Name },
			Entry: nodeEntry,
		},
	}
}

// validateNode is ValidateNode. A taint is known by key and effect together: the
// same key may both keep pods away and evict them.
func validateNode(n *v1.Node) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	type taintID struct {
		key    string
		effect v1.TaintEffect
	}
	seen := map[taintID]bool{}
	for i, t := range n.Spec.Taints {
		p := spec.Child("taints").Index(i)
		errs = append(errs, fields.Invalid(p.Child("key"), t.Key, validation.IsQualifiedName(t.Key))...)
		errs = append(errs, fields.Invalid(p.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		errs = append(errs, fields.OneOf(t.Effect, p.Child("effect"), v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		id := taintID{t.Key, t.Effect}
		if seen[id] {
			errs = append(errs, field.Duplicate(p, fmt.Sprintf("%s:%s", t.Key, t.Effect)))
		}
		seen[id] = true
	}
	errs = append(errs, podspec.ValidateAmounts(n.Status.Capacity, field.NewPath("status", "capacity"))...)
	return append(errs, podspec.ValidateAmounts(n.Status.Allocatable, field.NewPath("status", "allocatable"))...)
}

// changedConditions appends the conditions that are new or whose status, reason or
// message changed, and why a node is not ready: the first that one looks for in a
// trace.
func changedConditions(out []trace.Field, old, now []v1.NodeCondition) []trace.Field {
	for i := range now {
		c := &now[i]
		same := false
		for j := range old {
			o := &old[j]
			same = same || o.Type == c.Type && o.Status == c.Status && o.Reason == c.Reason && o.Message == c.Message
		}
		if same {
			continue
		}
		text := string(c.Status)
		if c.Reason != "" {
			text += "/" + c.Reason
		}
		out = append(out, trace.Str(string(c.Type), text))
		// A node that is not ready says why.
		if c.Status != v1.ConditionTrue && c.Type == v1.NodeReady {
			out = append(out, trace.Str("message", c.Message))
		}
	}
	return out
}

// validateNodeUpdate is ValidateNodeUpdate. Who is given a machine's ID at the
// cloud keeps it.
func validateNodeUpdate(n, old *v1.Node, _ string) field.ErrorList {
	errs := validateNode(n)
	if was := old.Spec.ProviderID; was != "" && n.Spec.ProviderID != was {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	return errs
}

// nodeEntry shows the conditions that a write changed: who reads a trace looks for
// those of a node. A heartbeat changes none.
func nodeEntry(e *kind.Notes, c kind.Change, n *v1.Node) {
	if c.Type == watch.Deleted {
		return
	}
	var old []v1.NodeCondition
	if c.Old != nil {
		old = c.Old.(*v1.Node).Status.Conditions
	}
	if e.Fields = changedConditions(e.Fields, old, n.Status.Conditions); len(e.Fields) > 0 {
		e.Kind = trace.KindNode
	}
}
