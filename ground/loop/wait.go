package loop

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Sleep waits for d on the loop's clock, or until ctx ends, whose error it
// then returns. Also a Sleep of 0 gives way.
func (l *Loop) Sleep(ctx context.Context, d time.Duration) error {
	t := l.current
	if t == nil {
		panic(errPark)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.killed {
		panic(errKilled)
	}
	at := l.now + int64(max(d, 0))
	if c := own(ctx); t.wake.idx < 0 && (c == nil || c.err == nil) && l.goesOn(t, at) {
		return nil
	}
	l.schedule(&t.wake, at)
	err := l.wait(ctx, WaitTime, "sleep")
	if err != nil {
		t.wake.Stop()
	}
	return err
}

// Yield gives way once: everything else that is due at this instant may run.
func (l *Loop) Yield(ctx context.Context) error { return l.Sleep(ctx, 0) }

// Waitable is what WaitAny can wait for: *Signal, *Event, *Queue.
type Waitable interface {
	// take reports whether the thing is ready, and uses that up where it can
	// be used up (a Signal).
	take() bool
	add(t *Task)
	remove(t *Task)
	// pass wakes the next who waits, if there is something for it: for use
	// by a task that was woken and does not take.
	pass()
}

// waiters are tasks that wait, in the order of their coming. There is mostly one.
type waiters struct {
	tasks []*Task
	one   [1]*Task // room for it
}

func (w *waiters) add(t *Task) {
	if w.tasks == nil {
		w.tasks = w.one[:0]
	}
	w.tasks = append(w.tasks, t)
}

func (w *waiters) remove(t *Task) {
	if i := slices.Index(w.tasks, t); i >= 0 {
		w.tasks = slices.Delete(w.tasks, i, i+1)
	}
}

func (w *waiters) wakeOne() {
	if len(w.tasks) > 0 {
		w.tasks[0].ready()
	}
}

func (w *waiters) wakeAll() {
	for _, t := range w.tasks {
		t.ready()
	}
}

// WaitAny waits until one of ws is ready and returns its index; of several
// that are ready the first in the list wins. A ready Signal is used up; from a
// ready Queue nothing is taken yet.
func WaitAny(ctx context.Context, ws ...Waitable) (int, error) {
	l := From(ctx)
	if l == nil {
		panic("loop: the context belongs to no loop")
	}
	t := l.current
	if t == nil {
		panic(errPark)
	}
	for {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		for i, w := range ws {
			if w.take() {
				for j, o := range ws {
					if j != i {
						o.pass()
					}
				}
				return i, nil
			}
		}
		if err := waitOn(ctx, l, t, ws); err != nil {
			return -1, err
		}
	}
}

func waitOn(ctx context.Context, l *Loop, t *Task, ws []Waitable) error {
	for _, w := range ws {
		w.add(t)
	}
	woken := false
	defer func() {
		for _, w := range ws {
			w.remove(t)
		}
		if !woken { // the context ended, or the task is killed
			for _, w := range ws {
				w.pass()
			}
		}
	}()
	err := l.wait(ctx, WaitTask, "one of several")
	woken = err == nil
	return err
}

// Signal is a wake-up that is remembered until somebody waits for it, like a
// channel of capacity one: any number of Notify calls count as one.
type Signal struct {
	set bool
	w   waiters
}

// Notify sets the signal and wakes who waits.
func (s *Signal) Notify() {
	s.set = true
	s.w.wakeOne()
}

// Ready reports whether the signal is set.
func (s *Signal) Ready() bool { return s.set }

// Wait waits until the signal is set, and uses it up.
func (s *Signal) Wait(ctx context.Context) error {
	_, err := WaitAny(ctx, s)
	return err
}

func (s *Signal) take() bool {
	was := s.set
	s.set = false
	return was
}
func (s *Signal) add(t *Task)    { s.w.add(t) }
func (s *Signal) remove(t *Task) { s.w.remove(t) }

func (s *Signal) pass() {
	if s.set {
		s.w.wakeOne()
	}
}

// Event happens once and stays: every wait before and after it returns.
type Event struct {
	fired bool
	w     waiters
}

// Fire makes the event happen.
func (e *Event) Fire() {
	e.fired = true
	e.w.wakeAll()
}

// Fired reports whether the event has happened.
func (e *Event) Fired() bool { return e.fired }

// Reset makes it an event that has not happened. Nobody may be waiting for it.
func (e *Event) Reset() { e.fired = false }

// Wait waits until the event has happened. It is WaitAny for one thing that
// nobody uses up.
func (e *Event) Wait(ctx context.Context) error {
	l := From(ctx)
	if l == nil {
		panic("loop: the context belongs to no loop")
	}
	t := l.current
	if t == nil {
		panic(errPark)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.fired {
			return nil
		}
		if err := e.wait(ctx, l, t); err != nil {
			return err
		}
	}
}

func (e *Event) wait(ctx context.Context, l *Loop, t *Task) error {
	e.w.add(t)
	defer e.w.remove(t)
	return l.wait(ctx, WaitTask, "one of several")
}

func (e *Event) take() bool     { return e.fired }
func (e *Event) add(t *Task)    { e.w.add(t) }
func (e *Event) remove(t *Task) { e.w.remove(t) }
func (e *Event) pass()          {} // it wakes all

// Queue is a bounded first-in first-out queue.
type Queue[T any] struct {
	items []T
	head  int32 // where the oldest item is
	cap   int32
	w     waiters // who waits for an item
	room  waiters // who waits for room
}

// NewQueue returns a queue that holds up to capacity items; 0 or less means
// without bound.
func NewQueue[T any](capacity int) *Queue[T] { return &Queue[T]{cap: int32(capacity)} }

// Len returns the number of items in the queue.
func (q *Queue[T]) Len() int { return len(q.items) - int(q.head) }

// keptItems is for how many items an empty queue keeps room.
const keptItems = 4

// TryPut adds v unless the queue is full.
func (q *Queue[T]) TryPut(v T) bool {
	if q.cap > 0 && q.Len() >= int(q.cap) {
		return false
	}
	if q.head > 0 && len(q.items) == cap(q.items) && int(q.head) >= len(q.items)/2 {
		q.items, q.head = slices.Delete(q.items, 0, int(q.head)), 0
	}
	q.items = append(q.items, v)
	q.w.wakeOne()
	return true
}

// Put adds v, waiting for room if the queue is full.
func (q *Queue[T]) Put(ctx context.Context, v T) error {
	for !q.TryPut(v) {
		l := From(ctx)
		t := l.current
		if t == nil {
			panic(errPark)
		}
		q.room.add(t)
		err := func() (err error) {
			woken := false
			defer func() {
				q.room.remove(t)
				if !woken && q.Len() < int(q.cap) {
					q.room.wakeOne()
				}
			}()
			err = l.wait(ctx, WaitTask, "room in a queue")
			woken = err == nil
			return err
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// TryGet takes the oldest item, if there is one.
func (q *Queue[T]) TryGet() (T, bool) {
	var v T
	if q.Len() == 0 {
		return v, false
	}
	var zero T
	v, q.items[q.head] = q.items[q.head], zero
	q.head++
	if q.Len() == 0 {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > keptItems {
			q.items = nil
		}
	} else {
		q.w.wakeOne()
	}
	q.room.wakeOne()
	return v, true
}

// Get takes the oldest item, waiting for one if there is none.
func (q *Queue[T]) Get(ctx context.Context) (T, error) {
	for {
		if v, ok := q.TryGet(); ok {
			return v, nil
		}
		if _, err := WaitAny(ctx, q); err != nil {
			var zero T
			return zero, err
		}
	}
}

func (q *Queue[T]) take() bool     { return q.Len() > 0 }
func (q *Queue[T]) add(t *Task)    { q.w.add(t) }
func (q *Queue[T]) remove(t *Task) { q.w.remove(t) }

func (q *Queue[T]) pass() {
	if q.Len() > 0 {
		q.w.wakeOne()
	}
}

// Semaphore lets n tasks pass at a time, in the order of their arrival.
type Semaphore struct {
	free int
	q    []*ticket
}

type ticket struct {
	t       *Task
	granted bool
}

// NewSemaphore returns a semaphore with n places.
func NewSemaphore(n int) *Semaphore { return &Semaphore{free: n} }

// Acquire waits for a place. A task that is killed, or whose context ends,
// while it waits gives its turn to the next.
func (s *Semaphore) Acquire(ctx context.Context) error {
	if s.free > 0 && len(s.q) == 0 {
		s.free--
		return nil
	}
	l := From(ctx)
	k := &ticket{t: l.current}
	if k.t == nil {
		panic(errPark)
	}
	s.q = append(s.q, k)
	ok := false
	defer func() {
		if ok {
			return
		}
		if k.granted {
			s.Release()
			return
		}
		for i, o := range s.q {
			if o == k {
				s.q = append(s.q[:i], s.q[i+1:]...)
				return
			}
		}
	}()
	for !k.granted {
		if err := l.wait(ctx, WaitTask, "a semaphore"); err != nil {
			return err
		}
	}
	ok = true
	return nil
}

// Taken reports whether Acquire would have to wait.
func (s *Semaphore) Taken() bool { return s.free == 0 || len(s.q) > 0 }

// Release gives a place back.
func (s *Semaphore) Release() {
	if len(s.q) == 0 {
		s.free++
		return
	}
	k := s.q[0]
	s.q = s.q[1:]
	k.granted = true
	k.t.ready()
}

// WaitGroup waits for a number of things to be done.
type WaitGroup struct {
	n int
	e Event
}

// Add adds to the number of things that are not done.
func (w *WaitGroup) Add(n int) { w.n += n }

// Done says that one thing is done.
func (w *WaitGroup) Done() {
	w.n--
	if w.n < 0 {
		panic("loop: negative WaitGroup")
	}
	if w.n == 0 {
		w.e.w.wakeAll()
	}
}

// Wait waits until all things are done.
func (w *WaitGroup) Wait(ctx context.Context) error {
	_, err := WaitAny(ctx, w)
	return err
}

func (w *WaitGroup) take() bool     { return w.n == 0 }
func (w *WaitGroup) add(t *Task)    { w.e.w.add(t) }
func (w *WaitGroup) remove(t *Task) { w.e.w.remove(t) }
func (w *WaitGroup) pass()          {} // it wakes all

// ErrGroupDead is what Call returns when the group it calls is dead, or dies
// before it has answered.
var ErrGroupDead = errors.New("loop: the group is dead")

// Call runs fn as a task of g and waits for its answer: a remote procedure
// call inside one process. If the caller is killed or its ctx ends first, the
// context that fn got is cancelled, as by a closed connection, and fn goes on
// as it sees fit.
func Call[T any](ctx context.Context, g *Group, name string, fn func(ctx context.Context) (T, error)) (T, error) {
	var zero T
	if From(ctx) != g.l {
		panic("loop: Call into a group of another loop; use Send")
	}
	if g.dead {
		return zero, ErrGroupDead
	}
	r := &call[T]{}
	var cctx *Context
	t := g.Go(name, func(tctx context.Context) {
		v, err := fn(cctx)
		r.v, r.err, r.answered = v, err, true
	})
	cctx = &Context{l: g.l, task: t}
	t.onExit = func() {
		if !r.answered {
			r.err = ErrGroupDead
		}
		r.e.Fire()
	}
	defer func() {
		if !r.e.fired {
			cctx.cancel(context.Canceled)
		}
	}()
	if err := r.e.Wait(ctx); err != nil {
		return zero, err
	}
	return r.v, r.err
}

type call[T any] struct {
	e        Event
	v        T
	err      error
	answered bool
}

// Await makes a call that leaves the loop. On the wall clock fn runs on a
// goroutine of its own, may touch its arguments only, and the task goes on with
// its result; in virtual time Await gives way once and runs fn.
func Await[T any](ctx context.Context, fn func(ctx context.Context) (T, error)) (T, error) {
	l := From(ctx)
	if l == nil {
		panic("loop: the context belongs to no loop")
	}
	if l.real != nil {
		return awaitReal(ctx, l, fn)
	}
	if err := l.Yield(ctx); err != nil {
		var zero T
		return zero, err
	}
	return fn(ctx)
}
