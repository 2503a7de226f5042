package fakecri

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/memfs"
)

var busyboxImage = Image{Name: "busybox", Present: true}

// fileLogs keeps log files in memory.
type fileLogs struct{ files map[string]string }

func (s *fileLogs) OpenLog(path string) { s.WriteLog(path, nil) }
func (s *fileLogs) WriteLog(path string, line []byte) {
	if s.files == nil {
		s.files = map[string]string{}
	}
	s.files[path] += string(line)
}

// lines are a file's lines without their times.
func (s *fileLogs) lines(path string) (out []string) {
	for _, l := range strings.Split(strings.TrimSuffix(s.files[path], "\n"), "\n") {
		_, rest, _ := strings.Cut(l, " ")
		out = append(out, rest)
	}
	return out
}

// startCommand starts a container of an image with a command.
func (e *env) startCommand(sb, pod, name, image string, cmd ...string) (string, error) {
	e.Helper()
	cfg := containerConfig(pod, name, 0)
	cfg.Image = &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image}
	cfg.Command = cmd
	return e.startConfig(sb, cfg)
}

func (e *env) startConfig(sb string, cfg *runtimeapi.ContainerConfig) (string, error) {
	e.Helper()
	id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
	e.ok(err)
	return id, e.c.StartContainer(e.ctx, id)
}

// How interpreted containers end: by themselves within 5 s, or else by a stop
// with a timeout of 2 s.
func TestInterpretedEnds(t *testing.T) {
	for i, tc := range []struct {
		image  string
		cmd    []string
		limit  int64
		code   int32
		reason string
	}{
		{"busybox", []string{"sh", "-c", "exit 7"}, 0, 7, "Error"},
		{"busybox", []string{"true"}, 0, 0, "Completed"},
		{"busybox", []string{"/bin/sh", "-c", "sleep 1"}, 0, 0, "Completed"},
		{"busybox", []string{"sh", "-c", "trap 'exit 4' TERM; while true; do sleep 0.2; done"}, 0, 4, "Error"},
		{"busybox", []string{"sleep", "100"}, 0, 137, "Error"}, // pid 1 has no default action
		{"busybox", []string{"sh", "-c", "sleep 100 & wait"}, 0, 137, "Error"},
		{"busybox", []string{"sh", "-c", "sleep 100 & exit 5"}, 0, 5, "Error"},
		{"busybox", []string{"sh", "-c", "no-such-thing"}, 0, 127, "Error"},
		{"app:1", []string{"sh", "-c", "exit 3"}, 0, 3, "Error"},
		{"app:1", []string{"sleep", "1"}, 0, 0, "Completed"},
		{"app:1", []string{"server", "--port", "80"}, 0, 0, "Completed"},
		{"app:1", nil, 0, 0, "Completed"},
		{"nginx", nil, 0, 0, "Completed"},
		{"nginx", []string{"sh", "-c", "exit 6"}, 0, 6, "Error"},
		{"registry.k8s.io/pause:3.10", nil, 0, 0, "Completed"},
		{"busybox", []string{"sh", "-c", "dd if=/dev/zero of=/dev/null bs=200M count=5; exit 0"}, 50 << 20, 0, "OOMKilled"},
		{"busybox", []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=5"}, 50 << 20, 137, "OOMKilled"},
		{"busybox", []string{"tail", "/dev/zero"}, 50 << 20, 137, "OOMKilled"},
		{"busybox", []string{"sh", "-c", "tail -n 1 /dev/zero; exit 3"}, 50 << 20, 3, "OOMKilled"},
		{"busybox", []string{"sh", "-c", "sort /dev/zero; exit 3"}, 50 << 20, 3, "OOMKilled"},
		{"busybox", []string{"sh", "-c", "grep x /dev/zero; exit 3"}, 50 << 20, 3, "OOMKilled"},
		{"busybox", []string{"sh", "-c", "awk 'BEGIN { x = \"aaaaaaaa\"; while (1) x = x x }'; exit 3"}, 50 << 20, 3, "OOMKilled"},
		{"busybox", []string{"sh", "-c", "x=aaaaaaaa; while true; do x=$x$x; done"}, 50 << 20, 137, "OOMKilled"},
		{"busybox", []string{"sh", "-c", "x=$(head -c 20000000 /dev/zero); exit ${#x}"}, 50 << 20, 0, "Completed"},
	} {
		images := []Image{busyboxImage, appImage, {Name: "nginx", Present: true}, {Name: "registry.k8s.io/pause:3.10", Present: true}}
		run(t, Options{Images: images}, func(e *env) {
			cfg := containerConfig("web", "main", 0)
			cfg.Image = &runtimeapi.ImageSpec{Image: tc.image, UserSpecifiedImage: tc.image}
			cfg.Command = tc.cmd
			cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: tc.limit}}
			id, err := e.startConfig(e.sandbox("web", 0), cfg)
			e.ok(err)
			e.sleep(5 * time.Second)
			e.ok(e.c.StopContainer(e.ctx, id, 2))
			if st := e.status(id); st.ExitCode != tc.code || st.Reason != tc.reason {
				t.Errorf("%d: %s %q: %d %s, want %d %s", i, tc.image, tc.cmd, st.ExitCode, st.Reason, tc.code, tc.reason)
			}
		})
	}
}

// What can't be started, in the words of containerd and runc.
func TestInterpretedStartErrors(t *testing.T) {
	images := []Image{busyboxImage, {Name: "tools:1", Present: true, Commands: []string{"sh", "/opt/tool"}}, {Name: "pause", Present: true}}
	for _, tc := range []struct {
		image string
		cmd   []string
		want  string
	}{
		{"busybox", []string{"/no/such"}, `exec: "/no/such": stat /no/such: no such file or directory`},
		{"busybox", []string{"frobnicate"}, `exec: "frobnicate": executable file not found in $PATH`},
		{"busybox", []string{"/etc"}, `exec: "/etc": permission denied`},
		{"busybox", []string{"/etc/passwd"}, `exec: "/etc/passwd": permission denied`},
		{"tools:1", []string{"sleep", "1"}, `exec: "sleep": executable file not found in $PATH`},
		{"tools:1", []string{"/opt/tool"}, ""},
		{"pause", []string{"sh"}, `exec: "sh": executable file not found in $PATH`},
	} {
		run(t, Options{Images: images}, func(e *env) {
			id, err := e.startCommand(e.sandbox("web", 0), "web", "main", tc.image, tc.cmd...)
			if tc.want == "" {
				e.ok(err)
				return
			}
			e.code(err, codes.Unknown)
			want := "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: " + tc.want
			st := e.status(id)
			if got := status.Convert(err).Message(); got != want || st.Message != want || st.Reason != "StartError" || st.ExitCode != 128 || st.State != records.StateExited {
				t.Errorf("%q: %s\nwant %s\nstatus %s %d", tc.cmd, got, want, st.Reason, st.ExitCode)
			}
		})
	}
}

// What a container's processes see of their container.
func TestInterpretedSees(t *testing.T) {
	files := func(e *env) *memfs.FS { return e.rt.files.Memory() }
	for _, tc := range []struct {
		script string
		change func(cfg *runtimeapi.ContainerConfig)
		want   string
	}{
		{script: "hostname; echo $HOSTNAME; pwd; echo $HOME; echo $$", want: "web\nweb\n/\n/root\n1\n"},
		// busybox's test(1) asks neither mounts nor capabilities.
		{script: "test -w /tmp; echo $?; test -w /sys; echo $?; test -x /etc/passwd; echo $?; touch /tmp/x", change: func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{ReadonlyRootfs: true}}
		}, want: "0\n0\n1\ntouch: /tmp/x: Read-only file system\n"},
		{script: "pwd; ls -ld /x/y > /dev/null && echo made", change: func(c *runtimeapi.ContainerConfig) { c.WorkingDir = "/x/y" }, want: "/x/y\nmade\n"},
		{script: "echo $A-$PATH", change: func(c *runtimeapi.ContainerConfig) {
			c.Envs = []*runtimeapi.KeyValue{{Key: "A", Value: []byte("1")}, {Key: "PATH", Value: []byte("/bin")}}
		}, want: "1-/bin\n"},
		{script: "id -u; id -g; id -G; touch /x 2>&1; touch /tmp/x && echo ok", change: func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				RunAsUser: &runtimeapi.Int64Value{Value: 1000}, RunAsGroup: &runtimeapi.Int64Value{Value: 3000}, SupplementalGroups: []int64{2000},
			}}
		}, want: "1000\n3000\n3000 2000\ntouch: /x: Permission denied\nok\n"},
		{script: "touch /x", change: func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{ReadonlyRootfs: true}}
		}, want: "touch: /x: Read-only file system\n"},
		{script: "cat /etc/resolv.conf /etc/hostname", want: "search a b\nnameserver 10.96.0.10\nnameserver 1.1.1.1\noptions ndots:5\nweb\n"},
		{script: "cat /m/f; echo more > /m/g; echo no > /ro/f || true", change: func(c *runtimeapi.ContainerConfig) {
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/m", HostPath: "/host"}, {ContainerPath: "/ro", HostPath: "/host", Readonly: true}}
		}, want: "from the node\nsh: can't create /ro/f: Read-only file system\n"},
	} {
		var logs fileLogs
		run(t, Options{Images: []Image{busyboxImage}, Logs: &logs}, func(e *env) {
			e.ok(files(e).MkdirAll("/host", 0o755))
			e.ok(files(e).WriteFile("/host/f", []byte("from the node\n"), 0o644))
			pod := podConfig("web", 0)
			pod.Hostname = "web"
			pod.DnsConfig = &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10", "1.1.1.1"}, Searches: []string{"a", "b"}, Options: []string{"ndots:5"}}
			sb, err := e.c.RunPodSandbox(e.ctx, pod, "")
			e.ok(err)
			cfg := containerConfig("web", "main", 0)
			cfg.Image = &runtimeapi.ImageSpec{Image: "busybox"}
			cfg.Command = []string{"sh", "-c", tc.script}
			if tc.change != nil {
				tc.change(cfg)
			}
			_, err = e.startConfig(sb, cfg)
			e.ok(err)
			e.sleep(5 * time.Second)
			if strings.Contains(tc.script, "/m/g") {
				if got, err := files(e).ReadFile("/host/g"); string(got) != "more\n" {
					t.Errorf("written to the node: %q, %v", got, err)
				}
			}
		})
		var got strings.Builder
		for _, l := range logs.lines("/var/log/pods/web/main/0.log") {
			f := strings.SplitN(l, " ", 3)
			if len(f) == 3 && f[1] == "F" {
				got.WriteString(f[2] + "\n")
			}
		}
		if got.String() != tc.want {
			t.Errorf("%s:\n%swant\n%s", tc.script, got.String(), tc.want)
		}
	}
}

func TestInterpretedLogs(t *testing.T) {
	var logs fileLogs
	run(t, Options{Images: []Image{busyboxImage}, Logs: &logs}, func(e *env) {
		id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sh", "-c",
			`echo one; echo two >&2; echo -n "thr"; echo ee; dd if=/dev/zero bs=16390 count=1 2>/dev/null; echo; echo -n left`)
		e.ok(err)
		e.sleep(5 * time.Second)
		e.exited(id, 0, "Completed")
	})
	var got []string
	for _, l := range logs.lines("/var/log/pods/web/main/0.log") {
		if len(l) > 100 {
			l = fmt.Sprint(l[:9], len(l)-9)
		}
		got = append(got, l)
	}
	want := []string{"stdout F one", "stderr F two", "stdout F three", "stdout P 16384", "stdout F \x00\x00\x00\x00\x00\x00", "stdout P left"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// How long ExecSync takes where processes outlive the command: containerd reads
// until nobody holds its output.
func TestInterpretedExecDrains(t *testing.T) {
	for _, tc := range []struct {
		script  string
		timeout time.Duration
		takes   time.Duration
		code    codes.Code
	}{
		{"sleep 3", time.Second, time.Second, codes.DeadlineExceeded},
		{"sleep 3; exit 0", time.Second, 3 * time.Second, codes.DeadlineExceeded},
		{"sleep 3 | cat", time.Second, 3 * time.Second, codes.DeadlineExceeded},
		{"sleep 3 >/dev/null 2>&1; exit 0", time.Second, time.Second, codes.DeadlineExceeded},
		{"x=$(sleep 3 2>/dev/null)", time.Second, time.Second, codes.DeadlineExceeded},
		{"while true; do sleep 0.4; done", time.Second, 1200 * time.Millisecond, codes.DeadlineExceeded},
		{"sleep 3 & echo", 0, 3 * time.Second, codes.OK},
		{"sleep 3 & echo", time.Second, 3 * time.Second, codes.OK},
		{"sleep 3 >/dev/null 2>&1 & echo", time.Second, 0, codes.OK},
		{"sleep 100 & echo", time.Second, 10 * time.Second, codes.OK}, // until the container ends
	} {
		run(t, Options{Images: []Image{busyboxImage}}, func(e *env) {
			id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sleep", "10")
			e.ok(err)
			took := e.took(func() { _, _, err = e.c.ExecSync(e.ctx, id, []string{"sh", "-c", tc.script}, tc.timeout) })
			if status.Code(err) != tc.code || took < tc.takes-50*time.Millisecond || took > tc.takes+200*time.Millisecond {
				t.Errorf("%q: %v after %s, want %s after %s", tc.script, err, took, tc.code, tc.takes)
			}
		})
	}
}

func TestInterpretedExec(t *testing.T) {
	run(t, Options{Images: []Image{busyboxImage}}, func(e *env) {
		id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sh", "-c", "echo ok > /tmp/f; sleep 60")
		e.ok(err)
		e.sleep(time.Second)
		out, errOut, err := e.c.ExecSync(e.ctx, id, []string{"sh", "-c", "cat /tmp/f; echo oops >&2"}, 0)
		e.ok(err)
		if string(out) != "ok\n" || string(errOut) != "oops\n" {
			t.Errorf("%q %q", out, errOut)
		}
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"test", "-f", "/none"}, 0)
		if x, ok := err.(interface{ ExitStatus() int }); !ok || x.ExitStatus() != 1 {
			t.Errorf("%v", err)
		}
		before := e.l.Now()
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"sleep", "4321"}, time.Second)
		e.code(err, codes.DeadlineExceeded)
		if took := e.l.Since(before); took < time.Second || took > 1200*time.Millisecond {
			t.Errorf("timed out after %s", took)
		}
		out, _, err = e.c.ExecSync(e.ctx, id, []string{"ps"}, 0)
		e.ok(err)
		if strings.Contains(string(out), "4321") {
			t.Errorf("the command lives on:\n%s", out)
		}
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"frobnicate"}, 0)
		e.code(err, codes.Unknown)
		if m := status.Convert(err).Message(); !strings.HasPrefix(m, "failed to exec in container: failed to start exec ") ||
			!strings.HasSuffix(m, `: OCI runtime exec failed: exec failed: unable to start container process: exec: "frobnicate": executable file not found in $PATH`) {
			t.Error(m)
		}
		if _, _, ok, _ := e.rt.exec.QuickExecSync(id, []string{"true"}, 0); ok {
			t.Error("an interpreted container's command was answered without running it")
		}
		e.l.Root().After(2*time.Second, func() { _ = e.rt.StopContainerOutside("default/web", "main") })
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"sleep", "1000"}, 0)
		if x, ok := err.(interface{ ExitStatus() int }); !ok || x.ExitStatus() != 137 {
			t.Errorf("killed with its container: %v", err)
		}
	})
}

// An exec'd process goes with its caller.
func TestExecCallerDies(t *testing.T) {
	run(t, Options{Images: []Image{busyboxImage}}, func(e *env) {
		id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sleep", "1000")
		e.ok(err)
		g := e.l.NewGroup("other")
		other := e.rt.Client(g)
		g.Go("exec", func(ctx context.Context) { _, _, _ = other.ExecSync(ctx, id, []string{"sleep", "4321"}, 0) })
		e.sleep(time.Second)
		if n := len(e.rt.recs.ContainerFor(id).Process.Interpreted.Kernel.Processes()); n != 2 {
			t.Errorf("%d processes", n)
		}
		g.Kill()
		e.sleep(time.Second)
		if n := len(e.rt.recs.ContainerFor(id).Process.Interpreted.Kernel.Processes()); n != 1 {
			t.Errorf("%d processes after the caller's death", n)
		}
	})
}

func TestInterpretedNetwork(t *testing.T) {
	b := Behaviour{Ports: []Port{{Port: 9000, HTTP: []HTTPAnswer{{Body: "stated"}}}}}
	run(t, Options{Images: []Image{busyboxImage, appImage}, Programs: []Program{{Match: Match{Pod: "api"}, Behaviour: b}}}, func(e *env) {
		api := e.sandbox("api", 0)
		e.start(api, "api", "main", 0)
		st, _ := e.c.PodSandboxStatus(e.ctx, api, false)
		apiIP := st.Status.Network.Ip
		sb := e.sandbox("web", 0)
		id, err := e.startCommand(sb, "web", "main", "busybox", "sh", "-c", "mkdir /www; echo hello > /www/a; sleep 1; httpd -p 80 -h /www; sleep 100")
		e.ok(err)
		st, _ = e.c.PodSandboxStatus(e.ctx, sb, false)
		ip := st.Status.Network.Ip
		if _, _, _, err := e.rt.net.HTTP(e.ctx, id, get(t, "http://"+ip+"/a")); err == nil || err.Error() != "dial tcp "+ip+":80: connect: connection refused" {
			t.Errorf("before: %v", err)
		}
		e.sleep(3 * time.Second)
		code, _, body, err := e.rt.net.HTTP(e.ctx, id, get(t, "http://"+ip+"/a"))
		if code != 200 || string(body) != "hello\n" || err != nil {
			t.Errorf("%d %q %v", code, body, err)
		}
		if code, _, _, err = e.rt.net.HTTP(e.ctx, id, get(t, "http://"+ip+"/b")); code != 404 || err != nil {
			t.Errorf("%d %v", code, err)
		}
		e.ok(e.rt.net.DialTCP(e.ctx, id, ip, 80))
		if _, _, ok, _ := e.rt.net.QuickDialTCP(id, ip, 80); ok {
			t.Error("answered without dialling")
		}
		out, _, err := e.c.ExecSync(e.ctx, id, []string{"wget", "-q", "-O", "-", "http://" + apiIP + ":9000/"}, 0)
		if string(out) != "stated" || err != nil {
			t.Errorf("a stated program says %q, %v", out, err)
		}
		out, _, err = e.c.ExecSync(e.ctx, id, []string{"wget", "-q", "-O", "-", "localhost/a"}, 0)
		if string(out) != "hello\n" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// Containers of a pod that shares its pid namespace see each other, and pause
// is pid 1.
func TestSharedPIDs(t *testing.T) {
	run(t, Options{Images: []Image{busyboxImage}}, func(e *env) {
		sb := e.sandbox("web", 0)
		var ids []string
		for _, name := range []string{"a", "b"} {
			cfg := containerConfig("web", name, 0)
			cfg.Image = &runtimeapi.ImageSpec{Image: "busybox"}
			cfg.Command = []string{"sleep", "100"}
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD},
			}}
			id, err := e.startConfig(sb, cfg)
			e.ok(err)
			ids = append(ids, id)
		}
		out, _, err := e.c.ExecSync(e.ctx, ids[1], []string{"sh", "-c", "ps | grep -c 'sleep 100'; cat /proc/1/cmdline"}, 0)
		e.ok(err)
		if got := string(out); !strings.HasSuffix(strings.TrimRight(got, "\x00"), "/pause") || !strings.HasPrefix(got, "4\n") {
			t.Errorf("%q", got)
		}
		before := e.l.Now()
		e.ok(e.c.StopContainer(e.ctx, ids[0], 10)) // not pid 1: SIGTERM ends it
		e.exited(ids[0], 143, "Error")
		if e.l.Since(before) > time.Second {
			t.Error("it took its grace period")
		}
	})
}

func TestInterpretedStats(t *testing.T) {
	run(t, Options{Images: []Image{busyboxImage}}, func(e *env) {
		id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sh", "-c", "dd if=/dev/zero of=/big bs=1M count=30 2>/dev/null; sleep 100")
		e.ok(err)
		e.sleep(3 * time.Second)
		st, err := e.c.ContainerStats(e.ctx, id)
		e.ok(err)
		if n := st.WritableLayer.UsedBytes.Value; n < 30<<20 || n > 31<<20 {
			t.Errorf("the layer has %d bytes", n)
		}
		if st.Memory.WorkingSetBytes.Value == 0 {
			t.Error("no memory in use")
		}
		info, err := e.c.ImageFsInfo(e.ctx)
		e.ok(err)
		if n := info.ImageFilesystems[0].UsedBytes.Value; n < 80_000_000 {
			t.Errorf("the image file system has %d bytes in use", n)
		}
	})
}

// A power cut and the removal of a sandbox leave nothing behind.
func TestInterpretedGoes(t *testing.T) {
	e := run(t, Options{Images: []Image{busyboxImage}}, func(e *env) {
		sb := e.sandbox("web", 0)
		_, err := e.startCommand(sb, "web", "main", "busybox", "sh", "-c", "while true; do sleep 0.2; done")
		e.ok(err)
		e.sleep(time.Second)
		e.rt.PowerCut()
		e.rt.StartDaemon()
		e.sleep(time.Second)
		e.ok(e.c.RemovePodSandbox(e.ctx, sb))
		sb = e.sandbox("web", 1)
		_, err = e.startCommand(sb, "web", "main", "busybox", "sh", "-c", "while true; do sleep 0.2; done")
		e.ok(err)
		e.sleep(time.Second)
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		e.ok(e.c.RemovePodSandbox(e.ctx, sb))
		if n := len(e.rt.kern.Pods); n != 0 {
			t.Errorf("%d sandboxes' namespaces are left", n)
		}
		if left, _ := e.rt.files.Memory().ReadDir("/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes"); len(left) != 0 {
			t.Errorf("files of %d sandboxes are left", len(left))
		}
	})
	for _, w := range e.l.Waiting() {
		if strings.Contains(w.Group, "web") {
			t.Errorf("%+v is left", w)
		}
	}
}

// A user that the image has not.
func TestUnknownUser(t *testing.T) {
	images := []Image{{Name: "busybox", Present: true, User: "www-data"}, {Name: "app:1", Present: true, User: "nosuch:x"}}
	run(t, Options{Images: images}, func(e *env) {
		sb := e.sandbox("web", 0)
		id, err := e.startCommand(sb, "web", "a", "busybox", "sleep", "100")
		e.ok(err)
		if got := e.rt.recs.ContainerFor(id).Process.Interpreted.Cred.UID; got != 33 {
			t.Errorf("uid %d", got)
		}
		cfg := containerConfig("web", "b", 0)
		cfg.Command = []string{"sleep", "100"}
		_, err = e.c.CreateContainer(e.ctx, sb, cfg, nil)
		if err == nil || !strings.HasSuffix(err.Error(), ": no users found") {
			t.Errorf("%v", err)
		}
		cfg.Command = []string{"server"}
		_, err = e.c.CreateContainer(e.ctx, sb, cfg, nil)
		e.ok(err) // its files are not known
	})
}
