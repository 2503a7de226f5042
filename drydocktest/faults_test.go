package drydocktest

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
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
		starts, last := 0, error(nil)
		c.Go("writer", func(ctx context.Context) error {
			starts++
			maps := kubernetes.NewForConfigOrDie(c.Config("writer")).CoreV1().ConfigMaps("default")
			if starts > 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			<-ctx.Done()
			_, last = maps.Create(context.WithoutCancel(ctx), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "too-late"}}, metav1.CreateOptions{})
			return errors.New("nobody hears of it")
		})
		time.Sleep(time.Minute)
		c.Crash("writer")
		time.Sleep(time.Minute)
		if starts != 2 || !errors.Is(last, errKilled) {
			t.Errorf("%d starts, %v", starts, last)
		}
		_, err := kubernetes.NewForConfigOrDie(c.Config("other")).CoreV1().ConfigMaps("default").Get(t.Context(), "too-late", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("what was sent too late: %v", err)
		}
	})
}
