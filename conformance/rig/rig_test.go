//go:build linux

package rig

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
)

// eachRuntime runs a test against the fake runtime, and against the real one
// that hack/containerd.sh run has brought up. The former pulls from no registry,
// but knows what ours would serve.
func eachRuntime(t *testing.T, test func(t *testing.T, endpoint, registry string)) {
	t.Run("fakecri", func(t *testing.T) {
		test(t, fakecritest.NewServer(t).Endpoint(), "127.0.0.1:1")
	})
	t.Run("real", func(t *testing.T) {
		endpoint, registry := os.Getenv("CONTAINER_RUNTIME_ENDPOINT"), os.Getenv("DRYDOCK_TEST_REGISTRY")
		if endpoint == "" || registry == "" {
			t.Skip("no real runtime: CONTAINER_RUNTIME_ENDPOINT and DRYDOCK_TEST_REGISTRY are not set (hack/containerd.sh run DIR -- go test ./conformance/rig)")
		}
		test(t, endpoint, registry)
	})
}

func TestProbe(t *testing.T) { eachRuntime(t, testProbe) }

func testProbe(t *testing.T, endpoint, registry string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Probe(ctx, endpoint, registry+"/drydock/drydock-actor:1"); err != nil {
		t.Fatal(err)
	}
	if err := Probe(ctx, endpoint, registry+"/drydock/missing/drydock-actor:1"); err == nil || !strings.HasPrefix(err.Error(), "pull ") {
		t.Fatalf("an image that is not there: %v", err)
	}
}

func TestNoRuntime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	endpoint := "unix://" + filepath.Join(t.TempDir(), "x.sock")
	if err := Probe(ctx, endpoint, "x"); err == nil || !strings.Contains(err.Error(), endpoint) {
		t.Fatalf("%v does not name the endpoint", err)
	}
	if _, err := Clear(ctx, endpoint); err == nil {
		t.Fatal("Clear without a runtime succeeded")
	}
}

// pod is a sandbox with a folder for logs.
type pod struct {
	*client
	t   *testing.T
	cfg *runtimeapi.PodSandboxConfig
	id  string
}

func newPod(t *testing.T, endpoint string, port *runtimeapi.PortMapping) *pod {
	c, err := dial(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{client: c, t: t, cfg: &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "rig", Namespace: "drydock", Uid: t.Name()},
		Hostname:     "rig",
		LogDirectory: t.TempDir(),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{},
	}}
	if port != nil {
		p.cfg.PortMappings = []*runtimeapi.PortMapping{port}
	}
	sb, err := c.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: p.cfg})
	if err != nil {
		t.Fatal(err)
	}
	p.id = sb.PodSandboxId
	t.Cleanup(func() {
		if err := c.remove(p.id); err != nil {
			t.Error(err)
		}
		_ = c.conn.Close()
	})
	return p
}

// start pulls an image and starts a container of it.
func (p *pod) start(image, name string, command, args []string, asKubelet bool) (string, error) {
	spec := &runtimeapi.ImageSpec{Image: image}
	if _, err := p.images.PullImage(p.t.Context(), &runtimeapi.PullImageRequest{Image: spec}); err != nil {
		return "", fmt.Errorf("pull: %w", err)
	}
	sc := &runtimeapi.LinuxContainerSecurityContext{}
	if asKubelet { // the user is the image's, by name or number; its group is lost
		im, err := p.images.ImageStatus(p.t.Context(), &runtimeapi.ImageStatusRequest{Image: spec})
		if err != nil {
			return "", fmt.Errorf("image status: %w", err)
		}
		sc.RunAsUser, sc.RunAsUsername = im.GetImage().GetUid(), im.GetImage().GetUsername()
	}
	ctr, err := p.CreateContainer(p.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, SandboxConfig: p.cfg, Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: spec, Command: command, Args: args, LogPath: name + ".log",
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: sc},
	}})
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	if _, err := p.StartContainer(p.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: ctr.ContainerId}); err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	return ctr.ContainerId, nil
}

// ready is the line that tells that a program has come so far as to log.
const ready = "the program is ready"

// await waits until a container has logged that it is ready.
func (p *pod) await(name string) {
	for range 300 {
		if data, err := os.ReadFile(filepath.Join(p.cfg.LogDirectory, name+".log")); err == nil && strings.Contains(string(data), ready) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.t.Errorf("%s does not log that it is ready", name)
}

// end waits for a container's end and returns its code and what it has logged.
func (p *pod) end(id, name string) (int32, string) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		st, err := p.ContainerStatus(p.t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			p.t.Fatal(err)
		}
		if st.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			data, err := os.ReadFile(filepath.Join(p.cfg.LogDirectory, name+".log"))
			if err != nil {
				p.t.Fatal(err)
			}
			var out strings.Builder
			for line := range strings.Lines(string(data)) {
				if f := strings.SplitN(line, " ", 4); len(f) == 4 && f[3] != ready+"\n" {
					out.WriteString(f[3])
				}
			}
			return st.Status.ExitCode, out.String()
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not end", name)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// What containers of the test images are is what their configurations say.
func TestImages(t *testing.T) { eachRuntime(t, testImages) }

func testImages(t *testing.T, endpoint, registry string) {
	p := newPod(t, endpoint, nil)
	show := []string{"run", "--for=0s", "--print=id", "--print=pwd", "--print=env"}
	const asKubelet = 7
	for i, tc := range []struct {
		image         string
		command, args []string
		code          int32
		want          []string
		fails         string
	}{
		{"drydock-actor:1", nil, show, 0, []string{"uid=0 gid=0 groups=0\n/\n", "PATH="}, ""},
		{"drydock-actor:alias", nil, []string{"exit", "3"}, 3, nil, ""},
		{"drydock-actor:2", nil, []string{"cat", "/etc/actor-release"}, 0, []string{"2\n"}, ""},
		{"drydock-actor:layers", nil, []string{"stat", "/etc/first", "/etc/second", "/etc/owned", "/tmp"}, 0, []string{
			"-rw-r--r-- 0:0 6 /etc/first\n-rw------- 0:0 7 /etc/second\n-rw-r----- 1001:2001 6 /etc/owned\ndtrwxrwxrwx 0:0 - /tmp\n"}, ""},
		{"drydock-actor:index", nil, []string{"echo", "index"}, 0, []string{"index\n"}, ""},
		{"drydock-actor:user", nil, show, 0, []string{"uid=1000 gid=0 groups=0\n"}, ""},
		{"drydock-actor:user-group", nil, show, 0, []string{"uid=1000 gid=2000 groups=2000\n"}, ""},
		{"drydock-actor:user-name", nil, show, 0, []string{"uid=1001 gid=1001 groups=1001,2001\n"}, ""}, // asKubelet
		{"drydock-actor:user-name-group", nil, show, 0, []string{"uid=1001 gid=2001 groups=2001\n"}, ""},
		{"drydock-actor:user-unknown", nil, show, 0, nil, "no users found"},
		{"drydock-actor:cmd", nil, nil, 0, []string{"cmd\n"}, ""},
		{"drydock-actor:cmd", nil, []string{actor.Program, "echo", "args"}, 0, []string{"args\n"}, ""},
		{"drydock-actor:entrypoint", nil, nil, 0, []string{"entrypoint cmd\n"}, ""},
		{"drydock-actor:entrypoint", nil, []string{"args"}, 0, []string{"entrypoint args\n"}, ""},
		{"drydock-actor:entrypoint", []string{actor.Program, "echo", "command"}, nil, 0, []string{"command\n"}, ""},
		{"drydock-actor:no-command", nil, nil, 0, nil, "no command specified"},
		{"drydock-actor:dir", nil, append(show, "--print=/srv/work/here"), 0, []string{"\n/srv/work\n", "here\n"}, ""},
		{"drydock-actor:dir-missing", nil, show, 0, []string{"\n/made/by/the/runtime\n"}, ""},
		{"drydock-actor:env", nil, show, 0, []string{"FROM_IMAGE=image\n", "OVERRIDDEN=image\n", "WITH_EQUALS=a=b\n"}, ""},
		{"drydock-actor:volume", nil, []string{"cat", "/image-volume/from-image"}, 0, []string{"from image\n"}, ""},
		{"drydock-actor:none", nil, nil, 0, nil, "not found"},
		{"check-1/drydock-actor:2", nil, []string{"echo", "alias"}, 0, []string{"alias\n"}, ""},
		{"missing/drydock-actor:1", nil, nil, 0, nil, "not found"},
		{"broken/drydock-actor:1", nil, nil, 0, nil, "500"},
		{"forbidden/drydock-actor:1", nil, nil, 0, nil, "pull"},
		{"private/drydock-actor:1", nil, nil, 0, nil, "pull"},
	} {
		name := fmt.Sprintf("c%d", i)
		id, err := p.start(registry+"/drydock/"+tc.image, name, tc.command, tc.args, i == asKubelet)
		if tc.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: error %v, want one with %q", tc.image, err, tc.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.image, err)
			continue
		}
		code, out := p.end(id, name)
		if code != tc.code {
			t.Errorf("%s %v: exit %d, want %d: %s", tc.image, tc.args, code, tc.code, out)
		}
		for _, w := range tc.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s %v: output %q, want %q in it", tc.image, tc.args, out, w)
			}
		}
	}
}

// The stop signal of an image is what a stop sends.
func TestStopSignal(t *testing.T) { eachRuntime(t, testStopSignal) }

func testStopSignal(t *testing.T, endpoint, registry string) {
	p := newPod(t, endpoint, nil)
	for tag, want := range map[string]string{"1": "signal TERM\n", "stop": "signal USR1\n", "stop-quit": "signal QUIT\n"} {
		id, err := p.start(registry+"/drydock/drydock-actor:"+tag, tag, nil, []string{"run", "--stop-exit=4", "--log=" + ready}, false)
		if err != nil {
			t.Fatal(err)
		}
		p.await(tag)
		if _, err := p.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 10}); err != nil {
			t.Fatal(err)
		}
		if code, out := p.end(id, tag); code != 4 || out != want {
			t.Errorf("%s: exit %d, %q; want exit 4, %q", tag, code, out, want)
		}
	}
}

// A pod can be reached at its address and at a port of the host.
func TestNetwork(t *testing.T) { eachRuntime(t, testNetwork) }

func testNetwork(t *testing.T, endpoint, registry string) {
	lis, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free, most probably still in a moment
	if err != nil {
		t.Fatal(err)
	}
	mapped := lis.Addr().(*net.TCPAddr)
	_ = lis.Close()
	p := newPod(t, endpoint, &runtimeapi.PortMapping{ContainerPort: 8080, HostPort: int32(mapped.Port)})
	if _, err := p.start(registry+"/drydock/drydock-actor:1", "server", nil, []string{"run", "--http=8080", "--log=" + ready}, false); err != nil {
		t.Fatal(err)
	}
	p.await("server")
	st, err := p.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{st.GetStatus().GetNetwork().GetIp() + ":8080", mapped.String()} {
		var body []byte
		resp, err := (&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + at + "/hostname")
		if err == nil {
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if err != nil || string(body) != "rig\n" {
			t.Errorf("http://%s/hostname: %q, %v; want %q", at, body, err, "rig\n")
		}
	}
}
