//go:build unix

package main

import (
	"runtime"
	"syscall"
)

// peakRSS is the most memory that the process has had, in bytes. 0 where the
// system does not say. ru_maxrss is in KiB on Linux (getrusage(2)), in bytes on a Mac.
func peakRSS() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
