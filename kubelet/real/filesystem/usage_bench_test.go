//go:build linux

package filesystem

import (
	"context"
	"os"
	"testing"
)

// BenchmarkUsage sums up a tree that is named in the environment, or a small
// one. It reports the time per file.
func BenchmarkUsage(b *testing.B) {
	dir := os.Getenv("USAGE_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	var files int64
	for b.Loop() {
		_, n, err := usage(context.Background(), dir)
		if err != nil {
			b.Fatal(err)
		}
		files += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(files), "ns/file")
}
