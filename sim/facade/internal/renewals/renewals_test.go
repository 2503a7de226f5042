package renewals

import (
	"math/rand/v2"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// leases are managed fields of leases, by the library.
func leases(t *testing.T) *managedfields.FieldManager {
	gvk := coordinationv1.SchemeGroupVersion.WithKind("Lease")
	m, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, scheme.Scheme, scheme.Scheme, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// written has a manager replace a lease, as the library does it.
func written(t *testing.T, m *managedfields.FieldManager, old, obj *coordinationv1.Lease, manager string) *coordinationv1.Lease {
	out, err := m.Update(old.DeepCopy(), obj.DeepCopy(), manager)
	if err != nil {
		t.Fatal(err)
	}
	return out.(*coordinationv1.Lease)
}

func newLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
}

// lease is a lease that a manager has made.
func lease(t *testing.T, m *managedfields.FieldManager, manager string) *coordinationv1.Lease {
	obj := newLease()
	obj.Labels = map[string]string{"l": "v"}
	obj.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("x"), LeaseDurationSeconds: ptr.To[int32](15), LeaseTransitions: ptr.To[int32](0),
		RenewTime: &metav1.MicroTime{Time: time.Unix(1000, 0)},
	}
	return written(t, m, newLease(), obj, manager)
}

// TestRenewals: what is taken for a renewal, and what isn't.
func TestRenewals(t *testing.T) {
	m := leases(t)
	for _, tc := range []struct {
		name    string
		manager string
		change  func(old, sent *coordinationv1.Lease)
		want    bool
	}{
		{"renewed", "one", func(_, l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(1010, 0)} }, true},
		{"sent without managed fields", "one", func(_, l *coordinationv1.Lease) { l.ManagedFields, l.Spec.HolderIdentity = nil, ptr.To("y") }, true},
		{"nothing changed", "one", func(_, _ *coordinationv1.Lease) {}, true},
		{"to 1 from 0", "one", func(_, l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To[int32](1) }, true},
		{"by another", "two", func(_, l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("y") }, false},
		{"a field comes", "one", func(_, l *coordinationv1.Lease) { l.Spec.AcquireTime = &metav1.MicroTime{Time: time.Unix(1010, 0)} }, false},
		{"a field goes", "one", func(_, l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, false},
		{"a time goes", "one", func(_, l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{} }, false},
		{"a label", "one", func(_, l *coordinationv1.Lease) { l.Labels = map[string]string{"l": "w"} }, false},
		{"a finalizer", "one", func(_, l *coordinationv1.Lease) { l.Finalizers = []string{"a/b"} }, false},
		{"managed fields reset", "one", func(_, l *coordinationv1.Lease) { l.ManagedFields = []metav1.ManagedFieldsEntry{} }, false},
		{"managed fields meddled with", "one", func(_, l *coordinationv1.Lease) { l.ManagedFields[0].Manager = "three" }, false},
		{"of two managers", "one", func(old, l *coordinationv1.Lease) {
			old.ManagedFields = append(old.ManagedFields, metav1.ManagedFieldsEntry{Manager: "two", Operation: metav1.ManagedFieldsOperationApply})
			l.Spec.HolderIdentity = ptr.To("y")
		}, false},
		{"nobody's field", "one", func(old, l *coordinationv1.Lease) {
			old.Spec.Strategy, l.Spec.Strategy = ptr.To[coordinationv1.CoordinatedLeaseStrategy]("OldestEmulationVersion"), ptr.To[coordinationv1.CoordinatedLeaseStrategy]("other")
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old := lease(t, m, "one")
			sent := old.DeepCopy()
			tc.change(old, sent)
			if got := (Sets{}).Renewed(old, sent, tc.manager, "coordination.k8s.io/v1"); (got != nil) != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestRenewalsAsTheLibrary: with random changes, what is taken for a renewal has the
// managed fields that the library finds.
func TestRenewalsAsTheLibrary(t *testing.T) {
	m, sets, r := leases(t), Sets{}, rand.New(rand.NewPCG(1, 2))
	maybe := func(p **string) {
		if r.IntN(3) == 0 {
			*p = []*string{nil, ptr.To(""), ptr.To("x"), ptr.To("y")}[r.IntN(4)]
		}
	}
	number := func(p **int32) {
		if r.IntN(3) == 0 {
			*p = []*int32{nil, ptr.To[int32](0), ptr.To[int32](1)}[r.IntN(3)]
		}
	}
	date := func(p **metav1.MicroTime) {
		if r.IntN(2) == 0 {
			*p = []*metav1.MicroTime{nil, {}, {Time: time.Unix(1, 0)}, {Time: time.Unix(2, 0).UTC()}, {Time: time.Unix(2, 0)}}[r.IntN(5)]
		}
	}
	live, renewals := lease(t, m, "one"), 0
	for range 5_000 {
		sent := live.DeepCopy()
		maybe(&sent.Spec.HolderIdentity)
		number(&sent.Spec.LeaseDurationSeconds)
		number(&sent.Spec.LeaseTransitions)
		date(&sent.Spec.RenewTime)
		date(&sent.Spec.AcquireTime)
		if r.IntN(10) == 0 {
			sent.Labels = []map[string]string{nil, {}, {"l": "v"}}[r.IntN(3)]
		}
		if r.IntN(5) == 0 {
			sent.ManagedFields = [][]metav1.ManagedFieldsEntry{nil, {}}[r.IntN(2)]
		}
		manager := "one"
		if r.IntN(20) == 0 {
			manager = "two"
		}
		want := written(t, m, live, sent, manager)
		if got := sets.Renewed(live.DeepCopy(), sent.DeepCopy(), manager, "coordination.k8s.io/v1"); got != nil {
			renewals++
			b, w := got.(*coordinationv1.Lease), want.DeepCopy()
			if changed := !w.ManagedFields[0].Time.Equal(live.ManagedFields[0].Time); changed {
				w.ManagedFields[0].Time = &metav1.Time{}
			}
			if !equality.Semantic.DeepEqual(b, w) {
				t.Fatalf("from\n%v\nto\n%v\ngot\n%v\nwant\n%v", live, sent, b, w)
			}
		}
		if live = want; r.IntN(10) == 0 {
			live = lease(t, m, "one")
		}
		for i := range live.ManagedFields {
			live.ManagedFields[i].Time = &metav1.Time{Time: time.Unix(1, 0)} // not the library's, which is now
		}
	}
	if renewals < 500 {
		t.Errorf("only %d of 5,000 were taken for renewals", renewals)
	}
	t.Logf("%d renewals, %d sets", renewals, len(sets))
}
