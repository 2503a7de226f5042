package timeline

import (
	"testing"

	"github.com/drydock-sim/drydock/ground/trace"
)

func TestWriteText(t *testing.T) {
	removed := trace.Str("removed", "true")
	tests := []struct {
		verb   string
		fields []trace.Field
		want   string
	}{
		{"create", []trace.Field{trace.Str("node", "a")}, "created on node a"},
		{"delete", []trace.Field{trace.Str("grace", "30")}, "marked for deletion, grace period 30s"},
		{"delete", nil, "marked for deletion"},
		{"delete", []trace.Field{removed}, "removed"},
		{"patch", nil, "patched"},
		{"patch", []trace.Field{removed}, "patched, and removed: that was its last finalizer"},
		{"update", []trace.Field{removed}, "updated, and removed: that was its last finalizer"},
	}
	for _, tt := range tests {
		if got := writeText(&trace.Record{Verb: tt.verb, Fields: tt.fields}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.verb, got, tt.want)
		}
	}
}
