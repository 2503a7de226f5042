package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/cmd/drydock-lint/rooms"
)

// A module of the same name, so that its packages are judged like ours.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module github.com/drydock-sim/drydock\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	clean = `package pod

func F(m map[string]int) (n int) {
	for range m { //drydock:unordered counts
		n++
	}
	return n
}
`
	cleanTest = `package pod

import "testing"

func TestF(*testing.T) { go F(nil) }
`
	dirty = `package status

func F(m map[string]int) {
	go F(m)
	for range m {
	}
}
`
	broken = `package images

func F() int { return missing }
`
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name           string
		files          map[string]string
		args           []string
		code           int
		stdout, stderr []string
	}{
		{
			name:  "clean",
			files: map[string]string{"kubelet/internal/pod/a.go": clean, "kubelet/internal/pod/a_test.go": cleanTest},
		},
		{
			name:   "listing",
			files:  map[string]string{"kubelet/internal/pod/a.go": clean, "kubelet/internal/pod/a_test.go": cleanTest, "kubelet/internal/status/a.go": dirty},
			args:   []string{"-list-unordered", "./..."},
			code:   1,
			stdout: []string{"kubelet/internal/status/a.go:4:2: a go statement: ", "kubelet/internal/status/a.go:5:2: range over a map: ", "where the order", "kubelet/internal/pod/a.go:4: counts"},
		},
		{
			name:   "dirty",
			files:  map[string]string{"kubelet/internal/pod/a.go": clean, "kubelet/internal/status/a.go": dirty},
			code:   1,
			stdout: []string{"kubelet/internal/status/a.go:4:2: a go statement: ", "kubelet/internal/status/a.go:5:2: range over a map: "},
		},
		{
			name:   "broken, beside dirty",
			files:  map[string]string{"kubelet/internal/images/a.go": broken, "kubelet/internal/status/a.go": dirty},
			code:   2,
			stdout: []string{"kubelet/internal/status/a.go:4:2: ", "kubelet/internal/status/a.go:5:2: "},
			stderr: []string{"undefined: missing", "these packages were not judged"},
		},
		{
			name: "no such flag", files: map[string]string{}, args: []string{"-x"}, code: 2,
			stderr: []string{"flag provided but not defined", "usage:", "", "", "", "", "", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(c.args, module(t, c.files), rooms.Rules{}, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			match(t, "stdout", stdout.String(), c.stdout)
			match(t, "stderr", stderr.String(), c.stderr)
		})
	}
}

// match wants exactly as many lines as there are parts, each with its part.
func match(t *testing.T, what, out string, parts []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if out == "" {
		lines = nil
	}
	if len(lines) != len(parts) {
		t.Errorf("%s has %d lines, want %d:\n%s", what, len(lines), len(parts), out)
		return
	}
	for i, p := range parts {
		if !strings.Contains(lines[i], p) {
			t.Errorf("%s line %d is %q, want %q in it", what, i+1, lines[i], p)
		}
	}
}
