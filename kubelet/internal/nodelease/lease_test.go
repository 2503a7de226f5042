package nodelease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/loop"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

type fakeAPI struct {
	l      *loop.Loop
	lease  *coordinationv1.Lease
	node   *v1.Node
	calls  []string
	times  []time.Duration
	fail   map[string]error
	hang   bool
	closed int

	versions int
	// stored is the lease that was stored last; base is the one that was answered last.
	stored, base *coordinationv1.Lease
}

func (f *fakeAPI) call(ctx context.Context, verb string) error {
	d := time.Millisecond
	if f.hang {
		d = time.Hour
	}
	f.calls = append(f.calls, verb)
	f.times = append(f.times, f.l.Now().Sub(loop.Epoch()))
	if err := f.l.Sleep(ctx, d); err != nil {
		return err
	}
	return f.fail[verb]
}

func (f *fakeAPI) GetLease(ctx context.Context, ns, name string) (*coordinationv1.Lease, error) {
	if err := f.call(ctx, "get"); err != nil {
		return nil, err
	}
	if f.lease == nil {
		return nil, apierrors.NewNotFound(leases, name)
	}
	return f.lease, nil
}

func (f *fakeAPI) CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := f.call(ctx, "create"); err != nil {
		return nil, err
	}
	f.lease = lease
	return lease, nil
}

func (f *fakeAPI) UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := f.call(ctx, "put"); err != nil {
		return nil, err
	}
	if f.lease == nil {
		return nil, apierrors.NewNotFound(leases, lease.Name)
	}
	if lease.ResourceVersion != f.lease.ResourceVersion {
		return nil, apierrors.NewConflict(leases, lease.Name, errors.New("changed"))
	}
	next := *lease
	f.versions++
	next.ResourceVersion = fmt.Sprint(f.versions)
	f.lease, f.stored, f.base = &next, &next, &next
	return &next, nil
}

func (f *fakeAPI) GetNode(ctx context.Context, name string) (*v1.Node, error) {
	if err := f.call(ctx, "node"); err != nil {
		return nil, err
	}
	if f.node == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
	}
	return f.node, nil
}

// quickAPI renews leases without a task.
type quickAPI struct{ *fakeAPI }

func (q quickAPI) RenewLease(lease *coordinationv1.Lease, at time.Time, answer func(*coordinationv1.Lease, string, error)) {
	next := *lease
	next.Spec.RenewTime = &metav1.MicroTime{Time: at}
	known := lease == q.base && q.lease == q.stored && q.lease != nil
	if known {
		next.ResourceVersion = q.lease.ResourceVersion
	}
	q.l.Root().Go("renewal", func(ctx context.Context) {
		updated, err := q.UpdateLease(ctx, &next)
		if err == nil && known {
			q.base = lease
			answer(nil, updated.ResourceVersion, nil)
			return
		}
		answer(updated, "", err)
	})
}

// both runs a test with tasks for all requests, and without one for renewals.
func both(t *testing.T, test func(t *testing.T, f *fakeAPI)) {
	t.Run("tasks", func(t *testing.T) { test(t, start(t)) })
	t.Run("quick", func(t *testing.T) { test(t, begin(t, func(f *fakeAPI) Client { return quickAPI{f} })) })
}

func start(t testing.TB) *fakeAPI { return begin(t, func(f *fakeAPI) Client { return f }) }

func begin(t testing.TB, client func(*fakeAPI) Client) *fakeAPI {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	f := &fakeAPI{l: l, fail: map[string]error{}, node: &v1.Node{}}
	f.node.UID = "node-uid"
	New(Options{Loop: l, Client: client(f), NodeName: "n", RepeatedFailure: func() { f.closed++ }}).Start(l.NewGroup("kubelet"))
	return f
}

func (f *fakeAPI) run(t testing.TB, d time.Duration) string {
	t.Helper()
	f.calls, f.times = f.calls[:0], f.times[:0]
	if err := f.l.RunUntil(f.l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	return strings.Join(f.calls, " ")
}

func TestCreateAndRenew(t *testing.T) {
	both(t, func(t *testing.T, f *fakeAPI) {
		if got := f.run(t, time.Second); got != "get node create" {
			t.Fatal(got)
		}
		s := f.lease.Spec
		if f.lease.Namespace != "kube-node-lease" || f.lease.Name != "n" || *s.HolderIdentity != "n" || *s.LeaseDurationSeconds != 40 ||
			s.AcquireTime != nil || s.LeaseTransitions != nil || s.RenewTime.Nanosecond()%1000 != 0 {
			t.Errorf("%+v", f.lease)
		}
		if o := f.lease.OwnerReferences; len(o) != 1 || o[0].UID != "node-uid" || o[0].Kind != "Node" || o[0].APIVersion != "v1" || o[0].Controller != nil {
			t.Errorf("owner %+v", o)
		}
		first := f.lease
		if got := f.run(t, 10*time.Minute); strings.Count(got, "put") != len(f.calls) || len(f.calls) < 57 || len(f.calls) > 60 {
			t.Errorf("%s", got)
		}
		for i := 1; i < len(f.times); i++ {
			if d := f.times[i] - f.times[i-1]; d < 10*time.Second || d > 10402*time.Millisecond {
				t.Errorf("renewed after %s", d)
			}
		}
		if f.lease == first || !first.Spec.RenewTime.Time.Before(f.lease.Spec.RenewTime.Time) {
			t.Error("a lease that was handed out was written to")
		}
		if w := f.l.Waiting(); len(w) != 0 {
			t.Errorf("tasks between renewals: %v", w)
		}
	})
}

func TestNoNodeNoLease(t *testing.T) {
	both(t, func(t *testing.T, f *fakeAPI) {
		f.node = nil
		if got := f.run(t, time.Second); got != "get node" || f.lease != nil {
			t.Error(got)
		}
		f.node = &v1.Node{}
		if got := f.run(t, 10*time.Second); got != "get node create" {
			t.Error(got)
		}
	})
}

func TestLeaseDeletedByHand(t *testing.T) {
	both(t, func(t *testing.T, f *fakeAPI) {
		f.run(t, time.Second)
		f.lease = nil
		if got := f.run(t, 10*time.Second); got != "put put put put put get node create" || f.closed != 4 {
			t.Errorf("%s, connections closed %d times", got, f.closed)
		}
	})
}

func TestConflict(t *testing.T) {
	both(t, func(t *testing.T, f *fakeAPI) {
		f.run(t, time.Second)
		theirs := *f.lease
		theirs.ResourceVersion = "7"
		f.lease = &theirs
		if got := f.run(t, 10*time.Second); got != "put get put" || f.closed != 0 {
			t.Errorf("%s, closed %d", got, f.closed)
		}
	})
}

func TestPartition(t *testing.T) {
	both(t, func(t *testing.T, f *fakeAPI) {
		f.run(t, time.Second)
		f.fail["put"], f.fail["get"] = errors.New("no route"), errors.New("no route")
		f.run(t, 40*time.Second)
		var gaps []string
		for i := range f.calls {
			if i > 0 && f.calls[i] == "get" && f.calls[i-1] == "get" {
				gaps = append(gaps, (f.times[i] - f.times[i-1]).Round(10*time.Millisecond).String())
			}
		}
		if got := strings.Join(gaps, " "); got != "200ms 400ms 800ms 1.6s 3.2s 6.4s 7s 7s" {
			t.Errorf("waits %s", got)
		}
		clear(f.fail)
		if got := f.run(t, 10*time.Second); !strings.HasPrefix(got, "get put") {
			t.Error(got)
		}
	})
}

func TestHang(t *testing.T) {
	both(t, func(t *testing.T, f *fakeAPI) {
		f.run(t, time.Second)
		f.hang = true
		if got := f.run(t, 65*time.Second); got != "put put put put put get" {
			t.Errorf("%s at %v", got, f.times)
		}
	})
}

func BenchmarkRenewal(b *testing.B) {
	f := start(b)
	f.run(b, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		f.run(b, 10200*time.Millisecond)
	}
}

// An answer that comes after its time says nothing of the renewals that follow.
func TestLateAnswer(t *testing.T) {
	f := begin(t, func(f *fakeAPI) Client { return quickAPI{f} })
	f.run(t, 5*time.Second)
	var late func(*coordinationv1.Lease, string, error)
	m := New(Options{Loop: f.l, NodeName: "n", Client: lateAPI{f, &late}})
	m.Start(f.l.NewGroup("kubelet"))
	f.run(t, 30*time.Second)
	first := late // of a renewal that has run into its timeout
	if first == nil {
		t.Fatal("no renewal was tried")
	}
	before := m.latest
	for m.asked == false {
		f.run(t, time.Second)
	}
	first(&coordinationv1.Lease{}, "", nil)
	if !m.asked || m.latest == before && before == nil || len(m.latest.Name) == 0 {
		t.Errorf("a late answer ended a renewal: %v", m.latest)
	}
}

// lateAPI keeps the answers of renewals.
type lateAPI struct {
	*fakeAPI
	answer *func(*coordinationv1.Lease, string, error)
}

func (a lateAPI) RenewLease(_ *coordinationv1.Lease, _ time.Time, answer func(*coordinationv1.Lease, string, error)) {
	if *a.answer == nil {
		*a.answer = answer
	}
}

// A renewal that fails goes on from the version that those before it have made,
// though only that was answered: it meets no conflict.
func TestFailureAfterRenewals(t *testing.T) {
	f := begin(t, func(f *fakeAPI) Client { return quickAPI{f} })
	f.run(t, time.Minute)
	if f.versions < 4 || f.base == f.stored {
		t.Fatalf("%d versions; the last was answered in full: %v", f.versions, f.base == f.stored)
	}
	f.fail = map[string]error{"put": apierrors.NewInternalError(errors.New("down"))}
	for f.calls = nil; len(f.calls) == 0; {
		f.run(t, time.Millisecond/2)
	}
	f.run(t, 3*time.Millisecond/4)
	f.fail = nil // only the first try has failed
	was := f.versions
	if got := f.run(t, 5*time.Second); got != "" || f.versions != was+1 {
		t.Errorf("calls %q, %d versions after %d: want the put that was under way to succeed", got, f.versions, was)
	}
}
