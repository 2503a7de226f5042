//go:build linux

package filesystem

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/loop"
)

// umask changes the process's for one test.
func umask(t *testing.T, mask int) {
	t.Helper()
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

func mode(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode() & permBits
}

func inode(t *testing.T, name string) uint64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func TestModesAreExact(t *testing.T) {
	umask(t, 0o077)
	dir, f := t.TempDir(), New(nil)
	file := filepath.Join(dir, "message")
	if err := f.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if m := mode(t, file); m != 0o666 {
		t.Errorf("a new file has mode %o", m)
	}
	if err := f.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m := mode(t, file); m != 0o666 {
		t.Errorf("a file that was there has mode %o", m)
	}
	deep := filepath.Join(dir, "a", "b")
	if err := f.MkdirAll(deep, 0o777); err != nil {
		t.Fatal(err)
	}
	if m, up := mode(t, deep), mode(t, filepath.Dir(deep)); m != 0o777 || up != 0o777 {
		t.Errorf("new directories have modes %o and %o", m, up)
	}
	if err := f.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if m := mode(t, deep); m != 0o777 {
		t.Errorf("a directory that was there has mode %o", m)
	}
	if err := f.MkdirAll(filepath.Join(file, "below"), 0o700); err == nil {
		t.Error("a directory was made in a file")
	}
	if err := f.Chmod(deep, 0o755|fs.ModeSetgid); err != nil || mode(t, deep) != 0o755|fs.ModeSetgid {
		t.Errorf("setgid: %v, %v", mode(t, deep), err)
	}
}

func TestWriteInPlaceAndReplace(t *testing.T) {
	dir, f := t.TempDir(), New(nil)
	file := filepath.Join(dir, "hosts")
	for _, text := range []string{"long text", "short"} {
		if err := f.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := inode(t, file)
	if err := f.Append(file, []byte("er"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, _ := f.ReadFile(file); string(data) != "shorter" || inode(t, file) != before {
		t.Errorf("got %q", data)
	}
	if err := f.ReplaceFile(file, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, _ := f.ReadFile(file); string(data) != "new" || inode(t, file) == before || mode(t, file) != 0o600 {
		t.Errorf("replaced: %q, mode %o", data, mode(t, file))
	}
	if list, _ := f.ReadDir(dir); len(list) != 1 {
		t.Errorf("left over: %v", list)
	}
	if err := f.ReplaceFile(filepath.Join(dir, "none", "x"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := f.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile(link, []byte("through"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, _ := f.ReadFile(filepath.Join(dir, "target")); string(data) != "through" {
		t.Errorf("through a link to nothing: %q", data)
	}
}

func TestReadTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{3: "789", 10: "0123456789", 100: "0123456789", 0: ""} {
		if got, err := New(nil).ReadTail(file, n); err != nil || string(got) != want {
			t.Errorf("%d bytes: %q, %v", n, got, err)
		}
	}
}

func TestUsage(t *testing.T) {
	dir, f := t.TempDir(), New(nil)
	big := filepath.Join(dir, "d", "big")
	if err := errors.Join(os.Mkdir(filepath.Dir(big), 0o700), os.WriteFile(big, make([]byte, 1<<20), 0o600), os.Link(big, filepath.Join(dir, "same")), os.Symlink("/usr", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	hole, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(hole.Truncate(1<<30), hole.Close()); err != nil {
		t.Fatal(err)
	}
	bytes, inodes := f.Usage(dir)
	if inodes != 5 { // two directories, big, hole, link
		t.Errorf("%d inodes", inodes)
	}
	if bytes < 1<<20 || bytes > 1<<20+1<<18 {
		t.Errorf("%d bytes", bytes)
	}
	if b, i := f.Usage(filepath.Join(dir, "none")); b != 0 || i != 0 {
		t.Errorf("nothing takes %d bytes, %d inodes", b, i)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := usage(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestUsageAndRemovalStopAtMounts(t *testing.T) {
	dir, f := t.TempDir(), New(nil)
	at := filepath.Join(dir, "d", "mnt")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
		t.Skipf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, 0) })
	if err := os.WriteFile(filepath.Join(at, "kept"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if bytes, _ := f.Usage(dir); bytes >= 1<<20 {
		t.Errorf("what is mounted counts: %d bytes", bytes)
	}
	if err := f.RemoveAll(dir); err == nil || !strings.Contains(err.Error(), "is a mount point") {
		t.Errorf("removal: %v", err)
	}
	if _, err := os.Stat(filepath.Join(at, "kept")); err != nil {
		t.Errorf("what is mounted was removed: %v", err)
	}
	if err := f.RemoveAll(filepath.Join(dir, "none")); err != nil {
		t.Errorf("removal of nothing: %v", err)
	}
}

// onLoop runs fn as a task of a real loop.
func onLoop(t *testing.T, fn func(ctx context.Context, l *loop.Loop)) {
	t.Helper()
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.Root().Go("test", func(ctx context.Context) {
		defer cancel()
		fn(ctx, l)
	})
	if err := l.RunReal(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestCompressFileAndUsageWait(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "0.log"), filepath.Join(dir, "0.log.tmp")
	if err := os.WriteFile(from, []byte(strings.Repeat("line\n", 1000)), 0o640); err != nil {
		t.Fatal(err)
	}
	onLoop(t, func(ctx context.Context, l *loop.Loop) {
		f := New(l)
		if err := f.CompressFile(ctx, from, to); err != nil {
			t.Error(err)
		}
		if bytes, inodes, err := f.UsageWait(ctx, dir); err != nil || inodes != 3 || bytes < 8192 {
			t.Errorf("usage: %d bytes, %d inodes, %v", bytes, inodes, err)
		}
		if err := f.CompressFile(ctx, filepath.Join(dir, "none"), to+"2"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing to compress: %v", err)
		}
	})
	file, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || len(data) != 5000 || mode(t, to) != 0o640 {
		t.Errorf("%d bytes, mode %o, %v", len(data), mode(t, to), err)
	}
}
