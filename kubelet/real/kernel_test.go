//go:build linux

package real

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTuneKernel(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"vm/overcommit_memory": "0\n", "vm/panic_on_oom": "0\n", "kernel/panic": "0\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimSpace(string(data))
	}
	var logs int
	logf := func(string, ...any) { logs++ }
	err := tuneKernel(dir, true, logf)
	if err == nil || !strings.Contains(err.Error(), "invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0") ||
		!strings.Contains(err.Error(), "invalid kernel flag: kernel/panic, expected value: 10, actual value: 0") || strings.Contains(err.Error(), "panic_on_oom") {
		t.Errorf("protected: %v", err)
	}
	if logs != 3 { // those that are not there
		t.Errorf("%d log lines", logs)
	}
	if err := tuneKernel(dir, false, logf); err != nil {
		t.Fatal(err)
	}
	if a, b := read("vm/overcommit_memory"), read("kernel/panic"); a != "1" || b != "10" {
		t.Errorf("set to %s and %s", a, b)
	}
	if err := tuneKernel(dir, true, logf); err != nil {
		t.Errorf("all is as it should be: %v", err)
	}
}
