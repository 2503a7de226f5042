package memfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

func TestOwners(t *testing.T) {
	_, f := newFS(t)
	must(t, f.MkdirAll("/d", 0o755))
	must(t, f.Chown("/d", -1, 2000))
	must(t, f.Chmod("/d", fs.ModeSetgid|0o2775))
	must(t, f.WriteFile("/d/f", []byte("x"), 0o644))
	must(t, f.Mkdir("/d/sub", 0o755))
	must(t, f.Symlink("f", "/d/l"))
	must(t, f.Chown("/d/l", 7, -1)) // follows
	must(t, f.Lchown("/d/l", 8, 9))
	must(t, f.Link("/d/f", "/d/g"))
	must(t, f.Chmod("/d/g", 0o600))
	seen := map[uint64]string{}
	for _, k := range []struct{ name, want string }{
		{"/d", "0 2000 1 dgrwxrwxr-x"},
		{"/d/f", "7 2000 2 -rw-------"},
		{"/d/g", "7 2000 2 -rw-------"},
		{"/d/sub", "0 2000 1 dgrwxr-xr-x"},
		{"/d/l", "8 9 1 Lrwxrwxrwx"},
	} {
		i, err := f.Lstat(k.name)
		must(t, err)
		s := i.Sys().(*memfs.Sys)
		if got := fmt.Sprint(s.UID, s.GID, s.Nlink, " ", i.Mode()); got != k.want {
			t.Errorf("%s: %s, want %s", k.name, got, k.want)
		}
		if other, ok := seen[s.Ino]; ok && !(k.name == "/d/g" && other == "/d/f") {
			t.Errorf("%s and %s have one inode", k.name, other)
		}
		seen[s.Ino] = k.name
	}
	must(t, f.RemoveAll("/d/g"))
	if i, _ := f.Stat("/d/f"); i.Sys().(*memfs.Sys).Nlink != 1 {
		t.Error("a removed name counts")
	}
	if err := f.Chown("/nosuch", 1, 1); !errors.Is(err, fs.ErrNotExist) || err.Error() != "chown /nosuch: no such file or directory" {
		t.Error(err)
	}
}

// What is put in place is the old content or the new, also when there is no room.
func TestReplaceFile(t *testing.T) {
	_, f := newFS(t)
	must(t, f.MountTmpfsSize("/t", 1<<20))
	must(t, f.ReplaceFile("/t/state", []byte("old"), 0o600))
	fill := 0
	for f.WriteFile(fmt.Sprint("/t/fill", fill), make([]byte, 1<<12), 0o644) == nil {
		fill++
	}
	if err := f.ReplaceFile("/t/state", []byte("newer"), 0o600); !errors.Is(err, linux.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if b, err := f.ReadFile("/t/state"); err != nil || string(b) != "old" {
		t.Errorf("%q, %v are left of it", b, err)
	}
	must(t, f.Remove("/t/fill0"))
	must(t, f.Remove("/t/fill1"))
	must(t, f.ReplaceFile("/t/state", []byte("newer"), 0o600))
	entries, err := f.ReadDir("/t")
	must(t, err)
	if b, _ := f.ReadFile("/t/state"); string(b) != "newer" || len(entries) != fill {
		t.Errorf("%q, %d files", b, len(entries))
	}
}

func TestTmpfsSize(t *testing.T) {
	_, f := newFS(t)
	must(t, f.MountTmpfsSize("/t", 1<<20))
	must(t, f.WriteFile("/t/a", make([]byte, 1<<19), 0o644))
	err := f.WriteFile("/t/b", make([]byte, 1<<20), 0o644)
	if !errors.Is(err, linux.ENOSPC) || err.Error() != "write /t/b: no space left on device" {
		t.Error(err)
	}
	if i, _ := f.Stat("/t/b"); i.Size() != 1<<19 {
		t.Errorf("%d bytes fitted", i.Size())
	}
	if err := f.Append("/t/a", []byte("x"), 0o644); !errors.Is(err, linux.ENOSPC) {
		t.Error(err)
	}
	sub, err := f.Sub("/t")
	must(t, err)
	if err := sub.WriteFile("/c", []byte("x"), 0o644); !errors.Is(err, linux.ENOSPC) {
		t.Error(err)
	}
	must(t, f.Remove("/t/b"))
	must(t, f.Append("/t/a", []byte("x"), 0o644))
	if size, used, ok := f.Limit("/t"); size != 1<<20 || used != 1<<19+4096 || !ok {
		t.Error(size, used, ok)
	}
	if _, _, ok := f.Limit("/"); ok {
		t.Error("the disk is a tmpfs")
	}
}

func TestUsage(t *testing.T) {
	_, f := newFS(t)
	must(t, f.MkdirAll("/d/e", 0o755))
	must(t, f.WriteFile("/d/small", []byte("x"), 0o644))
	must(t, f.WriteFile("/d/e/empty", nil, 0o644))
	must(t, f.Link("/d/small", "/d/e/again"))
	must(t, f.Symlink("small", "/d/link"))
	h, err := f.Open("/d/zeros", os.O_WRONLY|os.O_CREATE, 0o644)
	must(t, err)
	if n, err := h.WriteZerosAt(0, 900<<20); n != 900<<20 || err != nil {
		t.Error(n, err)
	}
	must(t, f.Truncate("/d/e/empty", 1<<40)) // a hole
	must(t, f.MountTmpfs("/d/t"))
	must(t, f.WriteFile("/d/t/x", make([]byte, 10000), 0o644))
	for _, k := range []struct {
		name          string
		bytes, inodes int64
	}{
		{"/d", 3*4096 + 4096 + 900<<20, 7},
		{"/d/t", 12288, 2},
		{"/d/small", 4096, 1},
		{"/nosuch", 0, 0},
	} {
		if b, i := f.Usage(k.name); b != k.bytes || i != k.inodes {
			t.Errorf("%s: %d bytes, %d inodes, want %d, %d", k.name, b, i, k.bytes, k.inodes)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 200<<20 {
		t.Errorf("the zeros are kept: %d MB", m.HeapAlloc>>20)
	}
}

func TestSubIsAPlaceNotAName(t *testing.T) {
	l, f := newFS(t)
	must(t, f.MkdirAll("/a/b", 0o755))
	must(t, f.WriteFile("/a/file", []byte("one"), 0o644))
	must(t, f.Symlink("/a", "/link"))
	dir, err := f.Sub("/link")
	must(t, err)
	file, err := f.Sub("/a/file")
	must(t, err)
	calls := 0
	defer f.Watch("/a", func() { calls++ })()
	must(t, dir.WriteFile("/b/x", []byte("x"), 0o644))
	run(t, l, time.Second)
	if got, _ := f.ReadFile("/a/b/x"); string(got) != "x" || calls != 1 {
		t.Errorf("%q, %d calls", got, calls)
	}
	must(t, f.WriteFile("/new", []byte("two"), 0o644))
	must(t, f.Rename("/new", "/a/file"))
	if got, _ := file.ReadFile("/"); string(got) != "one" {
		t.Errorf("%q", got)
	}
	must(t, f.Rename("/a", "/z"))
	if got, _ := dir.ReadFile("/file"); string(got) != "two" {
		t.Errorf("%q", got)
	}
	if err := dir.Remove("/"); !errors.Is(err, linux.EBUSY) {
		t.Error(err)
	}
	if _, err := f.Sub("/nosuch"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestImageIsSharedByLoops is for the race detector: file systems of several
// loops start from one image and change everything.
func TestImageIsSharedByLoops(t *testing.T) {
	base := memfs.New(memfs.Options{Tmpfs: []string{}})
	must(t, base.MkdirAll("/a/b", 0o755))
	must(t, base.WriteFile("/a/b/f", []byte("base"), 0o644))
	must(t, base.Link("/a/b/f", "/a/g"))
	must(t, base.Chown("/a", 1, 1))
	img := base.Freeze()
	done := make(chan string)
	for range 4 {
		go func() {
			l := loop.New(loop.Options{})
			defer l.Close()
			f := memfs.NewFrom(memfs.Options{Loop: l}, img)
			i, _ := f.Stat("/a/g")
			ino := i.Sys().(*memfs.Sys).Ino
			_ = f.Append("/a/b/f", []byte("+"), 0o644)
			_ = f.Chmod("/a/g", 0o600)
			_ = f.Chown("/a", 2, -1)
			_ = f.Rename("/a/b", "/c")
			_ = f.Truncate("/a/g", 1)
			_ = f.RemoveAll("/a")
			got, _ := f.ReadFile("/c/f")
			done <- fmt.Sprint(string(got), ino)
		}()
	}
	first := <-done
	for range 3 {
		if got := <-done; got != first {
			t.Error(got, first)
		}
	}
	if got := memfs.NewFrom(memfs.Options{}, img); got != nil {
		data, _ := got.ReadFile("/a/g")
		if string(data) != "base" {
			t.Errorf("%q", data)
		}
	}
	if used := memfs.NewFrom(memfs.Options{}, img).Used(); used != (memfs.Space{}) {
		t.Error(used)
	}
}

func TestMkdirAllIn(t *testing.T) {
	_, f := newFS(t)
	for range 2 { // the second time all is there
		if err := f.MkdirAllIn("/a", "b", 0o750, []string{"x", "y"}); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"x", "y"}
	if n := testing.AllocsPerRun(10, func() { _ = f.MkdirAllIn("/a", "b", 0o750, names) }); n != 0 {
		t.Errorf("%v allocations when all is there", n)
	}
	if err := f.MkdirAllIn("/a", "c", 0o750, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat("/a/c"); err != nil {
		t.Error(err)
	}
	if err := f.RemoveAll("/a/b/y"); err != nil {
		t.Fatal(err)
	}
	if err := f.MkdirAllIn("/a", "b", 0o750, []string{"x", "y"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/a/b/x", "/a/b/y"} {
		if info, err := f.Stat(p); err != nil || !info.IsDir() || info.Mode().Perm() != 0o750 {
			t.Errorf("%s: %v %v", p, info, err)
		}
	}
	if err := f.RemoveAll("/a/b/x"); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("/a/b/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.MkdirAllIn("/a", "b", 0o750, []string{"x"}); !errors.Is(err, linux.ENOTDIR) {
		t.Errorf("a file in the way: %v", err)
	}
}
