//go:build linux

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// These tests do what public suites that verify a runtime do first, over the
// socket and with the defaults of the command.

type clientRig struct {
	*rig
	t *testing.T
}

func newClientRig(t *testing.T) *clientRig { return &clientRig{newRig(t, onHost), t} }

func (r *clientRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *clientRig) pull(name string) string {
	r.t.Helper()
	resp, err := r.img.PullImage(r.t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	r.must(err)
	return resp.ImageRef
}

func (r *clientRig) sandbox(name string, edit func(*runtimeapi.PodSandboxConfig)) (string, *runtimeapi.PodSandboxConfig) {
	r.t.Helper()
	cfg := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "ns", Uid: "uid-" + name, Attempt: 2},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}
	if edit != nil {
		edit(cfg)
	}
	resp, err := r.rt.RunPodSandbox(r.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: cfg})
	r.must(err)
	return resp.PodSandboxId, cfg
}

func (r *clientRig) start(sb string, pod *runtimeapi.PodSandboxConfig, name, image string, edit func(*runtimeapi.ContainerConfig)) string {
	r.t.Helper()
	cfg := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: 2},
		Image:    &runtimeapi.ImageSpec{Image: r.pull(image), UserSpecifiedImage: image},
		LogPath:  name + ".log",
		Linux:    &runtimeapi.LinuxContainerConfig{},
	}
	if edit != nil {
		edit(cfg)
	}
	resp, err := r.rt.CreateContainer(r.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: sb, Config: cfg, SandboxConfig: pod})
	r.must(err)
	_, err = r.rt.StartContainer(r.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: resp.ContainerId})
	r.must(err)
	return resp.ContainerId
}

func (r *clientRig) exec(id string, cmd ...string) string {
	r.t.Helper()
	resp, err := r.rt.ExecSync(r.t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: 30})
	r.must(err)
	if len(resp.Stderr) > 0 || resp.ExitCode != 0 {
		r.t.Errorf("%q: exit %d, stderr %q", cmd, resp.ExitCode, resp.Stderr)
	}
	return string(resp.Stdout)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come to: %s", what)
		}
	}
}

func TestSuiteWebServers(t *testing.T) {
	r := newClientRig(t)
	logs := t.TempDir()
	hostPort := freePort(t)
	sb, pod := r.sandbox("web", func(c *runtimeapi.PodSandboxConfig) {
		c.LogDirectory = logs
		c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 80, HostPort: hostPort}}
	})
	web := r.start(sb, pod, "httpd", "registry.k8s.io/e2e-test-images/httpd:2.4.39-4", nil)
	box := r.start(sb, pod, "box", "registry.k8s.io/e2e-test-images/busybox:1.29-2", func(c *runtimeapi.ContainerConfig) {
		c.Command = []string{"sh", "-c", "echo hello World; sleep 1000"}
	})
	st, err := r.rt.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sb})
	r.must(err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, url := range []string{fmt.Sprintf("http://%s:80/", st.Status.Network.Ip), fmt.Sprintf("http://127.0.0.1:%d/", hostPort)} {
		eventually(t, url+" answers", func() bool {
			resp, err := client.Get(url)
			if err != nil {
				return false
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK && strings.Contains(string(body), "It works!")
		})
	}
	if got := r.exec(web, "echo", "httpd") + r.exec(box, "echo", "box"); got != "httpd\nbox\n" {
		t.Errorf("exec: %q", got)
	}
	for file, want := range map[string]string{"httpd.log": "httpd -D FOREGROUND", "box.log": "stdout F hello World"} {
		eventually(t, file+" has "+want, func() bool {
			data, _ := os.ReadFile(filepath.Join(logs, file))
			return strings.Contains(string(data), want)
		})
	}
	_, err = r.rt.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: web, Timeout: 60})
	r.must(err)
}

func freePort(t *testing.T) int32 {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	return int32(lis.Addr().(*net.TCPAddr).Port)
}

func TestSuiteImages(t *testing.T) {
	r := newClientRig(t)
	const from = "gcr.io/suite/"
	get := func(name string) *runtimeapi.Image {
		resp, err := r.img.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
		r.must(err)
		return resp.Image
	}
	id := r.pull(from + "test-image-tags:1")
	for _, tag := range []string{":2", ":3"} {
		if r.pull(from+"test-image-tags"+tag) != id {
			t.Error("another id for another tag of one image")
		}
	}
	if im := get(id); im == nil || !slices.Equal(im.RepoTags, []string{from + "test-image-tags:1", from + "test-image-tags:2", from + "test-image-tags:3"}) {
		t.Errorf("image %v", im)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	resp, err := r.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "other:1"}})
	if status.Code(err) != codes.DeadlineExceeded || resp.GetImageRef() != "" {
		t.Errorf("pull without time: %v, %v", resp, err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := r.img.RemoveImage(t.Context(), &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: id}}); err != nil {
				t.Errorf("removal: %v", err)
			}
			if im := get(id); im != nil {
				t.Errorf("it is there: %v", im)
			}
		})
	}
	wg.Wait()
	list, err := r.img.ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	r.must(err)
	if len(list.Images) != 1 || !list.Images[0].Pinned {
		t.Errorf("left are %v", list.Images)
	}
}

func TestSuiteNumbers(t *testing.T) {
	r := newClientRig(t)
	sb, pod := r.sandbox("numbers", nil)
	id := r.start(sb, pod, "box", "busybox:1.29-2", func(c *runtimeapi.ContainerConfig) { c.Command = []string{"top"} })
	descs, err := r.rt.ListMetricDescriptors(t.Context(), &runtimeapi.ListMetricDescriptorsRequest{})
	r.must(err)
	all, err := r.rt.ListPodSandboxMetrics(t.Context(), &runtimeapi.ListPodSandboxMetricsRequest{})
	r.must(err)
	labels := map[string]int{}
	for _, p := range all.PodMetrics {
		metrics := slices.Clone(p.Metrics)
		for _, c := range p.ContainerMetrics {
			metrics = append(metrics, c.Metrics...)
		}
		for _, m := range metrics {
			labels[m.Name] = len(m.LabelValues)
		}
	}
	for _, d := range descs.Descriptors {
		if labels[d.Name] != len(d.LabelKeys) || d.Help == "" {
			t.Errorf("%s: %d label values for %v", d.Name, labels[d.Name], d.LabelKeys)
		}
	}
	if len(descs.Descriptors) < 50 {
		t.Errorf("%d metrics", len(descs.Descriptors))
	}
	stats, err := r.rt.ContainerStats(t.Context(), &runtimeapi.ContainerStatsRequest{ContainerId: id[:13]})
	r.must(err)
	if s := stats.Stats; s.Attributes.Id != id || s.Cpu.GetTimestamp() == 0 || s.Memory.GetTimestamp() == 0 || s.WritableLayer == nil {
		t.Errorf("stats %v", s)
	}
	st, err := r.rt.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	r.must(err)
	var info struct{ PID int }
	if err := json.Unmarshal([]byte(st.Info["info"]), &info); err != nil || info.PID <= 0 {
		t.Errorf("info %v: %v", st.Info, err)
	}
	begin := time.Now()
	_, err = r.rt.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 60})
	r.must(err)
	if time.Since(begin) > 30*time.Second {
		t.Errorf("the stop took %s", time.Since(begin))
	}
}
