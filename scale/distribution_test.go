package scale

import (
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func ptr[T any](v T) *T { return &v }

// What is drawn has the mean and the median that the distribution states.
func TestDistributions(t *testing.T) {
	for _, tt := range []struct {
		name         string
		d            Distribution[float64]
		mean, median float64
	}{
		{"value", Distribution[float64]{Value: ptr(3.0)}, 3, 3},
		{"uniform", Distribution[float64]{Uniform: &Uniform[float64]{Min: 2, Max: 6}}, 4, 4},
		{"normal", Distribution[float64]{Normal: &Normal[float64]{Mean: 10, StdDev: 2}}, 10, 10},
		{"logNormal", Distribution[float64]{LogNormal: &LogNormal[float64]{Median: 5, Sigma: 0.5}}, 5 * math.Exp(0.125), 5},
		{"exponential", Distribution[float64]{Exponential: &Exponential[float64]{Mean: 8}}, 8, 8 * math.Ln2},
		{"pareto", Distribution[float64]{Pareto: &Pareto[float64]{Min: 1, Alpha: 3}}, 1.5, math.Pow(2, 1.0/3)},
		{"weibull", Distribution[float64]{Weibull: &Weibull[float64]{Scale: 4, Shape: 2}}, 4 * math.Gamma(1.5), 4 * math.Sqrt(math.Ln2)},
		{"choice", Distribution[float64]{Choice: []Choice[float64]{{Value: 1, Weight: ptr(3.0)}, {Value: 5}}}, 2, 1},
		{"bounded", Distribution[float64]{Uniform: &Uniform[float64]{Max: 10}, Min: ptr(4.0), Max: ptr(6.0)}, 5, 5},
		{"never negative", Distribution[float64]{Normal: &Normal[float64]{Mean: -5, StdDev: 1}}, 0, 0},
	} {
		if got := tt.d.quantile(0.5); math.Abs(got-tt.median) > 1e-9 && tt.name != "choice" {
			t.Errorf("%s: median %v, want %v", tt.name, got, tt.median)
		}
		const n = 20000
		sum := 0.0
		for i := range uint64(n) {
			sum += tt.d.quantile(draw(7, "test", tt.name, i))
		}
		if got := sum / n; math.Abs(got-tt.mean) > 0.03*max(tt.mean, 0.1) {
			t.Errorf("%s: mean %v, want %v", tt.name, got, tt.mean)
		}
	}
}

func TestUnits(t *testing.T) {
	if got := number(resource.MustParse("250m")); got != 0.25 {
		t.Errorf("250m is %v", got)
	}
	if got := number(90 * time.Second); got != 90 {
		t.Errorf("90s is %v", got)
	}
	for in, want := range map[float64]float64{0: 0, 1: 1, 12: 12, 123: 120, 127.6: 130, 0.0456: 0.046, 98765: 99000} {
		if got := rounded(in); math.Abs(got-want) > 1e-9*want {
			t.Errorf("rounded(%v) = %v, want %v", in, got, want)
		}
	}
	if got := seconds(1e300); got != maxSpan {
		t.Errorf("a very long time is %v", got)
	}
}
