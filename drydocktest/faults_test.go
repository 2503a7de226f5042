package drydocktest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func namespace(name string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestFaults: what is wrong with the API is what a client sees of it, and others don't.
func TestFaults(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		victim, other := kubernetes.NewForConfigOrDie(c.Config("victim")), kubernetes.NewForConfigOrDie(c.Config("other"))
		for _, f := range []struct {
			name  string
			fault Fault
			is    func(error) bool
			took  time.Duration // at least
			made  bool
		}{
			{"none", Fault{Client: "nobody", Code: 500}, func(err error) bool { return err == nil }, 0, true},
			{"conflict", Fault{Code: 409}, apierrors.IsConflict, 0, false},
			{"internal", Fault{Code: 500}, apierrors.IsInternalError, 0, false},
			{"late", Fault{Latency: 5 * time.Second}, func(err error) bool { return err == nil }, 5 * time.Second, true},
			{"refused", Fault{Refuse: true}, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, 0, false},
			{"cut", Fault{Drop: true}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, 30 * time.Second, false},
			{"lost", Fault{LoseAnswer: true}, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }, 0, true},
		} {
			if f.fault.Client == "" {
				f.fault.Client = "victim"
			}
			end := c.API().Fault(f.fault)
			began := time.Now()
			_, err := victim.CoreV1().Namespaces().Create(t.Context(), namespace(f.name), metav1.CreateOptions{})
			if took := time.Since(began); !f.is(err) || took < f.took {
				t.Errorf("%s: %v after %v", f.name, err, took)
			}
			began = time.Now()
			_, err = other.CoreV1().Namespaces().Get(t.Context(), f.name, metav1.GetOptions{})
			if made := err == nil; made != f.made {
				t.Errorf("%s: made %v (%v)", f.name, made, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: another client waited %v", f.name, took)
			}
			end()
		}
	})
}

// TestWatchFaults: a watch lags, stalls in a partition and goes on, and breaks.
func TestWatchFaults(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		victim, other := kubernetes.NewForConfigOrDie(c.Config("victim")), kubernetes.NewForConfigOrDie(c.Config("other"))
		w, err := victim.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0", LabelSelector: "!kubernetes.io/metadata.name"})
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
		list, err := victim.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if w, err = victim.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}); err != nil {
			t.Fatal(err)
		}
		late := func(name string) time.Duration {
			began := time.Now()
			if _, err := other.CoreV1().Namespaces().Create(t.Context(), namespace(name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for ev := range w.ResultChan() {
				if ns, ok := ev.Object.(*v1.Namespace); ok && ev.Type == watch.Added && ns.Name == name {
					return time.Since(began)
				}
			}
			return -1
		}
		if d := late("at-once"); d > time.Second {
			t.Errorf("at once: %v", d)
		}
		end := c.API().Fault(Fault{Client: "victim", Verb: "watch", Resource: "namespaces", Latency: 10 * time.Second})
		if d := late("lags"); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("lags: %v", d)
		}
		end()
		c.API().Partition("victim", 20*time.Second)
		if d := late("healed"); d < 19*time.Second || d > 21*time.Second {
			t.Errorf("healed: %v", d)
		}
		c.API().Partition("victim", 5*time.Minute)
		began := time.Now()
		if d := late("never"); d != -1 || time.Since(began) < 44*time.Second || time.Since(began) > 50*time.Second {
			t.Errorf("never: %v, the watch broke after %v", d, time.Since(began))
		}
	})
}

// TestCrash: a process that is killed sends nothing more, and is started anew.
func TestCrash(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		var starts atomic.Int64
		last := make(chan error, 1)
		c.Go("writer", func(ctx context.Context) error {
			n := starts.Add(1)
			maps := kubernetes.NewForConfigOrDie(c.Config("writer")).CoreV1().ConfigMaps("default")
			<-ctx.Done()
			if n > 1 {
				return ctx.Err()
			}
			_, err := maps.Create(context.WithoutCancel(ctx), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "too-late"}}, metav1.CreateOptions{})
			last <- err
			return errors.New("nobody hears of it")
		})
		time.Sleep(time.Minute)
		c.Crash("writer")
		time.Sleep(time.Minute)
		if err := <-last; starts.Load() != 2 || !errors.Is(err, errKilled) {
			t.Errorf("%d starts, %v", starts.Load(), err)
		}
		_, err := kubernetes.NewForConfigOrDie(c.Config("other")).CoreV1().ConfigMaps("default").Get(t.Context(), "too-late", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("what was sent too late: %v", err)
		}
	})
}

// openWatch begins a client's watch of namespaces or nodes, from now on.
func openWatch(t *testing.T, c *Cluster, who, resource string) watch.Interface {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(c.Config(who)).CoreV1()
	var w watch.Interface
	var err error
	if resource == "nodes" {
		w, err = client.Nodes().Watch(t.Context(), metav1.ListOptions{})
	} else {
		w, err = client.Namespaces().Watch(t.Context(), metav1.ListOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// isOpen reports whether a watch still is, when what it has to say is read.
func isOpen(w watch.Interface) bool {
	for {
		select {
		case _, ok := <-w.ResultChan():
			if !ok {
				return false
			}
		case <-time.After(time.Second):
			return true
		}
	}
}

// TestBreakWatches: the watches of one client's one resource end, and no others.
func TestBreakWatches(t *testing.T) {
	Run(t, Options{Nodes: 1}, func(t *testing.T, c *Cluster) {
		hit, of, other := openWatch(t, c, "victim", "namespaces"), openWatch(t, c, "victim", "nodes"), openWatch(t, c, "other", "namespaces")
		c.API().BreakWatches("victim", "namespaces")
		if isOpen(hit) || !isOpen(of) || !isOpen(other) {
			t.Errorf("of namespaces: %v, of nodes: %v, another's: %v", isOpen(hit), isOpen(of), isOpen(other))
		}
		c.API().BreakWatches("victim", "")
		if isOpen(of) || !isOpen(other) {
			t.Errorf("of all: %v, another's: %v", isOpen(of), isOpen(other))
		}
	})
}

// TestForget: a watch goes on from where it was, but not from what the API has forgotten; an
// informer then lists anew.
func TestForget(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		client := kubernetes.NewForConfigOrDie(c.Config("victim"))
		list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		first := func() watch.Event {
			w, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				return watch.Event{Type: watch.Error, Object: &metav1.Status{Message: err.Error(), Reason: apierrors.ReasonForError(err)}}
			}
			defer w.Stop()
			return <-w.ResultChan()
		}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace("n"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if ev := first(); ev.Type != watch.Added {
			t.Errorf("before: %+v", ev)
		}
		c.API().Forget()
		ev := first()
		if status, ok := ev.Object.(*metav1.Status); !ok || ev.Type != watch.Error || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("after: %+v", ev)
		}
	})
}

// TestReplicas: of two replicas one leads at a time. When it is killed, or doesn't reach the
// API, the other one leads once the lease has run out.
func TestReplicas(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		var leads sync.Map // replicas
		leaders := func() (list []any) {
			leads.Range(func(name, _ any) bool { list = append(list, name); return true })
			return list
		}
		leader := func() string {
			list := leaders()
			if len(list) != 1 {
				t.Fatalf("%v lead", list)
			}
			return list[0].(string)
		}
		for _, name := range []string{"one", "two"} {
			c.Go(name, func(ctx context.Context) error {
				client := kubernetes.NewForConfigOrDie(c.Config(name))
				defer leads.Delete(name) // a process that is killed doesn't lead
				for ctx.Err() == nil {
					leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
						Lock: &resourcelock.LeaseLock{
							LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Client: client.CoordinationV1(),
							LockConfig: resourcelock.ResourceLockConfig{Identity: name},
						},
						LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
						Callbacks: leaderelection.LeaderCallbacks{
							OnStartedLeading: func(ctx context.Context) {
								if list := leaders(); len(list) > 0 {
									t.Errorf("%s leads beside %s", name, list)
								}
								leads.Store(name, true)
							},
							OnStoppedLeading: func() { leads.Delete(name) },
						},
					})
				}
				return nil
			})
		}
		time.Sleep(time.Minute)
		first := leader()
		go c.CrashFor(first, 30*time.Second) //nolint:staticcheck // It fails a test only for a process that is not there.
		time.Sleep(10 * time.Second)
		if list := leaders(); len(list) > 0 {
			t.Errorf("%s leads 10s after the crash of %s, whose lease has not run out", list, first)
		}
		time.Sleep(50 * time.Second)
		second := leader()
		if second == first {
			t.Errorf("%s still leads after its crash", first)
		}
		c.API().Partition(second, time.Minute)
		time.Sleep(30 * time.Second)
		if third := leader(); third == second {
			t.Errorf("%s leads in a partition", second)
		}
		time.Sleep(2 * time.Minute)
		leader()
	})
}
