// Package suitetest has a whole suite in one bubble, as those written for envtest are.
package suitetest

import (
	"context"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/drydocktest"
)

// config is that of the suite's environment.
var config *rest.Config

func TestMain(m *testing.M) {
	os.Exit(drydocktest.Main(m, drydocktest.Options{Nodes: 1}, func(c *drydocktest.Cluster) { config = c.Config("suite") }))
}

// TestTables has subtests, also parallel ones, in virtual time.
func TestTables(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(config)
	began := time.Now()
	t.Run("group", func(t *testing.T) {
		for _, name := range []string{"a", "b"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if _, err := client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Hour)
			})
		}
	})
	if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
		t.Errorf("%v have passed", took)
	}
}

// TestInformer sees what another test has made.
func TestInformer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	lister := factory.Core().V1().Nodes().Lister()
	factory.Core().V1().Nodes().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if _, err := lister.Get("node-0"); err != nil {
		t.Error(err)
	}
	cancel()
	factory.Shutdown()
}

// TestLeavesSomething: runners of suites leave goroutines behind, such as Ginkgo's that waits
// for an interrupt.
func TestLeavesSomething(*testing.T) {
	go func() { <-make(chan int) }()
}
