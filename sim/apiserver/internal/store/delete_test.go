package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC)

func ptr[T any](v T) *T { return &v }

func testPod(name string, edit ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "app:1"}}},
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func onNode(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }

func mustCreate(t testing.TB, s *Store, o kind.Object) kind.Object {
	t.Helper()
	out, err := s.Create(t0, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func setPhase(t testing.TB, s *Store, name string, phase v1.PodPhase) {
	t.Helper()
	p := s.Pod("default", name)
	st := p.Status
	st.Phase = phase
	if _, err := s.PatchPodStatus(t0, "default", name, p.UID, &p.Status, &st); err != nil {
		t.Fatal(err)
	}
}

// TestDeletePod states what watchers see of one or more deletes: each version
// with its grace period and generation, "gone" for the removal. The recordings
// show the same: a pod removed at once is first seen with grace 0.
func TestDeletePod(t *testing.T) {
	type step struct {
		grace *int64
		after time.Duration
	}
	for _, tc := range []struct {
		name  string
		edit  func(*v1.Pod)
		phase v1.PodPhase
		steps []step
		want  []string
	}{
		{"spec's grace", onNode("n"), v1.PodRunning, []step{{nil, 0}}, []string{"grace 30 gen 2 at 30"}},
		{"given grace", onNode("n"), v1.PodRunning, []step{{ptr(int64(1)), 0}}, []string{"grace 1 gen 2 at 1"}},
		{"longer than spec's", onNode("n"), v1.PodRunning, []step{{ptr(int64(90)), 0}}, []string{"grace 90 gen 2 at 90"}},
		{"negative means 1", onNode("n"), v1.PodRunning, []step{{ptr(int64(-5)), 0}}, []string{"grace 1 gen 2 at 1"}},
		{"force", onNode("n"), v1.PodRunning, []step{{ptr(int64(0)), 0}}, []string{"grace 0 gen 2 at 0", "gone"}},
		{"pending but scheduled", onNode("n"), v1.PodPending, []step{{nil, 0}}, []string{"grace 30 gen 2 at 30"}},
		{"unscheduled", nil, v1.PodPending, []step{{ptr(int64(20)), 0}}, []string{"grace 0 gen 2 at 0", "gone"}},
		{"succeeded", onNode("n"), v1.PodSucceeded, []step{{nil, 0}}, []string{"grace 0 gen 2 at 0", "gone"}},
		{"failed", onNode("n"), v1.PodFailed, []step{{ptr(int64(30)), 0}}, []string{"grace 0 gen 2 at 0", "gone"}},
		{"shortened", onNode("n"), v1.PodRunning, []step{{nil, 0}, {ptr(int64(5)), 2 * time.Second}}, []string{"grace 30 gen 2 at 30", "grace 5 gen 2 at 5"}},
		{"not lengthened", onNode("n"), v1.PodRunning, []step{{ptr(int64(5)), 0}, {ptr(int64(60)), time.Second}, {nil, 2 * time.Second}}, []string{"grace 5 gen 2 at 5"}},
		{"then forced", onNode("n"), v1.PodRunning, []step{{nil, 0}, {ptr(int64(0)), 3 * time.Second}}, []string{"grace 30 gen 2 at 30", "grace 0 gen 2 at 3", "gone"}},
		{"finalizer holds", func(p *v1.Pod) { p.Spec.NodeName = "n"; p.Finalizers = []string{"x.io/f"} }, v1.PodRunning,
			[]step{{ptr(int64(0)), 0}, {ptr(int64(0)), time.Second}}, []string{"grace 0 gen 2 at 0"}},
		{"grace 0 in the spec", func(p *v1.Pod) { p.Spec.NodeName = "n"; p.Spec.TerminationGracePeriodSeconds = ptr(int64(0)) }, v1.PodRunning,
			[]step{{nil, 0}}, []string{"grace 0 gen 2 at 0", "gone"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{Seed: 1})
			edit := tc.edit
			if edit == nil {
				edit = func(*v1.Pod) {}
			}
			mustCreate(t, s, testPod("p", edit))
			setPhase(t, s, "p", tc.phase)
			var got []string
			s.OnChange(func(c kind.Change) {
				if c.Type == "DELETED" {
					got = append(got, "gone")
					return
				}
				at := c.New.GetDeletionTimestamp().Sub(t0.Truncate(time.Second))
				got = append(got, fmt.Sprintf("grace %d gen %d at %g", *c.New.GetDeletionGracePeriodSeconds(), c.New.GetGeneration(), at.Seconds()))
			})
			for _, st := range tc.steps {
				if _, err := s.Delete(t0.Add(st.after), kinds.Pod, "default", "p", metav1.DeleteOptions{GracePeriodSeconds: st.grace}); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFinalizersHoldAndRelease(t *testing.T) {
	s := New(Options{})
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: []string{"x.io/f"}}}
	mustCreate(t, s, cm)
	if _, err := s.Delete(t0, kinds.ConfigMap, "default", "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o := s.Lookup(kinds.ConfigMap, "default", "c")
	if o == nil || o.GetDeletionTimestamp() == nil || *o.GetDeletionGracePeriodSeconds() != 0 {
		t.Fatalf("not held: %+v", o)
	}
	if _, err := s.Patch(t0, kinds.ConfigMap, "default", "c", types.MergePatchType, []byte(`{"metadata":{"finalizers":["x.io/f","y.io/g"]}}`), ""); !apierrors.IsInvalid(err) {
		t.Errorf("a new finalizer during deletion: %v", err)
	}
	if _, err := s.Patch(t0, kinds.ConfigMap, "default", "c", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), ""); err != nil {
		t.Fatal(err)
	}
	if s.Lookup(kinds.ConfigMap, "default", "c") != nil {
		t.Error("still there without finalizers")
	}
}

func TestDeletePreconditions(t *testing.T) {
	s := New(Options{})
	p := mustCreate(t, s, testPod("p"))
	for _, pre := range []metav1.Preconditions{{UID: ptr(types.UID("other"))}, {ResourceVersion: ptr("999")}} {
		if _, err := s.Delete(t0, kinds.Pod, "default", "p", metav1.DeleteOptions{Preconditions: &pre}); !apierrors.IsConflict(err) {
			t.Errorf("%+v: %v, want a conflict", pre, err)
		}
	}
	if _, err := s.Delete(t0, kinds.Pod, "default", "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr(p.GetUID())}}); err != nil {
		t.Error(err)
	}
	if _, err := s.Delete(t0, kinds.Pod, "default", "p", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("second delete: %v", err)
	}
}

func TestNamespaceDeletion(t *testing.T) {
	s := New(Options{})
	mustCreate(t, s, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	mustCreate(t, s, testPod("p", onNode("n"), func(p *v1.Pod) { p.Namespace = "team" }))
	mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "team"}})
	if _, err := s.Delete(t0, kinds.Namespace, "", "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ns := s.Lookup(kinds.Namespace, "", "team").(*v1.Namespace); ns.DeletionTimestamp == nil || ns.Status.Phase != v1.NamespaceTerminating {
		t.Error("the namespace is not terminating")
	}
	if s.Lookup(kinds.ConfigMap, "team", "c") == nil || s.Pod("team", "p").DeletionTimestamp != nil {
		t.Error("the API server deletes the contents itself")
	}
	if _, err := s.Create(t0, testPod("q", func(p *v1.Pod) { p.Namespace = "team" })); !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		t.Errorf("create in a terminating namespace: %v", err)
	}
	if _, err := s.Delete(t0, kinds.Namespace, "", "team", metav1.DeleteOptions{}); err != nil || s.Lookup(kinds.Namespace, "", "team") == nil {
		t.Errorf("second delete: %v", err)
	}
	if err := s.FinalizeNamespace("team"); err != nil {
		t.Fatal(err)
	}
	if s.Lookup(kinds.Namespace, "", "team") != nil {
		t.Error("the namespace outlived its finalizer")
	}
}
