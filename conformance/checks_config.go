//go:build linux

package conformance

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// configChecks are about what a configuration asks for and a container sees. A
// kubelet promises users what it puts into a configuration, and can't look inside
// a container to see whether it is so.
func configChecks() []*check {
	return []*check{
		{name: "cri/config/mounts", level: Required, run: checkMounts,
			expect: "Directories and files of the machine are mounted, writable or read-only as asked, a symbolic link's target for the link; what a container writes is there outside; the status has the mounts as they were given."},
		{name: "cri/config/users", level: Required, run: checkUsers,
			expect: "A process has run_as_user, run_as_group and supplemental_groups, or the user of that name, or the image's."},
		{name: "cri/config/group-without-user", level: Required, run: checkGroupAlone,
			expect: "CreateContainer with run_as_group and neither run_as_user nor run_as_username fails."},
		{name: "cri/config/read-only-root", level: Required, run: checkReadOnlyRoot,
			expect: "With readonly_rootfs a container can write in its mounts only."},
		{name: "cri/config/hostname", level: Required, run: checkHostname,
			expect: "The host name of a sandbox is that of its containers."},
		{name: "cri/config/dns", level: Required, run: checkDNS,
			expect: "The sandbox' dns_config is its containers' /etc/resolv.conf."},
		{name: "cri/config/pod-network", level: Required, run: checkPodNetwork,
			expect: "Containers of a sandbox share its network: what one serves another reaches on 127.0.0.1, also one that is started later."},
		{name: "cri/config/pod-address", level: Required, run: checkPodAddress,
			expect: "What a container serves can be reached on the sandbox' address from the machine."},
		{name: "cri/config/host-network", level: Required, run: checkHostNetwork,
			expect: "With the network namespace NODE what a container serves can be reached on the machine's 127.0.0.1."},
		{name: "cri/config/host-port", level: Optional, run: checkHostPort,
			expect: "A port mapping with a host_port can be reached on the machine's 127.0.0.1."},
		{name: "cri/config/processes", level: Required, run: checkProcesses,
			expect: "With the pid namespace CONTAINER a container sees its own processes only, its main one as 1; with POD those of the sandbox' other containers, too."},
		{name: "cri/config/terminating-message-file", level: Required, run: checkMessageFile,
			expect: "A file of the machine mounted over a path takes what the container writes there at its end."},
		{name: "cri/config/memory-limit", level: Optional, run: checkMemoryLimit,
			expect: "A process that takes more memory than memory_limit_in_bytes is killed: exit code 137, reason OOMKilled."},
		{name: "cri/config/sysctls", level: Optional, run: checkSysctls,
			expect: "The sandbox' sysctls are set in its containers."},
	}
}

// hostFile writes a file on the machine.
func (t *T) hostFile(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
}

// checkMounts mounts files, directories and symbolic links: every volume of a pod
// is one of these.
func checkMounts(ctx context.Context, t *T) {
	dir := t.dir()
	real := filepath.Join(dir, "real")
	if err := os.Mkdir(real, 0o777); err != nil {
		t.Fatalf("%v", err)
	}
	t.hostFile(filepath.Join(real, "file"), "from outside\n")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatalf("%v", err)
	}
	mounts := []*runtimeapi.Mount{
		{HostPath: real, ContainerPath: "/rw"},
		{HostPath: real, ContainerPath: "/ro", Readonly: true},
		{HostPath: link, ContainerPath: "/linked"},
		{HostPath: filepath.Join(real, "file"), ContainerPath: "/one/file", Readonly: true},
	}
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) { c.Mounts = mounts }, "run")
	if out := t.says(ctx, c.id, "cat", "/rw/file", "/ro/file", "/linked/file", "/one/file"); out != strings.TrimSuffix(strings.Repeat("from outside\n", 4), "\n") {
		t.Errorf("the files in the mounts say %q", out)
	}
	t.says(ctx, c.id, "write", "/rw/made", "inside")
	if data, err := os.ReadFile(filepath.Join(real, "made")); err != nil || string(data) != "inside\n" {
		t.Errorf("what the container wrote is %q outside: %v", data, err)
	}
	// A bind of a directory and one of a file can go wrong apart.
	for _, path := range []string{"/ro/x", "/one/file"} {
		if r := t.exec(ctx, c.id, "write", path, "x"); r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "read-only") {
			t.Errorf("writing to %s, which is read-only, exited %d: %s", path, r.ExitCode, r.Stderr)
		}
	}
	s := t.status(ctx, c.id)
	if len(s.Mounts) != len(mounts) {
		t.Errorf("the status has %d mounts, not %d", len(s.Mounts), len(mounts))
		return
	}
	for _, want := range mounts {
		found := false
		for _, m := range s.Mounts {
			// Propagation comes back as it was asked for: kubelets set it for each mount.
			found = found || m.ContainerPath == want.ContainerPath && m.HostPath == want.HostPath && m.Readonly == want.Readonly && m.Propagation == want.Propagation
		}
		if !found {
			t.Errorf("the status does not have the mount %v as it was given, but %v", want, s.Mounts)
		}
	}
}

// checkUsers: runAsUser, runAsGroup and supplemental groups, alone and together,
// over images with users of their own. The image's user counts only if the request names none;
// the group of a bare user is that of the image's /etc/passwd, or 0.
func checkUsers(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	number := func(n int64) *runtimeapi.Int64Value { return &runtimeapi.Int64Value{Value: n} }
	for _, x := range []struct {
		what, image string
		edit        func(s *runtimeapi.LinuxContainerSecurityContext)
		want        string
	}{
		{"nothing", "1", func(*runtimeapi.LinuxContainerSecurityContext) {}, "uid=0 gid=0 groups=0"},
		{"a user and a group", "1", func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.RunAsUser, s.RunAsGroup = number(1234), number(2345)
		}, "uid=1234 gid=2345 groups=2345"},
		{"supplemental groups", "1", func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.RunAsUser, s.RunAsGroup, s.SupplementalGroups = number(1234), number(2345), []int64{3456, 4567}
		}, "uid=1234 gid=2345 groups=2345,3456,4567"},
		{"a user's name", "1", func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.RunAsUsername, s.RunAsGroup = "actor", number(2345)
		}, fmt.Sprintf("uid=%d gid=2345 groups=", actor.ActorUID)},
		{"an image of a user and a group", "user-group", func(*runtimeapi.LinuxContainerSecurityContext) {}, "uid=1000 gid=2000 groups=2000"},
	} {
		_, id := t.im.get(ctx, actor.Repository+":"+x.image)
		_, out := t.ran(ctx, p, func(c *runtimeapi.ContainerConfig) {
			c.Image.Image = id
			x.edit(c.Linux.SecurityContext)
		}, "id")
		// What ends with "=" has groups that differ between runtimes.
		if !strings.HasPrefix(out, x.want) || !strings.HasSuffix(x.want, "=") && out != x.want+"\n" {
			t.Errorf("with %s: the process is %q, not %q", x.what, out, x.want)
		}
	}
}

// checkGroupAlone: the CRI forbids a group without a user, and kubelets count on
// being told.
func checkGroupAlone(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.containerConfig(ctx, "run")
	c.Linux.SecurityContext.RunAsGroup = &runtimeapi.Int64Value{Value: 2345}
	_, err := t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	t.wantError(err, "CreateContainer with run_as_group only")
}

// checkReadOnlyRoot: readOnlyRootFilesystem must not make volumes read-only. The message is
// looked at as well: a write may fail for another reason.
func checkReadOnlyRoot(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.ReadonlyRootfs = true
		c.Mounts = []*runtimeapi.Mount{{HostPath: t.dir(), ContainerPath: "/data"}}
	}, "run")
	t.says(ctx, c.id, "touch", "/data/x")
	if r := t.exec(ctx, c.id, "touch", "/tmp/x"); r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "read-only file system") {
		t.Errorf("writing outside of mounts exited %d: %s", r.ExitCode, r.Stderr)
	}
}

// checkHostname: a pod's name is its host name, which StatefulSets rely on.
func checkHostname(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) { c.Hostname = "calypso" }), nil, "run")
	if out := t.says(ctx, c.id, "hostname"); out != "calypso" {
		t.Errorf("the host name is %q, not calypso", out)
	}
}

// checkDNS: the kubelet makes up resolv.conf by dnsPolicy and hands it over. The runtime writes
// it (cri-api DNSConfig), the kubelet only says what.
func checkDNS(ctx context.Context, t *T) {
	p := t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) {
		c.DnsConfig = &runtimeapi.DNSConfig{Servers: []string{"10.1.2.3"}, Searches: []string{"example.test"}, Options: []string{"ndots:3"}}
	})
	out := t.says(ctx, t.start(ctx, p, nil, "run").id, "cat", "/etc/resolv.conf")
	for _, want := range []string{"nameserver 10.1.2.3", "search example.test", "options ndots:3"} {
		if !strings.Contains(out, want) {
			t.Errorf("resolv.conf lacks %q: %q", want, out)
		}
	}
}

// checkPodNetwork: the containers of a pod share one network namespace, and other
// pods have theirs.
func checkPodNetwork(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	t.start(ctx, p, nil, "run", "--http=8080")
	asks := t.start(ctx, p, nil, "run")
	// The server may need a moment to listen.
	t.eventually(ctx, 20*time.Second, func() string {
		if r := t.exec(ctx, asks.id, "http", "http://127.0.0.1:8080/healthz"); r.ExitCode != 0 {
			return fmt.Sprintf("what one container serves, another does not reach: %s%s", r.Stdout, r.Stderr)
		}
		return ""
	})
	other := t.start(ctx, t.pod(ctx, nil), nil, "run")
	if r := t.exec(ctx, other.id, "http", "--timeout=2s", "http://127.0.0.1:8080/healthz"); r.ExitCode == 0 {
		// The other direction shows that it is the pod's network and not the machine's.
		t.Errorf("a container of another sandbox reaches it on 127.0.0.1 as well")
	}
}

// httpOK waits until a URL answers 200.
func (t *T) httpOK(ctx context.Context, url string) {
	// Each try is a connection of its own, as a probe's is.
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	t.eventually(ctx, 20*time.Second, func() string {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		t.must(err, "a request")
		r, err := client.Do(req)
		if err != nil {
			return fmt.Sprintf("%s cannot be reached: %v", url, err)
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		if r.StatusCode != http.StatusOK {
			return fmt.Sprintf("%s answers %s", url, r.Status)
		}
		return ""
	})
}

// checkPodAddress: HTTP and TCP probes come from the node to this address.
func checkPodAddress(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	t.start(ctx, p, nil, "run", "--http=8080")
	t.httpOK(ctx, "http://"+net.JoinHostPort(t.podIP(ctx, p), "8080")+"/healthz")
}

// checkHostNetwork: with hostNetwork a container listens on the machine's
// addresses. Both the sandbox and its containers must say so in the CRI.
func checkHostNetwork(ctx context.Context, t *T) {
	p := t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) {
		c.Hostname = ""
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	})
	port := t.freePort()
	t.start(ctx, p, func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	}, "run", fmt.Sprintf("--http=%d", port))
	t.httpOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
}

// freePort is a port of the machine that nobody listened on just now. Somebody may take it
// meanwhile; the check then fails, which is rare enough.
func (t *T) freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// checkHostPort: a port mapping leads from the machine to the container.
func checkHostPort(ctx context.Context, t *T) {
	port := t.freePort()
	c := t.podConfig()
	c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: int32(port)}}
	r, err := t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
	t.must(err, "RunPodSandbox with a port mapping")
	t.start(ctx, &pod{r.PodSandboxId, c}, nil, "run", "--http=8080")
	t.httpOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
}

// checkProcesses: process namespaces per container, per pod
// (shareProcessNamespace), of the node (hostPID) and of one other container
// (ephemeral containers). With POD process 1 is the sandbox's own, so the container's is another.
func checkProcesses(ctx context.Context, t *T) {
	own := t.pod(ctx, nil)
	t.start(ctx, own, nil, "run", "--log=findme")
	c := t.start(ctx, own, nil, "run", "--log=mine")
	if ps := t.says(ctx, c.id, "ps"); strings.Contains(ps, "findme") || !hasProcess(ps, "1", "mine") {
		t.Errorf("with CONTAINER a container sees %q", ps)
	}
	shared := func(o *runtimeapi.NamespaceOption) { o.Pid = runtimeapi.NamespaceMode_POD }
	p := t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) { shared(c.Linux.SecurityContext.NamespaceOptions) })
	edit := func(c *runtimeapi.ContainerConfig) { shared(c.Linux.SecurityContext.NamespaceOptions) }
	t.start(ctx, p, edit, "run", "--log=findme")
	d := t.start(ctx, p, edit, "run", "--log=mine")
	if ps := t.says(ctx, d.id, "ps"); !strings.Contains(ps, "findme") || hasProcess(ps, "1", "mine") {
		t.Errorf("with POD a container sees %q", ps)
	}
}

// hasProcess reports whether a process list has a process with a number whose
// command line has a text. The actor's ps has the number first.
func hasProcess(ps, pid, text string) bool {
	for _, l := range strings.Split(ps, "\n") {
		if f := strings.Fields(l); len(f) > 0 && f[0] == pid && strings.Contains(l, text) {
			return true
		}
	}
	return false
}

// checkMessageFile: what a container writes to its termination message file
// becomes its status' message.
func checkMessageFile(ctx context.Context, t *T) {
	file := filepath.Join(t.dir(), "message")
	t.hostFile(file, "")
	// The container's user may not be the run's.
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatalf("%v", err)
	}
	t.ran(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: file, ContainerPath: "/dev/termination-log"}}
	}, "run", "--for=500ms", "--termination-message=bye", "--exit=4")
	if data, err := os.ReadFile(file); err != nil || string(data) != "bye" {
		t.Errorf("when the container had ended the file said %q: %v", data, err)
	}
}

// checkMemoryLimit: exit code 137 and the reason OOMKilled are how a kubelet
// knows of it.
func checkMemoryLimit(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 48 << 20, MemorySwapLimitInBytes: 48 << 20}
		// A second of quiet first, so that the container is seen to run before it is killed.
	}, "run", "--memory=256Mi", "--memory-after=1s", "--for=20s")
	t.exited(ctx, c.id)
	t.eventually(ctx, 5*time.Second, func() string { // the kernel's word may come after the exit
		if s := t.status(ctx, c.id); s.ExitCode != 137 || s.Reason != "OOMKilled" {
			return fmt.Sprintf("the exit code is %d and the reason %q", s.ExitCode, s.Reason)
		}
		return ""
	})
}

// checkSysctls: sysctls are the sandbox', and its containers see them. This one is among the
// kubelet's safe sysctls (pkg/kubelet/sysctl).
func checkSysctls(ctx context.Context, t *T) {
	c := t.podConfig()
	c.Linux.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1"}
	r, err := t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
	t.must(err, "RunPodSandbox with a sysctl")
	d := t.start(ctx, &pod{r.PodSandboxId, c}, nil, "run")
	if out := t.says(ctx, d.id, "cat", "/proc/sys/kernel/shm_rmid_forced"); out != "1" {
		t.Errorf("kernel.shm_rmid_forced is %q, not 1", out)
	}
}
