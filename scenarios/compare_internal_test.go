package scenarios

import "testing"

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		in     measure
		want   string
	}{
		{[]float64{2}, counted, "2"},
		{[]float64{2, 2, 2}, counted, "2"},
		{[]float64{1, 2, 6}, counted, "3 (1 to 6)"},
		{[]float64{1, 2}, counted, "1.5 (1 to 2)"},
		{[]float64{60, 120}, timed, "1m30s (1m to 2m)"},
		{[]float64{0.5, 1}, shared, "75.00% (50.00% to 100.00%)"},
		{[]float64{2e9}, sized, "2.0 GB"},
		{nil, counted, "0"},
	} {
		if got := spreadOf(tt.values).text(tt.in); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.values, got, tt.want)
		}
	}
	if got := seedsText([]uint64{1, 2, 3, 7, 9, 10}); got != "1-3,7,9-10" {
		t.Errorf("seeds: %s", got)
	}
}
