package images

import (
	"fmt"
	"math/bits"
)

// share is percent hundredths of bytes, rounded down; upstream's product would
// overflow over 80 PiB.
func share(bytes int64, percent int) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(percent))
	q, _ := bits.Div64(hi, lo, 100)
	return int64(q)
}

// percent is how many hundredths of whole, which is not 0, part is, rounded down.
func percent(part, whole int64) int {
	hi, lo := bits.Mul64(uint64(part), 100)
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int(q)
}

// floorOf is the least number of available bytes with which the use of a file
// system is below a threshold.
func floorOf(capacity int64, high int) int64 {
	f := share(capacity, 101-high)
	if percent(f, capacity) < 101-high {
		f++
	}
	return f
}

// formatSize writes bytes as upstream's event does (formatSize of
// images/image_gc_manager.go).
func formatSize(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	v, units := float64(bytes)/unit, "KiB"
	for _, u := range [...]string{"MiB", "GiB", "TiB"} {
		if v < unit {
			break
		}
		v, units = v/unit, u
	}
	return fmt.Sprintf("%.1f %s", v, units)
}
