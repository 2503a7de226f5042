package flow

import (
	"math"
	"time"
)

// How priority levels lend seats (k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go).
const (
	borrowingPeriod = 10 * time.Second
	// seatDemandSmoothing is how much of the old demand stays.
	seatDemandSmoothing = 0.977
)

// demand integrates how many seats a level would use, queued requests included,
// since the last adjustment.
type demand struct {
	at          int64 // until when it is integrated
	time        float64
	sum, square float64
	high        int
	smooth      float64
}

// advance takes it that the demand was n until now.
func (d *demand) advance(now int64, n int) {
	dt := float64(now - d.at)
	if dt <= 0 {
		return
	}
	d.at = now
	d.time += dt
	d.sum += dt * float64(n)
	d.square += dt * float64(n) * float64(n)
}

// close ends a period in which n seats are wanted and returns its highest demand;
// the smoothed one is brought up to date: at once to mean and deviation of a busier
// period, slowly down.
func (d *demand) close(n int) (high int) {
	if d.time > 0 {
		mean := d.sum / d.time
		envelope := mean + math.Sqrt(max(0, d.square/d.time-mean*mean))
		d.smooth = max(envelope, seatDemandSmoothing*d.smooth+(1-seatDemandSmoothing)*envelope)
	}
	high = d.high
	d.time, d.sum, d.square, d.high = 0, 0, 0, n
	return high
}

// adjust shares the levels' seats out anew: no level gets less than it wanted at
// most in the last period, up to its nominal seats, nor than it does not lend; the
// rest goes in proportion to the demands.
func (f *Control) adjust() {
	now := f.l.UnixNano()
	total := 0 // of the nominal seats, which are rounded up
	low := make([]float64, len(f.Levels))
	target := make([]float64, len(f.Levels))
	var sum float64
	for i, lv := range f.Levels {
		lv.release(now)
		total += lv.Nominal
		high := lv.demand.close(lv.inUse + lv.waiting)
		least := lv.Nominal - int(math.Round(float64(lv.Nominal)*float64(lv.cfg.lendable)/100))
		low[i] = float64(max(least, min(lv.Nominal, high)))
		target[i] = max(low[i], lv.demand.smooth)
		sum += low[i]
	}
	shares := low
	if sum < float64(total) {
		shares = FairShares(float64(total), low, target)
	}
	for i, lv := range f.Levels {
		lv.Limit = int(math.Round(shares[i]))
		if lv.queued > 0 {
			lv.turn()
		}
	}
}

// FairShares returns target, each times the one factor that makes their sum total,
// none below its low and none above total
// (util/flowcontrol/conc_alloc.go computeConcurrencyAllocation).
func FairShares(total float64, low, target []float64) []float64 {
	out := make([]float64, len(low))
	at := func(factor float64) (sum float64) {
		for i := range out {
			out[i] = min(max(low[i], factor*target[i]), total)
			sum += out[i]
		}
		return sum
	}
	lo, hi := 0.0, 1.0
	for at(hi) < total && hi < 1e9 {
		hi *= 2
	}
	for range 60 {
		if mid := (lo + hi) / 2; at(mid) < total {
			lo = mid
		} else {
			hi = mid
		}
	}
	at(hi)
	return out
}
