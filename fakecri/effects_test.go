package fakecri

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

type (
	podC      = runtimeapi.PodSandboxConfig
	containC  = runtimeapi.ContainerConfig
	security  = runtimeapi.LinuxContainerSecurityContext
	namespace = runtimeapi.NamespaceOption
)

func int64Value(n int64) *runtimeapi.Int64Value { return &runtimeapi.Int64Value{Value: n} }

// shIn runs a script in a container and returns its output and, after it, what
// an exit code other than 0 has with it.
func (e *env) shIn(id, script string) string {
	e.Helper()
	out, _, err := e.c.ExecSync(e.ctx, id, []string{"/bin/sh", "-c", script}, 0)
	text := string(out)
	var exit *ExitError
	if errors.As(err, &exit) {
		_, stderr, _ := strings.Cut(exit.Error(), "exited with ")
		text += "exit " + stderr
	} else if err != nil {
		e.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// effectImages are what the table below has besides busybox.
var effectImages = []Image{
	busyboxImage, appImage,
	{Name: "tools:1", Present: true, Commands: []string{"sh", "cat", "/opt/tools/run"}, User: "daemon"},
}

// effect is something that a client asks for and a script that shows it.
type effect struct {
	name         string
	pod          func(*podC)
	sc           *security
	c            func(*containC)
	script, want string
}

// effectsOfFiles are about users, names and files.
func effectsOfFiles() []effect {
	groups := func(policy runtimeapi.SupplementalGroupsPolicy) *security {
		return &security{RunAsUsername: "root", SupplementalGroups: []int64{1234}, SupplementalGroupsPolicy: policy}
	}
	return []effect{
		{name: "hostname", pod: func(p *podC) { p.Hostname = "My-Pod" }, script: "hostname; cat /etc/hostname; echo $HOSTNAME", want: "My-Pod\nMy-Pod\nMy-Pod"},
		{name: "hostname of the machine", pod: func(p *podC) {
			p.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &namespace{Network: runtimeapi.NamespaceMode_NODE}}
		}, script: "hostname; cat /proc/sys/kernel/hostname", want: "machine\nmachine"},
		{name: "resolver", pod: func(p *podC) {
			p.DnsConfig = &runtimeapi.DNSConfig{Servers: []string{"10.10.10.10", "10.0.0.1"}, Searches: []string{"google.com"}, Options: []string{"ndots:8"}}
		}, script: "cat /etc/resolv.conf", want: "search google.com\nnameserver 10.10.10.10\nnameserver 10.0.0.1\noptions ndots:8"},
		{name: "user", sc: &security{RunAsUser: int64Value(1001)}, script: "id -u; id -g; id -G", want: "1001\n0\n0"},
		{name: "user and group", sc: &security{RunAsUser: int64Value(1001), RunAsGroup: int64Value(1002)}, script: "echo $(id -u):$(id -g)", want: "1001:1002"},
		{name: "user name", sc: &security{RunAsUsername: "nobody"}, script: "id -nu; id -u", want: "nobody\n65534"},
		{name: "groups of the image and the request", sc: groups(runtimeapi.SupplementalGroupsPolicy_Merge), script: "id -G; grep Groups /proc/self/status", want: "0 10 1234\nGroups:\t0 10 1234 "},
		{name: "groups of the request", sc: groups(runtimeapi.SupplementalGroupsPolicy_Strict), script: "id -G", want: "0 1234"},
		{name: "user of the image", c: func(c *containC) { c.Image.Image = "tools:1" }, script: "cat /proc/self/status | while read k v; do case $k in Uid:) echo $v;; esac; done", want: "1 1 1 1"},
		{name: "read-only root", sc: &security{ReadonlyRootfs: true}, script: "touch test.go", want: "exit 1: touch: test.go: Read-only file system"},
		{name: "writable root", script: "touch test.go && ls /test.go", want: "/test.go"},
		{name: "writable shm and tmp on it", sc: &security{ReadonlyRootfs: true}, script: "echo x > /dev/shm/a && cat /dev/shm/a", want: "x"},
		{name: "masked file", sc: &security{MaskedPaths: []string{"/bin/ls", "/not/there"}}, script: "ls", want: "exit 126: /bin/sh: ls: Permission denied"},
		{name: "masked directory", sc: &security{MaskedPaths: []string{"/etc"}}, script: "ls -A /etc; touch /etc/x", want: "exit 1: touch: /etc/x: Read-only file system"},
		{name: "masked file reads as empty", sc: &security{MaskedPaths: []string{"/etc/passwd"}}, script: "cat /etc/passwd; echo $?", want: "0"},
		{name: "read-only directory", sc: &security{ReadonlyPaths: []string{"/tmp", "/not/there"}}, script: "touch /tmp/test", want: "exit 1: touch: /tmp/test: Read-only file system"},
		{name: "read-only directory, beside it", sc: &security{ReadonlyPaths: []string{"/tmp"}}, script: "touch /var/test; ls /var/test; grep -c '/tmp.*ro,' /proc/mounts", want: "/var/test\n1"},
		{name: "read-only part of proc", sc: &security{ReadonlyPaths: []string{"/proc/self"}}, script: "cat /proc/self/comm", want: "cat"},
		{name: "defaults", sc: &security{MaskedPaths: []string{"/proc/kcore", "/sys/firmware"}, ReadonlyPaths: []string{"/proc/sys"}},
			script: "echo 1 > /proc/sys/kernel/shmmax", want: "exit 1: /bin/sh: can't create /proc/sys/kernel/shmmax: Read-only file system"},
	}
}

// effectsOfKernel are about namespaces, privileges and limits, and image
// volumes.
func effectsOfKernel() []effect {
	return []effect{
		{name: "sysctls", pod: func(p *podC) {
			p.Linux.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1", "fs.mqueue.msg_max": "100"}
		}, script: "cat /proc/sys/kernel/shm_rmid_forced /proc/sys/fs/mqueue/msg_max; ls /proc/sys/fs", want: "1\n100\nfile-max\nmqueue"},
		{name: "no capabilities", sc: &security{Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}}}, script: "grep CapBnd /proc/self/status", want: "CapBnd:\t0000000000000000"},
		{name: "all capabilities", sc: &security{Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"ALL"}}}, script: "grep CapBnd /proc/self/status", want: "CapBnd:\t000001ffffffffff"},
		{name: "no raw sockets", sc: &security{Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"NET_RAW"}}}, script: "ping -c 1 127.0.0.1",
			want: "PING 127.0.0.1 (127.0.0.1): 56 data bytes\nexit 1: ping: permission denied (are you root?)"},
		{name: "seccomp, none", script: "grep Seccomp: /proc/self/status", want: "Seccomp:\t0"},
		{name: "seccomp, unconfined", sc: &security{Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}}, script: "grep Seccomp: /proc/self/status", want: "Seccomp:\t0"},
		{name: "seccomp, default", sc: &security{Seccomp: &runtimeapi.SecurityProfile{}}, script: "grep Seccomp: /proc/1/status", want: "Seccomp:\t2"},
		{name: "no new privileges", sc: &security{NoNewPrivs: true}, script: "grep NoNewPrivs /proc/self/status", want: "NoNewPrivs:\t1"},
		{name: "OOM score", c: func(c *containC) { c.Linux.Resources = &runtimeapi.LinuxContainerResources{OomScoreAdj: 987} }, script: "cat /proc/1/oom_score_adj /proc/self/oom_score_adj", want: "987\n987"},
		{name: "environment", c: func(c *containC) {
			c.Envs = []*runtimeapi.KeyValue{{Key: "A", Value: []byte("$(B) c")}, {Key: "PATH", Value: []byte("/bin")}}
		}, script: "echo $A; echo $PATH; echo $HOME", want: "$(B) c\n/bin\n/root"},
		{name: "working directory", c: func(c *containC) { c.WorkingDir = "/not/yet" }, script: "pwd", want: "/not/yet"},
		{name: "users of the machine", script: "cat /proc/self/uid_map", want: "         0          0 4294967295"},
		{name: "users of its own", pod: func(p *podC) {
			m := []*runtimeapi.IDMapping{{HostId: 65536, ContainerId: 0, Length: 65536}}
			p.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &namespace{UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: m, Gids: m}}}
		}, script: "cat /proc/1/uid_map /proc/self/gid_map", want: "         0      65536      65536\n         0      65536      65536"},
		{name: "own processes", sc: &security{NamespaceOptions: &namespace{Pid: runtimeapi.NamespaceMode_CONTAINER}}, script: "cat /proc/1/comm", want: "sleep"},
		{name: "the pod's processes", sc: &security{NamespaceOptions: &namespace{Pid: runtimeapi.NamespaceMode_POD}}, script: "cat /proc/1/comm", want: "pause"},
		{name: "image volume", c: func(c *containC) {
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/vol", Readonly: true, Image: &runtimeapi.ImageSpec{Image: "tools:1"}}}
		}, script: "ls /vol/opt/tools; test -x /vol/opt/tools/run && touch /vol/x", want: "run\nexit 1: touch: /vol/x: Read-only file system"},
		{name: "part of an image", c: func(c *containC) {
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/vol", Readonly: true, Image: &runtimeapi.ImageSpec{Image: "tools:1"}, ImageSubPath: "opt"}}
		}, script: "ls -R /vol", want: "/vol:\ntools\n\n/vol/tools:\nrun"},
		{name: "part of an image that nobody knows", c: func(c *containC) {
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/vol", Readonly: true, Image: &runtimeapi.ImageSpec{Image: "app:1"}, ImageSubPath: "models"}}
		}, script: "ls -A /vol", want: ""},
	}
}

// What clients ask for shows to the processes of the container, the first as
// well as those that are executed in it.
func TestVisibleEffects(t *testing.T) {
	for _, tc := range append(effectsOfFiles(), effectsOfKernel()...) {
		run(t, Options{Images: effectImages, Hostname: "machine"}, func(e *env) {
			pc := podConfig("web", 0)
			if tc.pod != nil {
				tc.pod(pc)
			}
			sb, err := e.c.RunPodSandbox(e.ctx, pc, "")
			e.ok(err)
			cfg := containerConfig("web", "main", 0)
			cfg.Image = &runtimeapi.ImageSpec{Image: "busybox"}
			cfg.Command = []string{"sleep", "10000"}
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: tc.sc}
			if tc.c != nil {
				tc.c(cfg)
			}
			if cfg.Image.Image == "tools:1" {
				cfg.Command, cfg.Stdin = []string{"cat"}, true
			}
			id, err := e.startConfig(sb, cfg)
			e.ok(err)
			if got := e.shIn(id, tc.script); got != tc.want {
				t.Errorf("%s: %s\n got %q\nwant %q", tc.name, tc.script, got, tc.want)
			}
		})
	}
}

// All processes of the machine show with NODE, and another container's with
// TARGET.
func TestSharedProcesses(t *testing.T) {
	run(t, Options{Images: effectImages}, func(e *env) {
		sb := e.sandbox("web", 0)
		first, err := e.startCommand(sb, "web", "first", "busybox", "sleep", "11111")
		e.ok(err)
		start := func(name string, o *namespace) string {
			cfg := containerConfig("web", name, 0)
			cfg.Image = &runtimeapi.ImageSpec{Image: "busybox"}
			cfg.Command = []string{"sleep", "22222"}
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &security{NamespaceOptions: o}}
			id, err := e.startConfig(sb, cfg)
			e.ok(err)
			return id
		}
		const count = "ps | grep -c '[1]1111'"
		if got := e.shIn(start("node", &namespace{Pid: runtimeapi.NamespaceMode_NODE}), count); got != "1" {
			t.Errorf("NODE shows %q", got)
		}
		if got := e.shIn(start("target", &namespace{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: first}), count+"; cat /proc/1/cmdline | tr '\\0' ' '"); got != "1\nsleep 11111 " {
			t.Errorf("TARGET shows %q", got)
		}
		if got := e.shIn(start("own", &namespace{Pid: runtimeapi.NamespaceMode_CONTAINER}), count); got != "0\nexit 1:" && !strings.HasPrefix(got, "0") {
			t.Errorf("CONTAINER shows %q", got)
		}
	})
}

func TestMemoryLimitKills(t *testing.T) {
	run(t, Options{Images: effectImages}, func(e *env) {
		cfg := containerConfig("web", "main", 0)
		cfg.Image = &runtimeapi.ImageSpec{Image: "busybox"}
		cfg.Command = []string{"sh", "-c", "dd if=/dev/zero of=/dev/null bs=20M"}
		cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{
			MemoryLimitInBytes: 15 << 20, MemorySwapLimitInBytes: 15 << 20,
		}}
		id, err := e.startConfig(e.sandbox("web", 0), cfg)
		e.ok(err)
		e.sleep(5 * time.Second)
		e.exited(id, 137, records.OomReason)
	})
}

// TestPodMemoryLimitChanges: what a process takes later is held against the limit that the pod's
// cgroup has by then.
func TestPodMemoryLimitChanges(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		name string
		set  int64
		ends bool
	}{
		{"kept", 30 * mib, true},
		{"raised", 50 * mib, false},
		{"lowered below what is taken", 10 * mib, true},
	} {
		run(t, Options{Images: []Image{{Name: "drydock-actor:1", Present: true}}}, func(e *env) {
			pod := podConfig("web", 0)
			pod.Linux = &runtimeapi.LinuxPodSandboxConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 30 * mib}}
			sb, err := e.c.RunPodSandbox(e.ctx, pod, "")
			e.ok(err)
			id, err := e.startCommand(sb, "web", "main", "drydock-actor:1", "/actor", "run", "--memory=20Mi")
			e.ok(err)
			e.sleep(time.Second)
			_, err = e.c.UpdatePodSandboxResources(e.ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: sb, Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: tc.set}})
			e.ok(err)
			other, err := e.startCommand(sb, "web", "other", "drydock-actor:1", "/actor", "run", "--memory=25Mi", "--memory-after=1s")
			e.ok(err)
			e.sleep(5 * time.Second)
			ended := 0
			for _, id := range []string{id, other} {
				if st := e.status(id); st.State == records.StateExited && st.Reason == records.OomReason {
					ended++
				}
			}
			if ended > 0 != tc.ends {
				t.Errorf("%s: %d of two containers were killed", tc.name, ended)
			}
		})
	}
}

func TestImageVolumesRefused(t *testing.T) {
	image := func(name string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: name} }
	for _, tc := range []struct {
		mount *runtimeapi.Mount
		code  codes.Code
	}{
		{&runtimeapi.Mount{Image: image("tools:1"), Readonly: true}, codes.OK},
		{&runtimeapi.Mount{Image: image("tools:1")}, codes.InvalidArgument},
		{&runtimeapi.Mount{Image: image(""), Readonly: true}, codes.InvalidArgument},
		{&runtimeapi.Mount{Image: image("tools:1"), Readonly: true, HostPath: "/x"}, codes.InvalidArgument},
		{&runtimeapi.Mount{Image: image("tools:1"), Readonly: true, ImageSubPath: "no/such"}, codes.InvalidArgument},
		{&runtimeapi.Mount{Image: image("missing:1"), Readonly: true}, codes.NotFound},
	} {
		run(t, Options{Images: effectImages}, func(e *env) {
			tc.mount.ContainerPath = "/vol"
			cfg := containerConfig("web", "main", 0)
			cfg.Mounts = []*runtimeapi.Mount{tc.mount}
			_, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
			e.code(err, tc.code)
		})
	}
}

// What a public suite looks for of an image's server.
func TestServersAreProcesses(t *testing.T) {
	run(t, Options{Images: []Image{busyboxImage, {Name: "nginx:1", Present: true}}, Interpret: true}, func(e *env) {
		sb := e.sandbox("web", 0)
		start := func(name, image string, mode runtimeapi.NamespaceMode, cmd ...string) string {
			cfg := containerConfig("web", name, 0)
			cfg.Image, cfg.Command = &runtimeapi.ImageSpec{Image: image}, cmd
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &security{NamespaceOptions: &namespace{Pid: mode}}}
			id, err := e.startConfig(sb, cfg)
			e.ok(err)
			return id
		}
		own := start("own", "nginx:1", runtimeapi.NamespaceMode_CONTAINER)
		if got := e.shIn(own, "cat /proc/1/cmdline | tr '\\0' '\\n'; cat /var/run/nginx.pid"); got != "nginx: master process nginx -g daemon off;\n1" {
			t.Errorf("alone it is %q", got)
		}
		shared := start("shared", "nginx:1", runtimeapi.NamespaceMode_POD)
		if got := e.shIn(shared, "cat /proc/1/comm"); got != "pause" {
			t.Errorf("in the pod's namespace process 1 is %q", got)
		}
		node := start("node", "nginx:1", runtimeapi.NamespaceMode_NODE)
		pid := e.shIn(node, "cat /var/run/nginx.pid")
		looks := start("looks", "busybox", runtimeapi.NamespaceMode_NODE, "sleep", "10000")
		if got := e.shIn(looks, "pidof nginx"); !slices.Contains(strings.Fields(got), pid) {
			t.Errorf("on the node nginx is %q, want %s among them", got, pid)
		}
	})
}

func TestLinksNeedCapability(t *testing.T) {
	for _, tc := range []struct {
		sc   *security
		want string
	}{
		{nil, "brctl: bridge foobar: Operation not permitted 1\nip: RTNETLINK answers: Operation not permitted 2\nhostname: sethostname: Operation not permitted 1"},
		{&security{Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN", "SYS_ADMIN"}}}, "0\n0\n0"},
		{&security{Privileged: true}, "0\n0\n0"},
	} {
		run(t, Options{Images: effectImages}, func(e *env) {
			cfg := containerConfig("web", "main", 0)
			cfg.Image, cfg.Command = &runtimeapi.ImageSpec{Image: "busybox"}, []string{"sleep", "10000"}
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: tc.sc}
			pc := podConfig("web", 0)
			pc.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{Privileged: tc.sc != nil && tc.sc.Privileged}
			sb, err := e.c.RunPodSandbox(e.ctx, pc, "")
			e.ok(err)
			id, err := e.startConfig(sb, cfg)
			e.ok(err)
			const script = `for c in "brctl addbr foobar" "ip link add dummy0 type dummy" "hostname NewName"; do x=$($c 2>&1); c=$?; echo ${x:+$x }$c; done`
			if got := e.shIn(id, script); got != tc.want {
				t.Errorf("%v: %q, want %q", tc.sc, got, tc.want)
			}
			if got := e.shIn(id, "hostname"); tc.sc != nil && got != "NewName" {
				t.Errorf("the host name is %q", got)
			}
		})
	}
}
