package memfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

func TestNames(t *testing.T) {
	_, f := newFS(t)
	must(t, f.MkdirAll("/d/b", 0o755))
	must(t, f.WriteFile("/d/a", nil, 0o644))
	must(t, f.Symlink("/d", "/l"))
	must(t, f.MkdirAll("/m", 0o755))
	must(t, f.MountTmpfs("/m"))
	must(t, f.WriteFile("/m/x", nil, 0o644))
	for name, want := range map[string]string{"/d": "a b", "/l": "a b", "/m": "x", "/d/a": "", "/none": "", "/none/d": "", "/d/b": ""} {
		if got := strings.Join(slices.Collect(f.Names(name)), " "); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
	for name := range f.Names("/d") {
		if name != "a" {
			t.Errorf("%s comes after the end", name)
		}
		break
	}
}

// AnyFile finds what a search by lists finds.
func TestAnyFile(t *testing.T) {
	_, f := newFS(t)
	for i := range 3 {
		dir := fmt.Sprint("/logs/pod", i, "/c")
		must(t, f.MkdirAll(dir, 0o755))
		must(t, f.WriteFile(dir+"/0.log", make([]byte, 10*i), 0o644))
	}
	must(t, f.WriteFile("/logs/file", make([]byte, 99), 0o644))
	must(t, f.WriteFile("/logs/pod0/file", make([]byte, 99), 0o644))
	must(t, f.MkdirAll("/logs/pod0/c/deep", 0o755))
	must(t, f.WriteFile("/logs/pod0/c/deep/0.log", make([]byte, 99), 0o644))
	find := func(dir string, size int64) string {
		seen := ""
		found, known := f.AnyFile(dir, 2, func(name string, n int64) bool {
			seen += fmt.Sprint(" ", name, n)
			return n >= size
		})
		return fmt.Sprint(found, known, seen)
	}
	for _, tc := range []struct {
		dir  string
		size int64
		want string
	}{
		{"/logs", 100, "false true 0.log0 deep0 0.log10 0.log20"},
		{"/logs", 10, "true true 0.log0 deep0 0.log10"},
		{"/none", 0, "false true"},
		{"/logs/file", 0, "false true"},
	} {
		if got := find(tc.dir, tc.size); got != tc.want {
			t.Errorf("%s, %d: %s, not %s", tc.dir, tc.size, got, tc.want)
		}
	}
	must(t, f.Symlink("pod0", "/logs/pod3"))
	if got := find("/logs", 20); got != "true true 0.log0 deep0 0.log10 0.log20" {
		t.Errorf("before the link: %s", got)
	}
	if found, known := f.AnyFile("/logs", 2, func(string, int64) bool { return false }); found || known {
		t.Error("links are not followed, which it has to tell")
	}
}

// What is not there is told with one error as long as it is asked for; the error
// is about what was asked for.
func TestMissing(t *testing.T) {
	_, f := newFS(t)
	read := func(name string) error {
		_, err := f.ReadFile(name)
		return err
	}
	first := read("/etc/resolv.conf")
	if err := read("/etc/resolv.conf"); err != first { // the same
		t.Error("another error")
	}
	if n := testing.AllocsPerRun(10, func() { _ = read("/etc/resolv.conf") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	other := read("/etc/hosts")
	must(t, f.WriteFile("/etc", nil, 0o644))
	through := read("/etc/hosts")
	for _, e := range []struct {
		err   error
		path  string
		errno linux.Errno
	}{{first, "/etc/resolv.conf", linux.ENOENT}, {other, "/etc/hosts", linux.ENOENT}, {through, "/etc/hosts", linux.ENOTDIR}} {
		var p *fs.PathError
		if !errors.As(e.err, &p) || p.Op != "open" || p.Path != e.path || !errors.Is(e.err, e.errno) {
			t.Errorf("%v, not %s of %s", e.err, e.errno, e.path)
		}
	}
}

// MkdirAllIn does what MkdirAll would, name by name.
func TestMkdirAllInIsMkdirAll(t *testing.T) {
	names := []string{"x", "y", "x"}
	for what, prepare := range map[string]func(f *memfs.FS){
		"nothing":        func(*memfs.FS) {},
		"the directory":  func(f *memfs.FS) { must(t, f.MkdirAll("/a/b", 0o700)) },
		"one of them":    func(f *memfs.FS) { must(t, f.MkdirAll("/a/b/y", 0o700)) },
		"a file":         func(f *memfs.FS) { must(t, f.MkdirAll("/a/b", 0o700)); must(t, f.WriteFile("/a/b/y", nil, 0o600)) },
		"a file above":   func(f *memfs.FS) { must(t, f.WriteFile("/a", nil, 0o600)) },
		"a link above":   func(f *memfs.FS) { must(t, f.MkdirAll("/c/b", 0o700)); must(t, f.Symlink("c", "/a")) },
		"an empty link":  func(f *memfs.FS) { must(t, f.MkdirAll("/a", 0o700)); must(t, f.Symlink("c", "/a/b")) },
		"a link to one":  func(f *memfs.FS) { must(t, f.MkdirAll("/a/b/c", 0o700)); must(t, f.Symlink("c", "/a/b/x")) },
		"a linked link":  func(f *memfs.FS) { must(t, f.MkdirAll("/a/b", 0o700)); must(t, f.Symlink("c", "/a/b/x")) },
		"a mount":        func(f *memfs.FS) { must(t, f.MkdirAll("/a/b", 0o700)); must(t, f.MountTmpfs("/a/b")) },
		"a setgid":       func(f *memfs.FS) { must(t, f.MkdirAll("/a/b", 0o700)); must(t, f.Chmod("/a/b", fs.ModeSetgid|0o770)) },
		"a frozen image": func(f *memfs.FS) { must(t, f.MkdirAll("/a/b/y", 0o700)); f.Freeze() },
	} {
		shown := func(in bool) string {
			l, f := newFS(t)
			prepare(f)
			run(t, l, 1)
			calls, dir := 0, "/a/b"
			f.Watch(dir, func() { calls++ })
			var err error
			if in {
				err = f.MkdirAllIn("/a", "b", 0o750, names)
			} else if err = f.MkdirAll(dir, 0o750); err == nil {
				for _, name := range names {
					if err == nil {
						err = f.MkdirAll(path.Join(dir, name), 0o750)
					}
				}
			}
			run(t, l, 2)
			return fmt.Sprint(err, calls, f.Used(), tree(f, "/"))
		}
		if got, want := shown(true), shown(false); got != want {
			t.Errorf("%s:\n%s\nnot\n%s", what, got, want)
		}
	}
}

// tree is what is in a directory, as text.
func tree(f *memfs.FS, dir string) string {
	var b strings.Builder
	list, _ := f.ReadDir(dir)
	for _, e := range list {
		i, _ := e.Info()
		fmt.Fprint(&b, "\n", path.Join(dir, e.Name()), " ", i.Mode(), " ", i.ModTime().UnixNano(), fmt.Sprintf(" %+v", i.Sys().(*memfs.Sys)))
		if e.IsDir() {
			b.WriteString(tree(f, path.Join(dir, e.Name())))
		}
	}
	return b.String()
}
