package drydocktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/sim/facade"
)

// Cluster is the cluster of a test. Its methods are for use in the test's bubble, by any
// goroutine. What they do to the cluster happens at the end of the engine's present
// window, a few milliseconds later at most.
type Cluster struct {
	t         *testing.T
	seed      uint64
	restart   bool // processes that end are started anew
	session   *scenarios.Session
	pump      *pump
	door      *door
	facade    *facade.Facade
	nodeNames []string
	timeline  strings.Builder // written while the engine runs

	ctx    context.Context // of what Go starts
	cancel context.CancelFunc
	mu     sync.Mutex // held for moments
	procs  []*proc
	lives  lives

	servers     servers
	kubeconfigs int           // that were written
	drawn       atomic.Uint64 // instants of crashes
}

// Config returns how a client of this name reaches the cluster. Requests carry the name:
// as the user that admission and managed fields see, and for faults that hit this client
// only. Like every client's, it is limited as client-go says unless QPS is set.
func (c *Cluster) Config(name string) *rest.Config {
	if name == "" {
		c.t.Fatal("drydocktest: Config: a client needs a name")
	}
	life := c.lives.present()
	if life != nil {
		life.clients.Add(1)
	}
	return &rest.Config{Host: "http://drydock", UserAgent: name, Transport: c.newTransport(name, life)}
}

// Eventually fails the test unless ok returns true within a time of the cluster's. It
// asks at once, then each 200ms.
func (c *Cluster) Eventually(t testing.TB, within time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(200 * time.Millisecond) {
		if !time.Now().Before(end) {
			t.Fatalf("not so within %v", within)
		}
	}
}

// Expect fails the test unless an expression in CEL over the cluster's state is true now,
// as those of scenario files (docs/scenarios.md).
func (c *Cluster) Expect(t testing.TB, expr string) {
	t.Helper()
	var verdict expect.Verdict
	var err error
	if perr := c.between(func() { verdict, err = c.session.Judge(expr) }); perr != nil {
		t.Fatal(perr)
	}
	if err != nil {
		t.Fatalf("drydocktest: Expect(%s): %v", expr, err)
	}
	if verdict.Outcome == expect.Held {
		return
	}
	var why strings.Builder
	for _, v := range verdict.Values {
		fmt.Fprintf(&why, "\n\t%s = %s", v.Expr, v.Value)
	}
	t.Errorf("expected %s: %s%s", expr, verdict.Reason, &why)
}

// Timeline returns what happened around an object, such as "shop/a" or a node's name, in
// the words of drydock run; "" is everything.
func (c *Cluster) Timeline(object string) string {
	var all string
	if err := c.between(func() { all = c.timeline.String() }); err != nil {
		all = c.timeline.String()
	}
	var out strings.Builder
	for line := range strings.Lines(all) {
		if strings.Contains(line, object) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Hash returns a hash over all that has happened in the cluster: two runs in which it is
// the same were the same.
func (c *Cluster) Hash() (hash uint64) {
	if err := c.between(func() { hash = c.session.Cluster().Hash() }); err != nil {
		c.t.Fatal(err)
	}
	return hash
}

// Requests returns how many requests have come from clients.
func (c *Cluster) Requests() (n uint64) {
	if err := c.between(func() { n = c.door.log.n }); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// act does what a scenario's timeline can do, as it is written there.
func (c *Cluster) act(action string) (err error) {
	a, err := c.session.Parse([]byte(action))
	if err != nil {
		return err
	}
	if perr := c.between(func() { err = errors.Join(c.session.Act(a), c.noticed()) }); perr != nil {
		return perr
	}
	return err
}

// noticed is what went wrong with acts of the timeline.
func (c *Cluster) noticed() error {
	for _, text := range c.session.Notices() {
		c.t.Logf("drydocktest: %s", text)
	}
	return nil
}

// between has fn run between two windows, when the clocks of all loops show one time. It
// returns when the bubble's clock is there. The error says that the cluster has ended.
func (c *Cluster) between(fn func()) error {
	done := make(chan struct{})
	c.pump.put(&crossing{stamp: time.Now().UnixNano(), take: func() {
		fn()
		c.pump.deliver(time.Now().UnixNano(), func() { close(done) })
	}})
	select {
	case <-done:
		return nil
	case <-c.pump.stopped:
		return errClosed
	}
}
