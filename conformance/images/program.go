package images

import (
	"bytes"
	"context"
	"debug/elf"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

//go:generate go run ./build bin

// bin has a README always, and the test program where it was built.
//
//go:embed bin
var bin embed.FS

// ErrNoProgram says that there is nothing to make images of.
var ErrNoProgram = errors.New("this drydock was built without its test program, and the source is not at hand to build it: build drydock with `make build`, or name the program's file")

// programPackage is the test program's.
const programPackage = "github.com/drydock-sim/drydock/conformance/actor"

// program returns the test program: that of a file if one is named, else the
// embedded one, else, in a checkout, what `go build` makes of its source.
func program(ctx context.Context, file string) ([]byte, error) {
	if file != "" {
		return staticFile(file)
	}
	if data, err := fs.ReadFile(bin, path.Join("bin", ProgramFile(runtime.GOARCH))); err == nil {
		return data, nil
	}
	dir, err := os.MkdirTemp("", "drydock-actor-")
	if err != nil {
		return nil, fmt.Errorf("test program: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "actor")
	if err := Build(ctx, runtime.GOARCH, out); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoProgram, err)
	}
	return staticFile(out)
}

// ProgramFile is the name of the program's file for an architecture.
func ProgramFile(arch string) string { return "actor-linux-" + arch }

// Build builds the test program for Linux on an architecture from its source,
// which the current directory's module must have.
func Build(ctx context.Context, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, programPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return fmt.Errorf("go build %s: %w: %s", programPackage, err, first)
	}
	return nil
}

// staticFile reads an executable and checks that it runs without libraries.
func staticFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("test program: %w", err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("test program %s: %w", name, err)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, fmt.Errorf("test program %s: it is linked dynamically; build it with CGO_ENABLED=0", name)
	}
	return data, nil
}

// Architectures are those that the program is built for: the host's.
func Architectures() []string { return []string{runtime.GOARCH} }
