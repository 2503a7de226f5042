//go:build linux

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
)

// rig is a runtime on virtual time with the machine's files.
type rig struct {
	testing.TB
	l    *loop.Loop
	c    *fakecri.Client
	ctx  context.Context
	dir  string // on the machine
	logs *logFiles
	n    uint32
}

// onMachine runs body as a client of a runtime that mounts real files.
func onMachine(t *testing.T, opts fakecri.Options, body func(r *rig)) {
	t.Helper()
	r := &rig{TB: t, dir: t.TempDir(), logs: newLogFiles()}
	if real, err := filepath.EvalSymlinks(r.dir); err == nil {
		r.dir = real
	}
	defer r.logs.Close()
	r.l = loop.New(loop.Options{Name: "node", Seed: 1})
	defer r.l.Close()
	opts.Loop = r.l
	opts.Images = append(opts.Images, fakecri.Image{Name: "busybox", Present: true}, fakecri.Image{Name: "app", Present: true})
	newHostFS().apply(&opts)
	r.logs.apply(&opts)
	rt := fakecri.New(opts)
	rt.StartDaemon()
	g := r.l.NewGroup("caller")
	r.c = rt.Client(g)
	done := false
	g.Go("body", func(ctx context.Context) {
		r.ctx = ctx
		body(r)
		done = true
	})
	if err := r.l.RunUntil(r.l.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Fatal("the body did not end within an hour")
	}
}

// ok panics, since a task must not end by t.FailNow.
func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		panic(err)
	}
}

func (r *rig) file(name, text string) string {
	name = filepath.Join(r.dir, name)
	r.ok(os.MkdirAll(filepath.Dir(name), 0o755))
	r.ok(os.WriteFile(name, []byte(text), 0o644))
	return name
}

func (r *rig) read(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (r *rig) sandbox(change func(*runtimeapi.PodSandboxConfig)) string {
	r.n++
	cfg := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("pod-", r.n), Namespace: "default", Uid: fmt.Sprint("uid-", r.n)},
		LogDirectory: filepath.Join(r.dir, fmt.Sprint("logs-", r.n)),
	}
	if change != nil {
		change(cfg)
	}
	id, err := r.c.RunPodSandbox(r.ctx, cfg, "")
	r.ok(err)
	return id
}

func (r *rig) config(cmd ...string) *runtimeapi.ContainerConfig {
	r.n++
	name := fmt.Sprint("c-", r.n)
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "busybox"},
		Command: cmd, LogPath: name + ".log",
	}
}

func (r *rig) start(sandbox string, cfg *runtimeapi.ContainerConfig) string {
	r.Helper()
	id, err := r.c.CreateContainer(r.ctx, sandbox, cfg, nil)
	r.ok(err)
	r.ok(r.c.StartContainer(r.ctx, id))
	return id
}

// sh runs a script in a container and returns what it wrote, both streams
// together, without the newline at the end.
func (r *rig) sh(id, script string) string {
	r.Helper()
	stdout, stderr, err := r.c.ExecSync(r.ctx, id, []string{"sh", "-c", script}, 0)
	var exit *fakecri.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.ok(err)
	}
	if exit != nil { // only the text holds it
		_, text, _ := strings.Cut(exit.Error(), fmt.Sprintf("exited with %d: ", exit.Code))
		stderr = []byte(text)
	}
	return strings.TrimSuffix(string(stdout)+string(stderr), "\n")
}

func (r *rig) want(id, script, want string) {
	r.Helper()
	if got := r.sh(id, script); got != want {
		r.Errorf("%s:\n got %q\nwant %q", script, got, want)
	}
}

// mounting starts a sleeping container with mounts.
func (r *rig) mounting(mounts ...*runtimeapi.Mount) string {
	r.Helper()
	cfg := r.config("sleep", "10000")
	cfg.Mounts = mounts
	return r.start(r.sandbox(nil), cfg)
}

func TestContainersSeeRealFiles(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		r.file("vol/a", "one\n")
		r.file("vol/sub/b", "two\n")
		r.ok(os.Symlink("sub/b", filepath.Join(r.dir, "vol/link")))
		r.ok(os.Symlink("/etc/passwd", filepath.Join(r.dir, "vol/abs")))
		r.file("outside", "not for containers")
		r.ok(os.Symlink("../outside", filepath.Join(r.dir, "vol/out")))
		r.ok(os.Symlink("vol", filepath.Join(r.dir, "toVol")))
		single := r.file("single", "alone\n")
		id := r.mounting(
			&runtimeapi.Mount{ContainerPath: "/data", HostPath: r.dir + "/vol"},
			&runtimeapi.Mount{ContainerPath: "/ro", HostPath: r.dir + "/vol", Readonly: true},
			&runtimeapi.Mount{ContainerPath: "/linked", HostPath: r.dir + "/toVol"},
			&runtimeapi.Mount{ContainerPath: "/etc/single", HostPath: single},
			&runtimeapi.Mount{ContainerPath: "/made", HostPath: r.dir + "/not/yet/there"},
		)
		for _, tc := range []struct{ script, want string }{
			{"ls /data", "a\nabs\nlink\nout\nsub"},
			{"cat /data/a /data/link /linked/a /etc/single", "one\ntwo\none\nalone"},
			{"head -n1 /data/abs", "root:x:0:0:root:/root:/bin/sh"}, // the container's
			{"cat /data/out", "cat: can't open '/data/out': No such file or directory"},
			{"echo own > /data/out; cat /outside; rm /outside", "own"}, // made where the link leads in the container
			{"cat /data/../data/sub/../a", "one"},
			{"echo new > /data/new; echo more >> /data/new; cat /linked/new", "new\nmore"},
			{"mkdir -p /data/d/e && touch /data/d/e/f && ls /data/d/e", "f"},
			{"touch /ro/x", "touch: /ro/x: Read-only file system"},
			{"echo x > /ro/a", "sh: can't create /ro/a: Read-only file system"},
			{"rm /ro/a", "rm: can't remove '/ro/a': Read-only file system"},
			{"echo changed > /etc/single", ""},
			{"rm /etc/single", "rm: can't remove '/etc/single': Device or resource busy"},
			{"ls /made; echo ok > /made/ok", ""},
			{"mv /data/a /data/z && ln -s z /data/y && cat /data/y", "one"},
			{"ln /data/z /data/hard && stat -c %h /data/z", "2"},
			{"chmod 600 /data/z && stat -c %a /data/z", "600"},
			{"umask 077; echo s > /data/secret; mkdir /data/private; stat -c %a /data/secret /data/private", "600\n700"},
			{"umask 0; echo s > /data/open; stat -c %a /data/open", "666"},
			{"truncate -s 10 /data/z; wc -c < /data/z", "10"},
			{"dd if=/dev/zero of=/data/zeros bs=1M count=3 2>/dev/null; stat -c %s /data/zeros", "3145728"},
			{"printf '#!/bin/sh\\necho script $1\\n' > /data/run; chmod +x /data/run; /data/run 7", "script 7"},
			{"mkfifo /data/p; cat /data/p & echo through > /data/p; wait", "through"},
			{"rm -r /data/d && ls /data/d", "ls: /data/d: No such file or directory"},
			{"touch -d '2020-01-02 03:04:05' /data/z; stat -c %Y /data/z", "1577934245"},
			{"mv /data/z /tmp/z && ls /tmp", "z"}, // to another file system
			{"cp /tmp/z /data/back && ls /data/back", "/data/back"},
			{"grep -c ' /data ' /proc/mounts", "1"},
			{"df /data | tail -n1 | awk '{print $6}'", "/data"},
			{"cat /nothing", "cat: can't open '/nothing': No such file or directory"},
		} {
			r.want(id, tc.script, tc.want)
		}
		for name, want := range map[string]string{
			"outside": "not for containers", "vol/new": "new\nmore\n", "single": "changed\n", "not/yet/there/ok": "ok\n", "vol/secret": "s\n",
		} {
			if got := r.read(name); got != want {
				r.Errorf("on disk %s is %q, want %q", name, got, want)
			}
		}
		if i, err := os.Stat(r.dir + "/vol/private"); err != nil || i.Mode().Perm() != 0o700 {
			r.Errorf("on disk: %v, %v", i, err)
		}
	})
}

// A kubelet's configMap volumes change by a link that is replaced.
func TestContainersSeeChangesOutside(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		r.file("cm/..1/key", "old")
		r.ok(os.Symlink("..1", r.dir+"/cm/..data"))
		r.ok(os.Symlink("..data/key", r.dir+"/cm/key"))
		id := r.mounting(&runtimeapi.Mount{ContainerPath: "/etc/config", HostPath: r.dir + "/cm", Readonly: true})
		r.want(id, "cat /etc/config/key", "old")
		r.file("cm/..2/key", "new")
		r.ok(os.Symlink("..2", r.dir+"/cm/..data_tmp"))
		r.ok(os.Rename(r.dir+"/cm/..data_tmp", r.dir+"/cm/..data"))
		r.want(id, "cat /etc/config/key", "new")
		r.ok(os.RemoveAll(r.dir + "/cm"))
		r.want(id, "cat /etc/config/key", "cat: can't open '/etc/config/key': No such file or directory")
	})
}

// Processes have the rights of their users, whatever this program may.
func TestUsersOfRealFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: files are given to other users")
	}
	onMachine(t, fakecri.Options{}, func(r *rig) {
		secret := r.file("vol/secret", "x\n")
		r.ok(os.Chmod(secret, 0o600))
		r.ok(os.Chmod(r.dir+"/vol", 0o777))
		r.file("vol/theirs", "y\n")
		r.ok(os.Chown(r.dir+"/vol/theirs", 0, 2000))
		r.ok(os.Chmod(r.dir+"/vol/theirs", 0o660))
		cfg := r.config("sleep", "10000")
		cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: r.dir + "/vol"}}
		cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			RunAsUser: &runtimeapi.Int64Value{Value: 1000}, SupplementalGroups: []int64{2000},
		}}
		id := r.start(r.sandbox(nil), cfg)
		r.want(id, "cat /data/secret", "cat: can't open '/data/secret': Permission denied")
		r.want(id, "cat /data/theirs; echo z >> /data/theirs; cat /data/theirs", "y\ny\nz")
		r.want(id, "touch /data/mine && stat -c %u /data/mine", "1000")
		r.want(id, "chmod 777 /data/secret", "chmod: /data/secret: Operation not permitted")
		var st syscall.Stat_t
		r.ok(syscall.Stat(r.dir+"/vol/mine", &st))
		if st.Uid != 1000 {
			r.Errorf("the file belongs to %d", st.Uid)
		}
	})
}

func TestTerminationMessageOnDisk(t *testing.T) {
	stated := fakecri.Program{Match: fakecri.Match{Image: "app"}, Behaviour: fakecri.Behaviour{
		RunFor: fakecri.Exactly(time.Second), TerminationMessage: "stated",
	}}
	for _, tc := range []struct {
		image string
		cmd   []string
		want  string
	}{
		{"busybox", []string{"sh", "-c", "echo goodbye > /dev/termination-log; exit 3"}, "goodbye\n"},
		{"app", nil, "stated"},
	} {
		onMachine(t, fakecri.Options{Programs: []fakecri.Program{stated}}, func(r *rig) {
			file := r.file("message", "")
			cfg := r.config(tc.cmd...)
			cfg.Image.Image = tc.image
			cfg.Annotations = map[string]string{"io.kubernetes.container.terminationMessagePath": "/dev/termination-log"}
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/dev/termination-log", HostPath: file}}
			r.start(r.sandbox(nil), cfg)
			r.ok(r.l.Sleep(r.ctx, 2*time.Second))
			if got := r.read("message"); got != tc.want {
				r.Errorf("message of %s: %q, want %q", tc.image, got, tc.want)
			}
		})
	}
}

// Host paths that are not as they should be.
func TestOddHostPaths(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		r.file("file", "x")
		r.ok(os.Symlink("nowhere", r.dir+"/dangling"))
		r.ok(os.Symlink("loop", r.dir+"/loop"))
		for _, tc := range []struct{ host, container, create, start string }{
			{"", "/data", "neither a host path nor an image", ""},
			{r.dir + "/file/below", "/data", "not a directory", ""},
			{r.dir + "/loop", "/data", "loop", ""},
			{r.dir + "/dangling", "/data", "failed to mkdir", ""},
			{r.dir + "/nul\x00", "/data", "invalid argument", ""},
			{r.dir + "/file", "/etc", "", "not a directory"},
			{r.dir, "/etc/passwd", "", "not a directory"},
			{strings.TrimPrefix(r.dir, "/") + "/./x/../file", "data/../etc/x", "", ""},
			{r.dir + "/new", "/a/b/c", "", ""},
		} {
			cfg := r.config("sleep", "1")
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: tc.container, HostPath: tc.host}}
			id, err := r.c.CreateContainer(r.ctx, r.sandbox(nil), cfg, nil)
			if !saysSo(err, tc.create) {
				r.Errorf("create with %q: %v, want %q", tc.host, err, tc.create)
			}
			if err != nil {
				continue
			}
			if err := r.c.StartContainer(r.ctx, id); !saysSo(err, tc.start) {
				r.Errorf("start with %q at %q: %v, want %q", tc.host, tc.container, err, tc.start)
			}
		}
		if i, err := os.Stat(r.dir + "/new"); err != nil || !i.IsDir() {
			r.Errorf("the missing directory: %v, %v", i, err)
		}
	})
}

// saysSo reports whether an error is one that holds a text, or none if that is
// empty.
func saysSo(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}

func TestDevicesOfTheMachine(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("needs /dev/zero on the machine:", err)
	}
	onMachine(t, fakecri.Options{}, func(r *rig) {
		cfg := r.config("sleep", "10000")
		cfg.Devices = []*runtimeapi.Device{{HostPath: "/dev/zero", ContainerPath: "/dev/nought", Permissions: "rwm"}}
		cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/host/dev", HostPath: "/dev"}}
		id := r.start(r.sandbox(nil), cfg)
		r.want(id, "test -c /dev/nought && head -c 3 /dev/nought | od -An -tx1", " 00 00 00")
		r.want(id, "echo x > /host/dev/null; cat /host/dev/null; head -c 2 /host/dev/zero | wc -c", "2")
		cfg = r.config("sleep", "10000")
		cfg.Devices = []*runtimeapi.Device{{HostPath: "/dev/no-such-device", ContainerPath: "/dev/x"}}
		if _, err := r.c.CreateContainer(r.ctx, r.sandbox(nil), cfg, nil); !saysSo(err, "/dev/no-such-device: no such file or directory") {
			r.Errorf("a missing device: %v", err)
		}
	})
}

// Files that are masked or read-only beside and below real mounts.
func TestMountsOverRealFiles(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		r.file("vol/a", "one\n")
		r.file("vol/sub/b", "two\n")
		cfg := r.config("sleep", "10000")
		cfg.Mounts = []*runtimeapi.Mount{
			{ContainerPath: "/data", HostPath: r.dir + "/vol"},
			{ContainerPath: "/data/other", HostPath: r.dir + "/other"},
		}
		cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			ReadonlyRootfs: true, MaskedPaths: []string{"/data/a"}, ReadonlyPaths: []string{"/data/sub"},
		}}
		id := r.start(r.sandbox(nil), cfg)
		r.want(id, "cat /data/a; cat /data/sub/b; touch /data/sub/c", "two\ntouch: /data/sub/c: Read-only file system")
		r.want(id, "echo x > /data/new && echo y > /data/other/new && ls /data", "a\nnew\nother\nsub")
		r.want(id, "mv /data/new /data/other/moved && cat /data/other/moved", "x")
		if got := r.read("other/moved"); got != "x\n" {
			r.Errorf("on disk: %q", got)
		}
	})
}

// Nothing that a container holds open stays open after it.
func TestRealFilesAreClosed(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		before := openFiles()
		if before < 0 {
			r.Log("this machine has no /proc/self/fd")
			return
		}
		for i := range 5 {
			cfg := r.config("sh", "-c", "exec 5>/data/x 6</data/x; sleep 5 & sleep 100 < /data/x")
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: r.dir + "/vol"}}
			id := r.start(r.sandbox(nil), cfg)
			r.ok(r.l.Sleep(r.ctx, 2*time.Second))
			if i == 0 && openFiles() <= before {
				r.Errorf("nothing is open while it runs")
			}
			r.ok(r.c.StopContainer(r.ctx, id, 0))
		}
		if n := openFiles(); n > before {
			r.Errorf("%d files are open, were %d", n, before)
		}
	})
}

func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}

// What a container sees of the machine whose namespaces it shares.
func TestNamespacesOfTheMachine(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	port := fmt.Sprint(lis.Addr().(*net.TCPAddr).Port)
	if table, err := os.ReadFile("/proc/net/tcp"); err != nil || !strings.Contains(string(table), fmt.Sprintf(":%04X ", lis.Addr().(*net.TCPAddr).Port)) {
		t.Skip("/proc/net/tcp of this machine does not show listeners:", err)
	}
	for _, tc := range []struct {
		mode runtimeapi.NamespaceMode
		want string
	}{{runtimeapi.NamespaceMode_NODE, "1"}, {runtimeapi.NamespaceMode_POD, "0"}} {
		onMachine(t, fakecri.Options{}, func(r *rig) {
			id := r.start(r.sandbox(func(p *runtimeapi.PodSandboxConfig) {
				p.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
					NamespaceOptions: &runtimeapi.NamespaceOption{Network: tc.mode, Ipc: tc.mode},
				}}
			}), r.config("sleep", "10000"))
			r.want(id, "netstat -ln | grep -c ':"+port+" '; true", tc.want)
			r.want(id, "ipcs -m | head -n3 | tail -n1 | cut -c-20", "key        shmid    ")
			own, err := os.ReadFile("/proc/self/uid_map")
			r.ok(err)
			r.want(id, "cat /proc/self/uid_map", strings.TrimSuffix(string(own), "\n"))
		})
	}
}

// Profiles from the machine deny the system calls that commands make.
func TestSeccompProfiles(t *testing.T) {
	for _, tc := range []struct{ profile, script, want string }{
		{`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["chmod","fchmodat"],"action":"SCMP_ACT_ERRNO"}]}`, "chmod 400 /", "chmod: /: Operation not permitted"},
		{`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["chmod"],"action":"SCMP_ACT_ERRNO"}]}`, "mkdir /x; hostname a; hostname", "a"},
		{`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["sethostname"],"action":"SCMP_ACT_ERRNO"}]}`, "hostname a", "hostname: sethostname: Operation not permitted"},
		{`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["unlink"],"action":"SCMP_ACT_ALLOW"}]}`, "touch /x; rm /x; mkdir /y", "mkdir: can't create directory '/y': Operation not permitted"},
		{`{"defaultAction":"SCMP_ACT_ALLOW"}`, "grep Seccomp: /proc/self/status", "Seccomp:\t2"},
	} {
		onMachine(t, fakecri.Options{}, func(r *rig) {
			cfg := r.config("sleep", "10000")
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"SYS_ADMIN"}},
				Seccomp:      &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: r.file("profile.json", tc.profile)},
			}}
			r.want(r.start(r.sandbox(nil), cfg), tc.script, tc.want)
			r.file("profile.json", "{not JSON")
			if _, err := r.c.CreateContainer(r.ctx, r.sandbox(nil), cfg, nil); !saysSo(err, "cannot load seccomp profile") {
				r.Errorf("a bad profile: %v", err)
			}
		})
	}
}

// What is written to a real tmpfs takes memory of the container.
func TestRealTmpfsTakesMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "drydock")
	if err != nil {
		t.Skip("needs a tmpfs at /dev/shm:", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.TMPFS_MAGIC || int64(st.Bavail)*st.Bsize < 32<<20 {
		t.Skip("needs a tmpfs with 32 MiB at /dev/shm:", err)
	}
	for _, tc := range []struct {
		host string
		code int32
	}{{dir, 137}, {t.TempDir(), 0}} {
		onMachine(t, fakecri.Options{}, func(r *rig) {
			cfg := r.config("sh", "-c", "dd if=/dev/zero of=/cache/x bs=1M count=20")
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/cache", HostPath: tc.host}}
			cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 16 << 20}}
			if code := r.exit(r.start(r.sandbox(nil), cfg)); code != tc.code {
				r.Errorf("on %s it ends with %d, want %d", tc.host, code, tc.code)
			}
		})
	}
}
