package operator

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drydock-sim/drydock/drydocktest"
)

// withShop runs a test with the operator and a shop "a" of three pods that are ready.
func withShop(t *testing.T, body func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client)) {
	t.Helper()
	drydocktest.Run(t, fiveNodes, func(t *testing.T, c *drydocktest.Cluster) {
		startManager(c, Options{})
		user := c.Client("user", scheme)
		if err := user.Create(t.Context(), shop("a", 3)); err != nil {
			t.Fatal(err)
		}
		c.Eventually(t, 2*time.Minute, func() bool { return ready(t, user, "a") == 3 })
		body(t, c, user)
	})
}

func TestScales(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		for _, n := range []int32{5, 1} {
			change(t, user, "a", func(s *Shop) { s.Spec.Replicas = n })
			c.Eventually(t, time.Minute, func() bool { return ready(t, user, "a") == n })
		}
	})
}

func TestLeavesNothing(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		if err := user.Delete(t.Context(), shop("a", 0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		allIsWell(t, c, nil)
	})
}

func TestWritesItsGreetingAgain(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := user.Delete(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		c.Eventually(t, time.Minute, func() bool { return user.Get(t.Context(), client.ObjectKeyFromObject(cm), cm) == nil })
	})
}

// TestGoesOnAfterACrash: the manager is killed while it has something to do, and a new one
// has to wait for the lease of the old one.
func TestGoesOnAfterACrash(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		change(t, user, "a", func(s *Shop) { s.Spec.Replicas = 4 })
		c.Crash("manager")
		c.Eventually(t, 2*time.Minute, func() bool { return ready(t, user, "a") == 4 })
	})
}

func TestHealsAfterErrors(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		c.API().Fault(drydocktest.Fault{Client: "shop-operator", Resource: "deployments", Code: 500, Probability: 0.8, For: time.Minute})
		change(t, user, "a", func(s *Shop) { s.Spec.Replicas = 5 })
		c.Eventually(t, 5*time.Minute, func() bool { return ready(t, user, "a") == 5 })
	})
}

func TestServesFromAStaleCache(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		c.API().Fault(drydocktest.Fault{Client: "shop-operator", Verb: "watch", Latency: 30 * time.Second, For: 2 * time.Minute})
		change(t, user, "a", func(s *Shop) { s.Spec.Replicas = 2 })
		change(t, user, "a", func(s *Shop) { s.Spec.Replicas = 6 })
		time.Sleep(5 * time.Minute)
		allIsWell(t, c, map[string]int32{"a": 6})
	})
}

func TestSurvivesADrain(t *testing.T) {
	withShop(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		for _, node := range []string{"n0", "n1"} {
			c.Node(node).Drain()
		}
		time.Sleep(2 * time.Minute)
		c.Expect(t, `pods("default").size() == 3 && pods("default").all(p, ready(p) && !(p.spec.nodeName in ["n0", "n1"]))`)
	})
}

func TestRefusesWhatIsWrong(t *testing.T) {
	drydocktest.Run(t, fiveNodes, func(t *testing.T, c *drydocktest.Cluster) {
		if err := c.Client("user", scheme).Create(t.Context(), shop("a", -1)); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
	})
}
