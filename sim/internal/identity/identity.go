// Package identity gives a simulated kubelet its certificates: the one that it shows to the API,
// and the one that it serves with. It does on a node's loop what kubelet/internal/certificate and
// client-go (k8s.io/client-go/util/certificate) do on a machine: requests, their waits and retries,
// rotation at 70 to 90% of a certificate's life, and the end of a kubelet that has none. Keys follow
// from the seed, so that a run can be repeated: they are no secret.
//
//   - identity.go: what a machine keeps, and what a kubelet's process does with it
//   - manager.go: the rotation of one certificate
//   - metrics.go: what /metrics tells of both
package identity

import (
	"context"
	"errors"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Times of upstream's pkg/kubelet/certificate/transport.go and cmd/kubelet/app/server.go.
const (
	// lookPeriod is how often the certificate in use is compared with that of the connections;
	// while there has been none, each firstPeriod.
	lookPeriod  = 10 * time.Second
	firstPeriod = time.Second
	// patience is how long a kubelet goes on without a certificate while the API answers.
	patience = 5 * time.Minute
)

// API is the cluster as a kubelet asks it for certificates: sim/apiserver.Client.
type API interface {
	// CreateCertificateSigningRequest asks for a certificate, with the certificate that is shown
	// or with a bootstrap token.
	CreateCertificateSigningRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, token bool) (*certificatesv1.CertificateSigningRequest, error)
	// WatchCertificateSigningRequest has seen called with a request and with all that it becomes;
	// nil: it is gone.
	WatchCertificateSigningRequest(g *loop.Group, name string, token bool, seen func(*certificatesv1.CertificateSigningRequest)) (stop func())
	// ShowCertificate has connections made anew, with a certificate that is good until a time.
	ShowCertificate(until time.Time)
}

// Options say what a machine and its kubelets have.
type Options struct {
	Loop *loop.Loop
	API  API
	// Node is the node's name, Address its IP address.
	Node, Address string
	// Lifetime is that of the first client certificate, from now on.
	Lifetime time.Duration
	// Rotate and Serve are the kubelet's rotateCertificates and serverTLSBootstrap.
	Rotate, Serve bool
	// Bootstrap tells that a kubelet which starts without a good certificate has a token to ask
	// for one with (--bootstrap-kubeconfig).
	Bootstrap bool
}

// Identity is what a machine keeps of certificates in its kubelet's --cert-dir.
type Identity struct {
	opts            Options
	client, serving certificate
	shows           certificate // what the connections show
	draws           uint64
	now             *process // of the kubelet that runs
}

// certificate is when one is good; the zero value is none.
type certificate struct{ from, until time.Time }

func (c certificate) good(now time.Time) bool { return !c.until.IsZero() && !now.After(c.until) }

// New returns a machine's certificates: one for the client, as if the node had just joined.
func New(opts Options) *Identity {
	now := opts.Loop.Now()
	i := &Identity{opts: opts, client: certificate{now, now.Add(opts.Lifetime)}}
	i.show()
	return i
}

// show has the connections show the client's certificate.
func (i *Identity) show() {
	i.shows = i.client
	i.opts.API.ShowCertificate(i.client.until)
}

// process is what a kubelet's process does. It dies with its group.
type process struct {
	i       *Identity
	g       *loop.Group
	started time.Time
	exit    func(error)
	log     func(format string, args ...any)
	// client and serving are nil where nothing is rotated.
	client, serving *manager
	look            *loop.Timer
	// had tells that there has been a client certificate.
	had bool
}

// errNone ends a kubelet, so that who starts it again, or the bootstrap's token, can give it a
// certificate. The text is upstream's.
var errNone = errors.New("no valid client certificate is found and the server is responsive, exiting")

// Start is the start of a kubelet's process, which lives in g. exit ends it, log takes lines of its
// log; nil: nobody reads it.
func (i *Identity) Start(g *loop.Group, exit func(error), log func(format string, args ...any)) {
	if log == nil {
		log = func(string, ...any) {}
	}
	now := i.opts.Loop.Now()
	p := &process{i: i, g: g, started: now, exit: exit, log: log, had: i.client.good(now)}
	i.now = p
	if i.opts.Rotate {
		p.look = g.NewTimer("certificate look", p.seen)
		p.client = p.newManager(certificatesv1.KubeAPIServerClientKubeletSignerName, &i.client)
		p.client.token = i.opts.Bootstrap && !p.had
		p.client.got = func() { p.look.Reset(p.untilLook()) }
		p.client.schedule()
		p.lookAgain()
	}
	if i.opts.Serve {
		p.serving = p.newManager(certificatesv1.KubeletServingSignerName, &i.serving)
		if i.serving.good(now) {
			p.serving.schedule()
		} else {
			p.serving.timer.Reset(pause) // at first it knows no address to ask for
		}
	}
}

// Serves reports whether a kubelet has a certificate to serve with; without one it breaks each
// connection off. One that is not told to ask for one makes its own.
func (i *Identity) Serves() bool {
	return !i.opts.Serve || i.serving.good(i.opts.Loop.Now())
}

// untilLook is how long it is to the next of the looks that upstream has at its certificate.
func (p *process) untilLook() time.Duration {
	period := lookPeriod
	if !p.had {
		period = firstPeriod
	}
	return period - p.i.opts.Loop.Since(p.started)%period
}

// seen is a look. Those that would find nothing are left out: lookAgain says which is next.
func (p *process) seen() {
	i, now := p.i, p.i.opts.Loop.Now()
	switch {
	case i.client.good(now):
		p.had = true
		if i.client != i.shows {
			p.log("Certificate rotation detected, shutting down client connections to start using new credentials")
			i.show()
		}
	case now.Sub(p.lastGood()) < patience:
	case p.client.healthy:
		p.exit(errNone)
		return
	default: // until the API has answered
		p.log("No valid client certificate is found but the server is not responsive. A restart may be necessary to retrieve new initial credentials.")
		p.look.Reset(lookPeriod)
		return
	}
	p.lookAgain()
}

// lookAgain sets the look at which a certificate has been missed for too long.
func (p *process) lookAgain() { p.look.ResetAt(p.lastGood().Add(patience)) }

// lastGood is the last look at which there is a good certificate.
func (p *process) lastGood() time.Time {
	lived := p.i.client.until.Sub(p.started)
	if lived < 0 {
		return p.started
	}
	return p.started.Add(lived - lived%lookPeriod)
}
