package sim

import "testing"

// skipOneLoop leaves a long test out of -short, which is for the race detector: what runs on one
// loop at a time shows it nothing.
func skipOneLoop(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long test of what one loop does")
	}
}
