package operator

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/drydocktest"
)

// scheme has shops and what is built in.
var scheme = func() *runtime.Scheme {
	s, err := NewScheme()
	if err != nil {
		panic(err)
	}
	return s
}()

// fiveNodes is the cluster of these tests.
var fiveNodes = drydocktest.Options{Scenario: "testdata/five-nodes.yaml", CRDs: []string{"config/crd/bases"}, Seed: 1}

// startManager runs the operator beside a test.
func startManager(c *drydocktest.Cluster, o Options) {
	o.SameName = true
	c.Go("manager", func(ctx context.Context) error {
		mgr, err := NewManager(c.Config("shop-operator"), o)
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

func shop(name string, replicas int32) *Shop {
	return &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: ShopSpec{Replicas: replicas, Greeting: "hello"}}
}

// ready is how many pods a shop says are ready.
func ready(t *testing.T, user *drydocktest.Client, name string) int32 {
	s := &Shop{}
	if err := user.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s.Status.Ready
}

func TestShopSurvivesANode(t *testing.T) {
	for _, concurrent := range []int{1, 8} {
		t.Run(fmt.Sprint(concurrent), func(t *testing.T) { survivesANode(t, Options{Concurrent: concurrent}, new(uint64)) })
	}
}

// survivesANode has a node of a shop's die for 20 minutes of an hour, and counts requests.
func survivesANode(t *testing.T, o Options, requests *uint64) {
	drydocktest.Run(t, fiveNodes, func(t *testing.T, c *drydocktest.Cluster) {
		startManager(c, o)
		user := c.Client("user", scheme)
		if err := user.Create(t.Context(), shop("a", 3)); err != nil {
			t.Fatal(err)
		}
		c.Eventually(t, 2*time.Minute, func() bool { return ready(t, user, "a") == 3 })
		c.Node("n0").PowerCut(20 * time.Minute)
		time.Sleep(10 * time.Minute) // of the cluster's time
		// A pod that was on the node is being deleted until the node is back to say that it is.
		c.Expect(t, `pods("default").all(p, p.spec.nodeName != "n0" || has(p.metadata.deletionTimestamp))`)
		time.Sleep(49 * time.Minute)
		*requests = c.Requests()
		t.Logf("trace hash %x, %d requests", c.Hash(), *requests)
	})
}
