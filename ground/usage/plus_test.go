package usage

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestPlus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() *Curve {
		var points []Point
		at := time.Duration(r.IntN(5)) * time.Second
		for range 1 + r.IntN(5) {
			points = append(points, Point{at, int64(r.IntN(1000)) * int64(time.Second)})
			if n := len(points); r.IntN(3) > 0 || n > 1 && points[n-2].At == at {
				at += time.Duration(1+r.IntN(4)) * time.Second
			}
		}
		c, err := Lines(points)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 300 {
		a, b := draw(), draw()
		sum := a.Plus(b)
		for at := time.Duration(0); at < 30*time.Second; at += 250 * time.Millisecond {
			for _, at := range []time.Duration{at, max(at-1, 0)} {
				// A line's value is cut to a whole number, each for itself.
				want, got := a.At(at, 0)+b.At(at, 0), sum.At(at, 0)
				if d := want - got; d > 2 || d < -2 {
					t.Fatalf("at %v: %d, want %d: %v + %v = %v", at, got, want, a.points, b.points, sum.points)
				}
			}
		}
	}
	noisy, err := Constant(100).WithNoise(10, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		a, b *Curve
		want int64 // at 5 s, with key 7
	}{
		{nil, nil, 0},
		{nil, Constant(3), 3},
		{Constant(4), nil, 4},
		{Constant(4), Ramp(0, 10, 10*time.Second), 9},
		{noisy, Constant(50), noisy.At(5*time.Second, 7) + 50},
		{noisy, Ramp(0, 10, 10*time.Second), noisy.At(5*time.Second, 7) + 10},
	} {
		if got := tc.a.Plus(tc.b).At(5*time.Second, 7); got != tc.want {
			t.Errorf("%v plus %v is %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
