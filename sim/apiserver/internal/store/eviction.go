package store

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/merge"
)

// maxDisruptedPods is how many evictions may wait for the disruption
// controller (MaxDisruptedPodSize).
const maxDisruptedPods = 2000

// Evict is a create on the pod's subresource eviction: the pod is deleted if
// the one PodDisruptionBudget that selects it allows that, which takes one
// disruption from the budget (pkg/registry/core/pod/storage/eviction.go).
// Errors: NotFound; Forbidden in a namespace that is terminating;
// TooManyRequests (429) with the cause DisruptionBudget when the budget does not
// allow it; a status 500 for a pod with more than one budget; Conflict when a
// precondition does not hold.
func (s *Store) Evict(now time.Time, namespace, name string, opts metav1.DeleteOptions) error {
	if err := s.plugins.Namespace(s.info(kinds.Pod), namespace, name); err != nil {
		return err
	}
	o, err := s.Get(kinds.Pod, namespace, name)
	if err != nil {
		return err
	}
	if chain := s.plugins.Chain(admissionv1.Create, kinds.Eviction, "eviction"); !chain.Idle() {
		e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: &opts}
		if err := admitTaken(chain, s.request(now, admissionv1.Create, kinds.TakenEviction(s.info(kinds.Pod)), e, nil, "eviction")); err != nil {
			return err
		}
		if e.DeleteOptions != nil {
			opts = *e.DeleteOptions
		}
	}
	pod := o.(*v1.Pod)
	// What does not run, or is going already, costs no disruption.
	pending := pod.Status.Phase == v1.PodPending
	if pending || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || pod.DeletionTimestamp != nil {
		return s.evict(now, pod, opts)
	}
	pdbs := budgetsOf(s, pod)
	if len(pdbs) > 1 {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	}
	if len(pdbs) == 1 && !evictable(pod, pdbs[0]) {
		if err := takeDisruption(s, now, pdbs[0], name); err != nil {
			return err
		}
	}
	return s.evict(now, pod, opts)
}

// budgetsOf returns the PodDisruptionBudgets that select a pod.
func budgetsOf(s *Store, pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, pdb := range Objects[*policyv1.PodDisruptionBudget](s, kinds.PodDisruptionBudget) {
		if pdb.Namespace != pod.Namespace {
			continue
		}
		// A selector that is not set selects nothing; validation refuses a bad one.
		if sel, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err == nil && sel.Matches(labels.Set(pod.Labels)) {
			out = append(out, pdb)
		}
	}
	return out
}

// evictable reports whether a pod may go without taking from its budget: one
// that is not ready, while enough others are or if the budget says so.
func evictable(pod *v1.Pod, pdb *policyv1.PodDisruptionBudget) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			return false
		}
	}
	if p := pdb.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return pdb.Status.CurrentHealthy >= pdb.Status.DesiredHealthy && pdb.Status.DesiredHealthy > 0
}

// takeDisruption is checkAndDecrement.
func takeDisruption(s *Store, now time.Time, pdb *policyv1.PodDisruptionBudget, pod string) error {
	gr := s.info(kinds.PodDisruptionBudget).GroupResource()
	gr.Resource = "poddisruptionbudget"
	st := &pdb.Status
	switch {
	// The numbers are those of an older spec.
	case st.ObservedGeneration < pdb.Generation:
		return errDisruption(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", pdb.Name))
	case st.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(gr, pdb.Name, fmt.Errorf("pdb disruptions allowed is negative"))
	// The disruption controller is too far behind to be trusted with more.
	case len(st.DisruptedPods) > maxDisruptedPods:
		return apierrors.NewForbidden(gr, pdb.Name, fmt.Errorf("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case st.DisruptionsAllowed == 0:
		return errDisruption(0, whyNoDisruption(pdb))
	}
	c := *pdb
	c.Status.DisruptionsAllowed--
	if c.Status.DisruptionsAllowed == 0 {
		SetDisruptionAllowed(&c.Status, now)
	}
	c.Status.DisruptedPods = map[string]metav1.Time{pod: asjson.Time(now)}
	for k, v := range st.DisruptedPods { //drydock:unordered copies a map
		if k != pod {
			c.Status.DisruptedPods[k] = v
		}
	}
	s.commit(watch.Modified, kinds.PodDisruptionBudget, pdb, &c, "update", "status")
	return nil
}

// whyNoDisruption says why a budget allows nothing: by the disruption controller's
// condition where it says more than the numbers do.
func whyNoDisruption(pdb *policyv1.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(pdb.Status.Conditions, policyv1.DisruptionAllowedCondition)
	told := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case told && c.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", pdb.Name, c.Message)
	case pdb.Status.CurrentHealthy <= pdb.Status.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", pdb.Name, pdb.Status.DesiredHealthy, pdb.Status.CurrentHealthy)
	case told:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", pdb.Name, c.Reason, c.Message)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", pdb.Name)
}

// errDisruption is the answer 429 that kubectl drain waits and tries again for.
func errDisruption(retryAfter int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

// SetDisruptionAllowed sets the condition DisruptionAllowed of a
// PodDisruptionBudget to what disruptionsAllowed says, in conditions of its own
// (k8s.io/component-helpers/apps/poddisruptionbudget, which reads the clock).
func SetDisruptionAllowed(st *policyv1.PodDisruptionBudgetStatus, now time.Time) {
	c := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: st.ObservedGeneration, LastTransitionTime: asjson.Time(now)}
	if st.DisruptionsAllowed > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	st.Conditions = append([]metav1.Condition(nil), st.Conditions...)
	meta.SetStatusCondition(&st.Conditions, c)
}

// evict marks a pod as disrupted and deletes it (addConditionAndDeletePod).
func (s *Store) evict(now time.Time, pod *v1.Pod, opts metav1.DeleteOptions) error {
	if err := checkPreconditions(s.info(kinds.Pod), pod, opts.Preconditions); err != nil {
		return err
	}
	c := *pod
	c.Status.Conditions = withCondition(pod.Status.Conditions, v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		LastTransitionTime: asjson.Time(now)})
	if !merge.SameList(pod.Status.Conditions, c.Status.Conditions, merge.SamePodCondition) {
		s.commit(watch.Modified, kinds.Pod, pod, &c, "update", "eviction")
	}
	if opts.Preconditions != nil { // they have been checked, and this write was ours
		opts.Preconditions = &metav1.Preconditions{UID: opts.Preconditions.UID}
	}
	_, err := s.Delete(now, kinds.Pod, pod.Namespace, pod.Name, opts)
	return err
}
