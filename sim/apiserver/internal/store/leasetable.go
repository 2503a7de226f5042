package store

import (
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// leaseTable holds the leases. A node renews its own every ten seconds and
// nobody looks at most: so of renewals it keeps the time and the version, and
// makes the lease of them when somebody asks.
type leaseTable struct{ slots *table.Table[*LeaseSlot] }

// LeaseSlot is a lease. The embedded one is out of date while version is not "".
type LeaseSlot struct {
	*coordinationv1.Lease
	// base is the lease as it was last answered to who renews it; renewals since
	// were not. nil once the table has another slot of that name, or none.
	base    *coordinationv1.Lease
	version string // of the last renewal
	at      int64  // its time, ns since the Unix epoch, in whole microseconds
}

// newLeaseTable returns an empty table.
func newLeaseTable() *leaseTable { return &leaseTable{table.New[*LeaseSlot]()} }

// current fills to with the lease as it is; at is room for its time.
func (x *LeaseSlot) current(to *coordinationv1.Lease, at *metav1.MicroTime) {
	*to = *x.Lease
	if x.version == "" {
		return
	}
	to.ResourceVersion = x.version
	at.Time = time.Unix(0, x.at).UTC()
	to.Spec.RenewTime = at
}

// lease returns the lease as it is, to be shared.
func (x *LeaseSlot) lease() *coordinationv1.Lease {
	if x.version != "" {
		next := &struct { // in one piece
			lease coordinationv1.Lease
			at    metav1.MicroTime
		}{}
		x.current(&next.lease, &next.at)
		x.Lease, x.version = &next.lease, ""
	}
	return x.Lease
}

// get returns a lease as it is now, to be shared.
func (t *leaseTable) get(namespace, name string) (*coordinationv1.Lease, bool) {
	x, ok := t.slots.Get(namespace, name)
	if !ok {
		return nil, false
	}
	return x.lease(), true
}

// Find is that of table.Any.
func (t *leaseTable) Find(namespace, name string) kind.Object {
	if lease, ok := t.get(namespace, name); ok {
		return lease
	}
	return nil
}

// Put is that of table.Any. The lease gets a slot of its own: who remembers the old
// one may hold a renewal that is on its way.
func (t *leaseTable) Put(obj kind.Object) {
	lease := obj.(*coordinationv1.Lease)
	t.retire(lease.Namespace, lease.Name)
	t.slots.Set(&LeaseSlot{Lease: lease, base: lease})
}

// Drop is that of table.Any.
func (t *leaseTable) Drop(namespace, name string) {
	t.retire(namespace, name)
	t.slots.Drop(namespace, name)
}

// retire tells who remembers a slot that it is not in the table any more.
func (t *leaseTable) retire(namespace, name string) {
	if x, ok := t.slots.Get(namespace, name); ok {
		x.base = nil
	}
}

// each is that of table.
func (t *leaseTable) Each(fn func(kind.Object) bool) {
	for _, x := range t.slots.View() {
		if !fn(x.lease()) {
			return
		}
	}
}

// Len is that of table.Any.
func (t *leaseTable) Len() int { return t.slots.Len() }

// view returns the leases, oldest first.
func (t *leaseTable) view() []*coordinationv1.Lease {
	out := make([]*coordinationv1.Lease, 0, t.slots.Len())
	for _, x := range t.slots.View() {
		out = append(out, x.lease())
	}
	return out
}

// spareLeases are memory for what hooks are told of a renewal.
type spareLeases struct {
	old, now     coordinationv1.Lease
	oldAt, nowAt metav1.MicroTime
}

// RenewLease is UpdateLease of a lease, as it was last answered, with another
// renew time. If nobody else has written it, only the version is answered. found
// keeps its slot for the next renewal; nil is none.
func (s *Store) RenewLease(now time.Time, lease *coordinationv1.Lease, at time.Time, found **LeaseSlot) (updated *coordinationv1.Lease, version string, err error) {
	x := *found
	if x == nil || x.base != lease {
		x, _ = s.leases.slots.Get(lease.Namespace, lease.Name)
		*found = x
	}
	// Somebody else wrote the lease, or hooks are being told: what they are told
	// then must stay good.
	if x == nil || x.base != lease || s.telling {
		c := *lease
		c.Spec.RenewTime = &metav1.MicroTime{Time: at}
		updated, err = s.UpdateLease(now, &c)
		return updated, "", err
	}
	// Hooks get two leases whose memory the next renewal uses again.
	told := &s.spareLeases
	x.current(&told.old, &told.oldAt)
	s.version++
	x.version, x.at = strconv.FormatUint(s.version, 10), at.Truncate(time.Microsecond).UnixNano()
	x.current(&told.now, &told.nowAt)
	s.tell(kind.Change{Type: watch.Modified, Kind: kinds.Lease, Old: &told.old, New: &told.now, Verb: "update", Version: s.version})
	return nil, x.version, nil
}
