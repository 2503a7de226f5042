//go:build linux

package app

import (
	"bytes"
	"strings"
	"testing"
)

// TestHelpIsWrapped: no line of the help is longer than a terminal without a width, but for one
// word that is.
func TestHelpIsWrapped(t *testing.T) {
	var out bytes.Buffer
	cmd := NewCommand(Deps{})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimRight(line, "\n"); len(line) > plainWidth && strings.Contains(strings.TrimSpace(line), " ") && !strings.HasPrefix(strings.TrimSpace(line), "--") {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{"\n      --max-pods int32\n          How many pods", "\n      --v Level\n"} {
		if !strings.Contains(out.String(), want) && !strings.Contains(out.String(), strings.Replace(want, "      --v", "  -v, --v", 1)) {
			t.Errorf("no %q", want)
		}
	}
}
