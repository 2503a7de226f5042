package action

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// churnLook is how often it is looked whether a deleted pod has gone.
const churnLook = time.Second

// churn is a template whose pods come and go: each place has one pod at a time.
type churn struct {
	s         Stage
	t         *Template
	namespace string
	stamp     func(i int, node string) (string, error)
	next      int // the next pod's number
}

// begin creates a pod for each place, and has each replaced at the end of its
// lifetime.
func (c *churn) begin(nodes []string) error {
	for _, n := range nodes {
		if err := c.create(n); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether pods are replaced no more.
func (c *churn) over() bool { return c.t.Until > 0 && c.now() >= c.t.Until }

// now is the time on the API's loop, on which all this runs.
func (c *churn) now() time.Duration { return c.s.Cluster().API().Loop().Since(c.s.Cluster().Start()) }

// create makes the next pod, and sets its end.
func (c *churn) create(node string) error {
	i := c.next
	c.next++
	name, err := c.stamp(i, node)
	if err != nil {
		return err
	}
	h := loop.Hash(c.s.Seed(), []string{"lifetime", c.namespace, name})
	life := c.t.Lifetime.Min
	if span := c.t.Lifetime.Max - c.t.Lifetime.Min; span > 0 {
		life += time.Duration(h % uint64(span+1))
	}
	c.after(life, func() { c.end(node, name) })
	return nil
}

// end deletes a pod and waits for its place.
func (c *churn) end(node, name string) {
	if c.over() {
		return
	}
	if err := c.s.Cluster().API().Delete(apiserver.KindPod, c.namespace, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.failed(name, err)
		return
	}
	c.replace(node, name)
}

// replace creates the next pod once the last one has gone.
func (c *churn) replace(node, name string) {
	if c.s.Cluster().API().Pod(c.namespace, name) != nil {
		c.after(churnLook, func() { c.replace(node, name) })
		return
	}
	if c.over() {
		return
	}
	if err := c.create(node); err != nil {
		c.failed(name, err)
	}
}

func (c *churn) after(d time.Duration, fn func()) {
	c.s.Cluster().At(c.now()+d, fn)
}

func (c *churn) failed(name string, err error) {
	c.s.Fail(fmt.Sprintf("template: pod %s/%s", c.namespace, name), err)
}
