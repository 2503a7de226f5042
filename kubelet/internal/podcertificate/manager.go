package podcertificate

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// Times of upstream's podcertificatemanager.go, and of client-go's queue.
const (
	// abandonAfter is when a request that is nowhere to be seen is taken for deleted,
	// overdueAfter when it is told that a certificate should have been followed by another.
	abandonAfter = 10 * time.Minute
	overdueAfter = 10 * time.Minute
	// maxJitter is the bound of what is added to times at which requests are made.
	maxJitter = 5 * time.Minute
	// passPeriod and passJitter are those of looks at all sources.
	passPeriod = time.Minute
	passJitter = 1.0
	syncPoll   = 100 * time.Millisecond
	// A source that could not be handled comes back after firstRetry, which doubles up to
	// lastRetry; all together at retryRate a second, after retryBurst at once.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
	retryRate  = 10
	retryBurst = 100
)

// Client is what a Manager needs of the API.
type Client interface {
	// WatchPodCertificateRequests lists the requests whose spec.nodeName is nodeName and
	// watches them until g dies; it reconnects by itself.
	WatchPodCertificateRequests(g *loop.Group, nodeName string, listed func([]*certificatesv1beta1.PodCertificateRequest), event func(watch.EventType, *certificatesv1beta1.PodCertificateRequest))
	CreatePodCertificateRequest(ctx context.Context, r *certificatesv1beta1.PodCertificateRequest) (*certificatesv1beta1.PodCertificateRequest, error)
	GetServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error)
}

// Pods are the pods of the node.
type Pods interface {
	GetPodByUID(uid types.UID) (*v1.Pod, bool)
	Each(fn func(*v1.Pod))
}

// Recorder records events.
type Recorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// Keys makes the private keys of pods.
type Keys interface {
	// NewPodKey makes a key of a type that the API allows (ECDSAP256). The name is another
	// for each key. It may wait in the task that calls.
	NewPodKey(ctx context.Context, keyType, name string) (crypto.Signer, error)
}

// Options are what a Manager is made of.
type Options struct {
	Group    *loop.Group
	Client   Client
	NodeName string
	Pods     Pods
	Recorder Recorder
	// Node returns the node as the API has it, or nil; NodeSynced reports whether that is
	// known.
	Node       func() *v1.Node
	NodeSynced func() bool
	// Keys makes keys; nil: there are none, and no certificates.
	Keys Keys
	Log  func(format string, args ...any)
}

// key names a source: the index-th of a pod's volume. Errors show it, as upstream's.
type key struct {
	Namespace, PodName string
	PodUID             types.UID
	VolumeName         string
	SourceIndex        int
}

// Manager asks for certificates. It is a volume.PodCertificates.
type Manager struct {
	o        Options
	l        *loop.Loop
	synced   bool // nothing is handled before
	requests map[types.NamespacedName]*certificatesv1beta1.PodCertificateRequest
	records  map[key]*record

	queue    []key
	queued   map[key]bool
	busy     bool // a task handles the queue
	failures map[key]int
	retries  *rate.Limiter
	pass     *loop.Periodic // nil while there is no source
	draws    uint64
}

var _ volume.PodCertificates = (*Manager)(nil)

// New returns a Manager that does nothing until Start.
func New(o Options) *Manager {
	return &Manager{
		o: o, l: o.Group.Loop(), requests: map[types.NamespacedName]*certificatesv1beta1.PodCertificateRequest{}, records: map[key]*record{},
		queued: map[key]bool{}, failures: map[key]int{}, retries: rate.NewLimiter(retryRate, retryBurst),
	}
}

// Start begins to watch requests. Nothing is asked for before both they and the node are
// known.
func (m *Manager) Start() {
	var listed loop.Event
	m.o.Client.WatchPodCertificateRequests(m.o.Group, m.o.NodeName, func(list []*certificatesv1beta1.PodCertificateRequest) {
		m.requests = make(map[types.NamespacedName]*certificatesv1beta1.PodCertificateRequest, len(list))
		for _, r := range list {
			m.requests[nameOf(r)] = r
		}
		m.o.Pods.Each(m.TrackPod) // some may be gone
		if !listed.Fired() {
			listed.Fire()
		}
	}, func(t watch.EventType, r *certificatesv1beta1.PodCertificateRequest) {
		if t == watch.Deleted {
			delete(m.requests, nameOf(r))
		} else {
			m.requests[nameOf(r)] = r
		}
		m.track(r.Spec.PodUID)
	})
	m.o.Group.Go("pod-certificates", func(ctx context.Context) {
		if listed.Wait(ctx) != nil {
			return
		}
		for !m.o.NodeSynced() {
			if m.l.Sleep(ctx, syncPoll) != nil {
				return
			}
		}
		m.synced = true
		m.work()
	})
}

func nameOf(r *certificatesv1beta1.PodCertificateRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// TrackPod has the sources of a pod looked at. It is called with each pod that is new to
// the node.
func (m *Manager) TrackPod(pod *v1.Pod) {
	eachSource(pod, func(k key, _ *v1.PodCertificateProjection) { m.add(k) })
}

// track is TrackPod for a pod of the node that is known by its UID.
func (m *Manager) track(uid types.UID) {
	if pod, ok := m.o.Pods.GetPodByUID(uid); ok {
		m.TrackPod(pod)
	}
}

// ForgetPod forgets the certificates of a pod that leaves the node.
func (m *Manager) ForgetPod(pod *v1.Pod) {
	eachSource(pod, func(k key, _ *v1.PodCertificateProjection) { m.forget(k) })
}

func (m *Manager) forget(k key) {
	delete(m.records, k)
	delete(m.failures, k)
}

// eachSource calls fn with the sources of a pod.
func eachSource(pod *v1.Pod, fn func(k key, s *v1.PodCertificateProjection)) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected == nil {
			continue
		}
		for j := range v.Projected.Sources {
			if s := v.Projected.Sources[j].PodCertificate; s != nil {
				fn(keyOf(pod, v.Name, j), s)
			}
		}
	}
}

func keyOf(pod *v1.Pod, volume string, source int) key {
	return key{pod.Namespace, pod.Name, pod.UID, volume, source}
}

// add puts a source into the queue, once.
func (m *Manager) add(k key) {
	if m.pass == nil {
		m.pass = m.o.Group.Every("pod-certificate-refresh", passPeriod, passJitter, m.refresh)
	}
	if m.queued[k] {
		return
	}
	m.queued[k] = true
	m.queue = append(m.queue, k)
	m.work()
}

// refresh is the look at all sources, of those that it does something for. It ends when
// there are none.
func (m *Manager) refresh() {
	any := false
	m.o.Pods.Each(func(pod *v1.Pod) {
		eachSource(pod, func(k key, _ *v1.PodCertificateProjection) {
			any = true
			if r := m.records[k]; r == nil || !r.settled(m.l.Now()) {
				m.add(k)
			}
		})
	})
	if !any {
		m.pass.Stop()
		m.pass = nil
	}
}

// work has a task handle the queue, if none does.
func (m *Manager) work() {
	if m.busy || !m.synced || len(m.queue) == 0 {
		return
	}
	m.busy = true
	m.o.Group.Go("pod-certificate", func(ctx context.Context) {
		for len(m.queue) > 0 {
			k := m.queue[0]
			m.queue = m.queue[1:]
			delete(m.queued, k)
			if err := m.handle(ctx, k); err != nil {
				m.logf("while handling podCertificate projected volume source pod=%s/%s volume=%s sourceIndex=%d: %v", k.Namespace, k.PodName, k.VolumeName, k.SourceIndex, err)
				m.retry(k)
			} else {
				delete(m.failures, k)
			}
		}
		m.queue, m.busy = nil, false
	})
}

// retry puts a source back into the queue later.
func (m *Manager) retry(k key) {
	n := m.failures[k]
	m.failures[k] = n + 1
	d := min(firstRetry<<min(n, 20), lastRetry)
	now := m.l.Now()
	d = max(d, m.retries.ReserveN(now, 1).DelayFrom(now))
	m.o.Group.After(d, func() { m.add(k) })
}

func (m *Manager) logf(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}

// jitter draws what is added to a time.
func (m *Manager) jitter() time.Duration {
	m.draws++
	return m.l.Between(0, maxJitter, "podcertificate/jitter", m.o.NodeName, m.draws)
}

var errNotIssued = errors.New("credential bundle is not issued yet")

// GetPodCertificateCredentialBundle implements volume.PodCertificates.
func (m *Manager) GetPodCertificateCredentialBundle(pod *v1.Pod, volume string, source int) (*volume.Credentials, error) {
	k := keyOf(pod, volume, source)
	r := m.records[k]
	if r == nil {
		return nil, fmt.Errorf("no credentials yet for key=%v", k)
	}
	switch r.state {
	case denied, failed:
		return nil, fmt.Errorf("PodCertificateRequest was permanently %s: reason=%q message=%q", r.state, r.reason, r.message)
	case fresh, waitRefresh:
		return r.credentials, nil
	}
	return nil, errNotIssued
}

// Count is how many sources of a signer's are in a state, as metrics have it.
type Count struct{ Signer, State string }

// States counts the sources by signer and state.
func (m *Manager) States() map[Count]int {
	out := map[Count]int{}
	m.o.Pods.Each(func(pod *v1.Pod) {
		eachSource(pod, func(k key, s *v1.PodCertificateProjection) {
			if r := m.records[k]; r != nil {
				out[Count{s.SignerName, r.metric(m.l.Now())}]++
			}
		})
	})
	return out
}
