package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

func TestEvict(t *testing.T) {
	status := func(allowed, current, desired int32) policyv1.PodDisruptionBudgetStatus {
		return policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: current, DesiredHealthy: desired}
	}
	failed := status(0, 3, 2)
	failed.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "why", LastTransitionTime: metav1.NewTime(t0)}}
	always := policyv1.AlwaysAllow
	for _, tc := range []struct {
		name    string
		budgets []policyv1.PodDisruptionBudgetStatus
		policy  *policyv1.UnhealthyPodEvictionPolicyType
		pending bool
		unready bool
		code    int32
		cause   string
		left    int32
	}{
		{name: "no budget"},
		{name: "allowed", budgets: []policyv1.PodDisruptionBudgetStatus{status(2, 4, 2)}, left: 1},
		{name: "the last", budgets: []policyv1.PodDisruptionBudgetStatus{status(1, 3, 2)}},
		{name: "none left", budgets: []policyv1.PodDisruptionBudgetStatus{status(0, 2, 2)}, code: 429, cause: "The disruption budget pdb-0 needs 2 healthy pods and has 2 currently"},
		{name: "sync failed", budgets: []policyv1.PodDisruptionBudgetStatus{failed}, code: 429, cause: "The disruption budget pdb-0 does not allow evicting pods currently because it failed sync: why"},
		{name: "not observed", budgets: []policyv1.PodDisruptionBudgetStatus{{DisruptionsAllowed: 1}}, code: 429, cause: "The disruption budget pdb-0 is still being processed by the server.", left: 1},
		{name: "two budgets", budgets: []policyv1.PodDisruptionBudgetStatus{status(1, 3, 2), status(1, 3, 2)}, code: 500, left: 1},
		{name: "pending", budgets: []policyv1.PodDisruptionBudgetStatus{status(0, 2, 2)}, pending: true},
		{name: "unready, enough others", budgets: []policyv1.PodDisruptionBudgetStatus{status(0, 2, 2)}, unready: true},
		{name: "unready, too few others", budgets: []policyv1.PodDisruptionBudgetStatus{status(0, 1, 2)}, unready: true, code: 429, cause: "The disruption budget pdb-0 needs 2 healthy pods and has 1 currently"},
		{name: "unready, too few others, always", budgets: []policyv1.PodDisruptionBudgetStatus{status(0, 1, 2)}, unready: true, policy: &always},
	} {
		s := New(Options{})
		pod := mustCreate(t, s, testPod("p", onNode("n"), func(p *v1.Pod) { p.Labels = map[string]string{"app": "web"} })).(*v1.Pod)
		c := *pod
		c.Status.Phase = v1.PodRunning
		if tc.pending {
			c.Status.Phase = v1.PodPending
		}
		c.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		if tc.unready {
			c.Status.Conditions[0].Status = v1.ConditionFalse
		}
		if _, err := s.Update(t0, &c, "status"); err != nil {
			t.Fatal(err)
		}
		one := intstr.FromInt32(1)
		for i, st := range tc.budgets {
			pdb := mustCreate(t, s, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pdb-", i), Namespace: "default"},
				Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, UnhealthyPodEvictionPolicy: tc.policy, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}).DeepCopyObject().(*policyv1.PodDisruptionBudget)
			pdb.Status = st
			if _, err := s.Update(t0, pdb, "status"); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Evict(t0, "default", "p", metav1.DeleteOptions{})
		p := s.Pod("default", "p")
		deleted := p == nil || p.DeletionTimestamp != nil
		if tc.code == 0 {
			if err != nil || !deleted {
				t.Errorf("%s: %v, deleted %v", tc.name, err, deleted)
			}
			if last := p.Status.Conditions[len(p.Status.Conditions)-1]; last.Type != v1.DisruptionTarget || last.Reason != "EvictionByEvictionAPI" {
				t.Errorf("%s: condition %+v", tc.name, last)
			}
		} else {
			e, ok := err.(apierrors.APIStatus)
			if !ok || e.Status().Code != tc.code || deleted {
				t.Errorf("%s: %v, deleted %v", tc.name, err, deleted)
				continue
			}
			if tc.cause != "" && (!apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || e.Status().Details.Causes[0].Message != tc.cause) {
				t.Errorf("%s: causes %+v", tc.name, e.Status().Details)
			}
		}
		for i := range tc.budgets {
			pdb := s.Lookup(kinds.PodDisruptionBudget, "default", fmt.Sprint("pdb-", i)).(*policyv1.PodDisruptionBudget)
			if pdb.Status.DisruptionsAllowed != tc.left {
				t.Errorf("%s: %d disruptions left, want %d", tc.name, pdb.Status.DisruptionsAllowed, tc.left)
			}
			if _, taken := pdb.Status.DisruptedPods["p"]; taken != (tc.code == 0 && !tc.pending && !tc.unready) {
				t.Errorf("%s: disruptedPods %v", tc.name, pdb.Status.DisruptedPods)
			}
		}
	}
}

func TestValidateDisruptionBudget(t *testing.T) {
	v := func(s string) *intstr.IntOrString { x := intstr.Parse(s); return &x }
	for _, tc := range []struct {
		min, max *intstr.IntOrString
		want     string
	}{
		{v("1"), nil, ""},
		{nil, v("0"), ""},
		{v("50%"), nil, ""},
		{v("1"), v("1"), "minAvailable and maxUnavailable cannot be both set"},
		{v("-1"), nil, "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"},
		{nil, v("101%"), "must not be greater than 100%"},
		{nil, v("many"), "a valid percent string must be"},
	} {
		err := kinds.New(features.Gates{}).Validate(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: tc.min, MaxUnavailable: tc.max}})
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v/%v: %v, want %q", tc.min, tc.max, err, tc.want)
		}
	}
}

// TestTerminatingNamespace: evictions and bindings are created, and nothing is in
// a namespace that ends.
func TestTerminatingNamespace(t *testing.T) {
	s := New(Options{})
	mustCreate(t, s, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	mustCreate(t, s, testPod("p", func(p *v1.Pod) { p.Namespace = "team" }))
	if _, err := s.Delete(t0, kinds.Namespace, "", "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, bind := s.Bind(t0, "team", "p", "n", metav1.ObjectMeta{})
	for name, err := range map[string]error{"evict": s.Evict(t0, "team", "p", metav1.DeleteOptions{}), "bind": bind} {
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) ||
			err.Error() != `pods "p" is forbidden: unable to create new content in namespace team because it is being terminated` {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNamespaceFinalizers: spec.finalizers has kubernetes from the beginning, no
// update of the namespace or its status reaches it, and it holds the namespace.
func TestNamespaceFinalizers(t *testing.T) {
	s := New(Options{})
	ns := mustCreate(t, s, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Finalizers: []string{"example.com/own"}},
		Spec: v1.NamespaceSpec{Finalizers: []v1.FinalizerName{"example.com/content"}}}).DeepCopyObject().(*v1.Namespace)
	want := []v1.FinalizerName{"example.com/content", v1.FinalizerKubernetes}
	for _, sub := range []string{"", "status"} {
		ns.Spec.Finalizers = nil
		ns.Labels["changed"] = sub + "yes"
		got, err := s.Update(t0, ns, sub)
		if err != nil {
			t.Fatal(err)
		}
		if ns = got.DeepCopyObject().(*v1.Namespace); !slices.Equal(ns.Spec.Finalizers, want) {
			t.Errorf("update %q: %q, want %q", sub, ns.Spec.Finalizers, want)
		}
	}
	if _, err := s.Delete(t0, kinds.Namespace, "", "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns = s.Lookup(kinds.Namespace, "", "team").DeepCopyObject().(*v1.Namespace)
	ns.Finalizers = nil
	if _, err := s.Update(t0, ns, ""); err != nil {
		t.Fatal(err)
	}
	// Its content has not been looked after yet.
	if got := s.Lookup(kinds.Namespace, "", "team"); got == nil || !slices.Equal(got.(*v1.Namespace).Spec.Finalizers, want) {
		t.Fatalf("%v", got)
	}
}
