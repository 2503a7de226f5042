package api

import (
	"fmt"
	"math"
	"testing"
)

func TestParseThreshold(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"100Mi", "100Mi true <nil>"},
		{"10%", "100 true <nil>"},
		{"0%", "0 false <nil>"},
		{"100%", "0 false <nil>"},
		{"0", "0 false eviction threshold s must be positive: 0"},
		{"-1%", "0 false eviction percentage threshold s must be >= 0%: -1%"},
		{"101%", "0 false eviction percentage threshold s must be <= 100%: 101%"},
		{"x%", `0 false strconv.ParseFloat: parsing "x": invalid syntax`},
		{"NaN%", `0 false "NaN%" is no percentage`},
		{"Inf%", `0 false "Inf%" is no percentage`},
	} {
		v, on, err := ParseThreshold("s", tc.text)
		q := v.Of(1000)
		if got := fmt.Sprint(q.String(), " ", on, " ", err); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.text, got, tc.want)
		}
	}
}

func TestParseMinimumReclaim(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"0", "0 <nil>"},
		{"500Mi", "500Mi <nil>"},
		{"150%", "1500 <nil>"},
		{"0%", "0 eviction percentage minimum reclaim s must be positive: 0%"},
		{"-1", "0 negative eviction minimum reclaim specified for s"},
		{"NaN%", `0 "NaN%" is no percentage`},
		{"1e30%", fmt.Sprint(math.MaxInt64, " <nil>")},
	} {
		v, err := ParseMinimumReclaim("s", tc.text)
		q := v.Of(1000)
		if got := fmt.Sprint(q.String(), " ", err); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.text, got, tc.want)
		}
	}
}
