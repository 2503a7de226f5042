package kuberuntime

import (
	"context"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/security"
)

func TestCgroupParent(t *testing.T) {
	for _, tc := range []struct {
		class   v1.PodQOSClass
		systemd bool
		want    string
	}{
		{v1.PodQOSGuaranteed, false, "/kubepods/poda-b"},
		{v1.PodQOSBurstable, false, "/kubepods/burstable/poda-b"},
		{v1.PodQOSBestEffort, true, "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poda_b.slice"},
		{v1.PodQOSGuaranteed, true, "/kubepods.slice/kubepods-poda_b.slice"},
	} {
		n := NodeConfig{CgroupsPerQOS: true, CgroupRoot: "/", SystemdCgroups: tc.systemd}
		cgroups := n.podCgroups(tc.class)
		if got := cgroups.parent("a-b"); got != tc.want {
			t.Errorf("%s: %s", tc.class, got)
		}
	}
}

func TestExpandAll(t *testing.T) {
	env := []*runtimeapi.KeyValue{{Key: "A", Value: []byte("1")}, {Key: "B", Value: []byte("$(A)")}}
	plain := []string{"a", "b"}
	if got := expandAll(plain, env); &got[0] != &plain[0] {
		t.Error("a plain line was copied")
	}
	if got, want := expandAll([]string{"$(A)", "x$(B)", "$(C)", "$$(A)"}, env), []string{"1", "x$(A)", "$(C)", "$(A)"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestConfigs(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	pod.Labels = map[string]string{"app": "x"}
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(7)), FSGroup: new(int64(9)), Sysctls: []v1.Sysctl{{Name: "net/core/a", Value: "1"}}}
	c := &pod.Spec.Containers[0]
	c.Ports = []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolTCP}, {ContainerPort: 80, Protocol: v1.ProtocolTCP}, {ContainerPort: 53, Protocol: v1.ProtocolUDP, HostPort: 5353}}
	c.TerminationMessagePath, c.TerminationMessagePolicy = "/dev/termination-log", v1.TerminationMessageReadFile
	c.Env = []v1.EnvVar{{Name: "A", Value: "1"}}
	c.Command = []string{"run", "$(A)"}
	c.Args = []string{"plain"}
	r.sync(pod)
	box, cc := r.f.boxConfig, r.f.configs["c0"]
	if want := map[string]string{"app": "x", "io.kubernetes.pod.name": "p", "io.kubernetes.pod.namespace": "ns", "io.kubernetes.pod.uid": "u"}; !reflect.DeepEqual(box.Labels, want) {
		t.Errorf("sandbox labels %v", box.Labels)
	}
	if len(pod.Labels) != 1 {
		t.Error("the pod was written to")
	}
	if box.LogDirectory != "/var/log/pods/ns_p_u" || box.Hostname != "p" || len(box.PortMappings) != 2 || box.Linux.Sysctls["net.core.a"] != "1" || box.Linux.SecurityContext.RunAsUser.Value != 7 {
		t.Errorf("%v", box)
	}
	if want := map[string]string{
		annotationHash: kubecontainer.HashContainer(c), annotationRestartCount: "0", annotationTerminationPath: "/dev/termination-log", annotationTerminationPolicy: "File",
		annotationPodGrace: "30", annotationPorts: `[{"containerPort":80,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP"},{"hostPort":5353,"containerPort":53,"protocol":"UDP"}]`,
	}; !reflect.DeepEqual(cc.Annotations, want) {
		t.Errorf("annotations %v", cc.Annotations)
	}
	if want := map[string]string{"io.kubernetes.container.name": "c0", "io.kubernetes.pod.name": "p", "io.kubernetes.pod.namespace": "ns", "io.kubernetes.pod.uid": "u"}; !reflect.DeepEqual(cc.Labels, want) {
		t.Errorf("container labels %v", cc.Labels)
	}
	if cc.LogPath != "c0/0.log" || cc.Image.Image != "sha256:img:latest" || cc.Image.UserSpecifiedImage != "img" || strings.Join(cc.Command, " ") != "run 1" {
		t.Errorf("%v", cc)
	}
	if &cc.Args[0] != &c.Args[0] {
		t.Error("arguments without variables are not shared")
	}
	sec := cc.Linux.SecurityContext
	if sec.RunAsUser.Value != 7 || !reflect.DeepEqual(sec.SupplementalGroups, []int64{9}) || sec.Seccomp.ProfileType != runtimeapi.SecurityProfile_Unconfined || len(sec.MaskedPaths) == 0 {
		t.Errorf("%v", sec)
	}
	r.do(func(ctx context.Context) {
		s := r.status(ctx).ContainerStatuses[0]
		if s.Hash != kubecontainer.HashContainer(c) || s.State != kubecontainer.StateRunning || s.PodSandboxID != "box0" || s.StartedAt.IsZero() {
			t.Errorf("%+v", s)
		}
	})
}

type testFS struct {
	fstest.MapFS
	made []string
}

func (f *testFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return f.MapFS.ReadDir(strings.TrimPrefix(name, "/"))
}
func (f *testFS) MkdirAll(path string, _ fs.FileMode) error {
	f.made = append(f.made, path)
	return nil
}
func (f *testFS) Remove(name string) error {
	delete(f.MapFS, strings.TrimPrefix(name, "/"))
	return nil
}
func (f *testFS) RemoveAll(path string) error { return f.Remove(path) }
func (f *testFS) ReadFile(name string) ([]byte, error) {
	return f.MapFS.ReadFile(strings.TrimPrefix(name, "/"))
}
func (f *testFS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	f.MapFS[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: data, Mode: perm}
	return nil
}

func TestLogDirectory(t *testing.T) {
	r := newRig(t)
	files := &testFS{MapFS: fstest.MapFS{}}
	for _, n := range []string{"0.log", "3.log.20260101-000000", "2.log.gz", "x.log", "9.txt"} {
		files.MapFS["var/log/pods/ns_p_u/c0/"+n] = &fstest.MapFile{}
	}
	r.useFS(files)
	r.sync(withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30))
	// The names of the logs tell the restart count when no status does.
	if got := r.f.configs["c0"]; got.Metadata.Attempt != 4 || got.LogPath != "c0/4.log" {
		t.Errorf("%v", got.Metadata)
	}
	if want := []string{"/var/log/pods/ns_p_u", "/var/log/pods/ns_p_u/c0"}; !reflect.DeepEqual(files.made, want) {
		t.Errorf("%v", files.made)
	}
	r.m.logs.remove("/var/log/pods/ns_p_u/c0/3.log")
	if len(files.MapFS) != 4 {
		t.Errorf("%d files left", len(files.MapFS))
	}
}

// What is equal for many pods is one message; what differs is not.
func TestSharedMessages(t *testing.T) {
	linux := func(m *Manager, pod *v1.Pod, target string) *runtimeapi.LinuxContainerConfig {
		out, err := m.linuxContainerConfig(context.Background(), pod, &pod.Spec.Containers[0], security.User{}, target)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	plain := func(uid string) *v1.Pod {
		pod := podtest.Pod(v1.RestartPolicyAlways, 0, 1)
		pod.UID, pod.Spec.SecurityContext = uidType(uid), &v1.PodSecurityContext{}
		return pod
	}
	m := newRig(t).m
	base := linux(m, plain("a"), "")
	if linux(m, plain("b"), "") != base {
		t.Error("plain pods of two manifests don't share")
	}
	replica := plain("c")
	replica.Spec.Containers[0].Resources.Requests = podtest.Resources("1/- 1Gi/-").Requests
	other := *replica
	other.UID = "d"
	if linux(m, replica, "") != linux(m, &other, "") || linux(m, replica, "") == base {
		t.Error("replicas don't share, or share too much")
	}
	user := plain("e")
	user.Spec.SecurityContext.RunAsUser = new(int64(5))
	host := plain("f")
	host.Spec.HostPID = true
	if linux(m, user, "") == base || linux(m, host, "") == base || linux(m, user, "").SecurityContext.RunAsUser.Value != 5 {
		t.Error("a pod with its own security context shares that of others")
	}
	if got := linux(m, plain("g"), "target"); got == base || got.SecurityContext.NamespaceOptions.TargetId != "target" || linux(m, plain("a"), "").SecurityContext.NamespaceOptions.TargetId != "" {
		t.Error("a target is shared")
	}
	one, err := m.sandboxConfig(context.Background(), plain("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	two, err := m.sandboxConfig(context.Background(), user, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := one.Config(), two.Config()
	if a.Linux.SecurityContext == b.Linux.SecurityContext || a.Linux.Resources != b.Linux.Resources || a.DnsConfig != b.DnsConfig {
		t.Error("sandboxes share the wrong parts")
	}
}
