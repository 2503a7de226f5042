package store

import (
	"reflect"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// A renewal is an update: of the newest version only, in a new version, with the
// time cut to microseconds; what was handed out before stays as it was, whoever
// looks between renewals.
func TestRenewLease(t *testing.T) {
	s := New(Options{})
	at := loop.Epoch()
	o, err := s.Create(at, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	first := o.(*coordinationv1.Lease)
	old, told := first, ""
	s.OnChange(func(c kind.Change) {
		was, is := c.Old.(*coordinationv1.Lease), c.New.(*coordinationv1.Lease)
		if c.Verb != "update" || c.Type != watch.Modified || !reflect.DeepEqual(was, old) {
			t.Errorf("told of a %s from %v, it was %v", c.Verb, was, old)
		}
		told, old = is.ResourceVersion, is.DeepCopy()
	})
	get := func() *coordinationv1.Lease {
		l, err := s.Get(kinds.Lease, v1.NamespaceNodeLease, "n")
		if err != nil {
			t.Fatal(err)
		}
		return l.(*coordinationv1.Lease)
	}
	var slot *LeaseSlot
	var seen, copies []*coordinationv1.Lease
	for i := range 6 {
		at = at.Add(10*time.Second + 1234567*time.Nanosecond)
		updated, version, err := s.RenewLease(at, first, at, &slot)
		if err != nil || updated != nil || version != told {
			t.Fatalf("renewal %d: %v, version %q (told %q), %v", i, updated, version, told, err)
		}
		if i%2 == 0 {
			continue
		}
		got := get()
		if got.ResourceVersion != version || !got.Spec.RenewTime.Time.Equal(at.Truncate(time.Microsecond)) || !reflect.DeepEqual(got, old) || got != get() {
			t.Errorf("renewal %d: stored is %v", i, got)
		}
		seen, copies = append(seen, got), append(copies, got.DeepCopy())
	}
	if first.Spec.RenewTime != nil || !reflect.DeepEqual(seen, copies) {
		t.Errorf("what was handed out has changed: %v, %v, which was %v", first, seen, copies)
	}
	if len(s.Leases()) != 1 || s.Leases()[0] != get() {
		t.Errorf("leases %v", s.Leases())
	}
	mine := *get()
	if _, err := s.UpdateLease(at, &mine); err != nil {
		t.Errorf("an update of the newest version: %v", err)
	}
	if _, _, err := s.RenewLease(at, first, at, &slot); !apierrors.IsConflict(err) {
		t.Errorf("an old version is renewed with %v", err)
	}
	mine = *get()
	updated, version, err := s.RenewLease(at, &mine, at, &slot)
	if err != nil || updated != get() || version != "" {
		t.Errorf("a copy of the newest version is renewed to %v, %q, %v", updated, version, err)
	}
}

// TestRenewalForgetsItsSlot has the slot that a renewal remembers leave the table:
// the next renewal is of what is there now.
func TestRenewalForgetsItsSlot(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, s *Store, lease *coordinationv1.Lease)
		want func(error) bool
	}{
		{"deleted", func(t *testing.T, s *Store, lease *coordinationv1.Lease) {
			if _, err := s.Delete(t0, kinds.Lease, lease.Namespace, lease.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, apierrors.IsNotFound},
		{"made anew", func(t *testing.T, s *Store, lease *coordinationv1.Lease) {
			if _, err := s.Delete(t0, kinds.Lease, lease.Namespace, lease.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			mustCreate(t, s, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name}})
		}, apierrors.IsConflict},
		{"written", func(t *testing.T, s *Store, lease *coordinationv1.Lease) {
			c := *s.Lookup(kinds.Lease, lease.Namespace, lease.Name).(*coordinationv1.Lease)
			c.Labels = map[string]string{"a": "b"}
			if _, err := s.UpdateLease(t0, &c); err != nil {
				t.Fatal(err)
			}
		}, apierrors.IsConflict},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			lease := mustCreate(t, s, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n"}}).(*coordinationv1.Lease)
			var slot *LeaseSlot
			if _, _, err := s.RenewLease(t0, lease, t0, &slot); err != nil || slot == nil {
				t.Fatal(slot, err)
			}
			tc.do(t, s, lease)
			before := s.Version()
			if _, _, err := s.RenewLease(t0, lease, t0, &slot); !tc.want(err) || s.Version() != before {
				t.Errorf("renewed with %v", err)
			}
		})
	}
}
