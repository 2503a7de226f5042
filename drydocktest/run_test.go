package drydocktest

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

// TestAnInformerInVirtualTime has pods that crash seen by an informer for an hour, twice
// with the same trace.
func TestAnInformerInVirtualTime(t *testing.T) {
	var hashes []uint64
	for range 2 {
		Run(t, Options{Nodes: 2, Seed: 7}, func(t *testing.T, c *Cluster) {
			var updates atomic.Int64
			c.Go("watcher", func(ctx context.Context) error {
				factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(c.Config("watcher")), 0)
				_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { updates.Add(1) }})
				if err != nil {
					return err
				}
				factory.Start(ctx.Done())
				<-ctx.Done()
				factory.Shutdown()
				return ctx.Err()
			})
			user := c.Client("user", scheme.Scheme)
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "crashes"}}
			pod.Spec.Containers = []v1.Container{{Name: "app", Image: "busybox", Command: []string{"sh", "-c", "sleep 10; exit 1"}}}
			time.Sleep(10 * time.Second) // the default service account comes
			if err := user.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			c.Expect(t, `restarts("default/crashes") >= 10`)
			if n := updates.Load(); n < 20 {
				t.Errorf("%d updates were seen", n)
			}
			hashes = append(hashes, c.Hash())
		})
	}
	if hashes[0] != hashes[1] {
		t.Errorf("hashes %x", hashes)
	}
}

// TestSignals: who asks for signals, as programs of controllers do, gets none and is none the
// worse.
func TestSignals(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
		defer stop()
		select {
		case <-ctx.Done():
			t.Error("a signal came")
		case <-time.After(time.Hour):
		}
	})
}

// TestNoControlPlane: nobody acts on what is written, as envtest has it.
func TestNoControlPlane(t *testing.T) {
	for _, without := range []bool{false, true} {
		Run(t, Options{Nodes: 1, NoControlPlane: without}, func(t *testing.T, c *Cluster) {
			user := c.Client("user", scheme.Scheme)
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
			d.Spec.Template.Spec.Containers = []v1.Container{{Name: "app", Image: "app:1"}}
			if err := user.Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			want := 1
			if without {
				want = 0
			}
			c.Expect(t, fmt.Sprintf(`pods("default").size() == %d`, want))
		})
	}
}
