package scale

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Unit is what a distribution is of: an amount, a time, or a plain number. All
// are drawn as float64 in base units; only what is decoded and printed has the
// type. The three are what appears in a workload's document: requests, lifetimes, and shares or
// counts.
type Unit interface {
	resource.Quantity | time.Duration | float64
}

// Distribution is what values are drawn from: just one value, or one of the forms
// below. It is written as the value alone, or as a mapping with one form. Exactly
// one form is given. A draw is the quantile of a hash, so a value depends on
// nothing but the seed, the purpose and the object.
type Distribution[T Unit] struct {
	// Always this.
	Value *T `json:"value,omitempty"`
	// Evenly from min to max.
	Uniform *Uniform[T] `json:"uniform,omitempty"`
	// The bell curve.
	Normal *Normal[T] `json:"normal,omitempty"`
	// Its logarithm is normal: half of the values are below the median, and sigma is the standard deviation of the natural logarithm.
	LogNormal *LogNormal[T] `json:"logNormal,omitempty"`
	// What has no memory: times between independent arrivals, say.
	Exponential *Exponential[T] `json:"exponential,omitempty"`
	// A heavy tail from min on: the chance to be above x is (min/x)^alpha.
	Pareto *Pareto[T] `json:"pareto,omitempty"`
	// A chance to end that falls (shape under 1) or grows (over 1) with age.
	Weibull *Weibull[T] `json:"weibull,omitempty"`
	// One of some values, by their weights.
	Choice []Choice[T] `json:"choice,omitempty"`
	// What is drawn below min is min, above max it is max.
	Min *T `json:"min,omitempty"`
	Max *T `json:"max,omitempty"`
}

// Uniform is even between its ends.
type Uniform[T Unit] struct {
	Min T `json:"min" required:""`
	Max T `json:"max" required:""`
}

// Normal is a normal distribution.
type Normal[T Unit] struct {
	Mean   T `json:"mean" required:""`
	StdDev T `json:"stdDev" required:""`
}

// LogNormal is a log-normal distribution.
type LogNormal[T Unit] struct {
	Median T       `json:"median" required:""`
	Sigma  float64 `json:"sigma" required:""`
}

// Exponential is an exponential distribution.
type Exponential[T Unit] struct {
	Mean T `json:"mean" required:""`
}

// Pareto is a Pareto distribution.
type Pareto[T Unit] struct {
	Min   T       `json:"min" required:""`
	Alpha float64 `json:"alpha" required:""`
}

// Weibull is a Weibull distribution.
type Weibull[T Unit] struct {
	Scale T       `json:"scale" required:""`
	Shape float64 `json:"shape" required:""`
}

// Choice is one of several values.
type Choice[T Unit] struct {
	Value T `json:"value" required:""`
	// 1 unless said.
	Weight *float64 `json:"weight,omitempty"`
}

// weight is 1 unless said. Weights need not add up to one.
func (c *Choice[T]) weight() float64 {
	if c.Weight == nil {
		return 1
	}
	return *c.Weight
}

// Shorthand has a distribution be written as its only value. So "cpu: 100m" is a distribution of
// that one value.
func (d *Distribution[T]) Shorthand() any {
	d.Value = new(T)
	return d.Value
}

// number is a value in its base unit: cores or bytes, seconds, or as it is. Cores rather than
// millicores: amounts turns them into those, rounding on the way.
func number[T Unit](v T) float64 {
	switch x := any(v).(type) {
	case resource.Quantity:
		return x.AsApproximateFloat64()
	case time.Duration:
		return x.Seconds()
	case float64:
		return x
	}
	return 0
}

// quantile is the value that a share of u of all values is below, 0 < u < 1, in
// the base unit. Drawing by quantile (inverse transform) needs exactly one number from (0,1), a
// hash here. Sampling methods that reject draws would need an unknown number of them. Nothing
// that is drawn is ever negative: a normal distribution is cut off at 0.
func (d *Distribution[T]) quantile(u float64) float64 {
	x := d.unbounded(u)
	if d.Min != nil {
		x = max(x, number(*d.Min))
	}
	if d.Max != nil {
		x = min(x, number(*d.Max))
	}
	return max(x, 0)
}

// unbounded is quantile without Min and Max. check has seen that one form is
// given and that its parameters make sense. gonum's quantiles are closed formulas or fixed
// approximations, so they give the same bits on every run; that is what the hash of a run rests
// on.
func (d *Distribution[T]) unbounded(u float64) float64 {
	switch {
	case d.Value != nil:
		return number(*d.Value)
	case d.Uniform != nil:
		return distuv.Uniform{Min: number(d.Uniform.Min), Max: number(d.Uniform.Max)}.Quantile(u)
	case d.Normal != nil:
		return distuv.Normal{Mu: number(d.Normal.Mean), Sigma: number(d.Normal.StdDev)}.Quantile(u)
	case d.LogNormal != nil:
		return distuv.LogNormal{Mu: math.Log(number(d.LogNormal.Median)), Sigma: d.LogNormal.Sigma}.Quantile(u)
	case d.Exponential != nil:
		return distuv.Exponential{Rate: 1 / number(d.Exponential.Mean)}.Quantile(u)
	case d.Pareto != nil:
		return distuv.Pareto{Xm: number(d.Pareto.Min), Alpha: d.Pareto.Alpha}.Quantile(u)
	case d.Weibull != nil:
		return distuv.Weibull{Lambda: number(d.Weibull.Scale), K: d.Weibull.Shape}.Quantile(u)
	}
	// The last value takes what rounding leaves over.
	total := 0.0
	for i := range d.Choice {
		total += d.Choice[i].weight()
	}
	left := u * total
	for i := range d.Choice {
		if left -= d.Choice[i].weight(); left < 0 {
			return number(d.Choice[i].Value)
		}
	}
	return number(d.Choice[len(d.Choice)-1].Value)
}

// check reports what is wrong with a distribution that was decoded. bad takes the field as the
// document has it. One mistake of a form is told, not those that follow from it.
func (d *Distribution[T]) check(at string, bad func(field, format string, args ...any)) {
	forms := 0
	for _, is := range []bool{d.Value != nil, d.Uniform != nil, d.Normal != nil, d.LogNormal != nil, d.Exponential != nil, d.Pareto != nil, d.Weibull != nil, len(d.Choice) > 0} {
		if is {
			forms++
		}
	}
	if forms != 1 {
		bad(at, "want a value, or one of uniform, normal, logNormal, exponential, pareto, weibull, choice; %d of them are set", forms)
		return
	}
	if d.Min != nil && d.Max != nil && number(*d.Min) > number(*d.Max) {
		bad(at+".max", "is below min")
	}
	positive := func(field string, v float64) {
		// NaN and infinities are refused by the decoder already.
		if v <= 0 {
			bad(at+"."+field, "must be more than 0")
		}
	}
	switch {
	case d.Value != nil && number(*d.Value) < 0:
		bad(at, "is negative")
	case d.Uniform != nil && number(d.Uniform.Min) > number(d.Uniform.Max):
		bad(at+".uniform.max", "is below min")
	case d.Normal != nil && number(d.Normal.StdDev) < 0:
		bad(at+".normal.stdDev", "is negative")
	case d.LogNormal != nil:
		positive("logNormal.median", number(d.LogNormal.Median))
		positive("logNormal.sigma", d.LogNormal.Sigma)
	case d.Exponential != nil:
		positive("exponential.mean", number(d.Exponential.Mean))
	case d.Pareto != nil:
		positive("pareto.min", number(d.Pareto.Min))
		positive("pareto.alpha", d.Pareto.Alpha)
	case d.Weibull != nil:
		positive("weibull.scale", number(d.Weibull.Scale))
		positive("weibull.shape", d.Weibull.Shape)
	}
	for i := range d.Choice {
		positive(fmt.Sprintf("choice[%d].weight", i), d.Choice[i].weight())
	}
}

// draw is a number evenly from (0,1), by hash. The half keeps it off 0 and 1,
// where quantiles are infinite. The purpose keeps draws of one object apart: CPU and lifetime of
// the same pod must not be correlated by accident. 53 bits are what a float64 holds exactly.
func draw(seed uint64, purpose, object string, n uint64) float64 {
	return (float64(loop.Hash(seed, []string{purpose, object}, n)>>11) + 0.5) / (1 << 53)
}

// maxSpan bounds the times that are drawn: ten years.
const maxSpan = 10 * 365 * 24 * time.Hour

// seconds turns a number of seconds into a time. A heavy-tailed distribution draws times beyond
// what a Duration holds, whose conversion would overflow.
func seconds(s float64) time.Duration {
	if s >= maxSpan.Seconds() {
		return maxSpan
	}
	return time.Duration(s * float64(time.Second))
}

// rounded has two significant digits, so that many draws share a value. Two digits are at most
// five percent off, and bound the values to 90 in each power of ten.
func rounded(x float64) float64 {
	if x <= 0 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/step) * step
}
