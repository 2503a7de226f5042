package loop

import (
	"testing"
	"time"
)

// TestTypical holds that a typical loop takes the middle of each range, and
// that its other draws are as ever.
func TestTypical(t *testing.T) {
	l, other := New(Options{Name: "n", Seed: 3, Typical: true}), New(Options{Name: "n", Seed: 3})
	defer l.Close()
	defer other.Close()
	for n := range uint64(3) {
		if d := l.Between(2*time.Second, 5*time.Second, "latency", "x", n); d != 3500*time.Millisecond {
			t.Errorf("between 2 and 5 s: %v", d)
		}
		if d := l.Between(2*time.Second, time.Second, "latency", "x", n); d != 2*time.Second {
			t.Errorf("an empty range: %v", d)
		}
		if d := l.Jitter(10*time.Second, 0.5, "requeue", "x", n); d != 12500*time.Millisecond {
			t.Errorf("10 s with a jitter of a half: %v", d)
		}
		if l.Uint64("id", "x", n) != other.Uint64("id", "x", n) {
			t.Error("another draw than without it")
		}
	}
}
