package drydocktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/drydocktest/gotest"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/sim/facade"
)

// Options say what a test's cluster is.
type Options struct {
	// Scenario is the file of a scenario: the cluster's nodes, what happens to it and
	// when. Its expectations are not judged, and it doesn't end.
	Scenario string
	// Nodes is how many nodes there are in the place of a scenario: node-0, node-1 and
	// so on.
	Nodes int
	// NoControlPlane leaves out the scheduler and all controllers, as envtest does, also the
	// one that makes service accounts, which pods need.
	NoControlPlane bool
	// CRDs are files, or directories of files, with CustomResourceDefinitions. They are
	// established when the test begins.
	CRDs []string
	// Manifests are files, or directories of files, with objects that are applied after
	// that: namespaces, configurations of webhooks and whatever else.
	Manifests []string
	// Seed decides what is drawn. 0 means 1. The environment's
	// DRYDOCK_SEED, which drydock test sets, has precedence.
	Seed uint64
	// Limit is how long the test may take, in the cluster's time: one that waits for what
	// never comes would otherwise go on for ever. 0 means 48 hours.
	Limit time.Duration

	// Restart has what Go was given be called anew, 10s after it has returned, as a
	// kubelet restarts a container: a manager that has lost its lease ends. Without it an
	// error fails the test. Explore sets it.
	Restart bool

	keepLog bool // of requests
	planned bool // Seed is that of a plan
}

func (o *Options) setDefaults() error {
	o.Seed = cmp.Or(o.Seed, 1)
	if text := os.Getenv(gotest.SeedVar); text != "" && !o.planned {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %q is no seed", gotest.SeedVar, text)
		}
		o.Seed = cmp.Or(seed, 1)
	}
	o.Limit = cmp.Or(o.Limit, 48*time.Hour)
	return nil
}

// Run runs a test in a bubble with a cluster of its own. The time of both begins at
// 2026-01-01T00:00:00Z and passes as fast as the machine can, whenever nothing in the
// bubble has anything to do. What the test has started ends with it.
//
// Process-wide sources of randomness are given the seed meanwhile, so t and the tests
// above it must not be parallel.
func Run(t *testing.T, o Options, body func(t *testing.T, c *Cluster)) {
	t.Helper()
	refuseParallel(t)
	if err := o.setDefaults(); err != nil {
		t.Fatalf("drydocktest: %v", err)
	}
	s, err := o.scenario()
	if err != nil {
		t.Fatalf("drydocktest: %v", err)
	}
	definitions, err := readDefinitions(o.CRDs)
	if err != nil {
		t.Fatalf("drydocktest: %v", err)
	}
	manifests, err := readObjects("Manifests", o.Manifests)
	if err != nil {
		t.Fatalf("drydocktest: %v", err)
	}
	pinRandomness(t, o.Seed)
	withoutBackoff(t)
	logToTest(t)
	collectLess(t)
	startSignals()
	dog := startWatchdog(t)
	defer dog.stop()
	failed := false
	defer unwind(t, dog, &failed)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { failed = t.Failed() })
		dog.bubble = bubbleOf(ownHeader())
		dog.began.Store(true)
		time.Sleep(time.Until(loop.Epoch())) // bubbles begin in the year 2000
		c, err := open(t, o, s, dog)
		if err != nil {
			t.Fatalf("drydocktest: %v", err)
		}
		t.Cleanup(c.close)
		if err := errors.Join(c.define(definitions), c.apply(manifests)); err != nil {
			t.Fatalf("drydocktest: %v", err)
		}
		defer inBubble(t)
		body(t, c)
	})
}

// scenario is the scenario that the options name.
func (o *Options) scenario() (*scenarios.Scenario, error) {
	s := scenarios.Scenario{Metadata: scenarios.Metadata{Name: "test"}}
	switch {
	case o.Scenario != "" && o.Nodes != 0:
		return nil, errors.New("Options has a Scenario, which says what nodes there are, and a number of Nodes")
	case o.Nodes < 0:
		return nil, fmt.Errorf("Options.Nodes is %d", o.Nodes)
	case o.Scenario != "":
		list, err := scenarios.Load(o.Scenario, scenarios.LoadOptions{})
		if err != nil {
			return nil, err
		}
		if len(list) != 1 {
			return nil, fmt.Errorf("%s has %d scenarios, want one", o.Scenario, len(list))
		}
		s = *list[0]
	case o.Nodes > 0:
		s.Spec.Nodes = []document.NodeGroup{{Name: "node", Count: &o.Nodes}}
	}
	if o.NoControlPlane {
		s.Spec.ControlPlane = &document.ControlPlane{Disable: []string{"*"}}
	}
	if s.Spec.KubeletRestart == nil {
		s.Spec.KubeletRestart = &document.KubeletRestart{}
	}
	return &s, nil
}

// open makes a cluster in the present bubble, and has its time run.
func open(t *testing.T, o Options, s *scenarios.Scenario, dog *watchdog) (*Cluster, error) {
	c := &Cluster{t: t, seed: o.Seed, restart: o.Restart}
	c.servers = servers{c: c, at: map[string][]*server{}}
	c.servers.lead(t)
	var err error
	if c.session, err = scenarios.Open(s, scenarios.SessionOptions{Seed: &o.Seed, Workers: 1, Timeline: &c.timeline, Verbose: true, NoWatchdog: true}); err != nil {
		return nil, err
	}
	c.pump = newPump(c.session, dog.turns, c.failed)
	c.pump.limit, c.pump.main = c.session.Cluster().Start().Add(o.Limit), goroutineID()
	c.door = newDoor(c.pump)
	c.door.log.keep = o.keepLog
	c.nodeNames = s.NodeNames()
	c.facade = facade.New(facade.Options{
		API: c.session.Cluster().API(), Door: c.door, Webhooks: facade.HTTPWebhooks{Transport: &c.servers},
		// Each client is who it says it is.
		Authenticate: func(name string) user.Info {
			return &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}
		},
	})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.pump.run()
	return c, nil
}

// failed is told of an error that ended the simulation.
func (c *Cluster) failed(err error) {
	c.t.Errorf("drydocktest: %v", err)
	c.cancel()
}

// lastWords is for how long the API still answers when what the test has started has
// ended, such as to a recorder that tells of it.
const lastWords = time.Second

// stragglers is how long goroutines that are not waited for have to end.
const stragglers = 10 * time.Minute

// close ends all that the test has started, then the cluster.
func (c *Cluster) close() {
	c.cancel()
	for _, p := range c.procs {
		p.busy <- struct{}{}
		p.end()
	}
	time.Sleep(lastWords)
	close(c.pump.quit)
	<-c.pump.stopped
	// What client libraries leave behind gives up after some tries, such as recorders of
	// events. Time costs nothing now.
	time.Sleep(stragglers)
	if err := c.session.Close(); err != nil {
		c.t.Errorf("drydocktest: %v", err)
	}
}

// newTransport returns a client's way to the cluster.
func (c *Cluster) newTransport(who string, life *life) *transport {
	return &transport{who: who, life: life, seed: c.seed, next: facade.Transport{Handler: http.HandlerFunc(c.facade.ServeHTTP)}, watches: map[string]uint64{}}
}

// define has definitions established.
func (c *Cluster) define(list []object) error {
	if err := c.apply(list); err != nil || len(list) == 0 {
		return err
	}
	time.Sleep(time.Second) // far more than they take
	var names []string
	for _, d := range list {
		names = append(names, d.name)
	}
	return c.established(names)
}
