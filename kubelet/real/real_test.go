//go:build linux

package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

func TestStepped(t *testing.T) {
	for _, tc := range []struct {
		name      string
		went, ran time.Duration
		want      bool
	}{
		{"no step", time.Minute, time.Minute, false}, {"slewed", time.Minute, time.Minute + time.Second, false},
		{"forward", time.Hour, time.Minute, true}, {"back", -time.Hour, time.Minute, true},
		{"back within a period", -3 * time.Second, time.Second, true},
	} {
		if got := stepped(tc.went, tc.ran); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func config(t *testing.T) *kubeletconfig.KubeletConfiguration {
	t.Helper()
	no := false
	c := &kubeletconfig.KubeletConfiguration{
		FailCgroupV1: &no, FailSwapOn: &no, CgroupsPerQOS: &no, EnforceNodeAllocatable: []string{"none"},
		ContainerRuntimeEndpoint: "unix://" + t.TempDir() + "/none.sock", StaticPodPath: t.TempDir(), PodLogsDir: t.TempDir(),
		OOMScoreAdj: nil, MakeIPTablesUtilChains: &no, // the machine's own tables are left alone
	}
	kubeletcfg.SetDefaults(c)
	c.OOMScoreAdj, c.MaxOpenFiles = nil, 0 // not this process's
	return c
}

func TestHandleWithoutKubelet(t *testing.T) {
	h := &Handle{}
	if err := h.Ping(); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("ping: %v", err)
	}
	if err := h.SyncLoopHealthy(); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("healthy: %v", err)
	}
	if _, err := h.Pods(); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("pods: %v", err)
	}
}

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "busybox:1", command: [sleep, "3600"], volumeMounts: [{name: v, mountPath: /v}]}
  volumes: [{name: v, emptyDir: {}}]
`

// kubeletRun is a running kubelet of a test.
type kubeletRun struct {
	t    *testing.T
	h    *Handle
	stop context.CancelFunc
	done chan error
	mu   sync.Mutex
	logs []string
}

func start(t *testing.T, o Options) *kubeletRun {
	t.Helper()
	r := &kubeletRun{t: t, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	started := make(chan *Handle, 1)
	o.Started = func(h *Handle) { started <- h }
	o.Log = func(format string, args ...any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.logs = append(r.logs, fmt.Sprintf(format, args...))
	}
	go func() { r.done <- Run(ctx, o) }()
	select {
	case r.h = <-started:
	case err := <-r.done:
		t.Fatalf("the kubelet ended: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the kubelet does not start")
	}
	return r
}

// end ends the kubelet as SIGTERM does.
func (r *kubeletRun) end() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Errorf("the kubelet ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		r.t.Fatal("the kubelet does not end")
	}
}

func (r *kubeletRun) logged(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.logs, func(line string) bool { return strings.Contains(line, text) })
}

// container waits until the pod runs and returns the ID of its container.
func (r *kubeletRun) container() string {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list, err := r.h.Pods()
		if err != nil && !errors.Is(err, ErrNoAnswer) {
			r.t.Fatal(err)
		}
		if len(list) == 1 && list[0].Status.Phase == v1.PodRunning {
			return list[0].Status.ContainerStatuses[0].ContainerID
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Fatalf("the pod does not run; the log:\n%s", strings.Join(r.logs, "\n"))
	return ""
}

// TestTakeover starts a pod, ends the kubelet and starts it again, and sets the
// clock: the container goes on.
func TestTakeover(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	srv := fakecritest.NewServer(t)
	c, links := config(t), t.TempDir()
	c.ContainerRuntimeEndpoint = srv.Endpoint()
	if err := os.WriteFile(filepath.Join(c.StaticPodPath, "app.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: c, NodeName: "node", RootDir: t.TempDir(), ContainerLogsDir: links,
		Defaulter: apiserver.SetPodDefaults,
		Validator: func(pod *v1.Pod) error { return apiserver.ValidatePod(pod).ToAggregate() },
	}
	t.Cleanup(func() { _ = unix.Unmount(o.RootDir, 0) })
	first := start(t, o)
	id := first.container()
	if err := errors.Join(first.h.Ping(), first.h.SyncLoopHealthy()); err != nil {
		t.Error(err)
	}
	if list, err := filepath.Glob(links + "/app-node_default_main-*.log"); err != nil || len(list) != 1 {
		t.Errorf("the links to logs are %v, %v", list, err)
	}
	first.end()
	if err := first.h.Ping(); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("an ended kubelet answers: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.RootDir, "allocated_pods_state")); err != nil {
		t.Error(err)
	}
	if first.logged("cgroup v1 detected") {
		t.Error("it warns of cgroup v1 where there is none")
	}
	o.CgroupV1 = true
	second := start(t, o)
	if got := second.container(); got != id {
		t.Errorf("the container was %s, is %s", id, got)
	}
	second.end()
	if !second.logged("cgroup v1 detected") {
		t.Error("it does not warn of cgroup v1")
	}
	steps := make(chan struct{}, 1)
	steps <- struct{}{}
	o.watchClock = func(ctx context.Context, step func()) {
		select {
		case <-steps:
			step()
		case <-ctx.Done():
		}
	}
	third := start(t, o)
	for end := time.Now().Add(20 * time.Second); !third.logged("clock was set") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if !third.logged("clock was set") {
		t.Error("the kubelet did not start over")
	}
	if got := third.container(); got != id {
		t.Errorf("after the clock was set: the container was %s, is %s", id, got)
	}
	third.end()
}

func TestRunRefuses(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"no configuration", Options{}, "there is no configuration"},
		{"a relative root", Options{Config: config(t), RootDir: "var/lib"}, "rootDirectory not in canonical form: expected var/lib, was var/lib"},
		{"a root with dots", Options{Config: config(t), RootDir: "/var/../lib"}, "expected /lib, was /var/../lib"},
		{"no runtime", Options{Config: config(t), NodeName: "n", RootDir: t.TempDir()}, "validate service connection: validate CRI v1 runtime API for endpoint"},
		{"no root, which is the default one", Options{Config: config(t), NodeName: "n"}, "validate service connection: validate CRI v1 runtime API for endpoint"},
	} {
		err := Run(context.Background(), tc.o)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
