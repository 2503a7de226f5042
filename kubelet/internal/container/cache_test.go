package container

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

func TestCacheServesWaiters(t *testing.T) {
	t0 := loop.Epoch()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	st := &PodStatus{ID: "a", Name: "pod-a"}
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		before func(c *Cache)
		after  time.Time // what is waited for
		write  func(c *Cache)
		served bool
		atOnce bool
		status string
		err    error
	}{
		{name: "nothing happens", after: at(1)},
		{name: "a newer entry is there", before: func(c *Cache) { c.Set("a", st, nil, at(2)) }, after: at(1), served: true, atOnce: true, status: "pod-a"},
		{name: "an entry as old as asked", before: func(c *Cache) { c.Set("a", st, nil, at(1)) }, after: at(1)},
		{name: "no entry, but a newer global time", before: func(c *Cache) { c.UpdateTime(at(2)) }, after: at(1), served: true, atOnce: true},
		{name: "an old entry, but a newer global time", before: func(c *Cache) { c.Set("a", st, nil, at(0)); c.UpdateTime(at(2)) }, after: at(1), served: true, atOnce: true, status: "pod-a"},
		{name: "observed later", before: func(c *Cache) { c.Set("a", st, nil, at(0)); c.SetObservedTime("a", at(2)) }, after: at(1), served: true, atOnce: true, status: "pod-a"},
		{name: "set as of the time asked for", after: at(1), write: func(c *Cache) { c.Set("a", st, nil, at(1)) }, served: true, status: "pod-a"},
		{name: "set as of an earlier time", after: at(1), write: func(c *Cache) { c.Set("a", st, nil, at(0)) }},
		{name: "another pod is set", after: at(1), write: func(c *Cache) { c.Set("b", st, nil, at(5)) }},
		{name: "an error is served", after: at(1), write: func(c *Cache) { c.Set("a", nil, boom, at(1)) }, served: true, err: boom},
		{name: "observed without an entry", after: at(1), write: func(c *Cache) { c.SetObservedTime("a", at(2)) }, served: true},
		{name: "the global time passes", after: at(1), write: func(c *Cache) { c.UpdateTime(at(1)) }, served: true},
		{name: "the global time is too early", after: at(1), write: func(c *Cache) { c.UpdateTime(at(0)) }},
		{name: "a delete wakes nobody", before: func(c *Cache) { c.Set("a", st, nil, at(0)) }, after: at(1), write: func(c *Cache) { c.Delete("a") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCache()
			if tc.before != nil {
				tc.before(c)
			}
			calls := 0
			var got *PodStatus
			var err error
			w := c.Notify("a", tc.after, func(s *PodStatus, e error) { calls++; got, err = s, e })
			if (w == nil) != tc.atOnce {
				t.Errorf("served at once: %v", w == nil)
			}
			if tc.write != nil {
				tc.write(c)
				tc.write(c) // only once
			}
			if (calls == 1) != tc.served || calls > 1 {
				t.Fatalf("called %d times", calls)
			}
			if tc.served && (got == nil || got.ID != "a" || got.Name != tc.status || !errors.Is(err, tc.err)) {
				t.Errorf("got %+v, %v", got, err)
			}
			if c.Waiting() == tc.served {
				t.Errorf("waiting: %v", c.Waiting())
			}
			w.Stop()
			if c.Waiting() {
				t.Error("still waiting after Stop")
			}
		})
	}
}

func TestCacheNeverAskedFor(t *testing.T) {
	c := NewCache()
	if _, _, ok := c.TryGetNewerThan("a", time.Time{}); ok {
		t.Error("an empty cache has something newer than the zero time")
	}
	if s, err := c.Get("a"); err != nil || s.ID != "a" {
		t.Errorf("%v %v", s, err)
	}
}

func TestCacheGetNewerThanBlocks(t *testing.T) {
	l := loop.New(loop.Options{})
	defer l.Close()
	c := NewCache()
	g := l.NewGroup("kubelet")
	var served, gaveUp time.Duration
	g.Go("reader", func(ctx context.Context) {
		s, err := c.GetNewerThan(ctx, "a", l.Now())
		if err != nil || s.Name != "x" {
			t.Errorf("%v %v", s, err)
		}
		served = l.Since(loop.Epoch())
	})
	g.Go("impatient", func(ctx context.Context) {
		ctx, cancel := loop.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := c.GetNewerThan(ctx, "a", l.Now()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		gaveUp = l.Since(loop.Epoch())
	})
	g.After(3*time.Second, func() { c.Set("a", &PodStatus{ID: "a", Name: "x"}, nil, l.Now()) })
	if err := l.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if served.Truncate(time.Second) != 3*time.Second || gaveUp.Truncate(time.Second) != time.Second {
		t.Errorf("served %v, gave up %v", served, gaveUp)
	}
	if c.Waiting() {
		t.Error("a waiter is left")
	}
}
