package flow

import (
	"container/heap"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// levelConfig is a PriorityLevelConfiguration. Without queues, what finds no seat
// is refused.
type levelConfig struct {
	name                             string
	shares, lendable                 int // nominalConcurrencyShares, lendablePercent
	queues, handSize, queueLengthMax int
}

// bootstrapLevels returns the suggested and mandatory levels but exempt.
func bootstrapLevels() []levelConfig {
	return []levelConfig{
		{"catch-all", 5, 0, 0, 0, 0},
		{"global-default", 20, 50, 128, 6, 50},
		{"leader-election", 10, 0, 16, 4, 50},
		{"node-high", 40, 25, 64, 6, 50},
		{"system", 30, 33, 64, 6, 50},
		{"workload-high", 40, 50, 128, 6, 50},
		{"workload-low", 100, 90, 128, 6, 50},
	}
}

// Control is the API server's priority and fairness.
type Control struct {
	l           *loop.Loop
	stats       *stats.Counters
	stored      stored
	load        Load
	Levels      []*level
	ByName      map[string]*level
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
}

// New returns flow control whose seats are free. Seats are lent anew every
// borrowingPeriod from now on.
func New(l *loop.Loop, counters *stats.Counters, stored stored, load Load) *Control {
	f := &Control{l: l, stats: counters, stored: stored, load: load.withDefaults(), ByName: map[string]*level{}, dispatching: map[string]int64{}}
	configs, shares := bootstrapLevels(), 0
	for _, c := range configs {
		shares += c.shares
	}
	total := f.load.MaxRequestsInflight + f.load.MaxMutatingRequestsInflight
	for _, c := range configs {
		nominal := int(math.Ceil(float64(total) * float64(c.shares) / float64(shares)))
		lv := &level{f: f, cfg: c, Nominal: nominal, maxSeats: 1, queues: make([]flowQueue, c.queues), stats: &stats.LevelStats{Name: c.name, Seats: nominal}}
		if c.queues > 0 {
			lv.maxSeats = max(1, min(int(math.Ceil(float64(nominal)*maxSeatsShare)), nominal/c.handSize))
		}
		lv.demand.at = l.UnixNano()
		lv.timer = l.Root().NewTimer("priority level "+c.name, lv.turn)
		f.Levels = append(f.Levels, lv)
		f.ByName[c.name] = lv
		counters.Levels = append(counters.Levels, lv.stats)
	}
	f.adjust() // before there is any demand, as upstream
	l.Root().Every("seats of priority levels", borrowingPeriod, 0, f.adjust)
	return f
}

// Admit has a request executed once there are seats for it. left is how long its
// caller goes on waiting.
func (f *Control) Admit(user, node string, r *wire.Request, left time.Duration, start func(time.Duration), refuse func(error)) {
	name, fs, distinguisher := flowOf(user, node, r)
	lv := f.ByName[name]
	service, seats := f.load.service(r.Verb, f.objects(node, r)), f.Seats(lv, r)
	now := f.l.UnixNano()
	j := &job{Seats: seats, service: service, arrived: now, deadline: now + int64(f.load.QueueWait), start: start, refuse: refuse, r: r}
	if left < f.load.QueueWait {
		j.deadline, j.gives = now+int64(left), true
	}
	lv.release(now)
	if lv.queued == 0 && lv.fits(j) {
		lv.execute(j, now)
		return
	}
	if len(lv.queues) == 0 {
		lv.reject(j, "concurrency-limit")
		return
	}
	lv.enqueue(j, loop.Hash(0, []string{fs, distinguisher}), now)
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

// enqueue puts a request into the least loaded of the queues that its flow was
// dealt.
func (lv *level) enqueue(j *job, flow uint64, now int64) {
	best := -1
	lv.deal(flow, func(i int) {
		if best < 0 || len(lv.queues[i].jobs) < len(lv.queues[best].jobs) {
			best = i
		}
	})
	q := &lv.queues[best]
	if len(q.jobs) >= lv.cfg.queueLengthMax {
		lv.reject(j, "queue-full")
		return
	}
	if len(q.jobs) == 0 {
		q.virtual = max(q.virtual, lv.virtual)
	}
	q.jobs = append(q.jobs, j)
	lv.queued++
	lv.waiting += j.Seats
	lv.demand.high = max(lv.demand.high, lv.inUse+lv.waiting)
	st := lv.stats
	st.MaxQueued = max(st.MaxQueued, lv.queued)
	i := stats.At(&st.Over, lv.f.stats.Slot(now))
	i.MaxQueued = max(i.MaxQueued, uint32(lv.queued))
	lv.turn()
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
