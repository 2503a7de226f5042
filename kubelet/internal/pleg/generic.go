package pleg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// Runtime is what the PLEG needs of the runtime manager.
type Runtime interface {
	// ListPods lists the runtime's pods by UID; all asks also for what is not
	// running. What it returns is shared; the same pointer is a pod that is as it
	// was.
	ListPods(ctx context.Context, all bool) ([]*kubecontainer.Pod, error)
	// GetPod lists one pod: nil without an error if the runtime has none.
	GetPod(ctx context.Context, uid types.UID) (*kubecontainer.Pod, error)
	GetPodStatus(ctx context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error)
}

// The defaults of Options, and the bounds that upstream fixes.
const (
	DefaultRelistPeriod    = time.Second
	DefaultRelistThreshold = 3 * time.Minute
	eventCapacity          = 1000
	requestCapacity        = 200
)

// Options are what a Generic is made of.
type Options struct {
	Loop    *loop.Loop
	Runtime Runtime
	Cache   *kubecontainer.Cache
	// RelistPeriod is the time from the end of a relist to the next one;
	// 0 means 1 s.
	RelistPeriod time.Duration
	// RelistThreshold is how old the last relist may be in a healthy PLEG;
	// 0 means 3 min.
	RelistThreshold time.Duration
	// Log takes the kubelet's log lines; nil means none.
	Log func(format string, args ...any)
	// Metrics counts relists; nil: nobody does.
	Metrics *metrics.Kubelet
	// Shared: an Evented writes to the cache as well.
	Shared bool
}

// Generic is the PLEG that lists the runtime's pods periodically.
type Generic struct {
	events *loop.Queue[PodLifecycleEvent]

	o      Options
	g      *loop.Group
	passes *loop.Periodic
	busy   bool // a task is at work
	due    bool // a relist is to be made
	relister
	forced []*loop.Event // who waits for a relist beside those of the period
	told   bool          // events of the runtime come in, of which an Evented tells

	requests []request
	pods     []*kubecontainer.Pod // last picture of each pod, by UID
	reinspec []types.UID          // pods to inspect although nothing changed

	lastRelist  time.Time // start of the last good listing
	relists     uint64
	lostEvents  uint64
	lostRequest uint64
}

// relister does what the PLEG has to do.
type relister interface {
	// relist lists all pods and reports whether the runtime answered.
	relist(ctx context.Context) bool
	// relistPod lists and reconciles one pod.
	relistPod(ctx context.Context, r request)
}

type request struct {
	uid types.UID
	at  time.Time
}

// New returns a Generic that is not started.
func New(o Options) *Generic {
	if o.RelistPeriod == 0 {
		o.RelistPeriod = DefaultRelistPeriod
	}
	if o.RelistThreshold == 0 {
		o.RelistThreshold = DefaultRelistThreshold
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	p := &Generic{events: loop.NewQueue[PodLifecycleEvent](eventCapacity), o: o}
	p.relister = lister{p}
	return p
}

// Events are for the sync loop. What finds the queue full (1000) is dropped and
// counted.
func (p *Generic) Events() *loop.Queue[PodLifecycleEvent] { return p.events }

// Start makes the first relist at once, and one again each period after the
// one before ended, until the group dies.
func (p *Generic) Start(g *loop.Group) {
	p.g = g
	p.passes = g.Sliding("pleg", p.o.RelistPeriod, p.tick)
	p.passes.Begin()
}

// Healthy returns an error unless a relist has succeeded within the threshold.
func (p *Generic) Healthy() error {
	if p.lastRelist.IsZero() {
		return errors.New("pleg has yet to be successful")
	}
	if elapsed := p.o.Loop.Since(p.lastRelist); elapsed > p.o.RelistThreshold {
		return fmt.Errorf("pleg was last seen active %v; threshold is %v", elapsed, p.o.RelistThreshold)
	}
	return nil
}

// LastRelist returns when the last good relist began; zero before the first.
func (p *Generic) LastRelist() time.Time { return p.lastRelist }

// Pods are those of the last good listing, by UID. They are shared, and so is the slice.
func (p *Generic) Pods() []*kubecontainer.Pod { return p.pods }

// Stats counts what was done.
type Stats struct {
	Period          time.Duration
	Relists         uint64 // with a listing
	Elided          uint64 // without one, since nothing could have changed; see Elided
	DroppedEvents   uint64
	DroppedRequests uint64
}

// Stats returns the counts since the start.
func (p *Generic) Stats() Stats {
	return Stats{Period: p.o.RelistPeriod, Relists: p.relists, DroppedEvents: p.lostEvents, DroppedRequests: p.lostRequest}
}

// RequestReinspect has the pod inspected at the next relist even if nothing
// changed in the listing; a PodSync event follows.
func (p *Generic) RequestReinspect(uid types.UID) {
	if !slices.Contains(p.reinspec, uid) {
		p.reinspec = append(p.reinspec, uid)
	}
}

// RequestRelist has one pod listed and reconciled soon, unless a global relist
// does so first. Requests beyond 200 are dropped.
func (p *Generic) RequestRelist(uid types.UID) {
	if len(p.requests) >= requestCapacity {
		p.lostRequest++
		p.o.Log("pleg: relist request of pod %s dropped, the queue is full", uid)
		return
	}
	p.requests = append(p.requests, request{uid, p.o.Loop.Now()})
	if !p.busy && p.g != nil {
		p.work()
	}
}

// Relist lists all pods now, beside the relists of the period, and waits until that is done.
func (p *Generic) Relist(ctx context.Context) error {
	done := &loop.Event{}
	p.forced = append(p.forced, done)
	if !p.busy {
		p.work()
	}
	return done.Wait(ctx)
}

// Update changes the period and the threshold, and makes a relist at once.
func (p *Generic) Update(period, threshold time.Duration) {
	p.o.RelistPeriod, p.o.RelistThreshold = period, threshold
	p.passes.Restart(period)
}

func (p *Generic) tick() {
	p.due = true
	if !p.busy {
		p.work()
	}
}

// work starts the task that does what there is to do: global relists first,
// then requests in the order of their arrival.
func (p *Generic) work() {
	p.busy = true
	p.g.Start("pleg", func(ctx context.Context) {
		defer func() { p.busy = false }()
		for {
			if p.due {
				p.due = false
				p.relist(ctx)
				p.passes.Again()
				continue
			}
			if waiting := p.forced; len(waiting) > 0 {
				p.forced = nil
				p.relist(ctx)
				for _, done := range waiting {
					done.Fire()
				}
				continue
			}
			if len(p.requests) == 0 {
				p.requests = nil
				return
			}
			r := p.requests[0]
			p.requests = p.requests[1:]
			p.relistPod(ctx, r)
		}
	})
}

// lister is the relister that asks the runtime each time.
type lister struct{ p *Generic }

func (l lister) relist(ctx context.Context) bool {
	p := l.p
	p.relists++
	start := p.o.Loop.Now()
	since := int64(-1)
	if !p.lastRelist.IsZero() {
		since = int64(start.Sub(p.lastRelist))
	}
	defer func() { p.o.Metrics.Relist(int64(p.o.Loop.Since(start)), since) }()
	listed, err := p.o.Runtime.ListPods(ctx, true)
	if err != nil {
		p.o.Log("pleg: unable to retrieve pods: %v", err)
		return false
	}
	p.lastRelist = start
	again := p.reinspec // what is asked for from here on is for the next relist
	p.reinspec = nil
	for _, c := range p.changes(listed, again) {
		p.keep(podID(c.was, c.is), p.reconcile(ctx, start, c))
	}
	p.forgetUnseen(again)
	p.o.Cache.UpdateTime(start)
	return true
}

// forgetUnseen takes out of the cache what is left of pods whose first
// inspection failed and which are no longer there: no picture of them was ever
// kept, so no event tells that they went.
func (p *Generic) forgetUnseen(uids []types.UID) {
	for _, uid := range uids {
		if _, known := p.find(uid); known || slices.Contains(p.reinspec, uid) {
			continue
		}
		if _, err := p.o.Cache.Get(uid); err != nil {
			p.o.Cache.Delete(uid)
		}
	}
}

// change is a pod that a listing shows otherwise than the picture kept of it,
// either of which may be nil, or that is to be inspected again all the same.
type change struct {
	was, is *kubecontainer.Pod
	again   bool
}

// changes compares a listing with the pictures, by UID.
func (p *Generic) changes(listed []*kubecontainer.Pod, again []types.UID) []change {
	var out []change
	for was := p.pods; len(was)+len(listed) > 0; {
		var c change
		switch {
		case len(was) > 0 && len(listed) > 0 && was[0] == listed[0]: // nothing new, for next to nothing
			c.was, c.is = was[0], was[0]
		case len(was) == 0 || len(listed) > 0 && listed[0].ID < was[0].ID:
			c.is = listed[0]
		case len(listed) == 0 || was[0].ID < listed[0].ID:
			c.was = was[0]
		default:
			c.was, c.is = was[0], listed[0]
		}
		if c.was != nil {
			was = was[1:]
		}
		if c.is != nil {
			listed = listed[1:]
		}
		c.again = len(again) > 0 && slices.Contains(again, podID(c.was, c.is))
		if c.was != c.is || c.again {
			out = append(out, c)
		}
	}
	return out
}

// keep makes a picture the one to compare the next listing with; nil: there is
// none.
func (p *Generic) keep(uid types.UID, pod *kubecontainer.Pod) {
	i, known := p.find(uid)
	switch {
	case known && pod == nil:
		p.pods = slices.Delete(p.pods, i, i+1)
	case known:
		p.pods[i] = pod
	case pod != nil:
		p.pods = slices.Insert(p.pods, i, pod)
	}
}

// seen reports whether a global relist has seen the pod since it was asked for.
func (p *Generic) seen(r request) bool {
	return !p.lastRelist.IsZero() && !r.at.After(p.lastRelist)
}

func (l lister) relistPod(ctx context.Context, r request) {
	p := l.p
	if p.seen(r) {
		return
	}
	at := p.o.Loop.Now()
	pod, err := p.o.Runtime.GetPod(ctx, r.uid)
	if err != nil {
		p.o.Log("pleg: unable to retrieve pod %s: %v", r.uid, err)
		return
	}
	if pod.IsEmpty() {
		return
	}
	c := change{is: pod}
	if i, known := p.find(r.uid); known {
		c.was = p.pods[i]
	}
	c.again = p.takeReinspect(r.uid)
	p.keep(r.uid, p.reconcile(ctx, at, c))
	p.o.Cache.SetObservedTime(r.uid, at)
}

func (p *Generic) find(uid types.UID) (int, bool) {
	return slices.BinarySearchFunc(p.pods, uid, func(o *kubecontainer.Pod, uid types.UID) int { return cmp.Compare(o.ID, uid) })
}

// reconcile inspects a pod if the listing that began at that time shows something
// new of it, or if that is asked for again, sends events and returns the picture
// to keep.
func (p *Generic) reconcile(ctx context.Context, at time.Time, c change) *kubecontainer.Pod {
	was, is := c.was, c.is
	uid := podID(was, is)
	var events []PodLifecycleEvent
	if was != is {
		events = computeEvents(uid, was, is)
	}
	if len(events) == 0 && !c.again {
		if is.IsEmpty() {
			return nil
		}
		return is
	}
	if is == nil {
		p.o.Cache.Delete(uid)
	} else if kept, err := p.inspect(ctx, is, at); err != nil {
		p.o.Log("pleg: unable to inspect pod %s/%s: %v", is.Namespace, is.Name, err)
		p.RequestReinspect(uid)
		return was
	} else if !kept {
		return was
	}
	if len(events) == 0 {
		events = []PodLifecycleEvent{{ID: uid, Type: PodSync}}
	}
	for _, e := range events {
		if e.Type != containerChanged {
			p.send(e)
		}
	}
	return is
}

// send gives the sync loop an event, unless the queue is full.
func (p *Generic) send(e PodLifecycleEvent) {
	if !p.events.TryPut(e) {
		p.lostEvents++
		p.o.Log("pleg: event channel is full, event %s of pod %s dropped", e.Type, e.ID)
	}
}

func podID(was, is *kubecontainer.Pod) types.UID {
	if is != nil {
		return is.ID
	}
	return was.ID
}

func (p *Generic) takeReinspect(uid types.UID) bool {
	i := slices.Index(p.reinspec, uid)
	if i < 0 {
		return false
	}
	p.reinspec = slices.Delete(p.reinspec, i, i+1)
	return true
}

// inspect puts the status of a pod that was listed at that time, or the error, into
// the cache, and reports whether the cache took it: with events it may know better.
func (p *Generic) inspect(ctx context.Context, pod *kubecontainer.Pod, at time.Time) (kept bool, err error) {
	if p.told {
		// An event of after the listing may be in the cache; what is seen now is newer.
		at = p.o.Loop.Now()
	}
	status, err := p.o.Runtime.GetPodStatus(ctx, pod)
	if err == nil {
		p.keepIPs(status)
	}
	if p.o.Shared {
		return p.o.Cache.SetIfNewer(pod.ID, status, err, at), err
	}
	p.o.Cache.Set(pod.ID, status, err, at)
	return true, err
}

// keepIPs gives a stopped pod the IPs that it had.
func (p *Generic) keepIPs(status *kubecontainer.PodStatus) {
	if len(status.IPs) == 0 && !hasReadySandbox(status) {
		if cached, _ := p.o.Cache.Get(status.ID); len(cached.IPs) > 0 {
			status.IPs = cached.IPs
		}
	}
}

func hasReadySandbox(s *kubecontainer.PodStatus) bool {
	for _, b := range s.SandboxStatuses {
		if b.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			return true
		}
	}
	return false
}
