package apiserver

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/loop"
)

// A renewal is an update: of the newest version only, in a new version, with the
// time cut to microseconds; what was handed out before stays as it was.
func TestRenewLease(t *testing.T) {
	s := NewStore(StoreOptions{})
	at := loop.Epoch()
	o, err := s.Create(at, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	first := o.(*coordinationv1.Lease)
	second, err := s.RenewLease(at, first, at.Add(1234567*time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	if got := second.Spec.RenewTime.Sub(at); got != 1234*time.Microsecond {
		t.Errorf("renewed at %v", got)
	}
	if first.Spec.RenewTime != nil || first.ResourceVersion == second.ResourceVersion {
		t.Errorf("the first version is %v, the second %v", first, second)
	}
	if _, err := s.RenewLease(at, first, at); !apierrors.IsConflict(err) {
		t.Errorf("an old version is renewed with %v", err)
	}
	if got, _ := s.Get(KindLease, v1.NamespaceNodeLease, "n"); got != Object(second) {
		t.Errorf("stored is %v", got)
	}
}
