package kernel_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

func list(t testing.TB, v *kernel.View, dir string) string {
	t.Helper()
	entries, err := v.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func content(v *kernel.View, name string) string {
	data, err := v.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestContainersShareAnImageOnly(t *testing.T) {
	r := newRig(t)
	a, b := r.container(nil).View(), r.container(nil).View()
	if n, _ := a.Namespace().LayerUsage(); n != 0 {
		t.Errorf("%d bytes in a fresh layer", n)
	}
	must(t, a.WriteFile("/etc/passwd", []byte("mine"), 0o644))
	must(t, a.Remove("/bin/cat"))
	must(t, a.Mkdir("/data", 0o755))
	must(t, a.WriteFile("/data/x", make([]byte, 5000), 0o644))
	if got := content(b, "/etc/passwd"); !strings.HasPrefix(got, "root:x:0") {
		t.Errorf("b reads %q", got)
	}
	if _, err := b.Stat("/bin/cat"); err != nil {
		t.Error(err)
	}
	if _, err := b.Stat("/data"); err == nil {
		t.Error("b sees what a made")
	}
	// The directories /, /etc, /bin and /data, the files passwd and x.
	if bytes, inodes := a.Namespace().LayerUsage(); inodes != 6 || bytes != 7*4096 {
		t.Errorf("layer: %d bytes, %d inodes", bytes, inodes)
	}
}

func TestBinds(t *testing.T) {
	r := newRig(t)
	must(t, r.fs.MkdirAll("/vol/..1", 0o755))
	must(t, r.fs.WriteFile("/vol/..1/key", []byte("one"), 0o644))
	must(t, r.fs.Symlink("..1", "/vol/..data"))
	must(t, r.fs.Symlink("..data/key", "/vol/key"))
	must(t, r.fs.Symlink("/etc/passwd", "/vol/absolute"))
	must(t, r.fs.WriteFile("/term", nil, 0o666))
	v := r.container(nil).View()
	must(t, v.Namespace().Bind("/etc/cfg", r.fs, "/vol", true))
	must(t, v.Namespace().Bind("/deep/er/f", r.fs, "/vol/key", true))
	must(t, v.Namespace().Bind("/dev/termination-log", r.fs, "/term", false))
	must(t, v.Namespace().Bind("/rw", r.fs, "/vol", false))

	if got := content(v, "/etc/cfg/key"); got != "one" {
		t.Error(got)
	}
	// Links are resolved in the container.
	if got := content(v, "/etc/cfg/absolute"); !strings.HasPrefix(got, "root:") {
		t.Error(got)
	}
	// An update by renaming shows in the directory, not in the bound file.
	must(t, r.fs.MkdirAll("/vol/..2", 0o755))
	must(t, r.fs.WriteFile("/vol/..2/key", []byte("two"), 0o644))
	must(t, r.fs.Symlink("..2", "/vol/..tmp"))
	must(t, r.fs.Rename("/vol/..tmp", "/vol/..data"))
	must(t, r.fs.RemoveAll("/vol/..1"))
	if a, b := content(v, "/etc/cfg/key"), content(v, "/deep/er/f"); a != "two" || b != "one" {
		t.Error(a, b)
	}
	must(t, v.WriteFile("/dev/termination-log", []byte("bye"), 0o644))
	if got, _ := r.fs.ReadFile("/term"); string(got) != "bye" {
		t.Errorf("%q", got)
	}
	must(t, v.WriteFile("/rw/new", []byte("n"), 0o644))
	if got, _ := r.fs.ReadFile("/vol/new"); string(got) != "n" {
		t.Errorf("%q", got)
	}
	for _, k := range []struct {
		err  error
		want linux.Errno
	}{
		{v.WriteFile("/etc/cfg/x", nil, 0o644), linux.EROFS},
		{v.WriteFile("/etc/cfg/new", nil, 0o644), linux.EROFS},
		{v.Remove("/etc/cfg/key"), linux.EROFS},
		{v.Chmod("/etc/cfg/key", 0o600), linux.EROFS},
		{v.Remove("/etc/cfg"), linux.EBUSY},
		{v.Remove("/dev/termination-log"), linux.EBUSY},
		{v.Rename("/rw/new", "/etc/new"), linux.EXDEV},
		{v.Link("/rw/new", "/etc/new"), linux.EXDEV},
		{v.Rename("/rw/new", "/rw/newer"), 0},
		{v.RemoveAll("/deep"), linux.EBUSY},
		{v.Namespace().Bind("/x", r.fs, "/nosuch", false), linux.ENOENT},
		{v.Namespace().Bind("/etc/passwd", r.fs, "/vol", false), linux.ENOTDIR},
		{v.Namespace().Bind("/", r.fs, "/vol", false), linux.EBUSY},
		{v.Namespace().Bind("/etc/..", r.fs, "/vol", false), linux.EBUSY},
	} {
		if !isErrno(k.err, k.want) {
			t.Errorf("%v, want %v", k.err, k.want)
		}
	}
	if got := list(t, v, "/deep/er"); got != "f" {
		t.Error(got)
	}
	if got := list(t, v, "/"); got != "bin deep dev etc home proc root rw sys tmp usr var" {
		t.Error(got)
	}
}

func TestPathsInAView(t *testing.T) {
	r := newRig(t)
	v := r.container(nil).View()
	must(t, v.MkdirAll("/a/b", 0o755))
	must(t, v.WriteFile("/a/f", []byte("f"), 0o644))
	must(t, v.Symlink("b", "/a/rel"))
	must(t, v.Symlink("/a", "/abs"))
	must(t, v.Symlink("loop", "/loop"))
	must(t, v.Symlink("../../../../a/f", "/a/b/up"))
	must(t, v.Symlink("nosuch", "/dangling"))
	for _, k := range []struct {
		path, real string
		want       linux.Errno
	}{
		{"/a/rel", "/a/b", 0},
		{"/abs/rel/..", "/a", 0},
		{"/a/b/up", "/a/f", 0},
		{"/../../a//./b/", "/a/b", 0},
		{"/a/f/", "", linux.ENOTDIR},
		{"/a/f/x", "", linux.ENOTDIR},
		{"/loop", "", linux.ELOOP},
		{"/dangling", "", linux.ENOENT},
		{"/nosuch/x", "", linux.ENOENT},
		{"", "", linux.ENOENT},
		{"/dev/../proc/self", "", linux.ENOENT}, // nobody's
	} {
		got, err := v.EvalSymlinks(k.path)
		if !isErrno(err, k.want) || err == nil && got != k.real {
			t.Errorf("%q: %s %v", k.path, got, err)
		}
	}
	must(t, v.WriteFile("/dangling", []byte("made"), 0o644))
	if got := content(v, "/nosuch"); got != "made" {
		t.Error(got)
	}
}

func TestPermissions(t *testing.T) {
	r := newRig(t)
	c := r.container(nil)
	v := c.View()
	must(t, v.MkdirAll("/d/closed", 0o755))
	must(t, v.WriteFile("/d/closed/f", nil, 0o666))
	must(t, v.Chmod("/d/closed", 0o700))
	must(t, v.WriteFile("/d/private", nil, 0o600))
	must(t, v.WriteFile("/d/groups", nil, 0o660))
	must(t, v.Chown("/d/groups", 0, 2000))
	must(t, v.Mkdir("/d/setgid", 0o755))
	must(t, v.Chown("/d/setgid", -1, 2000))
	must(t, v.Chmod("/d/setgid", fs.ModeSetgid|0o775))
	must(t, v.WriteFile("/tmp/roots", nil, 0o666))
	e := r.as(kernel.Cred{UID: 1000, GID: 1000, Groups: []int{2000}}, c, func(_ context.Context, p *kernel.Process) int {
		v := p.View()
		open := func(name string, flag int) error {
			f, err := v.Open(name, flag, 0o666)
			if err == nil {
				_ = f.Close()
			}
			return err
		}
		for i, k := range []struct {
			err  error
			want linux.Errno
		}{
			{open("/d/closed/f", os.O_RDONLY), linux.EACCES},
			{open("/d/private", os.O_RDONLY), linux.EACCES},
			{open("/d/groups", os.O_RDWR), 0},
			{open("/d/new", os.O_WRONLY|os.O_CREATE), linux.EACCES},
			{open("/d/setgid/new", os.O_WRONLY|os.O_CREATE), 0},
			{open("/tmp/mine", os.O_WRONLY|os.O_CREATE), 0},
			{open("/tmp/roots", os.O_WRONLY), 0},
			{v.Remove("/tmp/roots"), linux.EPERM},
			{v.Rename("/tmp/roots", "/tmp/other"), linux.EPERM},
			{v.Chmod("/tmp/roots", 0o777), linux.EPERM},
			{v.Chmod("/tmp/mine", 0o400), 0},
			{open("/tmp/mine", os.O_WRONLY), linux.EACCES},
			{v.Chown("/tmp/mine", 0, -1), linux.EPERM},
			{v.Chown("/tmp/mine", -1, 2000), 0},
			{v.Chown("/tmp/mine", -1, 3000), linux.EPERM},
			{v.Mkdir("/etc/x", 0o755), linux.EACCES},
			{open("/root", os.O_RDONLY), linux.EACCES},
			{p.Chdir("/root"), linux.EACCES},
			{v.Access("/d/private", 0), 0},
			{v.Access("/d/private", 4), linux.EACCES},
		} {
			if !isErrno(k.err, k.want) {
				t.Errorf("%d: %v, want %v", i, k.err, k.want)
			}
		}
		return 0
	})
	if e.Code != 0 {
		t.Error(e)
	}
	for name, want := range map[string]string{"/d/setgid/new": "1000 2000 -rw-r--r--", "/tmp/mine": "1000 2000 -r--------"} {
		i, err := v.Stat(name)
		must(t, err)
		s := i.Sys().(*memfs.Sys)
		if got := fmt.Sprint(s.UID, s.GID, i.Mode()); got != strings.Replace(want, " -", " -", 1) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestReadOnlyRoot(t *testing.T) {
	r := newRig(t)
	v := r.m.NewView(kernel.ViewOptions{Image: r.img, ReadOnly: true})
	must(t, v.Namespace().Tmpfs("/new/point", 0))
	must(t, v.Namespace().Bind("/run/secrets", r.fs, "/run", false))
	if err := v.WriteFile("/etc/x", nil, 0o644); !isErrno(err, linux.EROFS) {
		t.Error(err)
	}
	for _, name := range []string{"/new/point/x", "/dev/shm/x", "/run/secrets/x", "/dev/null"} {
		if err := v.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func TestTmpfsIsFull(t *testing.T) {
	r := newRig(t)
	v := r.m.NewView(kernel.ViewOptions{Image: r.img})
	must(t, v.Namespace().Tmpfs("/t", 1<<20))
	must(t, v.WriteFile("/t/a", make([]byte, 1000), 0o644))
	f, err := v.Open("/t/b", os.O_WRONLY|os.O_CREATE, 0o644)
	must(t, err)
	if err := f.(kernel.ZeroWriter).WriteZeros(context.Background(), 2<<20); !isErrno(err, linux.ENOSPC) {
		t.Error(err)
	}
	i, _ := v.Stat("/t/b")
	if i.Size() != 1<<20-4096 {
		t.Errorf("%d bytes fitted", i.Size())
	}
	s, err := v.Statfs("/t/b")
	if err != nil || s.Avail != 0 || s.Size != 1<<20 || s.MountPoint != "/t" {
		t.Errorf("%+v %v", s, err)
	}
	must(t, v.Remove("/t/b"))
	if err := v.WriteFile("/t/c", make([]byte, 1<<19), 0o644); err != nil {
		t.Error(err)
	}
}

func TestDevicesAndProc(t *testing.T) {
	r := newRig(t)
	c := r.container(func(o *kernel.ContainerOptions) {
		o.MemoryLimit, o.CPUQuota, o.Sysctls = 100<<20, 50000, map[string]string{"kernel.shm_rmid_forced": "1"}
	})
	out := &output{}
	r.cmds["main"] = func(ctx context.Context, p *kernel.Process) int {
		v := p.View()
		for _, name := range []string{"/dev/stdout", "/proc/self/fd/1", "/proc/1/fd/1", "/dev/fd/1"} {
			f, err := v.Open(name, os.O_WRONLY|os.O_TRUNC|os.O_CREATE, 0o666)
			if err != nil {
				t.Error(name, err)
				continue
			}
			_, _ = f.Write(ctx, []byte(name+"\n"))
			_ = f.Close()
		}
		for name, want := range map[string]string{
			"/proc/self/comm":                             "main\n",
			"/proc/1/cmdline":                             "main\x00arg\x00",
			"/proc/sys/kernel/hostname":                   "pod\n",
			"/proc/sys/kernel/shm_rmid_forced":            "1\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "104857600\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "50000\n",
			"/dev/null":                                   "",
		} {
			if got := content(v, name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
		if l, _ := v.Readlink("/proc/self"); l != "1" {
			t.Error(l)
		}
		if got := list(t, v, "/proc/self/fd"); got != "0 1" {
			t.Error(got)
		}
		if got := list(t, v, "/sys/fs/cgroup"); got != "cpu cpu,cpuacct cpuacct cpuset memory pids" {
			t.Error(got)
		}
		if got := list(t, v, "/dev"); got != "core fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero" {
			t.Error(got)
		}
		z, err := v.Open("/dev/zero", os.O_RDONLY, 0)
		if err != nil || !kernel.ReadsZeros(z) {
			t.Error(err)
		}
		full, _ := v.Open("/dev/full", os.O_WRONLY, 0)
		if _, err := full.Write(ctx, []byte("x")); !isErrno(err, linux.ENOSPC) {
			t.Error(err)
		}
		if err := v.WriteFile("/proc/new", nil, 0o644); err == nil {
			t.Error("a file in /proc")
		}
		if err := v.WriteFile("/sys/fs/cgroup/memory/memory.limit_in_bytes", nil, 0o644); !isErrno(err, linux.EROFS) {
			t.Error(err)
		}
		i, err := v.Stat("/dev/null")
		if err != nil || i.Mode() != fs.ModeDevice|fs.ModeCharDevice|0o666 {
			t.Error(i, err)
		}
		for _, name := range []string{"meminfo", "cpuinfo", "uptime", "loadavg", "stat", "mounts", "self/status", "self/stat", "self/cgroup", "self/mountinfo", "net/tcp", "net/dev", "version"} {
			if got := content(v, "/proc/"+name); len(got) < 10 {
				t.Errorf("%s: %q", name, got)
			}
		}
		return 0
	}
	s := argv("main", "arg")
	s.FDs = []kernel.File{r.m.Null(), out}
	_, e := r.start(c, s)
	r.run(time.Second)
	if *e == nil || string(out.b) != "/dev/stdout\n/proc/self/fd/1\n/proc/1/fd/1\n/dev/fd/1\n" {
		t.Errorf("%v %q", *e, out.b)
	}
}

func TestOpenFiles(t *testing.T) {
	r := newRig(t)
	e := r.as(kernel.Cred{}, r.container(nil), func(ctx context.Context, p *kernel.Process) int {
		v := p.View()
		must(t, p.Chdir("/tmp"))
		f, err := v.Open("x", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
		must(t, err)
		g := f.Dup()
		_, _ = f.Write(ctx, []byte("one "))
		_, _ = g.Write(ctx, []byte("two"))
		_, _ = f.(kernel.Seeker).Seek(1, io.SeekStart)
		b := make([]byte, 3)
		_, _ = g.Read(ctx, b)
		if content(v, "/tmp/x") != "one two" || string(b) != "ne " {
			t.Errorf("%q %q", content(v, "x"), b)
		}
		a, err := v.Open("x", os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, _ = a.Write(ctx, []byte("!"))
		if _, err := a.Read(ctx, b); !isErrno(err, linux.EBADF) {
			t.Error(err)
		}
		must(t, v.Remove("x"))
		_, _ = a.Write(ctx, []byte("?")) // still open
		_, _ = f.(kernel.Seeker).Seek(0, io.SeekStart)
		if got, err := readAll(ctx, f); got != "one two!?" {
			t.Error(got, err)
		}
		// A gigabyte of zeros takes no room.
		z, _ := v.Open("zeros", os.O_WRONLY|os.O_CREATE, 0o644)
		must(t, z.(kernel.ZeroWriter).WriteZeros(ctx, 1<<30))
		i, _ := v.Stat("zeros")
		if i.Size() != 1<<30 || i.Sys().(*memfs.Sys).Blocks != 1<<21 {
			t.Error(i.Size(), i.Sys())
		}
		if bytes, _ := v.Namespace().LayerUsage(); bytes < 1<<30 {
			t.Error("it does not count as used")
		}
		for i, k := range []struct {
			err  error
			want linux.Errno
		}{
			{v.Mkdir("d", 0o755), 0},
			{v.Mkdir("d", 0o755), linux.EEXIST},
			{v.Mkdir("d/", 0o755), linux.EEXIST},
			{v.Mkdir("e/", 0o755), 0},
			{v.WriteFile("d/f", nil, 0o644), 0},
			{v.Rename("e", "d"), linux.ENOTEMPTY},
			{v.Rename("d", "e"), 0},
			{v.Rename("e", "e/g"), linux.EINVAL},
			{v.Rename("e/f", "e"), linux.ENOTEMPTY},
			{v.Remove("e"), linux.ENOTEMPTY},
			{v.Link("e/f", "hard"), 0},
			{v.Link("e", "hard2"), linux.EPERM},
			{v.Truncate("hard", 10), 0},
			{v.WriteFile("e", nil, 0o644), linux.EISDIR},
			{v.RemoveAll("e"), 0},
			{v.RemoveAll("e"), 0},
			{v.Chtimes("hard", time.Unix(5, 0)), 0},
		} {
			if !isErrno(k.err, k.want) {
				t.Errorf("%d: %v, want %v", i, k.err, k.want)
			}
		}
		return 0
	})
	if e.Code != 0 {
		t.Error(e)
	}
}
