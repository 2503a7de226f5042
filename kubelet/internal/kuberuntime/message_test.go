package kuberuntime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

// plainHelper gives containers the plain values of their environment, and a
// place for their termination messages.
type plainHelper struct{}

func (plainHelper) GenerateRunContainerOptions(_ context.Context, pod *v1.Pod, c *v1.Container, podIPs []string, _ bool) (*kubecontainer.RunContainerOptions, error) {
	out := &kubecontainer.RunContainerOptions{}
	for _, e := range c.Env {
		if e.Value == "fail" {
			return nil, errors.New("no such thing")
		}
		out.Envs = append(out.Envs, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(e.Value)})
	}
	for _, m := range c.VolumeMounts {
		out.Mounts = append(out.Mounts, &runtimeapi.Mount{ContainerPath: m.MountPath, HostPath: "/ips/" + strings.Join(podIPs, ",")})
	}
	if c.TerminationMessagePath != "" {
		out.PodContainerDir = "/pods/" + string(pod.UID) + "/containers/" + c.Name
	}
	return out, nil
}

func (plainHelper) GetOrCreateUserNamespaceMappings(*v1.Pod, string) (*runtimeapi.UserNamespace, error) {
	return nil, errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
}

func TestMountsOfTerminationMessage(t *testing.T) {
	r := newRig(t)
	files := &testFS{MapFS: fstest.MapFS{}}
	r.useFS(files)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	c := &pod.Spec.Containers[0]
	c.TerminationMessagePath = "/dev/termination-log"
	c.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
	r.sync(pod)
	mounts := r.f.configs["c0"].Mounts
	if len(mounts) != 2 || mounts[0].HostPath != "/ips/10.0.0.7" || mounts[1].ContainerPath != "/dev/termination-log" {
		t.Fatalf("%v", mounts)
	}
	dir, name := mounts[1].HostPath[:len(mounts[1].HostPath)-8], mounts[1].HostPath[len(mounts[1].HostPath)-8:]
	if dir != "/pods/u/containers/c0/" || strings.Trim(name, "0123456789abcdef") != "" {
		t.Errorf("%s", mounts[1].HostPath)
	}
	if f := files.MapFS[strings.TrimPrefix(mounts[1].HostPath, "/")]; f == nil || f.Mode != 0o666 || len(f.Data) != 0 {
		t.Errorf("%v", f)
	}
}

func TestConfigErrorIsTold(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "fail"}}
	result := r.sync(pod)
	got := result.SyncResults[len(result.SyncResults)-1]
	if !errors.Is(got.Error, kubecontainer.ErrCreateContainerConfig) || got.Message != "no such thing" {
		t.Errorf("%v %s", got.Error, got.Message)
	}
	if slices.ContainsFunc(r.f.calls, func(c string) bool { return strings.HasPrefix(c, "CreateContainer") }) {
		t.Error(r.f.calls)
	}
}

// denied is a FS on which one file can't be read.
type denied struct{ *testFS }

func (d denied) ReadFile(name string) ([]byte, error) {
	if name == "/denied" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.testFS.ReadFile(name)
}

func TestTerminationMessage(t *testing.T) {
	const stamp = "2026-01-01T00:00:00Z stdout F "
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "%sline %d\n", stamp, i)
	}
	long := strings.Repeat("x", 5000) + "end"
	files := denied{&testFS{MapFS: fstest.MapFS{
		"msg": {Data: []byte("bye\n")}, "empty": {}, "long": {Data: []byte(long)},
		"log": {Data: []byte(log.String())}, "log2": {Data: []byte(stamp + "a\n2026-01-01T00:00:00Z stderr P b\n" + stamp + "c\nrubbish\n")},
		"log3": {Data: []byte(stamp + strings.Repeat("y", 3000) + "\n")},
	}}}
	var lines []string
	for i := 20; i < 100; i++ {
		lines = append(lines, fmt.Sprintf("line %d\n", i))
	}
	fallback := string(v1.TerminationMessageFallbackToLogsOnError)
	for _, tc := range []struct {
		name, host, policy, log string
		code                    int32
		reason, message, want   string
	}{
		{"written", "/msg", "File", "/log", 0, "Completed", "", "bye\n"},
		{"nothing written", "/empty", "File", "/log", 1, "Error", "", ""},
		{"the end of a long one", "/long", "File", "/log", 1, "Error", "", long[len(long)-4096:]},
		{"after the runtime's", "/msg", "File", "/log", 137, "Error", "killed", "killed: bye\n"},
		{"no mount", "", "File", "/log", 1, "Error", "", ""},
		{"file gone", "/gone", "File", "/log", 1, "Error", "", ""},
		{"unreadable", "/denied", fallback, "/log", 1, "Error", "", "Error on reading termination log /denied: open /denied: permission denied"},
		{"written, though the log would do", "/msg", fallback, "/log", 1, "Error", "", "bye\n"},
		{"from the log", "/empty", fallback, "/log", 1, "Error", "", strings.Join(lines, "")},
		{"from the log, without a file", "", fallback, "/log2", 1, "Error", "", "a\nbc\n"},
		{"the end of a long line", "/empty", fallback, "/log3", 1, "Error", "", strings.Repeat("y", 2047) + "\n"},
		{"not after success", "/empty", fallback, "/log", 0, "Completed", "", ""},
		{"never ran", "/empty", fallback, "/log", 128, "ContainerCannotRun", "", ""},
		{"no log", "/empty", fallback, "/nolog", 1, "Error", "",
			`Error on reading termination message from logs: failed to try resolving symlinks in path "/nolog": open nolog: file does not exist`},
	} {
		r := newRig(t)
		r.useFS(files)
		s := &runtimeapi.ContainerStatus{LogPath: tc.log, Annotations: map[string]string{annotationTerminationPath: "/t", annotationTerminationPolicy: tc.policy}}
		if tc.host != "" {
			s.Mounts = []*runtimeapi.Mount{{ContainerPath: "/other", HostPath: "/long"}, {ContainerPath: "/t", HostPath: tc.host}}
		}
		out := &kubecontainer.Status{ExitCode: tc.code, Reason: tc.reason, Message: tc.message}
		r.m.messages.add(out, s)
		if out.Message != tc.want {
			t.Errorf("%s: %q", tc.name, out.Message)
		}
	}
}
