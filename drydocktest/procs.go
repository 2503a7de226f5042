package drydocktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// proc is a function that runs beside the test, as a process does. It has one life after
// another.
type proc struct {
	c    *Cluster
	name string
	fn   func(context.Context) error
	busy chan struct{} // holds whoever begins and ends lives
	life atomic.Pointer[life]
	// doom is at which write the process is killed, for plans; nil: at none.
	doom atomic.Pointer[doom]
}

// doom has a process be killed at a write.
type doom struct {
	left  atomic.Int64 // writes until then
	after bool         // the write still arrives
}

// life is one run of a process.
type life struct {
	cancel    context.CancelFunc
	p         *proc
	goroutine string        // on which fn was called
	done      chan struct{} // fn has returned
	// dead is set when the process is killed: nothing that it sends arrives any more, and
	// no answer comes.
	dead    atomic.Bool
	cut     context.Context // ends with it
	clients atomic.Int64    // configurations that fn has taken
}

// errKilled is what a process that was killed gets for its requests.
var errKilled = errors.New("drydocktest: the process was killed")

// Go runs fn beside the test, as a process of this name. Its context ends with the test;
// fn then has a minute of the cluster's time to return. An error of fn before that fails the
// test, unless Options.Restart is set. After a Crash it is called anew.
func (c *Cluster) Go(name string, fn func(ctx context.Context) error) {
	c.t.Helper()
	if c.proc(name) != nil {
		c.t.Fatalf("drydocktest: Go: there is a process %q already", name)
	}
	p := &proc{c: c, name: name, fn: fn, busy: make(chan struct{}, 1)}
	c.mu.Lock()
	c.procs = append(c.procs, p)
	c.mu.Unlock()
	p.start()
}

// proc returns the process of a name, or nil.
func (c *Cluster) proc(name string) *proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.procs {
		if p.name == name {
			return p
		}
	}
	return nil
}

// start begins a life.
func (p *proc) start() {
	ctx, cancel := context.WithCancel(p.c.ctx)
	cut, kill := context.WithCancel(context.Background())
	l := &life{p: p, done: make(chan struct{}), cut: cut}
	l.cancel = func() {
		if l.dead.Load() {
			kill()
		}
		cancel()
	}
	p.life.Store(l)
	began := make(chan struct{})
	go func() {
		defer close(l.done)
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels(processLabel, p.name)))
		l.goroutine = goroutineID()
		p.c.lives.Store(l.goroutine, l)
		defer p.c.lives.Delete(l.goroutine)
		close(began)
		err := p.fn(ctx)
		switch {
		case l.dead.Load():
		case p.c.restart && ctx.Err() == nil:
			p.c.t.Logf("drydocktest: %s has ended and is started anew in %v: %v", p.name, restartAfter, err)
			go p.again(l)
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
		case err != nil && ctx.Err() != nil:
			p.c.t.Logf("drydocktest: %s ended with the test, with the error: %v", p.name, err)
		case err != nil:
			p.c.t.Errorf("%s: %v%s", p.name, err, advice(err))
		}
	}()
	<-began
}

// processLabel has goroutines, and those that they start, be a process's, for profiles and
// for who looks at what is left in the end.
const processLabel = "drydocktest process"

// processOf is the process of a goroutine by the first line of its stack, with labels; "" if
// none.
func processOf(header string) string {
	_, name, ok := strings.Cut(header, strconv.Quote(processLabel)+": ")
	if !ok {
		return ""
	}
	name, err := strconv.QuotedPrefix(name)
	if err != nil {
		return ""
	}
	if name, err = strconv.Unquote(name); err != nil {
		return ""
	}
	return name
}

// restartAfter is the kubelet's first back-off of a container that ends.
const restartAfter = 10 * time.Second

// again begins a new life after one that has ended by itself.
func (p *proc) again(ended *life) {
	select {
	case <-time.After(restartAfter):
	case <-p.c.ctx.Done():
		return
	}
	p.busy <- struct{}{}
	defer func() { <-p.busy }()
	if p.life.Load() == ended && p.c.ctx.Err() == nil {
		p.start()
	}
}

// advice is what to do about errors that tests run into.
func advice(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "controller with name") && strings.Contains(text, "already exists"):
		return "\n\tcontroller-runtime knows the names of controllers of the whole process, also of managers that have ended. " +
			"Set SkipNameValidation in the controller's options in tests."
	case strings.Contains(text, "error listening on"):
		return "\n\tA bubble can't have sockets. Set the bind addresses of the manager's servers to \"0\"."
	}
	return ""
}

// endsWithin is how long a process may take to end.
const endsWithin = time.Minute

// end has a life end, and waits for it.
func (p *proc) end() {
	l := p.life.Load()
	l.cancel()
	select {
	case <-l.done:
	case <-time.After(endsWithin):
		p.c.t.Errorf("drydocktest: %s has not returned %v after its context ended:\n%s", p.name, endsWithin, brief(stackOf(l.goroutine)))
	}
}

// Crash kills the process of a name, as SIGKILL does: what it has sent arrives, what it
// sends from then on doesn't, and no answer comes. Then it is started anew. Only clients
// whose configuration the process has taken itself, by calling Config in the function
// that Go was given, are cut.
func (c *Cluster) Crash(name string) {
	c.t.Helper()
	c.CrashFor(name, 0)
}

// CrashFor is Crash, with the process down for a time, during which CrashFor waits.
func (c *Cluster) CrashFor(name string, down time.Duration) {
	c.t.Helper()
	p := c.proc(name)
	switch {
	case p == nil:
		c.t.Fatalf("drydocktest: Crash: there is no process %q", name)
	case p.life.Load().clients.Load() == 0:
		c.t.Fatalf("drydocktest: Crash: %s has taken no configuration, so its clients can't be cut: call Config in the function that Go was given", name)
	}
	p.busy <- struct{}{}
	defer func() { <-p.busy }()
	p.life.Load().dead.Store(true)
	p.end()
	c.mustBetween(func() { c.session.Cluster().Recorder().Record(trace.KindFault, "process "+name, "killed") })
	time.Sleep(down)
	if c.ctx.Err() == nil {
		p.start()
	}
}

// CrashWithin is Crash at an instant within a time, which it waits for. The seed draws it.
func (c *Cluster) CrashWithin(name string, within time.Duration) {
	c.t.Helper()
	if within <= 0 {
		c.t.Fatalf("drydocktest: CrashWithin: %v is no time to draw from", within)
	}
	draw := loop.Hash(c.seed, []string{"crash", name}, c.drawn.Add(1))
	time.Sleep(time.Duration(draw % uint64(within)))
	c.Crash(name)
}

// CrashAtWrite has a process be killed at its n-th write from now on, 1 for the next: before
// that arrives, or right after (arrives), when its answer is lost. Writes of leases and events
// don't count. It doesn't wait for it.
func (c *Cluster) CrashAtWrite(name string, n int, arrives bool) {
	c.t.Helper()
	switch {
	case c.proc(name) == nil:
		c.t.Fatalf("drydocktest: CrashAtWrite: there is no process %q", name)
	case n < 1:
		c.t.Fatalf("drydocktest: CrashAtWrite: there is no write %d", n)
	}
	c.killAtWrite(name, n, arrives)
}

// killAtWrite has a process be killed at its n-th write from now on: before it is sent, or
// right after.
func (c *Cluster) killAtWrite(name string, n int, after bool) {
	p := c.proc(name)
	if p == nil {
		return // the body has not begun it yet
	}
	d := &doom{after: after}
	d.left.Store(int64(n))
	p.doom.Store(d)
}

// reprieve has no process be killed any more.
func (c *Cluster) reprieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.procs {
		p.doom.Store(nil)
	}
}

// doomed reports whether a write is the one at which the process is killed; sent says
// that it still arrives.
func (l *life) doomed() (killed, sent bool) {
	d := l.p.doom.Load()
	if d == nil || d.left.Add(-1) != 0 {
		return false, false
	}
	l.p.doom.Store(nil)
	if !d.after {
		l.dead.Store(true)
	}
	go func() {
		time.Sleep(time.Duration(apart)) // the write is on its way
		if l.p.life.Load() == l && l.p.c.ctx.Err() == nil {
			l.p.c.Crash(l.p.name)
		}
	}()
	return true, d.after
}

// lives are the running processes' lives, by their goroutine.
type lives struct{ sync.Map }

// present returns the life on whose goroutine this is called, or nil.
func (l *lives) present() *life {
	v, ok := l.Load(goroutineID())
	if !ok {
		return nil
	}
	return v.(*life)
}

// goroutineID names the present goroutine as stacks do.
func goroutineID() string {
	var buf [64]byte
	id, _, _ := bytes.Cut(bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine ")), []byte(" "))
	return string(id)
}

// stackOf returns the stack of a goroutine.
func stackOf(id string) string {
	for _, g := range goroutines() {
		if strings.HasPrefix(g, fmt.Sprintf("goroutine %s ", id)) {
			return g
		}
	}
	return "its goroutine has ended"
}

// goroutinesWithLabels are goroutines, whose first lines say which labels they have.
func goroutinesWithLabels() []string {
	defer setDebug("tracebacklabels=1")()
	return goroutines()
}

// goroutines are the stacks of all goroutines.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return strings.Split(string(buf[:n]), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}
