package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// conditionsOf are a namespace's conditions after a pass
// (pkg/controller/namespace/deletion/status_condition_utils.go). All five are always there once a
// namespace is being deleted.
func conditionsOf(left *remains) []v1.NamespaceCondition {
	ok := func(t v1.NamespaceConditionType, reason, message string) v1.NamespaceCondition {
		return v1.NamespaceCondition{Type: t, Status: v1.ConditionFalse, Reason: reason, Message: message}
	}
	const removed = "All content successfully removed"
	list := []v1.NamespaceCondition{
		ok(v1.NamespaceDeletionDiscoveryFailure, "ResourcesDiscovered", "All resources successfully discovered"),
		ok(v1.NamespaceDeletionGVParsingFailure, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		ok(v1.NamespaceDeletionContentFailure, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		ok(v1.NamespaceContentRemaining, "ContentRemoved", removed),
		ok(v1.NamespaceFinalizersRemaining, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
	set := func(i int, reason, message string) {
		list[i].Status, list[i].Reason, list[i].Message = v1.ConditionTrue, reason, message
	}
	if n := len(left.errs); n > 0 {
		errs := slices.Sorted(slices.Values(left.errs))
		set(2, "ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %v", n, strings.Join(errs, ", ")))
	}
	// While pods are left, nothing else was looked at.
	if left.pods {
		return list
	}
	if len(left.resources) > 0 {
		set(3, "SomeResourcesRemain", "Some resources are remaining: "+sortedText(left.resources, "%s has %d resource instances"))
	}
	if len(left.finalizers) > 0 {
		set(4, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+sortedText(left.finalizers, "%s in %d resource instances"))
	}
	return list
}

// updateConditions writes a namespace's conditions if they change. The times of conditions that
// stay are kept.
func (c *Controller) updateConditions(ctx context.Context, name string, left *remains) error {
	ns := c.lookup(name)
	if ns == nil {
		return nil
	}
	now := controller.WireTime(c.l.Now())
	update := *ns
	update.Status.Conditions = slices.Clone(ns.Status.Conditions)
	changed := false
	for _, cond := range conditionsOf(left) {
		cond.LastTransitionTime = now
		i := slices.IndexFunc(update.Status.Conditions, func(o v1.NamespaceCondition) bool { return o.Type == cond.Type })
		if i < 0 {
			update.Status.Conditions = append(update.Status.Conditions, cond)
			changed = true
			continue
		}
		old := update.Status.Conditions[i]
		if old.Status == cond.Status {
			cond.LastTransitionTime = old.LastTransitionTime
		}
		changed = changed || old.Status != cond.Status || old.Reason != cond.Reason || old.Message != cond.Message
		update.Status.Conditions[i] = cond
	}
	if !changed {
		return nil
	}
	err := c.api.Do(ctx, apiserver.Request{Verb: "update", Resource: "namespaces/status", Name: name}, func(s *apiserver.Server) error {
		_, err := s.Update(&update, "status")
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("updating the status of namespace %s: %w", name, err)
	}
	return nil
}
