package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// pacer has garbage collected as seldom as memory allows: it sets the collector's
// percentage by the heap that is live. Collecting costs what is live, so at a
// live heap of L and a target of T it is (T-L)/L, within 50 and 400. samples are
// reused; gc0 is the collector's time before the run, in seconds. The percentage is Go's GOGC:
// how much garbage may come up beside what lives before the next collection.
type pacer struct {
	target  float64 // bytes; 0: hands off
	percent int
	samples []metrics.Sample
	last    time.Time
	gc0     float64
}

// What a cluster may take beside its live heap unless --memory says otherwise.
const (
	// In bytes, measured on steady clusters: garbage is allowed about as much as
	// what lives. They bound what garbage may take; what lives comes to about as much again at
	// most.
	bytesPerPod  = 15 << 10
	bytesPerNode = 100 << 10
	leastTarget  = 5 << 29
)

const (
	// Names in runtime/metrics.
	metricLive = "/gc/heap/live:bytes"
	metricGC   = "/cpu/classes/gc/total:cpu-seconds"
)

// newPacer returns a pacer for a cluster of that size, or for target bytes if
// that is not 0. An explicit target is also Go's own limit (GOMEMLIMIT), near which it collects
// whatever the percentage; a computed one is not, since it may be too small for what lives.
func newPacer(target int64, nodes, pods int) *pacer {
	p := &pacer{target: float64(target), samples: []metrics.Sample{{Name: metricLive}, {Name: metricGC}}}
	if target == 0 {
		p.target = float64(max(leastTarget, pods*bytesPerPod+nodes*bytesPerNode))
	} else {
		debug.SetMemoryLimit(target)
	}
	// Who sets GOGC wants to see its effect.
	if os.Getenv("GOGC") != "" {
		p.target = 0
	}
	p.gc0 = p.collecting()
	return p
}

// adjust is called now and then. It looks at most five times a second: a cluster
// grows over seconds. It is called by Progress, between runs of the engine.
func (p *pacer) adjust() {
	if p.target == 0 || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last = time.Now()
	// A heap of nearly nothing would call for a percentage beyond all bounds.
	live := max(p.live(), 16<<20)
	percent := int((p.target - live) / live * 100)
	// Under 50 a collection costs more than what it wins.
	if percent = min(max(percent, 50), 400); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// live is the heap that the last collection left, in bytes. It changes with each collection only.
func (p *pacer) live() float64 {
	metrics.Read(p.samples[:1])
	return float64(p.samples[0].Value.Uint64())
}

// collecting is the processor time of garbage collection so far, in seconds, as
// of the last collection. The runtime's figure counts all cores.
func (p *pacer) collecting() float64 {
	metrics.Read(p.samples[1:])
	return p.samples[1].Value.Float64() - p.gc0
}
