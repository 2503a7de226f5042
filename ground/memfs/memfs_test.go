package memfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

var _ filesystem.FS = (*memfs.FS)(nil)

func newFS(t testing.TB) (*loop.Loop, *memfs.FS) {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	return l, memfs.New(memfs.Options{Loop: l})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, l *loop.Loop, d time.Duration) {
	t.Helper()
	must(t, l.RunUntil(l.Now().Add(d)))
}

func TestErrorsReadAsTheOSs(t *testing.T) {
	_, f := newFS(t)
	must(t, f.WriteFile("/f", nil, 0o644))
	must(t, f.MkdirAll("/d/e", 0o755))
	for _, c := range []struct {
		err  error
		is   error
		text string
	}{
		{second(f.ReadFile("/x")), fs.ErrNotExist, "open /x: no such file or directory"},
		{second(f.ReadFile("/d")), linux.EISDIR, "read /d: is a directory"},
		{second(f.ReadDir("/f")), linux.ENOTDIR, "open /f: not a directory"},
		{second(f.Stat("/f/g")), linux.ENOTDIR, "stat /f/g: not a directory"},
		{f.WriteFile("/x/y", nil, 0o644), fs.ErrNotExist, "open /x/y: no such file or directory"},
		{f.Mkdir("/d", 0o755), fs.ErrExist, "mkdir /d: file exists"},
		{f.MkdirAll("/f/g", 0o755), linux.ENOTDIR, "mkdir /f: not a directory"},
		{f.Remove("/d"), linux.ENOTEMPTY, "remove /d: directory not empty"},
		{f.Rename("/f", "/d"), fs.ErrExist, "rename /f /d: file exists"},
		{f.Rename("/d", "/d/e/f"), linux.EINVAL, "rename /d /d/e/f: invalid argument"},
		{f.Rename("/f", "/run/f"), linux.EXDEV, "rename /f /run/f: invalid cross-device link"},
		{f.Remove("/run"), linux.EBUSY, "remove /run: device or resource busy"},
		{f.WriteFile("f", nil, 0o644), linux.EINVAL, "open f: invalid argument"},
	} {
		if c.err == nil || c.err.Error() != c.text || !errors.Is(c.err, c.is) {
			t.Errorf("got %v, want %s", c.err, c.text)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestTimes(t *testing.T) {
	l, f := newFS(t)
	must(t, f.MkdirAll("/d", 0o755))
	run(t, l, 10*time.Second)
	must(t, f.WriteFile("/d/a", []byte("x"), 0o600))
	for _, p := range []string{"/d", "/d/a"} {
		i, err := f.Stat(p)
		must(t, err)
		if !i.ModTime().Equal(loop.Epoch().Add(10 * time.Second)) {
			t.Errorf("%s was changed at %s", p, i.ModTime())
		}
	}
	i, _ := f.Stat("/d/a")
	if i.Mode() != 0o600 || i.Size() != 1 || i.Name() != "a" {
		t.Errorf("got %v", i)
	}
}

func TestContentIsSharedAndNeverChanges(t *testing.T) {
	_, f := newFS(t)
	given := append(make([]byte, 0, 100), "one"...)
	must(t, f.WriteShared("/a", given, 0o644))
	read, _ := f.ReadFile("/a")
	if &read[0] != &given[0] {
		t.Error("WriteShared or ReadFile copied")
	}
	must(t, f.Append("/a", []byte(" two"), 0o644))
	must(t, f.Append("/a", []byte(" three"), 0o644))
	middle, _ := f.ReadFile("/a")
	_ = append(middle, "!!!"...) // as the owner of a slice may
	must(t, f.Append("/a", []byte(" four"), 0o644))
	if got, _ := f.ReadFile("/a"); string(got) != "one two three four" || string(read) != "one" || string(middle) != "one two three" {
		t.Errorf("got %q, read before %q and %q", got, read, middle)
	}
	if string(given[:cap(given)][3:7]) == " two" {
		t.Error("Append wrote into what the caller gave")
	}
	buf := []byte("mine")
	must(t, f.WriteFile("/b", buf, 0o644))
	buf[0] = 'w'
	if got, _ := f.ReadFile("/b"); string(got) != "mine" {
		t.Errorf("WriteFile kept the caller's bytes: %q", got)
	}
}

func TestWatch(t *testing.T) {
	l, f := newFS(t)
	must(t, f.MkdirAll("/etc/manifests", 0o755))
	run(t, l, time.Second)
	calls := 0
	stop := f.Watch("/etc/manifests", func() {
		calls++
		if calls == 1 {
			_ = f.WriteFile("/etc/manifests/from-the-callback", nil, 0o644) // is told in a step of its own
		}
	})
	expect := func(what string, want int) {
		t.Helper()
		run(t, l, time.Second)
		if calls != want {
			t.Errorf("%s: %d calls, want %d", what, calls, want)
		}
		calls = 100 // so that the callback writes nothing more
	}
	must(t, f.WriteFile("/etc/manifests/a", nil, 0o644))
	must(t, f.WriteFile("/etc/manifests/b", nil, 0o644))
	if calls != 0 {
		t.Fatal("called from within the change")
	}
	expect("two writes at once, and one of the callback", 2)
	must(t, f.WriteFile("/etc/other", nil, 0o644))
	must(t, f.MkdirAll("/etc/manifests-not", 0o755))
	must(t, f.MkdirAll("/etc/manifests", 0o755))
	expect("changes elsewhere", 100)
	must(t, f.Append("/etc/manifests/a", []byte("x"), 0o644))
	expect("append", 101)
	must(t, f.Rename("/etc/manifests/a", "/a"))
	expect("moved away", 101)
	must(t, f.Rename("/etc", "/etc2"))
	expect("the folder above moved away", 101)
	must(t, f.MkdirAll("/etc", 0o755))
	must(t, f.RemoveAll("/etc2"))
	expect("nothing of it is there", 100)
	must(t, f.MkdirAll("/etc/manifests", 0o755))
	expect("made again", 101)
	must(t, f.WriteFile("/etc/manifests/c", nil, 0o644))
	stop()
	stop()
	expect("stopped before it was called", 100)
}

func TestWatchPaths(t *testing.T) {
	l, f := newFS(t)
	must(t, f.MkdirAll("/var/log/a/x", 0o755))
	must(t, f.MkdirAll("/var/log/b", 0o755))
	must(t, f.Symlink("/var/log", "/logs"))
	var got []string
	f.WatchPaths("/var/log", func(changed, removed string) { got = append(got, changed+" "+removed) })
	for _, c := range []struct {
		do   func() error
		want string
	}{
		{func() error { return f.WriteFile("/var/log/a/x/0.log", nil, 0o644) }, "/var/log/a/x/0.log "},
		{func() error {
			return errors.Join(f.Append("/var/log/a/x/0.log", []byte("x"), 0o644), f.WriteFile("/var/log/a/1.log", nil, 0o644))
		}, "/var/log/a "},
		{func() error {
			return errors.Join(f.Remove("/var/log/a/1.log"), f.WriteFile("/var/log/b/0.log", nil, 0o644))
		}, "/var/log /var/log/a/1.log"},
		{func() error { return errors.Join(f.Remove("/var/log/b/0.log"), f.RemoveAll("/var/log/a")) }, "/var/log /var/log"},
		{func() error { return f.Rename("/var/log/b", "/b") }, "/var/log/b /var/log/b"},
		{func() error { return f.Rename("/var", "/old") }, "/var /var"},
	} {
		got = nil
		must(t, c.do())
		run(t, l, time.Second)
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestWatchThroughLink(t *testing.T) {
	l, f := newFS(t)
	calls := 0
	f.Watch("/link/a", func() { calls++ })
	must(t, f.MkdirAll("/v1", 0o755))
	must(t, f.MkdirAll("/v2", 0o755))
	must(t, f.Symlink("v1", "/link"))
	run(t, l, time.Second)
	calls = 0
	must(t, f.WriteFile("/v2/a", nil, 0o644))
	run(t, l, time.Second)
	if calls != 0 {
		t.Error("told of a change that is not there")
	}
	must(t, f.WriteFile("/v1/a", nil, 0o644))
	run(t, l, time.Second)
	must(t, f.Symlink("v2", "/new")) // as the atomic writer does
	must(t, f.Rename("/new", "/link"))
	run(t, l, time.Second)
	if calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}

func TestPowerCut(t *testing.T) {
	l, f := newFS(t)
	must(t, f.MkdirAll("/var/lib/pod/mem", 0o755))
	must(t, f.WriteFile("/var/lib/pod/mem/under", []byte("disk"), 0o644))
	must(t, f.MountTmpfs("/var/lib/pod/mem"))
	must(t, f.WriteFile("/var/lib/pod/mem/over", nil, 0o644))
	must(t, f.WriteFile("/run/pid", nil, 0o644))
	must(t, f.WriteFile("/var/lib/pod/disk", nil, 0o644))
	if _, err := f.Stat("/var/lib/pod/mem/under"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the tmpfs does not hide what it covers")
	}
	told := false
	f.Watch("/run", func() { told = true })
	f.PowerCut()
	run(t, l, time.Second)
	for p, want := range map[string]bool{
		"/var/lib/pod/disk": true, "/var/lib/pod/mem/under": true,
		"/var/lib/pod/mem/over": false, "/run/pid": false, "/run": true,
	} {
		if _, err := f.Stat(p); (err == nil) != want {
			t.Errorf("%s after the power cut: %v", p, err)
		}
	}
	if !f.Mounted("/run") || f.Mounted("/var/lib/pod/mem") || !told {
		t.Errorf("mounted: /run %v, mem %v; told: %v", f.Mounted("/run"), f.Mounted("/var/lib/pod/mem"), told)
	}
}

func TestUnmount(t *testing.T) {
	_, f := newFS(t)
	must(t, f.MountTmpfs("/m"))
	must(t, f.MountTmpfs("/m/n"))
	must(t, f.WriteFile("/m/a", nil, 0o644))
	if err := f.Unmount("/m"); !errors.Is(err, linux.EBUSY) {
		t.Errorf("unmounting below another mount: %v", err)
	}
	if err := f.RemoveAll("/m"); !errors.Is(err, linux.EBUSY) {
		t.Errorf("removing mounts: %v", err)
	}
	if d, _ := f.ReadDir("/m"); len(d) != 1 {
		t.Errorf("after RemoveAll there is %v", d)
	}
	must(t, f.Unmount("/m/n"))
	must(t, f.Unmount("/m"))
	if err := f.Unmount("/m"); !errors.Is(err, linux.EINVAL) {
		t.Errorf("unmounting twice: %v", err)
	}
	must(t, f.RemoveAll("/m"))
}

// podDirs makes what the kubelet makes for a pod.
func podDirs(f *memfs.FS, i int) {
	dir := fmt.Sprintf("/var/lib/kubelet/pods/%08x-0000-4000-8000-000000000000", i)
	for _, p := range []string{dir, dir + "/volumes", dir + "/plugins"} {
		_ = f.MkdirAll(p, 0o750)
	}
}

func TestPodDirectoriesAreSmall(t *testing.T) {
	_, f := newFS(t)
	const pods = 20000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range pods {
		podDirs(f, i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := int64(after.HeapAlloc-before.HeapAlloc) / pods
	runtime.KeepAlive(f)
	t.Logf("%d bytes per pod", per)
	if per > 400 {
		t.Errorf("three directories take %d bytes", per)
	}
}

func BenchmarkPodDirectories(b *testing.B) {
	b.ReportAllocs()
	_, f := newFS(b)
	for i := range b.N {
		podDirs(f, i)
		if i%100 == 99 {
			_ = f.RemoveAll("/var/lib/kubelet/pods")
		}
	}
}
