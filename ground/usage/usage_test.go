package usage

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"
)

func must(c *Curve, err error) *Curve {
	if err != nil {
		panic(err)
	}
	return c
}

func TestAt(t *testing.T) {
	const s = time.Second
	steps := must(Steps([]Point{{0, 1}, {10 * s, 5}, {20 * s, 3}}))
	for name, tc := range map[string]struct {
		c    *Curve
		want map[time.Duration]int64
	}{
		"nil":      {nil, map[time.Duration]int64{-s: 0, 0: 0, s: 0}},
		"constant": {Constant(7), map[time.Duration]int64{-s: 7, 0: 7, 1000 * s: 7}},
		"ramp":     {Ramp(10, 20, 10*s), map[time.Duration]int64{-s: 10, 0: 10, 5 * s: 15, 10 * s: 20, 11 * s: 20}},
		"descent":  {Ramp(20, 10, 10*s), map[time.Duration]int64{0: 20, 5*s + 1: 15, 10 * s: 10}},
		"steps":    {steps, map[time.Duration]int64{0: 1, 10*s - 1: 1, 10 * s: 5, 20*s - 1: 5, 20 * s: 3, 99 * s: 3}},
		"repeated": {must(steps.Repeat(30 * s)), map[time.Duration]int64{29 * s: 3, 30 * s: 1, 40 * s: 5, 320 * s: 3}},
		"phase":    {must(steps.Repeat(30 * s)).Phase(15 * s), map[time.Duration]int64{0: 5, 5 * s: 3, 15 * s: 1, 25 * s: 5}},
		"square":   {must(Periodic(1, 9, 10*s, Square)), map[time.Duration]int64{0: 1, 5*s - 1: 1, 5 * s: 9, 10*s - 1: 9, 10 * s: 1}},
		"triangle": {must(Periodic(0, 10, 10*s, Triangle)), map[time.Duration]int64{0: 0, s: 2, 5 * s: 10, 9 * s: 2, 10 * s: 0}},
		"sine":     {must(Periodic(0, 1000, 24*s, Sine)), map[time.Duration]int64{0: 0, 4 * s: 250, 6 * s: 500, 12 * s: 1000, 18 * s: 500, 20 * s: 250}},
	} {
		for at, want := range tc.want {
			if got := tc.c.At(at, 1); got != want {
				t.Errorf("%s: at %s %d, want %d", name, at, got, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	points := func(p ...Point) []Point { return p }
	one := func(_ *Curve, err error) error { return err }
	for _, tc := range []struct {
		err  error
		want string
	}{
		{one(Lines(nil)), "no points"},
		{one(Lines(points(Point{-1, 0}))), "point 1: negative time -1ns"},
		{one(Lines(points(Point{0, -1}))), "point 1: negative amount -1"},
		{one(Lines(points(Point{2, 0}, Point{1, 0}))), "point 2: its time 1ns is before that of the point before, 2ns"},
		{one(Lines(points(Point{2, 0}, Point{2, 1}, Point{2, 2}))), "point 3: the third at the time 2ns"},
		{one(Steps(points(Point{2, 0}, Point{2, 1}))), "point 2: its time 2ns is not after that of the point before, 2ns"},
		{one(Periodic(2, 1, time.Second, Sine)), "the high amount 1 is below the low one, 2"},
		{one(Periodic(-1, 1, time.Second, Sine)), "negative amount -1"},
		{one(Periodic(0, 1, 1, Sine)), "the period 1ns is shorter than 1ms"},
		{one(Ramp(0, 1, time.Minute).Repeat(time.Second)), "repeated every 1s, but its last point is at 1m0s"},
		{one(must(Periodic(0, 1, time.Second, Sine)).Repeat(time.Minute)), "it repeats already"},
		{one(Constant(1).WithNoise(-1, time.Second)), "negative amplitude -1 of the noise"},
		{one(Constant(1).WithNoise(1, 1)), "noise every 1ns, which is less than 1ms"},
	} {
		if tc.err == nil || tc.err.Error() != tc.want {
			t.Errorf("%v, want %q", tc.err, tc.want)
		}
	}
}

// random is any kind of curve, with corners within some seconds.
func random(r *rand.Rand) *Curve {
	n := 1 + r.Intn(12)
	var points []Point
	at := time.Duration(r.Intn(3)) * 500 * time.Millisecond
	for i := 0; i < n; i++ {
		points = append(points, Point{at, int64(r.Intn(1000))})
		if i == 0 || points[i].At > points[i-1].At {
			at += time.Duration(r.Intn(4)) * 250 * time.Millisecond
		} else {
			at += time.Duration(1+r.Intn(4)) * 250 * time.Millisecond
		}
	}
	c := must(Lines(points))
	if r.Intn(2) == 0 {
		c = must(c.Repeat(at + 250*time.Millisecond)).Phase(time.Duration(5*r.Intn(600)) * time.Millisecond)
	}
	if r.Intn(2) == 0 {
		c = must(c.WithNoise(int64(r.Intn(300)), time.Duration(50+5*r.Intn(200))*time.Millisecond))
	}
	return c
}

// What is computed is what sampling shows.
func TestAgainstSamples(t *testing.T) {
	const grid, until = 5 * time.Millisecond, 20 * time.Second
	for seed := int64(0); seed < 300; seed++ {
		r := rand.New(rand.NewSource(seed))
		c, key := random(r), r.Uint64()
		var sum, last int64
		limit := int64(r.Intn(1200))
		after := time.Duration(r.Intn(3000)) * time.Millisecond
		first := time.Duration(-1)
		for at := time.Duration(0); at < until; at += grid {
			v := c.At(at, key)
			if v < 0 || v > c.Peak() {
				t.Fatalf("seed %d: %d at %s is not within 0 and %d", seed, v, at, c.Peak())
			}
			if first < 0 && at >= after && v > limit {
				first = at
			}
			sum += v + c.At(at+grid-1, key)
			total := c.Total(at+grid, key, 1)
			if total < last {
				t.Fatalf("seed %d: the total falls from %d to %d at %s", seed, last, total, at)
			}
			last = total
			if want := sum * int64(grid) / 2; max(total-want, want-total) > int64(at)+2e7 {
				t.Fatalf("seed %d: the total at %s is %d, by samples %d", seed, at, total, want)
			}
			if next, ok := c.Next(at, key); ok && next <= at {
				t.Fatalf("seed %d: after %s comes %s", seed, at, next)
			} else if v2 := c.At(at+1+grid/2, key); !ok && v2 != v {
				t.Fatalf("seed %d: nothing comes after %s, but %d is not %d", seed, at, v2, v)
			}
		}
		at, ok := c.Over(limit, after, key)
		for n := 0; ok && c.At(at, key) <= limit; n++ {
			if n > 100 {
				break
			}
			at, ok = c.Over(limit, at, key)
		}
		switch {
		case first < 0 && ok && at < until-grid:
			if c.At(at, key) <= limit {
				t.Errorf("seed %d: over %d at %s it is %d", seed, limit, at, c.At(at, key))
			}
		case first >= 0 && (!ok || at > first || at < after):
			t.Errorf("seed %d: over %d after %s: %s %t, samples say %s", seed, limit, after, at, ok, first)
		case first >= 0 && at > after && c.At(at-1, key) > limit:
			t.Errorf("seed %d: over %d first at %s, but just before also", seed, limit, at)
		}
	}
}

// The first time at which a sum passes a limit is never told too late.
func TestFirstOver(t *testing.T) {
	for seed := int64(0); seed < 300; seed++ {
		r := rand.New(rand.NewSource(seed))
		users := make([]User, 2+r.Intn(8))
		for i := range users {
			users[i] = User{Curve: random(r), Start: time.Duration(r.Intn(4000)-2000) * time.Millisecond, Key: r.Uint64()}
		}
		sum := func(at time.Duration) (n int64) {
			for _, u := range users {
				n += u.At(at)
			}
			return n
		}
		limit := int64(len(users)) * int64(300+r.Intn(500))
		at, ok := FirstOver(users, limit, 0)
		for ok && sum(at) <= limit && at < 20*time.Second {
			next, more := FirstOver(users, limit, at)
			if more && next <= at {
				t.Fatalf("seed %d: asked again at %s, and again at %s", seed, at, next)
			}
			at, ok = next, more
		}
		for s := time.Duration(0); s < 20*time.Second; s += time.Millisecond {
			if sum(s) > limit {
				if !ok || at > s+finest {
					t.Errorf("seed %d: over %d at %s, told %s %t", seed, limit, s, at, ok)
				}
				break
			}
		}
	}
}

func TestNoiseIsSeeded(t *testing.T) {
	c := must(Constant(1000).WithNoise(100, time.Second))
	seen := map[int64]bool{}
	for i := time.Duration(0); i < 100; i++ {
		v := c.At(i*time.Second, 1)
		if v < 900 || v > 1100 || v != c.At(i*time.Second+999*time.Millisecond, 1) {
			t.Fatalf("%d at %d s", v, i)
		}
		seen[v] = true
	}
	if len(seen) < 50 {
		t.Errorf("only %d different amounts", len(seen))
	}
	if got := c.Total(100*time.Second, 1, int64(time.Second)); got != 100_000 {
		t.Errorf("total %d", got)
	}
}

func TestParseCSV(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"time,bytes\n0,1\n# x\n1.5, 20 # y\n\n2m,3\n", "[{0s 1} {1.5s 20} {2m0s 3}]"},
		{"0,1\n0,2", "[{0s 1} {0s 2}]"},
		{"", "line 1: no points"},
		{"a,b\nc,d", `line 2: the time "c" is neither seconds nor a duration`},
		{"0,x", `line 1: amount "x": strconv.ParseInt: parsing "x": invalid syntax`},
		{"0,-5", "line 1: negative amount -5"},
		{"-1s,5\n-1s,5", `line 1: the time "-1s" is negative`},
		{"5x,5\n6,5", `line 1: the time "5x" is neither seconds nor a duration`},
		{"\"t0\",\"used\"\n6,5", "[{6s 5}]"},
		{"0,1\nNaN,5", `line 2: the time "NaN" is out of range`},
		{"2,1\n1,2", "line 2: its time 1s is before that of the point before, 2s"},
		{"0,1,2", "line 1: 3 columns; a time and an amount are wanted"},
	} {
		points, err := ParseCSV(strings.NewReader(tc.in), nil)
		got := fmt.Sprint(points)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q: %s, want %s", tc.in, got, tc.want)
		}
	}
}

func BenchmarkFirstOver(b *testing.B) {
	r := rand.New(rand.NewSource(1))
	users := make([]User, 110)
	for i := range users {
		users[i] = User{Curve: random(r), Start: time.Duration(r.Intn(4000)) * time.Millisecond, Key: r.Uint64()}
	}
	for b.Loop() {
		FirstOver(users, 110*600, 0)
	}
}

func TestOverAndTotal(t *testing.T) {
	u := must(Lines([]Point{{At: 10, Value: 100}, {At: 20, Value: 200}, {At: 30, Value: 0}}))
	for _, tc := range []struct {
		t            time.Duration
		at, integral int64
	}{{0, 100, 0}, {10, 100, 1000}, {15, 150, 1625}, {20, 200, 2500}, {25, 100, 3250}, {30, 0, 3500}, {99, 0, 3500}} {
		if u.At(tc.t, 0) != tc.at || u.Total(tc.t, 0, 1) != tc.integral {
			t.Errorf("at %d: %d, %d; want %d, %d", tc.t, u.At(tc.t, 0), u.Total(tc.t, 0, 1), tc.at, tc.integral)
		}
	}
	for _, tc := range []struct {
		limit int64
		after time.Duration
		want  time.Duration // -1: never
	}{{99, 0, 0}, {100, 0, 11}, {149, 0, 15}, {149, 16, 16}, {199, 0, 20}, {200, 0, -1}, {149, 26, -1}} {
		got, ok := u.Over(tc.limit, tc.after, 0)
		if !ok {
			got = -1
		}
		if got != tc.want {
			t.Errorf("over %d after %d: %d, want %d", tc.limit, tc.after, got, tc.want)
		}
	}
	// Numbers whose product doesn't fit: 6 TiB over a year, 100 cores for a year.
	year := 365 * 24 * time.Hour
	if got := Ramp(0, 6<<40, year).At(year/2, 0); got != 3<<40 {
		t.Errorf("half of 6 TiB is %d", got)
	}
	if got := Ramp(0, 6<<40, year).Total(year, 0, int64(time.Hour)); got != 3<<40*365*24 {
		t.Errorf("a year of 3 TiB is %d", got)
	}
	if got := Constant(100_000).Total(year, 0, 1000); got != int64(year)*100 {
		t.Errorf("a year of 100 cores is %d", got)
	}
}

func TestCapped(t *testing.T) {
	const s = time.Second
	for seed := int64(0); seed < 100; seed++ {
		r := rand.New(rand.NewSource(seed))
		c := random(r)
		c.noise = 0
		limit := int64(r.Intn(1000))
		capped := c.Capped(limit)
		for at := time.Duration(0); at < 20*s; at += 7 * time.Millisecond {
			if got, want := capped.At(at, 0), min(c.At(at, 0), limit); got > limit || got-want > 1 || want-got > 1 {
				t.Fatalf("seed %d: at %s %d, want %d", seed, at, got, want)
			}
		}
	}
	noisy := must(Constant(100).WithNoise(50, s)).Capped(120)
	if noisy.Peak() != 120 {
		t.Errorf("the peak is %d", noisy.Peak())
	}
}
