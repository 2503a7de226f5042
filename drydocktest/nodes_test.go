package drydocktest

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// runner is a pod that runs for ever.
func runner(name, node string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.NodeName = node
	p.Spec.Containers = []v1.Container{{Name: "app", Image: "app:1"}}
	return p
}

// withPods runs a test on two nodes with a pod on each: "a" and "b".
func withPods(t *testing.T, body func(t *testing.T, c *Cluster)) {
	t.Helper()
	Run(t, Options{Nodes: 2}, func(t *testing.T, c *Cluster) {
		time.Sleep(10 * time.Second)
		user := c.Client("user", scheme.Scheme)
		for name, node := range map[string]string{"a": "node-0", "b": "node-1"} {
			if err := user.Create(t.Context(), runner(name, node)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		c.Expect(t, `pods("default").all(p, ready(p))`)
		body(t, c)
	})
}

// TestTimeline: what is told of an object is told of it alone.
func TestTimeline(t *testing.T) {
	withPods(t, func(t *testing.T, c *Cluster) {
		all, of := c.Timeline(""), c.Timeline("default/a")
		if !strings.Contains(of, "default/a") || !strings.Contains(all, "default/b") || strings.Contains(of, "default/b") {
			t.Errorf("of default/a:\n%s\nof all:\n%s", of, all)
		}
		c.Node("node-0").PowerCut(time.Minute)
		time.Sleep(2 * time.Minute)
		if text := c.Timeline("node-0"); !strings.Contains(text, "power") {
			t.Errorf("of node-0:\n%s", text)
		}
	})
}

// TestNodePartition: a node that doesn't reach the API is not ready, its pod runs on, and all
// is well again afterwards.
func TestNodePartition(t *testing.T) {
	withPods(t, func(t *testing.T, c *Cluster) {
		c.Node("node-0").Partition(3 * time.Minute)
		time.Sleep(2 * time.Minute)
		c.Expect(t, `!ready(node("node-0")) && ready(node("node-1"))`)
		time.Sleep(3 * time.Minute)
		c.Expect(t, `ready(node("node-0")) && pods("default").all(p, ready(p)) && restarts("default/a") == 0`)
	})
}

// TestPressure: a machine that uses up its memory evicts a pod, and others don't.
func TestPressure(t *testing.T) {
	withPods(t, func(t *testing.T, c *Cluster) {
		c.Node("node-0").Pressure("memory", "1000Gi")
		time.Sleep(2 * time.Minute)
		c.Expect(t, `pod("default/a").status.reason == "Evicted" && ready(pod("default/b"))`)
	})
}

// TestCordonAndDrain: a node that is drained has no pods left, and gets none while it is
// cordoned.
func TestCordonAndDrain(t *testing.T) {
	withPods(t, func(t *testing.T, c *Cluster) {
		c.Node("node-0").Drain()
		time.Sleep(2 * time.Minute)
		c.Expect(t, `pods("default").all(p, p.metadata.name == "b")`)
		if err := c.Client("user", scheme.Scheme).Create(t.Context(), runner("anywhere", "")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.Expect(t, `pod("default/anywhere").spec.nodeName == "node-1"`)
		c.Node("node-0").Uncordon()
		c.Node("node-1").Cordon()
		if err := c.Client("user", scheme.Scheme).Create(t.Context(), runner("there", "")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.Expect(t, `pod("default/there").spec.nodeName == "node-0"`)
	})
}
