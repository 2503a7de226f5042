//go:build !unix

package main

// peakRSS would be the most memory that the process has had; this system isn't asked, and the
// report shows 0.
func peakRSS() int64 { return 0 }
