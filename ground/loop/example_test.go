package loop_test

import (
	"context"
	"fmt"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Two tasks and a timer share a loop. An hour of theirs takes no time, and what
// they print comes in the same order each time.
func Example() {
	l := loop.New(loop.Options{Name: "worker", Seed: 7})
	defer l.Close()
	since := func() time.Duration { return l.Since(loop.Epoch()).Round(time.Millisecond) }

	var ready loop.Event
	g := l.NewGroup("daemon")
	g.Go("start", func(ctx context.Context) {
		if l.Sleep(ctx, 10*time.Minute) == nil {
			ready.Fire()
		}
	})
	g.Go("wait", func(ctx context.Context) {
		if ready.Wait(ctx) == nil {
			fmt.Println(since(), "ready")
		}
	})
	g.After(time.Hour, func() { fmt.Println(since(), "an hour has passed") })

	if err := l.RunUntil(loop.Epoch().Add(2 * time.Hour)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 10m0s ready
	// 1h0m0s an hour has passed
}

// Kill ends what a group does as a crash would: its timers never fire, its tasks
// unwind where they wait. Other groups of the loop go on.
func ExampleGroup_Kill() {
	l := loop.New(loop.Options{Name: "worker"})
	defer l.Close()

	kubelet, machine := l.NewGroup("kubelet"), l.NewGroup("machine")
	kubelet.Go("sync", func(ctx context.Context) {
		defer fmt.Println("unwinds")
		_ = l.Sleep(ctx, time.Hour)
		fmt.Println("never printed")
	})
	machine.After(time.Minute, kubelet.Kill)
	machine.After(2*time.Minute, func() { fmt.Println("kubelet dead:", kubelet.Dead()) })

	if err := l.RunUntil(loop.Epoch().Add(time.Hour)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// unwinds
	// kubelet dead: true
}

// Loops of an engine touch each other by messages alone, which take the
// lookahead at least. So it may run them on any number of cores.
func ExampleEngine() {
	e, err := loop.NewEngine(loop.EngineOptions{Lookahead: 5 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	api, node := e.NewLoop("api"), e.NewLoop("node")

	report := node.NewStream()
	node.Root().After(time.Second, func() {
		sent := node.Now()
		node.Send(api, 5*time.Millisecond, report, func() {
			fmt.Println("arrives after", api.Now().Sub(sent).Round(time.Millisecond))
		})
	})

	if err := e.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// arrives after 5ms
}
