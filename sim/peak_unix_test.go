//go:build unix

package sim_test

import (
	"runtime"
	"syscall"
)

// peakRSS is the most memory that the process has had, in bytes. ru_maxrss is in KiB
// on Linux (getrusage(2)), in bytes on a Mac.
func peakRSS() (bytes float64, ok bool) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0, false
	}
	if runtime.GOOS == "darwin" {
		return float64(r.Maxrss), true
	}
	return float64(r.Maxrss) * 1024, true
}
