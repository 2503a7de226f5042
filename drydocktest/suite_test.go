package drydocktest

import (
	"testing"
	"time"
)

// TestSpec: a panic of the body is one of Spec's, as runners want whose failures are
// panics and who run specs on goroutines of their own.
func TestSpec(t *testing.T) {
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		Spec(t, Options{}, func(*testing.T, *Cluster) {
			time.Sleep(time.Minute) // the cluster's
			panic("of the spec")
		})
	}()
	if v := <-ended; v != "of the spec" {
		t.Errorf("Spec panicked with %v", v)
	}
}
