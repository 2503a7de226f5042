//go:build !unix

package sim_test

// peakRSS knows nothing here.
func peakRSS() (bytes float64, ok bool) { return 0, false }
