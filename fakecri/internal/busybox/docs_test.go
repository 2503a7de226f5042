package busybox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
)

// TestDocs holds the table of commands in docs/shell.md to what is built.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../../docs/shell.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Commands\n")
	rows := map[string]bool{}
	for _, line := range strings.Split(section, "\n") {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			rows[name] = true
		}
	}
	for _, a := range append(busybox.Applets(), busybox.Others()...) {
		if !rows[a] {
			t.Errorf("docs/shell.md does not list %s", a)
		}
		delete(rows, a)
	}
	for name := range rows {
		t.Errorf("docs/shell.md lists %s, which is not built", name)
	}
}
