package flow

import (
	"cmp"
	"container/heap"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// levelConfig is what a PriorityLevelConfiguration says. Without queues, what finds no
// seat is refused.
type levelConfig struct {
	name                             string
	exempt                           bool
	shares, lendable                 int // nominalConcurrencyShares, lendablePercent
	borrowing                        int // borrowingLimitPercent, or -1: as much as there is
	queues, handSize, queueLengthMax int
}

// configOf reads a PriorityLevelConfiguration.
func configOf(p *flowcontrolv1.PriorityLevelConfiguration) levelConfig {
	c := levelConfig{name: p.Name, borrowing: -1}
	if e := p.Spec.Exempt; e != nil {
		c.exempt = true
		c.shares, c.lendable = int(ptr.Deref(e.NominalConcurrencyShares, 0)), int(ptr.Deref(e.LendablePercent, 0))
	}
	if l := p.Spec.Limited; l != nil {
		c.shares, c.lendable = int(ptr.Deref(l.NominalConcurrencyShares, defaultShares)), int(ptr.Deref(l.LendablePercent, 0))
		if l.BorrowingLimitPercent != nil {
			c.borrowing = int(*l.BorrowingLimitPercent)
		}
		if q := l.LimitResponse.Queuing; q != nil {
			c.queues, c.handSize, c.queueLengthMax = int(q.Queues), int(q.HandSize), int(q.QueueLengthLimit)
		}
	}
	return c
}

// defaultShares are the nominalConcurrencyShares of a level that states none.
const defaultShares = 30

// Control is the API server's priority and fairness.
type Control struct {
	l           *loop.Loop
	stats       *stats.Counters
	stored      stored
	load        Load
	schemas     []*flowcontrolv1.FlowSchema // in the order in which they are matched
	Levels      []*level
	ByName      map[string]*level // but those that are to go
	executing   int
	draws       uint64
	dispatching map[string]int64 // until when watch events of a resource are dispatched
}

// level is one priority level.
type level struct {
	f       *Control
	cfg     levelConfig
	stats   *stats.LevelStats
	Nominal int
	Limit   int // the seats that it may use now
	most    int // what it may borrow included
	// maxSeats is the most that one request takes, if there are queues.
	maxSeats int
	inUse    int
	queued   int // requests in queues
	waiting  int // their seats
	ends     endHeap
	queues   []flowQueue
	virtual  float64
	next     int // the queue after the one that was served last
	timer    *loop.Timer
	demand   demand
}

// flowQueue holds requests of the flows that were dealt it, oldest first.
type flowQueue struct {
	jobs    []*job
	virtual float64 // when, in virtual time, its first request may start
}

// job is a request that wants seats.
type job struct {
	Seats    int
	service  time.Duration // mean
	arrived  int64
	deadline int64 // when it stops waiting
	gives    bool  // by then its caller has given up
	// start is told the service time; refuse is told why there is none.
	start  func(service time.Duration)
	refuse func(err error)
	r      *wire.Request
	flow   uint64 // the hash of its flow
}

// seatEnd is when a request gives its seats back.
type seatEnd struct {
	at    int64
	Seats int
}

// endHeap is a heap of seats' ends, the next first.
type endHeap []seatEnd

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(seatEnd)) }
func (h *endHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// stored is what flow reads of what the API holds, to weigh lists.
type stored interface {
	// Pods and Services return how many there are, PodsOn how many on a node.
	Pods() int
	Services() int
	PodsOn(node string) int
	// GroupOf returns the API group of a resource by its plural.
	GroupOf(resource string) string
}

// New returns flow control with the configuration that every API server begins with, whose
// seats are free. Seats are lent anew every borrowingPeriod from now on.
func New(l *loop.Loop, counters *stats.Counters, stored stored, load Load) *Control {
	f := &Control{l: l, stats: counters, stored: stored, load: load.withDefaults(), ByName: map[string]*level{}, dispatching: map[string]int64{}}
	f.Configure(Bootstrap())
	l.Root().Every("seats of priority levels", borrowingPeriod, 0, f.adjust)
	return f
}

// Configure has flow control follow a configuration from now on. A level that goes serves
// what it has first (util/flowcontrol/apf_controller.go lockAndDigestConfigObjects).
func (f *Control) Configure(c Config) {
	c = c.complete()
	f.schemas = c.Schemas
	clear(f.ByName)
	levels := make([]*level, 0, len(c.Levels))
	for _, p := range c.Levels {
		lv := f.level(p.Name)
		lv.configure(configOf(p))
		levels = append(levels, lv)
		f.ByName[p.Name] = lv
	}
	for _, lv := range f.Levels {
		if f.ByName[lv.cfg.name] != lv && lv.inUse+lv.queued > 0 {
			levels = append(levels, lv)
		}
	}
	slices.SortStableFunc(levels, func(a, b *level) int { return strings.Compare(a.cfg.name, b.cfg.name) })
	f.Levels = levels
	shares := 0
	for _, lv := range levels {
		shares += lv.cfg.shares
	}
	total := f.load.MaxRequestsInflight + f.load.MaxMutatingRequestsInflight
	for _, lv := range levels {
		lv.nominate(int(math.Ceil(float64(total)*float64(lv.cfg.shares)/float64(max(shares, 1)))), total)
	}
	f.adjust() // at first before there is any demand, as upstream
}

// level returns the level of a name, a new one if there was none.
func (f *Control) level(name string) *level {
	for _, lv := range f.Levels {
		if lv.cfg.name == name {
			return lv
		}
	}
	lv := &level{f: f, cfg: levelConfig{name: name}, stats: f.stats.Level(name)}
	lv.demand.at = f.l.UnixNano()
	lv.timer = f.l.Root().NewTimer("priority level "+name, lv.turn)
	return lv
}

// configure has a level follow its configuration. Requests that wait are dealt to its new
// queues; without any, they are refused.
func (lv *level) configure(c levelConfig) {
	old := lv.cfg
	lv.cfg = c
	if len(lv.queues) == c.queues && old.handSize == c.handSize {
		return
	}
	var waiting []*job
	for i := range lv.queues {
		waiting = append(waiting, lv.queues[i].jobs...)
	}
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(a.arrived, b.arrived) })
	lv.queues, lv.queued, lv.waiting, lv.next = make([]flowQueue, c.queues), 0, 0, 0
	for _, j := range waiting {
		if c.queues == 0 {
			lv.reject(j, "concurrency-limit")
			continue
		}
		lv.place(j)
	}
}

// nominate gives a level its nominal seats, of the server's total.
func (lv *level) nominate(nominal, total int) {
	lv.Nominal, lv.stats.Seats, lv.maxSeats = nominal, nominal, 1
	lv.most = nominal + total
	if lv.cfg.borrowing >= 0 {
		lv.most = nominal + int(math.Round(float64(nominal)*float64(lv.cfg.borrowing)/100))
	}
	if lv.cfg.queues > 0 {
		lv.maxSeats = max(1, min(int(math.Ceil(float64(nominal)*maxSeatsShare)), nominal/lv.cfg.handSize))
	}
}

// Admit has a request executed once there are seats for it. left is how long its
// caller goes on waiting.
func (f *Control) Admit(who *Asker, r *wire.Request, left time.Duration, start func(time.Duration), refuse func(error)) {
	schema := f.schemaOf(who, r)
	lv := f.ByName[schema.Spec.PriorityLevelConfiguration.Name]
	service, seats := f.load.service(r.Verb, f.objects(who.Node, r)), f.Seats(lv, r)
	now := f.l.UnixNano()
	j := &job{Seats: seats, service: service, arrived: now, deadline: now + int64(f.load.QueueWait), start: start, refuse: refuse, r: r}
	if left < f.load.QueueWait {
		j.deadline, j.gives = now+int64(left), true
	}
	lv.release(now)
	if lv.cfg.exempt || lv.queued == 0 && lv.fits(j) {
		lv.execute(j, now)
		return
	}
	if len(lv.queues) == 0 {
		lv.reject(j, "concurrency-limit")
		return
	}
	j.flow = loop.Hash(0, []string{schema.Name, distinguisher(schema, who, r)})
	lv.enqueue(j, now)
}

// fits reports whether a request can start. One that is wider than the level may
// once it is alone.
func (lv *level) fits(j *job) bool { return lv.inUse == 0 || lv.inUse+j.Seats <= lv.Limit }

// release frees the seats of requests that are done.
func (lv *level) release(now int64) {
	for len(lv.ends) > 0 && lv.ends[0].at <= now {
		e := heap.Pop(&lv.ends).(seatEnd)
		lv.demand.advance(e.at, lv.inUse+lv.waiting)
		lv.inUse -= e.Seats
		lv.f.executing--
	}
	lv.demand.advance(now, lv.inUse+lv.waiting)
}

// execute gives a request its seats and draws its service time. Beyond Cores all
// that are executed slow down in proportion; those that began before keep their
// times, which is as near as a model without preemption comes.
func (lv *level) execute(j *job, now int64) {
	f := lv.f
	lv.inUse += j.Seats
	f.executing++
	lv.demand.high = max(lv.demand.high, lv.inUse+lv.waiting)
	service := j.service
	if n := f.load.Cores; n > 0 && f.executing > n {
		service = service * time.Duration(f.executing) / time.Duration(n)
	}
	f.draws++
	service = f.l.Between(service/2, service+service/2, "api/service", lv.cfg.name, f.draws)
	heap.Push(&lv.ends, seatEnd{now + int64(service), j.Seats})
	st := lv.stats
	st.Dispatched++
	st.Wait.Observe(time.Duration(now - j.arrived))
	st.MaxSeats = max(st.MaxSeats, lv.inUse)
	i := stats.At(&st.Over, f.stats.Slot(now))
	i.MaxSeats = max(i.MaxSeats, uint32(lv.inUse))
	j.start(service)
}

// enqueue has a request wait.
func (lv *level) enqueue(j *job, now int64) {
	if !lv.place(j) {
		return
	}
	lv.demand.high = max(lv.demand.high, lv.inUse+lv.waiting)
	st := lv.stats
	st.MaxQueued = max(st.MaxQueued, lv.queued)
	i := stats.At(&st.Over, lv.f.stats.Slot(now))
	i.MaxQueued = max(i.MaxQueued, uint32(lv.queued))
	lv.turn()
}

// place puts a request into the least loaded of the queues that its flow was dealt, unless
// it is full.
func (lv *level) place(j *job) bool {
	best := -1
	lv.deal(j.flow, func(i int) {
		if best < 0 || len(lv.queues[i].jobs) < len(lv.queues[best].jobs) {
			best = i
		}
	})
	q := &lv.queues[best]
	if len(q.jobs) >= lv.cfg.queueLengthMax {
		lv.reject(j, "queue-full")
		return false
	}
	if len(q.jobs) == 0 {
		q.virtual = max(q.virtual, lv.virtual)
	}
	q.jobs = append(q.jobs, j)
	lv.queued++
	lv.waiting += j.Seats
	return true
}

// deal calls fn with the queues of a flow: its shuffle shard
// (util/shufflesharding).
func (lv *level) deal(flow uint64, fn func(queue int)) {
	var hand [8]int
	n := 0
	for ; n < lv.cfg.handSize; n++ {
		left := uint64(lv.cfg.queues - n)
		card := int(flow % left)
		flow /= left
		at := 0
		for ; at < n && hand[at] <= card; at++ {
			card++ // past the cards that are dealt, which are in order
		}
		copy(hand[at+1:n+1], hand[at:n])
		hand[at] = card
	}
	for _, c := range hand[:n] {
		fn(c)
	}
}

// turn serves the queues as far as there are seats, and sees to those that have
// waited too long.
func (lv *level) turn() {
	now := lv.f.l.UnixNano()
	lv.release(now)
	next := lv.expire(now)
	for lv.queued > 0 {
		i := lv.pick()
		q := &lv.queues[i]
		j := q.jobs[0]
		if !lv.fits(j) {
			break
		}
		q.pop()
		lv.virtual = max(lv.virtual, q.virtual)
		q.virtual += float64(j.Seats) * j.service.Seconds()
		lv.next = i + 1
		lv.queued--
		lv.waiting -= j.Seats
		lv.execute(j, now)
	}
	if lv.queued == 0 {
		lv.timer.Stop()
		return
	}
	if len(lv.ends) > 0 {
		next = min(next, lv.ends[0].at)
	}
	lv.timer.Reset(time.Duration(next - now))
}

// pick returns the queue whose first request would be done first in virtual time;
// of equals, the next after the last that was served.
func (lv *level) pick() int {
	best, end := -1, math.Inf(1)
	for k := range lv.queues {
		i := (lv.next + k) % len(lv.queues)
		q := &lv.queues[i]
		if len(q.jobs) == 0 {
			continue
		}
		if e := q.virtual + float64(q.jobs[0].Seats)*q.jobs[0].service.Seconds(); e < end {
			best, end = i, e
		}
	}
	return best
}

// expire refuses what has waited too long and returns when the next will have.
func (lv *level) expire(now int64) int64 {
	next := int64(math.MaxInt64)
	for i := range lv.queues {
		q := &lv.queues[i]
		kept := q.jobs[:0]
		for _, j := range q.jobs {
			if j.deadline > now {
				kept = append(kept, j)
				next = min(next, j.deadline)
				continue
			}
			lv.queued--
			lv.waiting -= j.Seats
			if j.gives {
				lv.count("cancelled")
				j.refuse(wire.ErrTimeout(j.r))
			} else {
				lv.reject(j, "time-out")
			}
		}
		clear(q.jobs[len(kept):])
		q.jobs = kept
	}
	return next
}

// pop takes the first request out, and keeps the queue's memory.
func (q *flowQueue) pop() {
	copy(q.jobs, q.jobs[1:])
	q.jobs[len(q.jobs)-1] = nil
	q.jobs = q.jobs[:len(q.jobs)-1]
}

// reject answers as k8s.io/apiserver's filter does: by a text, of which client-go
// makes a status.
func (lv *level) reject(j *job, reason string) {
	lv.count(reason)
	j.refuse(apierrors.NewGenericServerResponse(http.StatusTooManyRequests, j.r.Verb, schema.GroupResource{Resource: j.r.Resource}, j.r.Name,
		"Too many requests, please try again later.", 1, true))
}

// count counts a request that is not executed, by the reason.
func (lv *level) count(reason string) {
	st := lv.stats
	for i := range st.Rejected {
		if st.Rejected[i].Reason == reason {
			st.Rejected[i].Count++
			return
		}
	}
	st.Rejected = append(st.Rejected, stats.ReasonCount{Reason: reason, Count: 1})
}
