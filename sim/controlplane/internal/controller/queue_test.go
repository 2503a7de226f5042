package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// failing is a queue whose syncs all fail, and when they were.
func failing(t *testing.T, opts QueueOptions) (q *Queue, run func(time.Duration), syncs map[Key][]time.Duration) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	t.Cleanup(l.Close)
	start := l.Now()
	syncs = map[Key][]time.Duration{}
	opts.Group, opts.Name = l.NewGroup("controller"), "queue"
	opts.Sync = func(_ context.Context, k Key) error {
		syncs[k] = append(syncs[k], l.Since(start).Round(time.Millisecond))
		return errors.New("no")
	}
	run = func(d time.Duration) {
		if err := l.RunUntil(l.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
	}
	return NewQueue(opts), run, syncs
}

// TestRetriesOfOneKey: 5 ms doubled from try to try.
func TestRetriesOfOneKey(t *testing.T) {
	q, run, syncs := failing(t, QueueOptions{})
	k := Key{Name: "a"}
	q.Add(k)
	run(time.Second)
	want := "[0s 5ms 15ms 35ms 75ms 155ms 315ms 635ms]"
	if got := fmt.Sprint(syncs[k]); got != want {
		t.Errorf("syncs at %s, want %s", got, want)
	}
}

// TestRetriesTogether: of many keys that fail, 100 are retried after their own
// back-off, and ten a second after that, whatever their back-off says.
func TestRetriesTogether(t *testing.T) {
	for _, c := range []struct {
		perKeyOnly bool
		keys, want int // syncs within a second
	}{
		{keys: 10, want: 10 + 70}, // seven retries each
		{keys: 200, want: 200 + RetryBurst + RetryQPS},
		{keys: 200, perKeyOnly: true, want: 200 + 1400},
	} {
		q, run, syncs := failing(t, QueueOptions{Workers: 5, PerKeyOnly: c.perKeyOnly})
		for i := range c.keys {
			q.Add(Key{Name: fmt.Sprint(i)})
		}
		run(time.Second)
		n := 0
		for _, at := range syncs {
			n += len(at)
		}
		if n < c.want-1 || n > c.want+1 {
			t.Errorf("%+v: %d syncs", c, n)
		}
	}
}

// TestLongBackoff: a key that fails for a day is not retried sooner for that.
func TestLongBackoff(t *testing.T) {
	q, run, syncs := failing(t, QueueOptions{BaseDelay: time.Second, MaxDelay: time.Minute})
	k := Key{Name: "a"}
	q.Add(k)
	run(24 * time.Hour)
	for i, at := range syncs[k] {
		if i > 6 && at-syncs[k][i-1] != time.Minute {
			t.Fatalf("sync %d comes %v after the one before", i, at-syncs[k][i-1])
		}
	}
}

// TestMaxRetries: after so many retries a key is left until it is added again, which begins anew.
func TestMaxRetries(t *testing.T) {
	q, run, syncs := failing(t, QueueOptions{MaxRetries: 3})
	k := Key{Name: "a"}
	for range 2 {
		q.Add(k)
		run(time.Hour)
	}
	if got, want := fmt.Sprint(syncs[k]), "[0s 5ms 15ms 35ms 1h0m0s 1h0m0.005s 1h0m0.015s 1h0m0.035s]"; got != want {
		t.Errorf("syncs at %s, want %s", got, want)
	}
}
