package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// roomy is a kubelet's side of a pod: its cached status in a room of its own, and
// the API's object as it last saw it.
type roomy struct {
	name string
	room *v1.Pod
	base *v1.Pod
}

// TestRoomChangesNothing has kubelets send statuses in rooms, late, twice and for
// pods that are not there any more, while others write. A store that is given
// copies and no room comes to the same; nothing that was handed out is ever
// written to.
func TestRoomChangesNothing(t *testing.T) {
	taken := 0
	for seed := range uint64(20) {
		taken += roomAndCopies(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if taken < 250 {
		t.Errorf("%d rooms were taken", taken)
	}
}

func roomAndCopies(t *testing.T, r *rand.Rand) (taken int) {
	s, plain := New(Options{}), New(Options{})
	both := func(fn func(s *Store) error) {
		if a, b := fn(s), fn(plain); (a == nil) != (b == nil) || a != nil && a.Error() != b.Error() {
			t.Errorf("%v, with copies %v", a, b)
		}
	}
	pods := make([]roomy, 6)
	for i := range pods {
		pods[i].name = fmt.Sprint("p", i)
	}
	seen := map[*v1.Pod]*v1.Pod{} // by object, as it was
	cached := map[*v1.PodStatus]*v1.PodStatus{}
	on := map[string][]types.UID{}
	s.OnChange(func(c kind.Change) {
		old, pod := (*v1.Pod)(nil), c.New.(*v1.Pod)
		if c.Old != nil {
			old = c.Old.(*v1.Pod)
		}
		if old != nil && (c.Type == "DELETED" || old.Spec.NodeName != pod.Spec.NodeName) {
			on[old.Spec.NodeName] = slices.DeleteFunc(on[old.Spec.NodeName], func(uid types.UID) bool { return uid == old.UID })
		}
		if c.Type != "DELETED" && (old == nil || old.Spec.NodeName != pod.Spec.NodeName) {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod.UID)
		}
	}, kinds.Pod)
	now := t0
	for range 400 {
		now = now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
		p := &pods[r.IntN(len(pods))]
		cur := s.Pod("default", p.name)
		switch r.IntN(12) {
		case 0, 1, 2: // a new status, in a new room
			st := nextStatus(r, p, now)
			p.room = &v1.Pod{Status: st}
			cached[&p.room.Status] = st.DeepCopy()
		case 3, 4, 5, 6, 7: // it is sent; the answer may be lost
			if p.room == nil || p.base == nil {
				break
			}
			base, st, fresh := p.base.Status.DeepCopy(), p.room.Status.DeepCopy(), p.room.Name == ""
			var got *v1.Pod
			both(func(x *Store) (err error) {
				if x == plain {
					_, err = x.PatchPodStatusIn("default", p.name, p.base.UID, base, st, nil)
					return err
				}
				got, err = x.PatchPodStatusIn("default", p.name, p.base.UID, &p.base.Status, &p.room.Status, p.room)
				return err
			})
			if got == p.room && fresh {
				taken++
			}
			if got != nil && r.IntN(3) > 0 {
				p.base = got
			}
		case 8: // seen again
			p.base = cur
		case 9: // somebody else's write
			if cur == nil {
				break
			}
			others := cur.Status
			if r.IntN(2) == 0 {
				others.Phase = v1.PodPhase([]string{"Pending", "Running"}[r.IntN(2)])
			} else {
				others.Conditions = append(slices.Clone(others.Conditions), v1.PodCondition{Type: v1.PodConditionType(fmt.Sprint("x/", r.IntN(2))), Status: v1.ConditionTrue})
				others.Conditions = slices.CompactFunc(others.Conditions, func(a, b v1.PodCondition) bool { return a.Type == b.Type })
			}
			both(func(x *Store) error {
				_, err := x.PatchPodStatus(now, "default", p.name, "", nil, others.DeepCopy())
				return err
			})
		case 10:
			label := map[string]string{"a": fmt.Sprint(r.IntN(3))}
			both(func(x *Store) error {
				_, err := x.PatchPodMeta(now, "default", p.name, "", func(m *metav1.ObjectMeta) { m.Labels = label })
				return err
			})
		case 11:
			grace, way := int64(r.IntN(2)), r.IntN(3)
			both(func(x *Store) (err error) {
				switch {
				case cur == nil:
					_, err = x.Create(now, testPod(p.name, onNode(fmt.Sprint("n", way))))
				case way == 0:
					err = x.Evict(now, "default", p.name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
				default:
					_, err = x.Delete(now, kinds.Pod, "default", p.name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
				}
				return err
			})
		}
		a, b := s.Pod("default", p.name), plain.Pod("default", p.name)
		if !equality.Semantic.DeepEqual(a, b) || s.Version() != plain.Version() {
			t.Fatalf("%+v\nwith copies %+v", a, b)
		}
		if a != nil && seen[a] == nil {
			seen[a] = a.DeepCopy()
		}
	}
	for n := range 3 {
		node := fmt.Sprint("n", n)
		list := s.PodsOnNode(node)
		if !slices.EqualFunc(list, on[node], func(p *v1.Pod, uid types.UID) bool { return p.UID == uid && p == s.Pod(p.Namespace, p.Name) }) {
			t.Errorf("on %s are %v, not %v", node, list, on[node])
		}
	}
	for p, was := range seen {
		if !equality.Semantic.DeepEqual(p, was) {
			t.Errorf("written to: %+v\nwas %+v", p, was)
		}
	}
	for st, was := range cached {
		if !equality.Semantic.DeepEqual(st, was) {
			t.Errorf("cached, and written to: %+v\nwas %+v", st, was)
		}
	}
	return taken
}

// nextStatus is a status that a kubelet makes of its last, or of what it saw: what
// has not changed stays the same list.
func nextStatus(r *rand.Rand, p *roomy, now time.Time) v1.PodStatus {
	st := v1.PodStatus{QOSClass: v1.PodQOSBestEffort}
	switch {
	case p.room != nil && r.IntN(4) > 0:
		st = p.room.Status
	case p.base != nil:
		st = p.base.Status
	}
	at := asjson.Time(now)
	if r.IntN(20) == 0 {
		at = metav1.Time{Time: now} // to be cut
	}
	if r.IntN(2) == 0 {
		st.Phase = v1.PodPhase([]string{"Pending", "Running", "Failed"}[r.IntN(3)])
	}
	if st.StartTime == nil && r.IntN(2) == 0 {
		st.StartTime = &at
	}
	if r.IntN(2) == 0 {
		st.Conditions = slices.Clip(append(slices.DeleteFunc(slices.Clone(st.Conditions), func(c v1.PodCondition) bool { return c.Type == v1.PodReady }),
			v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: at}))
	}
	if r.IntN(2) == 0 {
		st.ContainerStatuses = []v1.ContainerStatus{{Name: "main", RestartCount: int32(r.IntN(3)), State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at}}}}
	}
	if r.IntN(4) == 0 {
		st.PodIP = fmt.Sprint("10.0.0.", r.IntN(3))
		st.PodIPs = []v1.PodIP{{IP: st.PodIP}}
	}
	return st
}

// TestExpiryUnseenRandomly has events come, change, go and expire in a store whose
// events nobody wants to see, and in one where somebody does.
func TestExpiryUnseenRandomly(t *testing.T) {
	const ttl = 20 * time.Second
	unseen, seen := New(Options{EventTTL: ttl}), New(Options{EventTTL: ttl})
	expired := 0
	seen.OnChange(func(c kind.Change) {
		if c.Verb == "expire" && c.New.GetName() == c.Old.GetName() && c.New.GetResourceVersion() == fmt.Sprint(c.Version) {
			expired++
		}
	})
	r := rand.New(rand.NewPCG(5, 6))
	now := t0
	for i := range 4000 {
		now = now.Add(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
		if i%1000 > 900 {
			now = now.Add(time.Second)
		}
		whole, which, act, list := r.IntN(6) == 0, max(0, i-r.IntN(40)), r.IntN(6), r.IntN(300) == 0
		var trail [2]string
		for n, s := range []*Store{unseen, seen} {
			next := s.ExpireEvents(now)
			ev := kubeletEvent(i)
			if whole {
				ev.Labels = map[string]string{"whole": "yes"}
			}
			if err := s.PostEvent(now, ev); err != nil {
				t.Fatal(err)
			}
			other := kubeletEvent(which)
			if old, ok := s.events.get(other.Namespace, other.Name); ok && act == 0 {
				_, err := s.Delete(now, kinds.Event, old.Namespace, old.Name, metav1.DeleteOptions{})
				trail[n] = fmt.Sprint(err)
			} else if ok && act < 3 {
				again := *old
				again.Count++
				_, err := s.PatchEvent(now, old, &again)
				trail[n] = fmt.Sprint(err)
			}
			if list { // from then on they are kept whole
				for _, ev := range s.Events() {
					trail[n] += fmt.Sprint(" ", ev.Name, "=", ev.ResourceVersion, "/", ev.Count)
				}
			}
			trail[n] += fmt.Sprint(" next ", next, " version ", s.Version(), " events ", s.events.n-s.events.holes)
		}
		if trail[0] != trail[1] {
			t.Fatalf("step %d: unseen %s\nseen %s", i, trail[0], trail[1])
		}
	}
	if expired < 1000 {
		t.Errorf("only %d events expired", expired)
	}
}

// TestRenewalsAgreeWithUpdates has leases renewed by who remembers their slots, of
// what was answered now or before, while they are written, deleted and made anew.
// A store in which each is an update comes to the same.
func TestRenewalsAgreeWithUpdates(t *testing.T) {
	type holder struct {
		slot   *LeaseSlot
		lease  *coordinationv1.Lease // as last answered
		copied *coordinationv1.Lease // with the versions of renewals since
	}
	short := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		s, plain := New(Options{}), New(Options{})
		var holders [6]holder // two of each lease: a kubelet and the one after its restart
		now := t0
		for step := range 600 {
			now = now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
			h := &holders[r.IntN(len(holders))]
			name := fmt.Sprint("n", r.IntN(3))
			var errs [2]error
			switch r.IntN(30) {
			case 0:
				obj := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: name}}
				_, errs[0] = s.Create(now, obj.DeepCopy())
				_, errs[1] = plain.Create(now, obj.DeepCopy())
			case 1:
				_, errs[0] = s.Delete(now, kinds.Lease, v1.NamespaceNodeLease, name, metav1.DeleteOptions{})
				_, errs[1] = plain.Delete(now, kinds.Lease, v1.NamespaceNodeLease, name, metav1.DeleteOptions{})
			case 2: // another holder
				for i, x := range []*Store{s, plain} {
					if o := x.Lookup(kinds.Lease, v1.NamespaceNodeLease, name); o != nil {
						c := *o.(*coordinationv1.Lease)
						c.Spec.HolderIdentity = ptr(fmt.Sprint(step))
						_, errs[i] = x.UpdateLease(now, &c)
					}
				}
			case 3: // it is read
				h.lease, h.copied = nil, nil
				if o := s.Lookup(kinds.Lease, v1.NamespaceNodeLease, name); o != nil {
					c := *o.(*coordinationv1.Lease) // two don't renew one object
					h.lease = &c
					h.copied = plain.Lookup(kinds.Lease, v1.NamespaceNodeLease, name).(*coordinationv1.Lease)
				}
			default:
				if h.lease == nil {
					continue
				}
				c := *h.copied
				c.Spec.RenewTime = &metav1.MicroTime{Time: now}
				updated, version, err := s.RenewLease(now, h.lease, now, &h.slot)
				want, wantErr := plain.UpdateLease(now, &c)
				errs = [2]error{err, wantErr}
				switch {
				case err != nil || wantErr != nil:
				case updated != nil:
					h.lease, h.copied = updated, want
				default:
					short++
					if version != want.ResourceVersion {
						t.Fatalf("seed %d step %d: version %s, not %s", seed, step, version, want.ResourceVersion)
					}
					h.copied = want
				}
			}
			if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
				t.Fatalf("seed %d step %d: %v, as an update %v", seed, step, errs[0], errs[1])
			}
			if r.IntN(4) == 0 { // not always: to look makes the lease
				a, b := s.Lookup(kinds.Lease, v1.NamespaceNodeLease, name), plain.Lookup(kinds.Lease, v1.NamespaceNodeLease, name)
				if !equality.Semantic.DeepEqual(a, b) {
					t.Fatalf("seed %d step %d: %+v\nas an update %+v", seed, step, a, b)
				}
			}
			if s.Version() != plain.Version() {
				t.Fatalf("seed %d step %d: version %d, not %d", seed, step, s.Version(), plain.Version())
			}
		}
	}
	if short < 500 {
		t.Errorf("%d renewals took the short way", short)
	}
}
