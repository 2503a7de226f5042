package kinds

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Lease is the kind of leases. Nodes and leader elections renew them; an update
// must name the version that it was made from, which is what makes an election
// safe.
const Lease kind.Kind = "Lease"

// lease returns the row of Lease (pkg/registry/coordination/lease/strategy.go).
func lease() *kind.Info {
	return &kind.Info{
		Kind: Lease, AnyFinalizer: true, Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Unwritten: true, Namespaced: true, NeedsVersion: true, CreatesOnUpdate: true,
		Strategy: &kind.Typed[coordinationv1.Lease, *coordinationv1.Lease]{
			Reset: func(l *coordinationv1.Lease) {
				l.Spec = asjson.Lease(l.Spec)
				l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil // CoordinatedLeaderElection is off
			},
			Check: validateLease,
			Table: leaseTable(),
		},
	}
}

func leaseTable() []kind.Column[coordinationv1.Lease] {
	type lease = coordinationv1.Lease
	return []kind.Column[lease]{
		kind.NameColumn[lease](),
		{Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"], Cell: func(l *lease, _ time.Time) any {
			if l.Spec.HolderIdentity == nil {
				return ""
			}
			return *l.Spec.HolderIdentity
		}},
		kind.AgeColumn[lease](),
	}
}

// validateLease is ValidateLeaseSpec.
func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	// Such a lease would be over before anybody reads it.
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil {
		errs = append(errs, fields.NonNegative(int64(*n), spec.Child("leaseTransitions"))...)
	}
	return errs
}
