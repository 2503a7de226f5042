package script

import "testing"

func BenchmarkParse(b *testing.B) {
	const text = "trap 'exit 0' TERM; i=0; while test $i -lt 700; do echo \"line $i 0123456789\"; i=$((i+1)); done > /dev/termination-log"
	b.Run("anew", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			Parse(text)
		}
	})
	b.Run("cached", func(b *testing.B) {
		var c Cache
		b.ReportAllocs()
		for range b.N {
			c.Get(text)
		}
	})
}
