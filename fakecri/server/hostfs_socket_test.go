//go:build linux

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
)

// A pod with the files that a kubelet gives it, on this machine's disk.
func TestKubeletsFiles(t *testing.T) {
	r := newRig(t, onHost, fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.Images = append(o.Images, fakecri.Image{Name: "busybox", Present: true})
	}))
	ctx, dir := testContext(t), t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("config/..1/key", "value\n")
	for link, to := range map[string]string{"config/..data": "..1", "config/key": "..data/key"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	hosts, message := write("etc-hosts", "127.0.0.1 localhost\n10.0.0.9 kubelet\n"), write("message", "")
	pc := sandboxConfig("files")
	pc.LogDirectory, pc.Hostname = filepath.Join(dir, "logs"), "files-0"
	pc.DnsConfig = &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"svc.cluster.local"}, Options: []string{"ndots:5"}}
	sb, err := r.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: pc})
	if err != nil {
		t.Fatal(err)
	}
	cc := containerConfig("main")
	cc.Image.Image, cc.LogPath = "busybox", "main/0.log"
	cc.Command = []string{"sh", "-c", "hostname; cat /etc/config/key /etc/hosts /etc/resolv.conf; echo bye > /dev/termination-log; echo kept > /empty/file; exit 2"}
	cc.Mounts = []*runtimeapi.Mount{
		{ContainerPath: "/etc/config", HostPath: dir + "/config", Readonly: true},
		{ContainerPath: "/empty", HostPath: dir + "/empty"},
		{ContainerPath: "/etc/hosts", HostPath: hosts},
		{ContainerPath: "/dev/termination-log", HostPath: message},
	}
	created, err := r.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sb.PodSandboxId, Config: cc, SandboxConfig: pc})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		t.Fatal(err)
	}
	st := r.awaitExit(t, created.ContainerId)
	if st.ExitCode != 2 {
		t.Errorf("exit code %d", st.ExitCode)
	}
	log, err := os.ReadFile(st.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(log)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if at, err := time.Parse(time.RFC3339Nano, f[0]); err != nil || time.Since(at) > time.Minute || time.Since(at) < 0 {
			t.Errorf("time %q, %v", f[0], err)
		}
		lines = append(lines, strings.Join(f[1:], " "))
	}
	want := "stdout F files-0|stdout F value|stdout F 127.0.0.1 localhost|stdout F 10.0.0.9 kubelet|" +
		"stdout F search svc.cluster.local|stdout F nameserver 10.96.0.10|stdout F options ndots:5"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("log\n got %s\nwant %s", got, want)
	}
	for name, want := range map[string]string{"message": "bye\n", "empty/file": "kept\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != want {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
}

// An isolated server's containers reach none of this machine's files, whatever
// paths a request has.
func TestIsolated(t *testing.T) {
	r := newRig(t, fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.Images = append(o.Images, fakecri.Image{Name: "busybox", Present: true})
	}))
	dir := t.TempDir()
	sc := sandboxConfig("isolated")
	sc.LogDirectory = dir + "/logs"
	sandbox, err := r.rt.RunPodSandbox(testContext(t), &runtimeapi.RunPodSandboxRequest{Config: sc})
	if err != nil {
		t.Fatal(err)
	}
	id := r.runContainer(t, sandbox.PodSandboxId, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "busybox"}, LogPath: "c.log",
		Command: []string{"sh", "-c", "echo hello; sleep 1000"},
		Mounts:  []*runtimeapi.Mount{{ContainerPath: "/made", HostPath: dir + "/made"}, {ContainerPath: "/root", HostPath: dir}},
	})
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := r.rt.ExecSync(testContext(t), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", "echo text >/made/file; cat /root/made/file; rm -rf /root/file; touch /root/other; ls /root"}})
	if err != nil || string(out.Stdout) != "text\nmade\nother\n" {
		t.Errorf("stdout %q, stderr %q, %v", out.GetStdout(), out.GetStderr(), err)
	}
	if names, err := filepath.Glob(dir + "/*"); err != nil || len(names) != 1 {
		t.Errorf("on this machine there are %q, %v; want the test's own file alone", names, err)
	}
}
