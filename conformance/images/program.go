package images

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
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
	if packed, err := fs.ReadFile(bin, path.Join("bin", ProgramFile(runtime.GOARCH))); err == nil {
		return unpacked(packed)
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

// unpacked is the embedded program.
func unpacked(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("embedded test program: %w", err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("embedded test program: %w", err)
	}
	return data, nil
}

// ProgramFile is where the program for an architecture is, compressed, to be embedded.
func ProgramFile(arch string) string { return path.Join(arch, "actor.gz") }

// Pack builds the test program for Linux on an architecture and compresses it into a file, as
// drydock embeds it.
func Pack(ctx context.Context, arch, out string) error {
	dir, err := os.MkdirTemp("", "drydock-actor-")
	if err != nil {
		return fmt.Errorf("test program: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "actor")
	if err := Build(ctx, arch, file); err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("test program: %w", err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, packed.Bytes(), 0o600)
}

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
