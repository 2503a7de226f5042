package drydocktest

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What goes wrong in a bubble says little by itself: a bubble whose clock stands still says
// nothing at all. This file says what it was, and what to do.

// refuseParallel fails a test that is parallel, or stands in a bubble.
func refuseParallel(t *testing.T) {
	t.Helper()
	if bubbleOf(ownHeader()) != "" {
		t.Fatal("drydocktest: Run stands in a bubble already: one test has one Run, and it can't be nested")
	}
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("drydocktest: Run gives process-wide sources of randomness a seed, so neither the test nor one above it can be parallel: "+
				"remove t.Parallel() (packages run in parallel all the same). %v", v)
		}
	}()
	t.Setenv("DRYDOCKTEST", t.Name()) // panics in parallel tests
}

// inBubble has the panics of testing.T that a bubble knows fail the test instead. It is
// deferred.
func inBubble(t *testing.T) {
	v := recover()
	text, ok := v.(string)
	switch {
	case v == nil:
	case ok && strings.Contains(text, "called inside synctest bubble"):
		t.Errorf("drydocktest: %s: call it outside of Run, so that each subtest has a Run of its own", text)
	default:
		panic(v)
	}
}

// unwind has a bubble that could not end fail its test. What processes leave behind is no
// failure: it would end with them. failed says whether the test has failed already. It is
// deferred around the bubble.
func unwind(t *testing.T, dog *watchdog, failed *bool) {
	v := recover()
	if v == nil {
		return
	}
	err, ok := v.(error)
	if !ok || !strings.HasPrefix(err.Error(), "deadlock:") {
		panic(v)
	}
	var list []string
	left := map[string]int{} // by process
	for _, g := range goroutinesWithLabels() {
		header, _, _ := strings.Cut(g, "\n")
		// Coroutines are the simulation's own; what has no lines is Go's.
		text := brief(g)
		switch name := processOf(header); {
		case bubbleOf(header) != dog.bubble || text == header || strings.Contains(header, "[coroutine"):
		case name != "":
			left[name]++
		default:
			list = append(list, "\t"+strings.ReplaceAll(text, "\n", "\n\t"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Logf("drydocktest: %s has left %s behind that didn't end with its context", name, plural(left[name], "goroutine"))
	}
	switch {
	case len(list) > 0:
		t.Fatalf("drydocktest: %s of the test wait for something that doesn't come any more. What the test starts has to end with its context (t.Context(), or that of Go):\n%s",
			plural(len(list), "goroutine"), strings.Join(list, "\n"))
	case *failed:
		t.FailNow()
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// watchdog looks from outside whether a bubble's clock stands still.
type watchdog struct {
	test   string
	turns  *atomic.Uint64 // of the pump
	bubble string         // its number; set in the bubble
	began  atomic.Bool    // it is set
	quit   chan struct{}
	ended  chan struct{}
}

// A bubble stands still if for standsFor of the wall clock its goroutines neither ran nor
// could. One that has been running for busyFor is in a loop without end.
const (
	standsFor = 3 * time.Second
	busyFor   = time.Minute
	looks     = 500 * time.Millisecond
)

func startWatchdog(t *testing.T) *watchdog {
	w := &watchdog{test: t.Name(), turns: &atomic.Uint64{}, quit: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *watchdog) stop() {
	close(w.quit)
	<-w.ended
}

func (w *watchdog) run() {
	defer close(w.ended)
	tick := time.NewTicker(looks)
	defer tick.Stop()
	last, since, still := uint64(0), time.Now(), time.Now()
	for {
		select {
		case <-w.quit:
			return
		case now := <-tick.C:
			if n := w.turns.Load(); n != last || !w.began.Load() {
				last, since, still = n, now, now
				continue
			}
			if now.Sub(since) < standsFor {
				still = now
				continue
			}
			runs, waits := w.look()
			if len(runs) > 0 {
				if now.Sub(since) > busyFor {
					w.die("a goroutine has been running for "+busyFor.String()+" without waiting for anything, so the cluster's time can't pass", runs)
				}
				still = now
				continue
			}
			if now.Sub(still) >= standsFor/3 {
				w.die("the bubble's clock stands still: a goroutine waits for something that is not of the bubble", waits)
			}
		}
	}
}

// look returns the bubble's goroutines that run, and those that wait for what a bubble
// doesn't know of.
func (w *watchdog) look() (runs, waits []string) {
	for _, g := range goroutines() {
		header, _, _ := strings.Cut(g, "\n")
		if bubbleOf(header) != w.bubble {
			continue
		}
		_, state, _ := strings.Cut(header, "[")
		switch {
		case strings.HasPrefix(state, "running"), strings.HasPrefix(state, "runnable"):
			runs = append(runs, g)
		case !strings.Contains(state, "(durable)") && !strings.HasPrefix(state, "synctest"):
			waits = append(waits, g)
		}
	}
	return runs, waits
}

// die ends the process: a goroutine that waits can't be ended by another.
func (w *watchdog) die(what string, list []string) {
	var out strings.Builder
	fmt.Fprintf(&out, "--- FAIL: %s\n    drydocktest: %s\n", w.test, what)
	for _, g := range list {
		fmt.Fprintf(&out, "    %s\n      %s\n", strings.ReplaceAll(brief(g), "\n", "\n    "), remedy(g))
	}
	fmt.Fprint(os.Stderr, out.String())
	os.Exit(1)
}

// remedy is what to do about a goroutine that holds up a bubble.
func remedy(g string) string {
	_, state, _ := strings.Cut(g, "[")
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.HasPrefix(state, word) {
				return true
			}
		}
		return false
	}
	switch {
	case has("sync.Mutex", "sync.RWMutex", "semacquire"):
		return "It waits for a lock that another goroutine holds while it sleeps or waits for a request. Don't hold locks across requests, or use a channel of capacity 1 as the lock."
	case has("IO wait", "syscall"):
		return "It waits for a socket or a file. Clients reach the cluster by Config; give servers of the controller no address (\"0\"), and call their handlers."
	case has("chan", "select"):
		return "It waits for a channel that was made outside of the bubble, maybe that of a context. Use t.Context() of the function that Run calls, and make channels in it."
	case has("running", "runnable"):
		return "Wait by time.Sleep, a channel or Eventually."
	}
	return "Whatever it waits for must be made inside of the bubble."
}

// maxFrames is how many lines of a stack are shown.
const maxFrames = 8

// brief is a goroutine's stack as a user wants it: what it waits for, and the lines that
// are not of Go's own libraries.
func brief(g string) string {
	lines := strings.Split(strings.TrimSpace(g), "\n")
	out := lines[:1:1]
	for i := 1; i+1 < len(lines) && len(out) <= maxFrames; i += 2 {
		name := strings.TrimPrefix(lines[i], "created by ")
		// Paths of others' packages begin with a host's name.
		if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") || !strings.Contains(name, "/") {
			if !strings.HasPrefix(name, "main.") {
				continue
			}
		}
		name, _, _ = strings.Cut(lines[i], "(0x")
		at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		out = append(out, "  "+strings.TrimSuffix(strings.TrimSuffix(name, "(...)"), "()")+" at "+at)
	}
	return strings.Join(out, "\n")
}

// ownHeader is the first line of the present goroutine's stack.
func ownHeader() string {
	var buf [256]byte
	header, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), "\n")
	return header
}

// bubbleOf is the number of the bubble that a goroutine stands in, by the first line of
// its stack; "" if in none.
func bubbleOf(header string) string {
	_, id, ok := strings.Cut(header, "synctest bubble ")
	if !ok {
		return ""
	}
	id, _, _ = strings.Cut(id, "]")
	id, _, _ = strings.Cut(id, ",")
	id, _, _ = strings.Cut(id, " ") // labels
	return id
}
