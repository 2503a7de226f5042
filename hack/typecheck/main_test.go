package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const sound = "package p\n\nfunc F() int { return 1 }\n"
	for _, tc := range []struct {
		name, file, text, target string
		problem                  string // "": none
	}{
		{"sound", "p.go", sound, "windows/amd64", ""},
		{"what only Unix has", "p.go", "package p\n\nimport \"syscall\"\n\nvar F = syscall.Getrusage\n", "windows/amd64", "undefined: syscall.Getrusage"},
		{"and on Unix", "p.go", "package p\n\nimport \"syscall\"\n\nvar F = syscall.Getrusage\n", "darwin/arm64", ""},
		{"in a test", "p_test.go", "package p\n\nimport \"syscall\"\n\nvar G = syscall.Getrusage\n", "windows/amd64", "undefined: syscall.Getrusage"},
		{"an int of 64 bits", "p.go", "package p\n\nvar N int = 1 << 40\n", "linux/arm", "overflows"},
		{"a package for another system", "p.go", "package p\n\nimport _ \"example.com/p/q\"\n", "windows/amd64", "build constraints exclude all Go files"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{
				"go.mod": "module example.com/p\n\ngo 1.26\n", "other.go": "package p\n",
				"q/q_linux.go": "package q\n", tc.file: tc.text,
			} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			problems, err := check(dir, tc.target, []string{"."})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(problems, "\n")
			if tc.problem == "" && got != "" || !strings.Contains(got, tc.problem) {
				t.Errorf("%s, want %q", got, tc.problem)
			}
		})
	}
}

func TestBadTarget(t *testing.T) {
	if _, err := check(".", "windows", nil); err == nil {
		t.Error("a target without a processor was taken")
	}
}
