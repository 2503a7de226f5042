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
// rest goes in proportion to the demands. What the exempt level wants, the others have
// less (util/flowcontrol/apf_controller.go updateBorrowingLocked).
func (f *Control) adjust() {
	now := f.l.UnixNano()
	total, left := 0, 0 // of the nominal seats, which are rounded up
	for _, lv := range f.Levels {
		total += lv.Nominal
	}
	left = total
	var limited []*level
	var least, low, target, most []float64
	var leastSum, sum float64
	for _, lv := range f.Levels {
		lv.release(now)
		high := lv.demand.close(lv.inUse + lv.waiting)
		kept := lv.Nominal - int(math.Round(float64(lv.Nominal)*float64(lv.cfg.lendable)/100))
		if lv.cfg.exempt {
			lv.Limit = max(kept, high)
			left -= lv.Limit
			continue
		}
		wants := float64(max(kept, min(lv.Nominal, high)))
		limited = append(limited, lv)
		least, low, target, most = append(least, float64(kept)), append(low, wants), append(target, max(wants, lv.demand.smooth)), append(most, float64(lv.most))
		leastSum += float64(kept)
		sum += wants
	}
	var shares []float64
	switch {
	case float64(left) <= leastSum:
		shares = least
	case float64(left) <= sum:
		shares = make([]float64, len(low))
		for i := range low {
			shares[i] = least[i] + (low[i]-least[i])*(float64(left)-leastSum)/(sum-leastSum)
		}
	default:
		shares = FairShares(float64(total), low, target, most)
	}
	for i, lv := range limited {
		lv.Limit = int(math.Round(shares[i]))
		if lv.queued > 0 {
			lv.turn()
		}
	}
}

// FairShares returns target, each times the one factor that makes their sum total,
// none below its low and none above its most
// (util/flowcontrol/conc_alloc.go computeConcurrencyAllocation).
func FairShares(total float64, low, target, most []float64) []float64 {
	out := make([]float64, len(low))
	at := func(factor float64) (sum float64) {
		for i := range out {
			out[i] = min(max(low[i], factor*target[i]), most[i])
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
