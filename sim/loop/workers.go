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
const minParallel = 4

// spins is how often a worker looks for the next window before it parks. A
// window takes tens of microseconds, less than waking a parked thread.
const spins = 20000

// workers run the due loops of a window together with the engine's own
// goroutine. They meet at a barrier of atomics that spins briefly, then parks.
type workers struct {
	due   []*Loop
	end   int64
	next  atomic.Int64
	left  atomic.Int64
	epoch atomic.Uint64
	quit  atomic.Bool
	w     []*worker
	wg    sync.WaitGroup
}

type worker struct {
	parked atomic.Bool
	wake   chan struct{}
	_      [64]byte // keeps two workers' flags off one cache line
}

func startWorkers(n int) *workers {
	p := &workers{}
	for range n {
		w := &worker{wake: make(chan struct{}, 1)}
		p.w = append(p.w, w)
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			p.work(w)
		}()
	}
	return p
}

func (p *workers) run(due []*Loop, end int64) {
	p.due, p.end = due, end
	p.next.Store(0)
	p.left.Store(int64(len(p.w)))
	p.signal()
	p.share()
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

// share runs due loops until none is left.
func (p *workers) share() {
	for {
		i := p.next.Add(1) - 1
		if i >= int64(len(p.due)) {
			return
		}
		p.due[i].runUntil(p.end)
	}
}

func (p *workers) work(w *worker) {
	var seen uint64
	for {
		p.await(w, seen)
		if p.quit.Load() {
			return
		}
		seen++
		p.share()
		p.left.Add(-1)
	}
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
	w.parked.Store(true)
	if p.epoch.Load() != seen && w.parked.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
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
