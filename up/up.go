package up

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
	"github.com/drydock-sim/drydock/sim/facade"
)

// Options say what a cluster is made of. The zero value is a cluster without nodes.
type Options struct {
	// Scenario is what the cluster is: its nodes, what happens to it and when. Its
	// expectations are not judged, and it doesn't end.
	Scenario *scenarios.Scenario
	// Nodes is how many nodes there are in the place of a scenario: node-0, node-1 and
	// so on, each with DefaultCapacity of package sim.
	Nodes int
	// Scheduler is the scheduler's configuration, instead of the scenario's.
	Scheduler *schedulerconfigv1.KubeSchedulerConfiguration
	// NoControlPlane leaves out the scheduler and all controllers.
	NoControlPlane bool
	// Start is the cluster's time at its beginning. Zero means the wall clock's.
	Start time.Time
	// Speed is how many times as fast as the wall clock the cluster's time runs. 0
	// means 1.
	Speed float64
	// Paused has the time stand still from the beginning, until Step or Resume.
	Paused bool
	// Seed replaces the scenario's seed.
	Seed *uint64
	// Workers is how many cores run nodes. Zero means GOMAXPROCS.
	Workers int
	// Address is the address to listen at: an IP, of the loopback unless others are to
	// come in. Empty means 127.0.0.1. Port 0 has the machine choose one.
	Address string
	Port    int
	// Timeline takes a line for what happens, as drydock run has it; nil writes none.
	// Verbose has everything in it.
	Timeline io.Writer
	Verbose  bool
	// Notice is told, one line each, what of a timeline failed and what is asked for
	// that nothing acts on. It is called from a goroutine of its own, one line after the
	// other.
	Notice func(string)

	limits *limits // for tests
}

// MaxSpeed is the highest speed that makes sense: at it, a window of the engine takes less
// than it takes to begin one.
const MaxSpeed = 100_000

// DefaultAddress is where a cluster listens unless told.
const DefaultAddress = "127.0.0.1"

// Cluster is a simulated cluster that clients reach. Its methods may be called from any
// goroutine.
type Cluster struct {
	o       Options
	session *scenarios.Session
	pacer   *loop.Pacer
	facade  *facade.Facade
	told    *inertia
	server  *http.Server
	streams *streams
	address net.Addr
	ca      []byte // PEM
	token   string // of the administrator

	cancel func()
	ended  chan struct{} // everything is over; err is set
	err    error
}

// Start starts a cluster and serves its API, until Stop is called or ctx ends.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	s, err := o.scenario()
	if err != nil {
		return nil, err
	}
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	c := &Cluster{o: o, token: rand.Text() + rand.Text(), ended: make(chan struct{})}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.Address, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	c.address = listener.Addr()
	began := time.Now()
	if o.Start.IsZero() {
		o.Start = began
	}
	if c.session, err = scenarios.Open(s, scenarios.SessionOptions{Start: o.Start.UTC(), Seed: o.Seed, Workers: o.Workers, Timeline: o.Timeline, Verbose: o.Verbose}); err != nil {
		return nil, errors.Join(fmt.Errorf("up: %w", err), listener.Close())
	}
	cluster := c.session.Cluster()
	c.pacer = cluster.Engine().NewPacer(loop.PacerOptions{Speed: o.Speed, Since: began, Paused: o.Paused, Next: c.session.Next, Due: c.session.RunDue})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("up: key of service accounts: %w", err), listener.Close(), c.session.Close())
	}
	authority, err := newAuthority(began, o.Start)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("up: %w", err), listener.Close(), c.session.Close())
	}
	cluster.API().SetAuthority(authority)
	c.ca = authority.PEM()
	c.told = noteInert(cluster.API(), s.Spec.API.Load != nil)
	way := &door{c.pacer, cluster.API(), c.told.say}
	c.facade = facade.New(facade.Options{
		API: cluster.API(), Door: way,
		Authenticate: c.authenticate, Certificates: true, TokenKey: key, Webhooks: facade.HTTPWebhooks{}, Nodes: nodes{c}, Control: c.control(),
	})
	certificate, err := newCertificate(authority, began, o.Address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("up: %w", err), listener.Close(), c.session.Close())
	}
	ctx, c.cancel = context.WithCancel(ctx)
	bounds := defaultLimits()
	if o.limits != nil {
		bounds = *o.limits
	}
	c.streams = newStreams(ctx, c)
	c.server = newServer(ctx, watchable{c.facade, way}, certificate, bounds)
	go c.run(ctx, netutil.LimitListener(listener, bounds.connections))
	return c, nil
}

// scenario is the scenario that the options make.
func (o *Options) scenario() (*scenarios.Scenario, error) {
	switch {
	case o.Scenario != nil && o.Nodes != 0:
		return nil, errors.New("up: there is a scenario, which says what nodes there are, and a number of nodes")
	case o.Nodes < 0:
		return nil, fmt.Errorf("up: %d nodes", o.Nodes)
	case !(o.Speed >= 0 && o.Speed <= MaxSpeed):
		return nil, fmt.Errorf("up: a speed of %v is not within 0 and %v", o.Speed, MaxSpeed)
	}
	s := scenarios.Scenario{Metadata: scenarios.Metadata{Name: "up"}}
	if o.Scenario != nil {
		s = *o.Scenario
	} else if o.Nodes > 0 {
		s.Spec.Nodes = []document.NodeGroup{{Name: "node", Count: &o.Nodes}}
	}
	if s.Spec.KubeletRestart == nil {
		s.Spec.KubeletRestart = &document.KubeletRestart{}
	}
	if o.Scheduler != nil {
		control := document.ControlPlane{}
		if s.Spec.ControlPlane != nil {
			control = *s.Spec.ControlPlane
		}
		was := control.Scheduler
		control.Scheduler = &document.SchedulerComponent{Configuration: o.Scheduler}
		if was != nil {
			control.Scheduler.ClientConnection = was.ClientConnection
		}
		s.Spec.ControlPlane = &control
		for _, text := range schedulerconfig.NoEffect(o.Scheduler) {
			s.Notices = append(slices.Clip(s.Notices), "scheduler configuration: "+text)
		}
	}
	if o.NoControlPlane {
		s.Spec.ControlPlane = &document.ControlPlane{Disable: []string{"*"}}
	}
	return &s, nil
}

// run drives the cluster and serves it until ctx ends.
func (c *Cluster) run(ctx context.Context, listener net.Listener) {
	defer close(c.ended)
	defer c.cancel()
	served := make(chan error, 1)
	go func() {
		served <- c.server.ServeTLS(listener, "", "")
		c.cancel()
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		c.notices(ctx)
	}()
	err := c.pacer.Run(ctx)
	c.cancel() // the cluster's time has ended: requests end, too
	if !errors.Is(shut(c.server), http.ErrServerClosed) {
		err = errors.Join(err, c.server.Close())
	}
	if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	<-told
	c.err = errors.Join(err, c.session.Close())
}

// Stop ends the cluster: clients' watches end, and everything that runs on nodes. It
// returns the error that the cluster ended with, if it did before.
func (c *Cluster) Stop() error {
	c.cancel()
	return c.Wait()
}

// Wait returns when the cluster has ended, with its error.
func (c *Cluster) Wait() error {
	<-c.ended
	return c.err
}

// authenticate knows the administrator's token.
func (c *Cluster) authenticate(token string) user.Info {
	if subtle.ConstantTimeCompare([]byte(token), []byte(c.token)) == 1 {
		return facade.Admin()
	}
	return nil
}

// URL is where the API is served.
func (c *Cluster) URL() string {
	host, port, _ := net.SplitHostPort(c.address.String()) // a listener's
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = DefaultAddress
	}
	return "https://" + net.JoinHostPort(host, port)
}

// Config returns how client-go reaches the cluster, as its administrator. It is the
// caller's own.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host: c.URL(), BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(c.ca)},
		QPS: 1000, Burst: 2000, // as envtest: tests are not to wait for themselves
	}
}

// Now returns the cluster's time.
func (c *Cluster) Now() time.Time { return c.pacer.Pace().Now }

// Pause has the cluster's time stand still. Requests are still answered.
func (c *Cluster) Pause() { c.pacer.Pause() }

// Resume has the time go on.
func (c *Cluster) Resume() { c.pacer.Resume() }

// Step pauses, and has the time go on by d, as fast as the machine can. It returns when
// that is done, or ctx ends.
func (c *Cluster) Step(ctx context.Context, d time.Duration) error { return c.pacer.Step(ctx, d) }
