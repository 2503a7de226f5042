// Package nodelease renews the node's lease, by which the control plane knows
// that the kubelet is alive. It mirrors upstream's component-helpers
// apimachinery/lease controller and pkg/kubelet/util/nodelease.go. Between
// rounds only a timer exists.
package nodelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// The lease controller's constants.
const (
	renewFraction  = 0.25 // of the lease's duration
	renewJitter    = 0.04
	maxUpdates     = 5
	firstBackoff   = 200 * time.Millisecond
	maxBackoff     = 7 * time.Second
	defaultTimeout = 10 * time.Second
)

// Client is what the manager needs of the API.
type Client interface {
	GetLease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)
	CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	GetNode(ctx context.Context, name string) (*v1.Node, error)
}

// Renewer is a Client that renews a lease without a task: it is updated as it
// was last answered, with another renew time. answer is called once, on the
// manager's loop, or never if no answer comes. It is given the lease, or nil and
// the new version of the one that was given, if nothing else has changed.
type Renewer interface {
	RenewLease(lease *coordinationv1.Lease, at time.Time, answer func(updated *coordinationv1.Lease, version string, err error))
}

// Options configure a Manager.
type Options struct {
	Loop *loop.Loop
	// Client is the heartbeat client; nil: the manager does nothing.
	Client   Client
	NodeName string
	// DurationSeconds is nodeLeaseDurationSeconds; 0 means 40.
	DurationSeconds int32
	// Timeout is that of one request; 0 means 10s.
	Timeout time.Duration
	// RepeatedFailure is called for each failed update but the first of a
	// round: it closes idle connections. May be nil.
	RepeatedFailure func()
	// Log is told what goes wrong; nil: nobody is.
	Log func(format string, args ...any)
}

// Manager renews one lease.
type Manager struct {
	opts Options
	// latest is the lease as the API last returned it. If version is not "", it has
	// been renewed since: at renewedAt (ns since the Unix epoch), which made it that
	// version.
	latest    *coordinationv1.Lease
	version   string
	renewedAt int64
	// What every lease says, shared; it must not keep the manager alive.
	holder   *string
	duration *int32

	// What a renewal without a task needs; renewer is nil if there are none.
	renewer  Renewer
	rounds   *loop.Periodic
	deadline *loop.Timer
	answer   func(*coordinationv1.Lease, string, error)
	asked    bool
	askedAt  int64
	failures uint64
	g        *loop.Group
	// failed is why the round's first update, made without a task, failed.
	failed error
}

// New returns a manager that does nothing until Start.
func New(opts Options) *Manager {
	opts.DurationSeconds = cmp.Or(opts.DurationSeconds, 40)
	opts.Timeout = cmp.Or(opts.Timeout, defaultTimeout)
	holder, duration := opts.NodeName, opts.DurationSeconds
	m := &Manager{opts: opts, holder: &holder, duration: &duration}
	m.renewer, _ = opts.Client.(Renewer)
	return m
}

// Start has the lease renewed by tasks of g, at once and then each quarter of
// its duration and up to 4% more.
func (m *Manager) Start(g *loop.Group) {
	if m.opts.Client == nil {
		return
	}
	interval := time.Duration(float64(time.Duration(m.opts.DurationSeconds)*time.Second) * renewFraction)
	m.g = g
	m.deadline = g.NewTimer("node-lease timeout", func() { m.answered(nil, "", context.DeadlineExceeded) })
	m.rounds = g.Sliding("node-lease", interval, m.round)
	m.rounds.Jitter(renewJitter, "until", "node-lease")
	m.rounds.Begin()
}

// round begins a round, with a task if it needs one.
func (m *Manager) round() {
	if !m.renew() {
		m.g.Start("node-lease", m.roundTask)
	}
}

func (m *Manager) roundTask(ctx context.Context) {
	m.sync(ctx)
	m.rounds.Again()
}

// renew begins a round without a task, if its first update will most likely be
// all there is to it.
func (m *Manager) renew() bool {
	l := m.latest
	if m.renewer == nil || m.asked || l == nil || len(l.OwnerReferences) == 0 || l.Spec.LeaseDurationSeconds != m.duration {
		return false
	}
	if m.answer == nil {
		n := m.failures
		m.answer = func(updated *coordinationv1.Lease, version string, err error) {
			if n == m.failures && !m.g.Dead() { // else it comes too late
				m.answered(updated, version, err)
			}
		}
	}
	m.asked, m.askedAt = true, m.opts.Loop.UnixNano()
	m.deadline.Reset(m.opts.Timeout)
	m.renewer.RenewLease(l, m.opts.Loop.Now(), m.answer)
	return true
}

// answered ends a renewal; one that failed goes on as a task.
func (m *Manager) answered(updated *coordinationv1.Lease, version string, err error) {
	m.asked = false
	m.deadline.Stop()
	if err != nil {
		m.failed = err
		m.failures++
		m.answer = nil
		m.g.Start("node-lease", m.roundTask)
		return
	}
	if updated != nil {
		m.latest, m.version = updated, ""
	} else {
		m.version, m.renewedAt = version, m.askedAt
	}
	m.rounds.Again()
}

// catchUp makes latest what the renewals without a task have made of the lease.
func (m *Manager) catchUp() {
	if m.version == "" {
		return
	}
	next := *m.latest
	next.ResourceVersion = m.version
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(0, m.renewedAt).UTC().Truncate(time.Microsecond)}
	m.latest, m.version = &next, ""
}

// sync is one round.
func (m *Manager) sync(ctx context.Context) {
	m.catchUp()
	if m.latest != nil {
		err := m.update(ctx, m.latest)
		if err == nil {
			return
		}
		m.log("failed to update lease using latest lease, fallback to ensure lease: %v", err)
	}
	lease, created := m.ensure(ctx)
	m.latest = lease
	if created || lease == nil {
		return
	}
	if err := m.update(ctx, lease); err != nil {
		m.log("will retry updating lease: %v", err)
	}
}

// update tries up to five times in a row to renew the lease; a renewal that
// failed without a task was the first.
func (m *Manager) update(ctx context.Context, base *coordinationv1.Lease) error {
	for i := range maxUpdates {
		sent, err := m.tryUpdate(ctx, base)
		if err == nil {
			return nil
		}
		if sent {
			m.log("failed to update lease: %v", err)
			if apierrors.IsConflict(err) { // somebody wrote it: begin with theirs
				base, _ = m.ensure(ctx)
				continue
			}
		}
		if i > 0 && m.opts.RepeatedFailure != nil {
			m.opts.RepeatedFailure()
		}
	}
	return fmt.Errorf("failed %d attempts to update lease", maxUpdates)
}

// tryUpdate renews the lease; sent reports whether it came to a request.
func (m *Manager) tryUpdate(ctx context.Context, base *coordinationv1.Lease) (sent bool, err error) {
	if err := m.failed; err != nil {
		m.failed = nil
		return true, err
	}
	next, err := m.renewed(ctx, base)
	if err != nil {
		return false, err
	}
	next, err = request(ctx, m, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return m.opts.Client.UpdateLease(ctx, next)
	})
	if err == nil {
		m.latest = next
	}
	return true, err
}

// ensure reads the lease, or creates it, and waits as long as the API doesn't
// answer. It returns nil if the lease's owner can't be told.
func (m *Manager) ensure(ctx context.Context) (lease *coordinationv1.Lease, created bool) {
	for wait := firstBackoff; ; wait = min(2*wait, maxBackoff) {
		lease, created, err := m.ensureOnce(ctx)
		if err == nil {
			return lease, created
		}
		m.log("failed to ensure lease exists, will retry in %s: %v", wait, err)
		if m.opts.Loop.Sleep(ctx, wait) != nil {
			return nil, false
		}
	}
}

func (m *Manager) ensureOnce(ctx context.Context) (*coordinationv1.Lease, bool, error) {
	lease, err := request(ctx, m, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return m.opts.Client.GetLease(ctx, v1.NamespaceNodeLease, m.opts.NodeName)
	})
	if !apierrors.IsNotFound(err) {
		return lease, false, err
	}
	fresh, err := m.renewed(ctx, nil)
	if err != nil { // without an owner there is no lease; the next round tries again
		return nil, false, nil
	}
	lease, err = request(ctx, m, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return m.opts.Client.CreateLease(ctx, fresh)
	})
	return lease, err == nil, err
}

// renewed returns a new lease, or a copy of base, that is renewed now.
func (m *Manager) renewed(ctx context.Context, base *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if base != nil {
		*lease = *base
	} else {
		lease.Name, lease.Namespace = m.opts.NodeName, v1.NamespaceNodeLease
		lease.Spec.HolderIdentity = m.holder
	}
	lease.Spec.LeaseDurationSeconds = m.duration
	lease.Spec.RenewTime = &metav1.MicroTime{Time: m.opts.Loop.Now().Truncate(time.Microsecond)}
	if len(lease.OwnerReferences) > 0 {
		return lease, nil
	}
	node, err := request(ctx, m, func(ctx context.Context) (*v1.Node, error) {
		return m.opts.Client.GetNode(ctx, m.opts.NodeName)
	})
	if err == nil && node == nil {
		err = errors.New("no node")
	}
	if err != nil {
		m.log("failed to get node %q when trying to set owner ref to the node lease: %v", m.opts.NodeName, err)
		return nil, err
	}
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: m.opts.NodeName, UID: node.UID}}
	return lease, nil
}

// request makes a request within the heartbeat client's timeout.
func request[T any](ctx context.Context, m *Manager, fn func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := loop.WithTimeout(ctx, m.opts.Timeout)
	defer cancel()
	return fn(ctx)
}

func (m *Manager) log(format string, args ...any) {
	if m.opts.Log != nil {
		m.opts.Log(format, args...)
	}
}
