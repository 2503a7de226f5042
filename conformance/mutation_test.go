//go:build linux

package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/fakecritest"
)

// directFaults has for each required cri/ check a runtime that must not pass it.
func directFaults() map[string]misbehaviour {
	var unique atomic.Uint32
	var serial sync.Mutex
	noFilter := asks("ListPodSandbox", func(r *runtimeapi.ListPodSandboxRequest) {
		if r.Filter != nil {
			r.Filter.LabelSelector = nil
		}
	})
	made := func(r *runtimeapi.CreateContainerResponse) { r.ContainerId = "0123456789abcdef" }
	return map[string]misbehaviour{
		"runtime/version": answers("Version", func(r *runtimeapi.VersionResponse) { r.RuntimeVersion = "" }),
		"runtime/status":  answers("Status", func(r *runtimeapi.StatusResponse) { r.Status.Conditions[1].Status = false }),

		"sandbox/run": sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.CreatedAt /= int64(time.Second) }),
		"sandbox/config-kept": answers("ListPodSandbox", func(r *runtimeapi.ListPodSandboxResponse) {
			each(r.Items, func(s *runtimeapi.PodSandbox) { s.Metadata.Attempt = 0 })
		}),
		"sandbox/stop":                  sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.State = ready }),
		"sandbox/remove":                once("RemovePodSandbox", func(m proto.Message) string { return m.(*runtimeapi.RemovePodSandboxRequest).PodSandboxId }),
		"sandbox/remove-running":        otherCode("ContainerStatus", codes.NotFound, codes.Unknown),
		"sandbox/stop-stops-containers": ignores("StopPodSandbox"),
		"sandbox/unknown":               otherCode("PodSandboxStatus", codes.NotFound, codes.Unknown),
		"sandbox/filters":               noFilter,
		"sandbox/duplicate":             sandboxConfig(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Uid += fmt.Sprint(unique.Add(1)) }),
		"sandbox/failure-leaves-nothing": asks("RunPodSandbox", func(r *runtimeapi.RunPodSandboxRequest) {
			r.RuntimeHandler = ""
		}),
		"sandbox/address": sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.Network.Ip = "10.0.0.1" }),
		"sandbox/host-network": sandboxStatus(func(s *runtimeapi.PodSandboxStatus) {
			s.Linux.Namespaces.Options.Network = runtimeapi.NamespaceMode_POD
		}),

		"container/create":      containerStatus(func(s *runtimeapi.ContainerStatus) { s.StartedAt = s.CreatedAt }),
		"container/start":       containerStatus(func(s *runtimeapi.ContainerStatus) { s.State = created }),
		"container/config-kept": containerStatus(func(s *runtimeapi.ContainerStatus) { s.Annotations = nil }),
		"container/exit-codes":  containerStatus(func(s *runtimeapi.ContainerStatus) { s.Reason = "" }),
		"container/filters": asks("ListContainers", func(r *runtimeapi.ListContainersRequest) {
			if r.Filter != nil {
				r.Filter.State = nil
			}
		}),
		"container/unknown":         otherCode("ContainerStatus", codes.NotFound, codes.Internal),
		"container/remove":          once("RemoveContainer", func(m proto.Message) string { return m.(*runtimeapi.RemoveContainerRequest).ContainerId }),
		"container/start-twice":     swallows[*runtimeapi.StartContainerResponse]("StartContainer", nil),
		"container/attempts":        containerConfig(func(c *runtimeapi.ContainerConfig) { c.Metadata.Attempt = 100 + unique.Add(1) }),
		"container/stopped-sandbox": swallows("CreateContainer", made),
		"container/missing-image":   swallows("CreateContainer", made),
		"container/missing-command": otherCode("StartContainer", codes.OK, codes.Unknown),
		"container/process":         containerConfig(func(c *runtimeapi.ContainerConfig) { c.WorkingDir = "" }),
		"container/image-command":   containerConfig(func(c *runtimeapi.ContainerConfig) { c.Args = nil }),

		"stop/graceful":     stopsWith(0),
		"stop/timeout":      stopsWith(0),
		"stop/at-once":      stopsWith(20),
		"stop/idempotent":   containerStatus(func(s *runtimeapi.ContainerStatus) { s.FinishedAt = time.Now().UnixNano() }),
		"stop/image-signal": stopsWith(0),

		"exec/output":           execs(func(r *runtimeapi.ExecSyncResponse) { r.Stdout, r.Stderr = append(r.Stdout, r.Stderr...), nil }),
		"exec/exit-code":        execs(func(r *runtimeapi.ExecSyncResponse) { r.ExitCode = 0 }),
		"exec/timeout":          otherCode("ExecSync", codes.DeadlineExceeded, codes.Internal),
		"exec/no-timeout":       asks("ExecSync", func(r *runtimeapi.ExecSyncRequest) { r.Timeout = 1 }),
		"exec/missing-command":  both(swallows[*runtimeapi.ExecSyncResponse]("ExecSync", nil), execs(func(r *runtimeapi.ExecSyncResponse) { r.ExitCode = 0 })),
		"exec/not-running":      swallows[*runtimeapi.ExecSyncResponse]("ExecSync", nil),
		"exec/as-the-container": containerConfig(func(c *runtimeapi.ContainerConfig) { c.WorkingDir = "" }),
		"exec/at-once": func(c *proxied) (proto.Message, error) {
			if c.method == "ExecSync" {
				serial.Lock()
				defer serial.Unlock()
			}
			return c.forward()
		},
		"exec/large-output": execs(func(r *runtimeapi.ExecSyncResponse) { r.Stdout = r.Stdout[:min(len(r.Stdout), 64<<10)] }),

		"logs/format":     containerStatus(func(s *runtimeapi.ContainerStatus) { s.LogPath = filepath.Base(s.LogPath) }),
		"logs/long-lines": containerStatus(dropPartial),
		"logs/apart":      containerConfig(func(c *runtimeapi.ContainerConfig) { c.LogPath = "same.log" }),
		"logs/kept": func(c *proxied) (proto.Message, error) {
			if r, ok := c.req.(*runtimeapi.RemoveContainerRequest); ok {
				if s, err := c.rt.ContainerStatus(c.ctx, &runtimeapi.ContainerStatusRequest{ContainerId: r.ContainerId}); err == nil {
					_ = os.Remove(s.Status.LogPath)
				}
			}
			return c.forward()
		},
		"logs/reopen":       ignores("ReopenContainerLog"),
		"logs/reopen-ended": ignores("ReopenContainerLog"),

		"stats/container":  answers("ContainerStats", func(r *runtimeapi.ContainerStatsResponse) { r.Stats.Memory.Timestamp = 0 }),
		"stats/list":       asks("ListContainerStats", func(r *runtimeapi.ListContainerStatsRequest) { r.Filter = nil }),
		"stats/unknown":    swallows[*runtimeapi.ContainerStatsResponse]("ContainerStats", nil),
		"stats/image-fs":   answers("ImageFsInfo", func(r *runtimeapi.ImageFsInfoResponse) { r.ImageFilesystems = nil }),
		"resources/update": fails("UpdateContainerResources", codes.Unimplemented),

		"image/absent":      imageMissing(codes.NotFound),
		"image/pull-tag":    imageStatus(func(im *runtimeapi.Image) { im.Size = 0 }),
		"image/pull-digest": imageStatus(func(im *runtimeapi.Image) { im.RepoTags = []string{fakeRegistry{}.Ref("else:latest")} }),
		"image/pull-latest": asks("PullImage", func(r *runtimeapi.PullImageRequest) {
			if !strings.Contains(r.Image.Image[strings.LastIndexByte(r.Image.Image, '/'):], ":") {
				r.Image.Image += ":1"
			}
		}),
		"image/pull-missing":     swallows("PullImage", func(r *runtimeapi.PullImageResponse) { r.ImageRef = "sha256:0123" }),
		"image/pull-deadline":    ignores("PullImage"),
		"image/pull-credentials": asks("PullImage", func(r *runtimeapi.PullImageRequest) { r.Auth = nil }),
		"image/identity":         imageStatus(func(im *runtimeapi.Image) { im.RepoTags = im.RepoTags[:min(1, len(im.RepoTags))] }),
		"image/remove":           ignores("RemoveImage"),
		"image/remove-at-once":   once("RemoveImage", func(m proto.Message) string { return m.(*runtimeapi.RemoveImageRequest).Image.Image }),
		"image/user":             imageStatus(func(im *runtimeapi.Image) { im.Username, im.Uid = "", nil }),
		"image/container":        containerStatus(func(s *runtimeapi.ContainerStatus) { s.ImageRef = "sha256:0123" }),

		"config/mounts":             containerStatus(func(s *runtimeapi.ContainerStatus) { s.Mounts = nil }),
		"config/users":              containerConfig(func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.SupplementalGroups = nil }),
		"config/group-without-user": containerConfig(func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.RunAsGroup = nil }),
		"config/read-only-root":     containerConfig(func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.ReadonlyRootfs = false }),
		"config/hostname":           sandboxConfig(func(c *runtimeapi.PodSandboxConfig) { c.Hostname = "odysseus" }),
		"config/dns":                sandboxConfig(func(c *runtimeapi.PodSandboxConfig) { c.DnsConfig = nil }),
		"config/pod-network":        containerConfig(func(c *runtimeapi.ContainerConfig) { c.Args = without(c.Args, "--http=8080") }),
		"config/pod-address":        sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.Network.Ip = "127.255.255.250" }),
		"config/host-network": sandboxConfig(func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_POD
		}),
		"config/processes": containerConfig(func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_CONTAINER
		}),
		"config/terminating-message-file": containerConfig(func(c *runtimeapi.ContainerConfig) { c.Mounts = nil }),
	}
}

// kubeletFaults is directFaults for kubelet/ checks.
func kubeletFaults() map[string]misbehaviour {
	plus := exits(func(c int32) int32 { return c + 1 })
	zero := exits(func(int32) int32 { return 0 })
	noMounts := containerConfig(func(c *runtimeapi.ContainerConfig) { c.Mounts = nil })
	execOK, execBad := execs(func(r *runtimeapi.ExecSyncResponse) { r.ExitCode = 0 }), execs(func(r *runtimeapi.ExecSyncResponse) { r.ExitCode = 1 })
	never := func(arg string) misbehaviour {
		return containerConfig(func(c *runtimeapi.ContainerConfig) { c.Args = without(c.Args, arg) })
	}
	return map[string]misbehaviour{
		"pod-succeeds":         plus,
		"pod-fails":            plus,
		"restart-policies":     zero,
		"crash-loop-back-off":  zero,
		"init-containers":      noMounts,
		"init-container-fails": zero,
		"sidecar":              execBad,
		"exec-probe":           execOK,
		"exec-probe-timeout":   swallows[*runtimeapi.ExecSyncResponse]("ExecSync", nil),
		"http-probe":           never("--healthy-after=6s"),
		"tcp-probe":            never("--listen-after=6s"),
		"grpc-probe":           never("--healthy-after=6s"),
		"liveness-restart":     execOK,
		"startup-probe":        execBad,
		"post-start":           ignores("ExecSync"),
		"pre-stop":             ignores("ExecSync"),
		"grace-period":         stopsWith(0),
		"graceful-stop":        stopsWith(0),
		"termination-message":  noMounts,
		"log-rotation":         fails("ReopenContainerLog", codes.Internal),
		"environment":          containerConfig(func(c *runtimeapi.ContainerConfig) { c.Envs = nil }),
		"entrypoints":          containerConfig(func(c *runtimeapi.ContainerConfig) { c.WorkingDir = "/" }),
		"users-and-groups":     containerConfig(func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.SupplementalGroups = nil }),
		"empty-dir":            noMounts,
		"empty-dir-memory":     noMounts,
		"host-path": containerConfig(func(c *runtimeapi.ContainerConfig) {
			each(c.Mounts, func(m *runtimeapi.Mount) { m.Readonly = false })
		}),
		"config-volumes":      noMounts,
		"secret-volume":       noMounts,
		"config-map-update":   noMounts,
		"sub-path":            noMounts,
		"image-missing":       swallows("PullImage", func(r *runtimeapi.PullImageResponse) { r.ImageRef = "sha256:0123" }),
		"image-pull-policies": answers("ImageStatus", func(r *runtimeapi.ImageStatusResponse) { r.Image = nil }),
		"kubelet-restart":     containerStatus(func(s *runtimeapi.ContainerStatus) { s.Annotations = nil }),
		"pod-deletion":        fails("RemovePodSandbox", codes.Internal),
		"host-network": sandboxConfig(func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_POD
		}),
		"pod-network": sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.Network = nil }),
		"shared-processes": containerConfig(func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_CONTAINER
		}),
		"ephemeral-container": exits(func(int32) int32 { return 1 }),
		"static-pod":          fails("StopContainer", codes.Internal),
		"container-killed":    zero,
		"read-only-root":      containerConfig(func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.ReadonlyRootfs = false }),
		"names":               sandboxConfig(func(c *runtimeapi.PodSandboxConfig) { c.Hostname = "odysseus" }),
	}
}

func each[T any](list []T, fn func(T)) {
	for _, x := range list {
		fn(x)
	}
}

func without(list []string, s string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == s })
}

// both does one wrong and then the other.
func both(inner, outer misbehaviour) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		next := *c
		next.next = func(c2 ctxType) (proto.Message, error) { d := *c; d.ctx = c2; return inner(&d) }
		return outer(&next)
	}
}

// imageStatus edits the statuses of images.
func imageStatus(edit func(*runtimeapi.Image)) misbehaviour {
	return answers("ImageStatus", func(r *runtimeapi.ImageStatusResponse) {
		if r.Image != nil {
			edit(r.Image)
		}
	})
}

// imageMissing has ImageStatus of what is not there fail.
func imageMissing(code codes.Code) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		resp, err := c.forward()
		if r, ok := resp.(*runtimeapi.ImageStatusResponse); ok && err == nil && r.Image == nil {
			return nil, errorOf(code)
		}
		return resp, err
	}
}

// dropPartial takes partial lines out of the log of an ended container.
func dropPartial(s *runtimeapi.ContainerStatus) {
	if s.State != exited {
		return
	}
	data, err := os.ReadFile(s.LogPath)
	if err != nil {
		return
	}
	var out strings.Builder
	for _, l := range strings.SplitAfter(string(data), "\n") {
		if f := strings.SplitN(l, " ", 4); len(f) == 4 && f[2] != "P" {
			out.WriteString(l)
		}
	}
	_ = os.WriteFile(s.LogPath, []byte(out.String()), 0o640)
}

// atOnce is how many runs there are at a time: most of what they do is wait. Their
// kubelets watch files, and a user has 128 instances of inotify, which tests of
// other packages need too.
const atOnce = 24

// TestEveryCheckCanFail runs each required check against a runtime that
// misbehaves in just that way, and wants it to fail; and wants each required
// check to have such a runtime.
func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel() // it waits, mostly
	faults := map[string]misbehaviour{}
	for name, wrong := range directFaults() {
		faults["cri/"+name] = wrong
	}
	for name, wrong := range kubeletFaults() {
		faults["kubelet/"+name] = wrong
	}
	list, err := List(Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range list {
		known[c.Name] = true
		if c.Level == Required && faults[c.Name] == nil {
			t.Errorf("%s is required, and nothing shows that it can fail", c.Name)
		}
	}
	for name := range faults {
		if !known[name] {
			t.Errorf("there is no check %s", name)
		}
	}
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	names := slices.Sorted(maps.Keys(faults))
	slices.Reverse(names) // scenarios take the longest
	for _, name := range names {
		if testing.Short() && strings.HasPrefix(name, "kubelet/") {
			continue
		}
		srv := fakecritest.NewServer(t)
		sock := proxy(t, srv.Endpoint(), faults[name])
		wg.Add(1)
		go func() {
			defer wg.Done()
			free <- struct{}{}
			defer func() { <-free }()
			wantFailed(t, sock, name)
		}()
	}
	wg.Wait()
}

func wantFailed(t *testing.T, sock, name string) {
	r, err := Run(t.Context(), Options{Endpoint: sock, Registry: fakeRegistry{}, Focus: regexp.MustCompile("^" + regexp.QuoteMeta(name) + "$")})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, x := range r.Results {
		if x.Name == name && x.Status != Failed {
			t.Errorf("%s %s %s though the runtime misbehaves", name, x.Status, x.Reason)
		}
		if x.Name == name && x.Status == Failed {
			t.Logf("%s: %.200s", name, strings.Join(x.Came, "; "))
		}
	}
}
