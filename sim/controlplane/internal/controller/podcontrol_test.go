package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// TestSlowStart: calls are made in batches of 1, 2, 4 and so on, and none after a batch in which
// one failed.
func TestSlowStart(t *testing.T) {
	for _, tt := range []struct {
		n     int
		fails []int
		want  string // the calls, how many succeeded, and the error
	}{
		{0, nil, "[] 0 <nil>"},
		{6, nil, "[0 1 2 3 4 5] 6 <nil>"},
		{6, []int{0}, "[0] 0 call 0"},
		{6, []int{2}, "[0 1 2] 2 call 2"},
		{9, []int{5, 3}, "[0 1 2 3 4 5 6] 5 call 3"},
	} {
		l := loop.New(loop.Options{Name: "api", Seed: 1})
		g := l.NewGroup("controller")
		got := ""
		g.Go("test", func(ctx context.Context) {
			var calls []int
			done, err := SlowStart(ctx, g, "call", tt.n, func(_ context.Context, i int) error {
				calls = append(calls, i)
				if slices.Contains(tt.fails, i) {
					return fmt.Errorf("call %d", i)
				}
				return nil
			})
			slices.Sort(calls) // those of a batch are made at once
			got = fmt.Sprint(calls, " ", done, " ", err)
		})
		if err := l.RunUntil(l.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if got != tt.want {
			t.Errorf("%d calls of which %v fail: %s, want %s", tt.n, tt.fails, got, tt.want)
		}
	}
}
