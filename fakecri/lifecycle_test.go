package fakecri

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/ground/usage"
)

func TestLifecycle(t *testing.T) {
	e := run(t, Options{Images: []Image{appImage}}, func(e *env) {
		var sb string
		e.within(e.took(func() { sb = e.sandbox("web", 2) }), 80*time.Millisecond, 141*time.Millisecond)
		st, err := e.c.PodSandboxStatus(e.ctx, sb, false)
		e.ok(err)
		if st.Status.State != records.SandboxReady || st.Status.Network.Ip != "10.244.0.2" || st.Status.Metadata.Attempt != 2 ||
			st.Status.CreatedAt <= 0 || st.Status.Labels["app"] != "web" || st.Status.Annotations["a"] != "b" || len(st.Info) != 0 {
			t.Errorf("status: %+v", st.Status)
		}
		id := e.create(sb, "web", "main", 0)
		if len(sb) != 64 || len(id) != 64 {
			t.Errorf("ids %q %q are not 64 digits long", sb, id)
		}
		if s := e.status(id); s.State != records.StateCreated || s.LogPath != "/var/log/pods/web/main/0.log" || s.Image.Image != "docker.io/library/app:1" || s.ImageRef == "" {
			t.Errorf("created: %+v", s)
		}
		e.ok(e.c.StartContainer(e.ctx, id))
		if s := e.status(id); s.State != records.StateRunning || s.StartedAt == 0 || s.FinishedAt != 0 {
			t.Errorf("started: %+v", s)
		}
		e.code(e.c.StartContainer(e.ctx, id), codes.FailedPrecondition)
		e.within(e.took(func() { e.ok(e.c.StopContainer(e.ctx, id, 60)) }), 50*time.Millisecond, 131*time.Millisecond)
		e.exited(id, 0, "Completed")
		e.ok(e.c.StopContainer(e.ctx, id, 60))
		e.code(e.c.StartContainer(e.ctx, id), codes.FailedPrecondition)

		second := e.start(sb, "web", "main", 1)
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		e.exited(second, 137, "Error")
		st, err = e.c.PodSandboxStatus(e.ctx, sb, true)
		e.ok(err)
		if st.Status.State != records.SandboxNotReady || st.Status.Network.Ip != "" || len(st.Info) == 0 {
			t.Errorf("stopped: %+v", st.Status)
		}
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		_, err = e.c.CreateContainer(e.ctx, sb, containerConfig("web", "late", 0), nil)
		e.code(err, codes.FailedPrecondition)
		e.ok(e.c.RemoveContainer(e.ctx, id))
		e.ok(e.c.RemoveContainer(e.ctx, id))
		_, err = e.c.ContainerStatus(e.ctx, id, false)
		e.code(err, codes.NotFound)
		e.ok(e.c.RemovePodSandbox(e.ctx, sb))
		e.ok(e.c.RemovePodSandbox(e.ctx, sb))
		_, err = e.c.PodSandboxStatus(e.ctx, sb, false)
		e.code(err, codes.NotFound)
		if len(e.rt.recs.Pods) != 0 || len(e.rt.recs.ContainerByID) != 0 || len(e.rt.recs.Containers) != 0 {
			t.Errorf("something is left: %v", e.rt.recs.Pods)
		}
	})
	var got []string
	for _, r := range e.trace {
		if r.Kind == trace.KindCRI && field(r, "error") == "" {
			got = append(got, r.Verb+" "+r.Object+" "+field(r, "attempt")+field(r, "timeout"))
		}
		if r.Kind == trace.KindProcess {
			got = append(got, r.Verb+" "+r.Object+" "+field(r, "code"))
		}
	}
	want := []string{
		"RunPodSandbox pod default/web 2",
		"CreateContainer container default/web/main 0",
		"start container default/web/main ",
		"StartContainer container default/web/main 0",
		"exit container default/web/main 0",
		"StopContainer container default/web/main 060",
		"StopContainer container default/web/main 060",
		"CreateContainer container default/web/main 1",
		"start container default/web/main ",
		"StartContainer container default/web/main 1",
		"exit container default/web/main 137",
		"StopPodSandbox pod default/web 2",
		"StopPodSandbox pod default/web 2",
		"RemoveContainer container default/web/main 0",
		"RemoveContainer runtime ",
		"RemovePodSandbox pod default/web 2",
		"RemovePodSandbox runtime ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("trace:\n got %q\nwant %q", got, want)
	}
}

// Calls about what isn't there, or is malformed.
func TestRefusals(t *testing.T) {
	unknown := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	noUID := podConfig("x", 0)
	noUID.Metadata = &runtimeapi.PodSandboxMetadata{Name: "x", Namespace: "default"}
	userns := podConfig("x", 0)
	userns.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{
		UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_CONTAINER}}}}
	change := func(fn func(c *runtimeapi.ContainerConfig)) *runtimeapi.ContainerConfig {
		c := containerConfig("web", "main", 0)
		fn(c)
		return c
	}
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		sb := e.sandbox("web", 0)
		e.create(sb, "web", "taken", 0)
		sandbox := func(cfg *runtimeapi.PodSandboxConfig, handler string) error {
			_, err := e.c.RunPodSandbox(e.ctx, cfg, handler)
			return err
		}
		create := func(sb string, cfg *runtimeapi.ContainerConfig) error {
			_, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
			return err
		}
		for _, tc := range []struct {
			name string
			err  error
			want codes.Code
		}{
			{"stop an unknown sandbox", e.c.StopPodSandbox(e.ctx, unknown), codes.OK},
			{"remove an unknown sandbox", e.c.RemovePodSandbox(e.ctx, unknown), codes.OK},
			{"stop an unknown container", e.c.StopContainer(e.ctx, unknown, 0), codes.OK},
			{"remove an unknown container", e.c.RemoveContainer(e.ctx, unknown), codes.OK},
			{"remove an unknown image", e.c.RemoveImage(e.ctx, &runtimeapi.ImageSpec{Image: unknown}), codes.OK},
			{"start an unknown container", e.c.StartContainer(e.ctx, unknown), codes.NotFound},
			{"update an unknown container", e.c.UpdateContainerResources(e.ctx, unknown, nil), codes.NotFound},
			{"reopen an unknown log", e.c.ReopenContainerLog(e.ctx, unknown), codes.NotFound},
			{"the same sandbox twice", sandbox(podConfig("web", 0), ""), codes.AlreadyExists},
			{"another attempt", sandbox(podConfig("web", 1), "runc"), codes.OK},
			{"no uid", sandbox(noUID, ""), codes.InvalidArgument},
			{"nothing at all", sandbox(nil, ""), codes.InvalidArgument},
			{"unknown handler", sandbox(podConfig("y", 0), "kata"), codes.InvalidArgument},
			{"a bad user namespace", sandbox(userns, ""), codes.InvalidArgument},
			{"the same container twice", create(sb, containerConfig("web", "taken", 0)), codes.AlreadyExists},
			{"container without sandbox", create(unknown, containerConfig("web", "main", 0)), codes.NotFound},
			{"container without config", create(sb, nil), codes.InvalidArgument},
			{"an absent image", create(sb, change(func(c *runtimeapi.ContainerConfig) { c.Image = &runtimeapi.ImageSpec{Image: "none:1"} })), codes.NotFound},
			{"a group without a user", create(sb, change(func(c *runtimeapi.ContainerConfig) {
				c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{RunAsGroup: &runtimeapi.Int64Value{Value: 5}}}
			})), codes.InvalidArgument},
			{"a recursive read-only mount that isn't read-only", create(sb, change(func(c *runtimeapi.ContainerConfig) {
				c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/a", RecursiveReadOnly: true}}
			})), codes.InvalidArgument},
			{"what failed before", create(sb, containerConfig("web", "main", 0)), codes.OK},
		} {
			if got := status.Code(tc.err); got != tc.want {
				t.Errorf("%s: %s (%v), want %s", tc.name, got, tc.err, tc.want)
			}
		}
		_, _, err := e.c.ExecSync(e.ctx, unknown, []string{"true"}, 0)
		e.code(err, codes.NotFound)
		if got := len(e.rt.recs.ListContainers(nil)); got != 2 {
			t.Errorf("%d containers are listed, want 2", got)
		}
	})
}

// A sandbox is removed with all its containers, running ones too, and its IP
// comes back only when there is no other.
func TestRemoveSandboxAndIPs(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, PodCIDR: "10.0.0.0/29"}, func(e *env) {
		ip := func(id string) string {
			st, err := e.c.PodSandboxStatus(e.ctx, id, false)
			e.ok(err)
			return st.Status.Network.Ip
		}
		first := e.sandbox("a", 0)
		id := e.start(first, "a", "main", 0)
		if ip(first) != "10.0.0.2" {
			t.Errorf("IP %s", ip(first))
		}
		e.ok(e.c.RemovePodSandbox(e.ctx, first))
		_, err := e.c.ContainerStatus(e.ctx, id, false)
		e.code(err, codes.NotFound)
		for i, want := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2"} {
			if got := ip(e.sandbox(string(rune('b'+i)), 0)); got != want {
				t.Errorf("sandbox %d has IP %s, want %s", i, got, want)
			}
		}
		_, err = e.c.RunPodSandbox(e.ctx, podConfig("z", 0), "")
		e.code(err, codes.Unknown)
		host := podConfig("host", 0)
		host.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
		hid, err := e.c.RunPodSandbox(e.ctx, host, "")
		e.ok(err)
		st, err := e.c.PodSandboxStatus(e.ctx, hid, false)
		e.ok(err)
		if st.Status.Network.Ip != "" || st.Status.Linux.Namespaces.Options.Network != runtimeapi.NamespaceMode_NODE {
			t.Errorf("host network: %+v", st.Status)
		}
	})
}

func TestUpdateResources(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: Behaviour{Memory: usage.Constant(100)}}}}, func(e *env) {
		sb := e.sandbox("web", 0)
		cfg := containerConfig("web", "main", 0)
		cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuShares: 512, MemoryLimitInBytes: 200}}
		id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, id))
		update := func(mem int64) {
			e.ok(e.c.UpdateContainerResources(e.ctx, id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: mem}}))
		}
		update(150)
		lin := e.status(id).Resources.Linux
		if lin.CpuShares != 512 || lin.MemoryLimitInBytes != 150 || cfg.Linux.Resources.MemoryLimitInBytes != 200 {
			t.Errorf("resources %+v, request %+v", lin, cfg.Linux.Resources)
		}
		update(99)
		e.sleep(time.Millisecond)
		e.exited(id, 137, "OOMKilled")
	})
}

func TestService(t *testing.T) {
	run(t, Options{CgroupDriver: "systemd"}, func(e *env) {
		v, err := e.c.Version(e.ctx, "0.1.0")
		e.ok(err)
		if v.Version != "0.1.0" || v.RuntimeName != "containerd" || v.RuntimeVersion != "2.4.2" || v.RuntimeApiVersion != "v1" {
			t.Errorf("version %+v", v)
		}
		rc, err := e.c.RuntimeConfig(e.ctx)
		e.ok(err)
		if rc.Linux.CgroupDriver != runtimeapi.CgroupDriver_SYSTEMD {
			t.Errorf("driver %s", rc.Linux.CgroupDriver)
		}
		for _, ready := range []bool{true, false, true} {
			e.rt.SetNetworkReady(ready, "NetworkPluginNotReady", "cni plugin not initialized")
			st, err := e.c.Status(e.ctx, false)
			e.ok(err)
			cs := st.Status.Conditions
			if cs[0].Type != "RuntimeReady" || !cs[0].Status || cs[1].Type != "NetworkReady" || cs[1].Status != ready || (cs[1].Reason == "") != ready {
				t.Errorf("ready %v: %+v", ready, cs)
			}
		}
	})
}
