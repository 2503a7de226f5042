package loop

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// minParallel is how many loops must be due for a window to be shared out, minWake
// for how many a worker that is parked is woken: with fewer, that costs more than
// it wins.
const (
	minParallel = 3
	minWake     = 8
)

// spins is how often a worker looks for the next window before it parks. A
// window takes tens of microseconds, less than waking a parked thread.
const spins = 50000

// workers run the due loops of a window together with the engine's own
// goroutine. Nobody waits for a worker that is late: the window is open until all
// its loops are handed out, who comes by then helps, and the engine waits for those
// who came. Workers spin between windows, for a while, then park. Each takes the
// loops of its own range of indices first, so that a loop's memory stays in one
// core's cache, then helps the others.
type workers struct {
	e   *Engine
	end int64
	_   [64]byte // what follows is written while workers read the above
	// epoch is odd while a window is open; over means that the run ends.
	epoch atomic.Uint64
	// busy is how many workers have come. One that comes looks at the epoch again,
	// so that none is in a window that the engine has seen the end of.
	busy  atomic.Int64
	lost  atomic.Bool // a worker is gone
	w     []*worker
	parts []part // one per worker, and the engine's own goroutine first
	wg    sync.WaitGroup
}

const over = math.MaxUint64

// part is a range of the due list, handed out some loops at a time: several, so
// that their memory is fetched at once, but few enough that others can help.
type part struct {
	next      atomic.Int64
	end, take int64
	_         [40]byte // one cache line each
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
		part, first := &p.parts[k], i
		for limit := int32((k + 1) * len(e.loops) / n); i < len(e.due) && e.due[i] < limit; i++ {
		}
		part.end, part.take = int64(i), int64(min(max((i-first)/2, 1), ahead))
		part.next.Store(int64(first))
	}
	p.epoch.Add(1)
	if len(e.due) >= minWake {
		p.wake()
	}
	p.share(0)
	p.epoch.Add(1)
	for i := 0; p.busy.Load() > 0; i++ {
		if i > 1000 {
			runtime.Gosched()
		}
	}
}

// wake wakes who is parked.
func (p *workers) wake() {
	for _, w := range p.w {
		if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// share runs due loops until none is left, its own part's first.
func (p *workers) share(own int) {
	for k := range p.parts {
		part := &p.parts[(own+k)%len(p.parts)]
		for {
			i := part.next.Add(part.take) - part.take
			if i >= part.end {
				break
			}
			p.e.runLoops(p.e.due[i:min(i+part.take, part.end)], p.end, own)
		}
	}
}

func (p *workers) work(w *worker, own int) {
	for epoch := uint64(0); ; {
		if epoch = p.await(w, epoch); epoch == over {
			return
		}
		p.turn(epoch, own)
	}
}

// turn is a worker's part of one window. It ends also if a task's Goexit takes
// the worker's goroutine with it; the run ends with this window then.
func (p *workers) turn(epoch uint64, own int) {
	whole := false
	p.busy.Add(1)
	defer func() {
		if !whole {
			p.lost.Store(true)
		}
		p.busy.Add(-1)
	}()
	if p.epoch.Load() == epoch {
		p.share(own)
	}
	whole = true
}

// await returns the epoch of the next open window after seen, or over.
func (p *workers) await(w *worker, seen uint64) uint64 {
	for i := 1; ; i++ {
		if epoch := p.epoch.Load(); epoch != seen && epoch%2 == 1 {
			return epoch
		}
		if i%1000 == 0 {
			runtime.Gosched()
		}
		if i < spins {
			continue
		}
		i = 0
		w.parked.Store(true)
		if epoch := p.epoch.Load(); epoch != seen && epoch%2 == 1 && w.parked.CompareAndSwap(true, false) {
			return epoch
		}
		<-w.wake
	}
}

func (p *workers) close() {
	p.epoch.Store(over)
	p.wake()
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
