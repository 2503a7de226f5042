package loop

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// minParallel is how many loops must be due for a window to be shared out: with
// fewer, meeting at the barrier costs more than it wins.
const minParallel = 8

// spins is how often a worker looks for the next window before it parks. A
// window takes tens of microseconds, less than waking a parked thread.
const spins = 20000

// workers run the due loops of a window together with the engine's own
// goroutine. They meet at a barrier of atomics that spins briefly, then parks.
// Each takes the loops of its own range of indices first, so that a loop's
// memory stays in one core's cache, then helps the others.
type workers struct {
	e     *Engine
	end   int64
	left  atomic.Int64
	epoch atomic.Uint64
	quit  atomic.Bool
	lost  atomic.Bool // a worker is gone
	w     []*worker
	parts []part // one per worker, and the engine's own goroutine first
	wg    sync.WaitGroup
}

// part is a range of the due list, handed out one by one.
type part struct {
	next atomic.Int64
	end  int64
	_    [48]byte // one cache line each
}

type worker struct {
	parked atomic.Bool
	wake   chan struct{}
	_      [64]byte // keeps two workers' flags off one cache line
}

func startWorkers(n int) *workers {
	p := &workers{parts: make([]part, n+1)}
	for i := range n {
		w := &worker{wake: make(chan struct{}, 1)}
		p.w = append(p.w, w)
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			p.work(w, i+1)
		}()
	}
	return p
}

func (p *workers) run(e *Engine, end int64) {
	p.e, p.end = e, end
	n, i := len(p.parts), 0
	for k := range p.parts {
		p.parts[k].next.Store(int64(i))
		for limit := int32((k + 1) * len(e.loops) / n); i < len(e.due) && e.due[i] < limit; i++ {
		}
		p.parts[k].end = int64(i)
	}
	p.left.Store(int64(len(p.w)))
	p.signal()
	p.share(0)
	for i := 0; p.left.Load() > 0; i++ {
		if i > 1000 {
			runtime.Gosched()
		}
	}
}

// signal begins a new epoch and wakes who is parked.
func (p *workers) signal() {
	p.epoch.Add(1)
	for _, w := range p.w {
		if w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// share runs due loops until none is left, its own part's first.
func (p *workers) share(own int) {
	for k := range p.parts {
		part := &p.parts[(own+k)%len(p.parts)]
		for {
			i := part.next.Add(1) - 1
			if i >= part.end {
				break
			}
			p.e.runLoop(p.e.due[i], p.end, own)
		}
	}
}

func (p *workers) work(w *worker, own int) {
	var seen uint64
	for {
		p.await(w, seen)
		if p.quit.Load() {
			return
		}
		seen++
		p.turn(own)
	}
}

// turn is a worker's part of one window. It ends also if a task's Goexit takes
// the worker's goroutine with it; the run ends with this window then.
func (p *workers) turn(own int) {
	whole := false
	defer func() {
		if !whole {
			p.lost.Store(true)
		}
		p.left.Add(-1)
	}()
	p.share(own)
	whole = true
}

// await returns once the epoch is past seen.
func (p *workers) await(w *worker, seen uint64) {
	for i := 0; i < spins; i++ {
		if p.epoch.Load() != seen {
			return
		}
		if i%1000 == 999 {
			runtime.Gosched()
		}
	}
	for {
		w.parked.Store(true)
		if p.epoch.Load() != seen && w.parked.CompareAndSwap(true, false) {
			return
		}
		<-w.wake
		// The engine may have been slow to wake for an epoch that this worker
		// has long finished.
		if p.epoch.Load() != seen {
			return
		}
	}
}

func (p *workers) close() {
	p.quit.Store(true)
	p.signal()
	p.wg.Wait()
}

// startWatchdog reports a window that lasts too long; the function returned
// ends it.
func (e *Engine) startWatchdog() func() {
	if e.opts.Watchdog < 0 {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		tick := time.NewTicker(e.opts.Watchdog)
		defer tick.Stop()
		last := uint64(0)
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if n := e.progress.Load(); n == last {
				fmt.Fprintf(e.opts.Stderr, "loop: no window ended for %v (wall clock) at %s: a body does not give way\n", e.opts.Watchdog, time.Unix(0, e.progressAt.Load()).UTC().Format(time.RFC3339Nano))
			} else {
				last = n
			}
		}
	}()
	return func() {
		close(done)
		wg.Wait()
	}
}
