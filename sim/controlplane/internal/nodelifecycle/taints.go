package nodelifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Retries of a taint's update after a conflict (pkg/controller UpdateTaintBackoff).
const (
	// Delays are jittered by up to their length.
	taintRetries    = 5
	taintRetryDelay = 100 * time.Millisecond
)

// conditionTaints are the taints NoSchedule by condition, and the status that
// calls for them (nodeConditionToTaintKeyStatusMap). A node may have several at once.
var conditionTaints = [...]struct {
	condition v1.NodeConditionType
	status    v1.ConditionStatus
	key       string
}{
	{v1.NodeReady, v1.ConditionFalse, v1.TaintNodeNotReady},
	{v1.NodeReady, v1.ConditionUnknown, v1.TaintNodeUnreachable},
	{v1.NodeMemoryPressure, v1.ConditionTrue, v1.TaintNodeMemoryPressure},
	{v1.NodeDiskPressure, v1.ConditionTrue, v1.TaintNodeDiskPressure},
	{v1.NodeNetworkUnavailable, v1.ConditionTrue, v1.TaintNodeNetworkUnavailable},
	{v1.NodePIDPressure, v1.ConditionTrue, v1.TaintNodePIDPressure},
}

// diffConditionTaints returns the keys of the NoSchedule taints that a node
// lacks and of those that it should not have. Keys that the controller doesn't know are never
// touched.
func diffConditionTaints(n *v1.Node) (add, remove []string) {
	judge := func(key string, wanted bool) {
		switch has := hasTaint(n, key, v1.TaintEffectNoSchedule); {
		case wanted && !has:
			add = append(add, key)
		case !wanted && has:
			remove = append(remove, key)
		}
	}
	for _, t := range conditionTaints {
		cond := condition(n, t.condition)
		judge(t.key, cond != nil && cond.Status == t.status)
	}
	judge(v1.TaintNodeUnschedulable, n.Spec.Unschedulable)
	return add, remove
}

// wrongTaints reports whether a node's NoSchedule taints are not those that its
// conditions call for. It is asked within writes of nodes, so that only nodes with something to
// do are queued.
func wrongTaints(n *v1.Node) bool {
	add, remove := diffConditionTaints(n)
	return len(add)+len(remove) > 0
}

// syncConditionTaints is doNoScheduleTaintingPass, and what follows it for the labels
// (reconcileNodeLabels). A failure is not tried again, as upstream: the node's next change is.
func (c *Controller) syncConditionTaints(ctx context.Context, key controller.Key) error {
	node := c.api.Server().Node(key.Name)
	if node == nil {
		return nil
	}
	if add, remove := diffConditionTaints(node); len(add)+len(remove) > 0 {
		c.swapTaints(ctx, node, add, remove, v1.TaintEffectNoSchedule)
	}
	if node = c.api.Server().Node(key.Name); node == nil {
		return nil
	}
	if labels := missingLabels(node); len(labels) > 0 {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
		if err != nil {
			return fmt.Errorf("labels of node %s: %w", node.Name, err)
		}
		_ = c.api.Do(ctx, apiserver.Request{Verb: "patch", Resource: "nodes", Name: node.Name}, func(s *apiserver.Server) error {
			_, err := s.Patch(apiserver.KindNode, "", node.Name, types.StrategicMergePatchType, data, "")
			return err
		})
	}
	return nil
}

// oldLabels are labels that follow another one, whose names they had before it (labelReconcileInfo).
var oldLabels = [...]struct{ from, to string }{
	{v1.LabelOSStable, "beta.kubernetes.io/os"},
	{v1.LabelArchStable, "beta.kubernetes.io/arch"},
}

// missingLabels are those that a node should have by others of its; nil: none is missing.
func missingLabels(n *v1.Node) (out map[string]string) {
	for _, l := range oldLabels {
		want, ok := n.Labels[l.from]
		if is, has := n.Labels[l.to]; !ok || has && is == want {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[l.to] = want
	}
	return out
}

// swapTaints adds taints to a node and then removes others
// (SwapNodeControllerTaint). false: not all of it was done. Adding first: between the two the
// node is never without.
func (c *Controller) swapTaints(ctx context.Context, node *v1.Node, add, remove []string, effect v1.TaintEffect) bool {
	now := controller.WireTime(c.l.Now())
	if len(add) > 0 {
		err := c.updateTaints(ctx, node.Name, func(taints []v1.Taint) []v1.Taint {
			out := slices.Clone(taints)
			for _, key := range add {
				t := v1.Taint{Key: key, Effect: effect, TimeAdded: &now}
				if i := slices.IndexFunc(out, func(o v1.Taint) bool { return o.MatchTaint(&t) }); i >= 0 {
					out[i] = t
				} else {
					out = append(out, t)
				}
			}
			return out
		})
		if err != nil {
			return false
		}
	}
	return c.removeTaintsOf(ctx, node, effect, remove) == nil
}

// removeTaints removes NoExecute taints from a node that has one of them, each
// with requests of its own. That is upstream's way; a node with both costs two patches.
func (c *Controller) removeTaints(ctx context.Context, node *v1.Node, keys ...string) error {
	for _, key := range keys {
		if err := c.removeTaintsOf(ctx, node, v1.TaintEffectNoExecute, []string{key}); err != nil {
			return err
		}
	}
	return nil
}

// removeTaintsOf is RemoveTaintOffNode.
func (c *Controller) removeTaintsOf(ctx context.Context, node *v1.Node, effect v1.TaintEffect, keys []string) error {
	if !slices.ContainsFunc(keys, func(key string) bool { return hasTaint(node, key, effect) }) {
		return nil
	}
	return c.updateTaints(ctx, node.Name, func(taints []v1.Taint) []v1.Taint {
		return slices.DeleteFunc(slices.Clone(taints), func(t v1.Taint) bool { return t.Effect == effect && slices.Contains(keys, t.Key) })
	})
}

// updateTaints gets a node and patches its taints; after a conflict it does so
// again. The patch carries the version that was read, so a write in between is a conflict.
func (c *Controller) updateTaints(ctx context.Context, name string, change func([]v1.Taint) []v1.Taint) error {
	var err error
	for try := range taintRetries {
		if try > 0 {
			c.retries++
			if err := c.l.Sleep(ctx, c.l.Jitter(taintRetryDelay, 1, "taint retry", name, c.retries)); err != nil {
				return err
			}
		}
		var node *v1.Node
		if node, err = c.get(ctx, name); err != nil {
			return err
		}
		taints := change(node.Spec.Taints)
		// No request for what is so already.
		if slices.EqualFunc(taints, node.Spec.Taints, func(a, b v1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }) {
			return nil
		}
		err = c.api.Do(ctx, apiserver.Request{Verb: "patch", Resource: "nodes", Name: name}, func(s *apiserver.Server) error {
			_, err := s.PatchNodeTaints(name, node.ResourceVersion, taints)
			return err
		})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

func hasTaint(n *v1.Node, key string, effect v1.TaintEffect) bool {
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == key && n.Spec.Taints[i].Effect == effect {
			return true
		}
	}
	return false
}

// hasNoExecute reports whether a node has one of the controller's own NoExecute
// taints.
func hasNoExecute(n *v1.Node) bool {
	return hasTaint(n, v1.TaintNodeUnreachable, v1.TaintEffectNoExecute) || hasTaint(n, v1.TaintNodeNotReady, v1.TaintEffectNoExecute)
}
