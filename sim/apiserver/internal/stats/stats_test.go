package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h, a, b Histogram
	var all []time.Duration
	for i := range 5000 {
		d := time.Duration(math.Exp(3+rnd.Float64()*17) * float64(time.Microsecond))
		all = append(all, d)
		h.Observe(d)
		if i%2 == 0 {
			a.Observe(d)
		} else {
			b.Observe(d)
		}
	}
	a.Merge(&b)
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		want := all[max(int(math.Ceil(q*5000)), 1)-1]
		got := h.Quantile(q)
		if ratio := float64(got) / float64(want); ratio < 0.93 || ratio > 1.07 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
		if a.Quantile(q) != got {
			t.Errorf("quantile %v of the merged halves is %v, want %v", q, a.Quantile(q), got)
		}
	}
	if (&Histogram{}).Quantile(0.5) != 0 {
		t.Error("an empty histogram has a quantile")
	}
	for i := range 600 {
		if got := bucketOf(bucketStart(i)); got != i {
			t.Errorf("the start of bucket %d is in bucket %d", i, got)
		}
	}
}

// TestIntervalsWiden has a long run keep all its counts in at most 512 intervals.
func TestIntervalsWiden(t *testing.T) {
	st := New(0)
	r := st.Series(UserKubelet, "update", "leases")
	var pods *WatchStats
	for i := range int64(5000) {
		at := i * int64(10*time.Second)
		st.Arrive(r, at, 0)
		st.Answered(r, at, time.Duration(i), 200)
		st.Sent(&pods, UserKubelet, "pods", at, 2)
	}
	if time.Duration(st.interval) != 160*time.Second || len(r.Over) != 313 {
		t.Fatalf("%d intervals of %v", len(r.Over), time.Duration(st.interval))
	}
	var n uint32
	for i, o := range r.Over {
		n += o.Requests
		if i < 312 && o.Requests != 16 {
			t.Fatalf("interval %d has %d requests", i, o.Requests)
		}
	}
	if n != 5000 || r.Total != 5000 || r.Over[10].LatencyMax != 175 {
		t.Errorf("%d requests in intervals, %d in all; the longest of interval 10 took %v", n, r.Total, r.Over[10].LatencyMax)
	}
	if w := st.watches[statsKey{user: UserKubelet, resource: "pods"}]; w.Events != 10000 || w.Over[0] != 32 {
		t.Errorf("%d watch events, %d in the first interval", w.Events, w.Over[0])
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	st := New(0)
	count := func() {
		r := st.Series("kubelet", "update", "leases")
		st.Arrive(r, 1, 0)
		st.Answered(r, 1, time.Millisecond, 200)
		r = st.Series("kubelet", "patch", "pods/status")
		st.Arrive(r, 1, 0)
		st.Answered(r, 1, time.Millisecond, 200)
	}
	count()
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Series that share a place among the recent ones are counted apart.
func TestSeriesShareAPlace(t *testing.T) {
	st := New(0)
	if recentSeries("patch", "events") != recentSeries("patch", "pods/status") {
		t.Fatal("they share none")
	}
	for range 3 {
		for _, k := range []statsKey{{UserKubelet, "patch", "events"}, {"a", "patch", "events"}, {UserKubelet, "patch", "pods/status"}} {
			st.Series(k.user, k.verb, k.resource).Total++
		}
	}
	for k, r := range st.requests {
		if (statsKey{r.User, r.Verb, r.Resource}) != k || r.Total != 3 {
			t.Errorf("%v: %d of %s %s %s", k, r.Total, r.User, r.Verb, r.Resource)
		}
	}
	if len(st.requests) != 3 {
		t.Errorf("%d series", len(st.requests))
	}
}
