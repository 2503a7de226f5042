//go:build linux

package mount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// volumeOf makes a volume with a directory, a file and links out of it.
func volumeOf(t *testing.T) (volume, target string) {
	t.Helper()
	top := t.TempDir()
	volume, target = filepath.Join(top, "volume"), filepath.Join(top, "volume-subpaths", "v", "c", "0")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(volume, "d", "e"), 0o755), os.WriteFile(filepath.Join(volume, "d", "f"), []byte("inside"), 0o644),
		os.WriteFile(filepath.Join(top, "secret"), []byte("outside"), 0o600), os.Symlink(top, filepath.Join(volume, "out")),
		os.Symlink("../secret", filepath.Join(volume, "file")), os.MkdirAll(filepath.Dir(target), 0o750),
	); err != nil {
		t.Fatal(err)
	}
	return volume, target
}

func TestOpenBeneath(t *testing.T) {
	volume, _ := volumeOf(t)
	for sub, ok := range map[string]bool{
		"d": true, "d/e": true, "d//f": true, "": true, ".": true,
		"out": false, "out/secret": false, "file": false, "../secret": false, "d/../../secret": false, "none": false,
	} {
		fd, err := openBeneath(volume, sub)
		if (err == nil) != ok {
			t.Errorf("%q: %v", sub, err)
		}
		if err == nil {
			_ = unix.Close(fd)
		}
	}
}

func TestMakeSubPath(t *testing.T) {
	volume, _ := volumeOf(t)
	m := New()
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	if err := m.MakeSubPath(volume, "d/new/deep", 0o777); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(volume, "d/new/deep")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("got %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(volume, "d")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("what was there has changed: %v, %v", info.Mode(), err)
	}
	if err := m.MakeSubPath(volume, "out/new", 0o777); err == nil {
		t.Error("a directory was made outside of the volume")
	}
}

// TestMakeSubPathCloses: whether it ends well or not, nothing of the volume is left open.
func TestMakeSubPathCloses(t *testing.T) {
	volume, _ := volumeOf(t)
	for _, sub := range []string{"d/e", "d/new/deep", "out/new", "d/f/new"} {
		_ = New().MakeSubPath(volume, sub, 0o777)
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, volume) {
				t.Errorf("%s: %s is left open", sub, to)
			}
		}
	}
}

func TestBindAndClean(t *testing.T) {
	volume, target := volumeOf(t)
	m := New()
	dir := filepath.Dir(filepath.Dir(target))
	t.Cleanup(func() { _ = m.CleanSubPaths(dir) })
	if err := m.BindSubPath(volume, "d", target); err != nil {
		if os.Geteuid() != 0 {
			t.Skipf("mounting needs root: %v", err)
		}
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(target, "f")); err != nil || string(data) != "inside" {
		t.Errorf("through the mount: %q, %v", data, err)
	}
	// Again for another container, then for a file in its place.
	for _, sub := range []string{"d", "d/f"} {
		if err := m.BindSubPath(volume, sub, target); err != nil {
			t.Fatalf("%s: %v", sub, err)
		}
	}
	if err := os.Remove(filepath.Join(volume, "d", "f")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "inside" {
		t.Errorf("a file whose name has gone: %q, %v", data, err)
	}
	if err := m.BindSubPath(volume, "out/secret", target+"1"); err == nil {
		t.Error("the mount leads out of the volume")
	}
	if err := errors.Join(m.CleanSubPaths(dir), m.CleanSubPaths(dir)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
	if _, err := os.Stat(filepath.Join(volume, "d", "e")); err != nil {
		t.Errorf("the volume's content went, too: %v", err)
	}
}
