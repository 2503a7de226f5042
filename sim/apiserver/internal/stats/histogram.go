package stats

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets whose width is 1 µs or 1/16 of their
// value (HDR histogram's layout), so that a quantile is off by at most that.
// The zero value is empty.
type Histogram struct {
	// Count is how many durations there are, Sum their sum, Max the longest.
	Count uint64
	Sum   time.Duration
	Max   time.Duration
	// buckets grows to the highest bucket in use.
	buckets []uint32
}

// Buckets of a power of two, and the least duration that is told from 0.
const (
	histogramSub  = 16
	histogramUnit = time.Microsecond
)

// bucketOf returns the bucket of d: one per microsecond below 16 µs, then 16 per
// power of two.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0) / histogramUnit)
	if n < histogramSub {
		return int(n)
	}
	shift := bits.Len64(n) - 5 // leaves 16..31
	return shift*histogramSub + int(n>>shift)
}

// bucketStart returns the least duration in a bucket.
func bucketStart(i int) time.Duration {
	if i < 2*histogramSub {
		return time.Duration(i) * histogramUnit
	}
	shift := i/histogramSub - 1
	return time.Duration(uint64(i-shift*histogramSub)<<shift) * histogramUnit
}

// Observe adds a duration.
func (h *Histogram) Observe(d time.Duration) {
	h.Count++
	h.Sum += d
	h.Max = max(h.Max, d)
	i := bucketOf(d)
	if i >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]uint32, i+1-len(h.buckets))...)
	}
	h.buckets[i]++
}

// Merge adds what o counted.
func (h *Histogram) Merge(o *Histogram) {
	h.Count += o.Count
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
	if n := len(o.buckets) - len(h.buckets); n > 0 {
		h.buckets = append(h.buckets, make([]uint32, n)...)
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

// Quantile returns the duration that a share q of all does not exceed (0.99: the
// 99th percentile), by the middle of its bucket and at most Max; 0 when the
// histogram is empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	rank := uint64(q * float64(h.Count))
	if float64(rank) < q*float64(h.Count) {
		rank++
	}
	rank = min(max(rank, 1), h.Count)
	var seen uint64
	for i, n := range h.buckets {
		seen += uint64(n)
		if seen < rank {
			continue
		}
		if i < histogramSub {
			return min(bucketStart(i), h.Max)
		}
		return min((bucketStart(i)+bucketStart(i+1))/2, h.Max)
	}
	return h.Max
}

// Mean returns the mean duration; 0 when the histogram is empty.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// clone returns a copy that shares nothing.
func (h *Histogram) clone() Histogram {
	c := *h
	c.buckets = append([]uint32(nil), h.buckets...)
	return c
}
