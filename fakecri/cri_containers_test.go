package fakecri

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

func withSecurity(sc *runtimeapi.LinuxContainerSecurityContext) func(c *runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext = sc }
}

func resources(lin *runtimeapi.LinuxContainerResources) func(c *runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) { c.Linux.Resources = lin }
}

func mounts(m ...*runtimeapi.Mount) func(c *runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) { c.Mounts = m }
}

// shellConfig is a container of busybox that runs until it is stopped.
func shellConfig(name string) *runtimeapi.ContainerConfig {
	c := containerConfig("web", name, 2)
	c.Image = &runtimeapi.ImageSpec{Image: "busybox:1", UserSpecifiedImage: "busybox:1"}
	c.Command = []string{"sh", "-c", "top"}
	c.Linux = &runtimeapi.LinuxContainerConfig{}
	return c
}

func TestContainerConfigs(t *testing.T) {
	const (
		private = runtimeapi.MountPropagation_PROPAGATION_PRIVATE
		slave   = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		shared  = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	)
	mount := func(host string, ro, rro bool, p runtimeapi.MountPropagation) *runtimeapi.Mount {
		return &runtimeapi.Mount{ContainerPath: "/v" + host, HostPath: host, Readonly: ro, RecursiveReadOnly: rro, Propagation: p}
	}
	image := func(name, sub string, ro bool) *runtimeapi.Mount {
		return &runtimeapi.Mount{ContainerPath: "/image", Readonly: ro, Image: spec(name), ImageSubPath: sub}
	}
	for _, tc := range []struct {
		name string
		edit func(c *runtimeapi.ContainerConfig)
		want codes.Code
	}{
		{"plain", func(*runtimeapi.ContainerConfig) {}, codes.OK},
		{"nothing but metadata and image", func(c *runtimeapi.ContainerConfig) {
			c.Labels, c.Annotations, c.Linux, c.LogPath, c.Command = nil, nil, nil, "", nil
		}, codes.OK},
		{"no metadata", func(c *runtimeapi.ContainerConfig) { c.Metadata = nil }, codes.InvalidArgument},
		{"no name", func(c *runtimeapi.ContainerConfig) { c.Metadata.Name = "" }, codes.InvalidArgument},
		{"no image", func(c *runtimeapi.ContainerConfig) { c.Image = nil }, codes.InvalidArgument},
		{"image that is not there", func(c *runtimeapi.ContainerConfig) { c.Image = spec("other:1") }, codes.NotFound},
		{"group without user", withSecurity(&runtimeapi.LinuxContainerSecurityContext{RunAsGroup: int64Value(1002)}), codes.InvalidArgument},
		{"group and user", withSecurity(&runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1001), RunAsGroup: int64Value(1002)}), codes.OK},
		{"group and name", withSecurity(&runtimeapi.LinuxContainerSecurityContext{RunAsUsername: "nobody", RunAsGroup: int64Value(1002)}), codes.OK},
		{"negative user", withSecurity(&runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(-1)}), codes.InvalidArgument},
		{"negative group of many", withSecurity(&runtimeapi.LinuxContainerSecurityContext{SupplementalGroups: []int64{1, -2}}), codes.InvalidArgument},
		{"name that is not in the image", withSecurity(&runtimeapi.LinuxContainerSecurityContext{RunAsUsername: "nosuch"}), codes.Unknown},
		{"target that is not there", withSecurity(&runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: "none"}}), codes.InvalidArgument},
		{"userns of its own", withSecurity(&runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: usernsPod(idMap(0, 65536, 65536))}), codes.InvalidArgument},
		{"unknown groups policy", withSecurity(&runtimeapi.LinuxContainerSecurityContext{SupplementalGroupsPolicy: 9}), codes.InvalidArgument},
		{"unknown seccomp profile type", withSecurity(&runtimeapi.LinuxContainerSecurityContext{Seccomp: &runtimeapi.SecurityProfile{ProfileType: 9}}), codes.InvalidArgument},
		{"seccomp profile of nowhere", withSecurity(&runtimeapi.LinuxContainerSecurityContext{Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost}}), codes.InvalidArgument},
		{"unknown AppArmor profile type", withSecurity(&runtimeapi.LinuxContainerSecurityContext{Apparmor: &runtimeapi.SecurityProfile{ProfileType: -1}}), codes.InvalidArgument},
		{"unknown stop signal", func(c *runtimeapi.ContainerConfig) { c.StopSignal = 999 }, codes.InvalidArgument},
		{"stop signal", func(c *runtimeapi.ContainerConfig) { c.StopSignal = runtimeapi.Signal_SIGUSR1 }, codes.OK},

		{"mounts", mounts(mount("/a", false, false, private), mount("/b", true, false, slave), mount("/c", false, false, shared),
			&runtimeapi.Mount{ContainerPath: "/d", HostPath: "/d", SelinuxRelabel: true, UidMappings: []*runtimeapi.IDMapping{idMap(0, 1, 2)}, GidMappings: []*runtimeapi.IDMapping{idMap(0, 3, 4)}}), codes.OK},
		{"mount from nowhere", mounts(mount("", false, false, private)), codes.InvalidArgument},
		{"mount over the root", mounts(&runtimeapi.Mount{HostPath: "/a", ContainerPath: "/"}), codes.InvalidArgument},
		{"mount over the root, otherwise said", mounts(&runtimeapi.Mount{HostPath: "/a", ContainerPath: "b/../."}), codes.InvalidArgument},
		{"mount to nowhere", mounts(&runtimeapi.Mount{HostPath: "/a"}), codes.InvalidArgument},
		{"unknown propagation", mounts(mount("/a", false, false, 7)), codes.InvalidArgument},
		{"rro", mounts(mount("/a", true, true, private)), codes.OK},
		{"rro of what is not readonly", mounts(mount("/a", false, true, private)), codes.InvalidArgument},
		{"rro of a slave", mounts(mount("/a", true, true, slave)), codes.InvalidArgument},
		{"rro of what is shared", mounts(mount("/a", true, true, shared)), codes.InvalidArgument},
		{"image volume", mounts(image("busybox:1", "", true)), codes.OK},
		{"part of an image", mounts(image("busybox:1", "etc", true)), codes.OK},
		{"part that is not there", mounts(image("busybox:1", "not-existing", true)), codes.InvalidArgument},
		{"image volume to write to", mounts(image("busybox:1", "", false)), codes.InvalidArgument},
		{"image volume of what is not there", mounts(image("other:1", "", true)), codes.NotFound},

		{"resources", resources(&runtimeapi.LinuxContainerResources{
			CpuPeriod: 100_000, CpuQuota: 20_000, CpuShares: 1024, MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 64 << 20, OomScoreAdj: -997,
			CpusetCpus: "0-1,3", CpusetMems: "0", HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB"}}, Unified: map[string]string{"memory.oom.group": "1"},
		}), codes.OK},
		{"quota for ever", resources(&runtimeapi.LinuxContainerResources{CpuQuota: -1, MemorySwapLimitInBytes: -1}), codes.OK},
		{"negative memory", resources(&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: -5}), codes.InvalidArgument},
		{"negative shares", resources(&runtimeapi.LinuxContainerResources{CpuShares: -5}), codes.InvalidArgument},
		{"short period", resources(&runtimeapi.LinuxContainerResources{CpuPeriod: 1}), codes.InvalidArgument},
		{"oom score", resources(&runtimeapi.LinuxContainerResources{OomScoreAdj: 1001}), codes.InvalidArgument},
		{"swap below memory", resources(&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 2 << 20, MemorySwapLimitInBytes: 1 << 20}), codes.InvalidArgument},
		{"cpus", resources(&runtimeapi.LinuxContainerResources{CpusetCpus: "3-1"}), codes.InvalidArgument},
		{"cpus in words", resources(&runtimeapi.LinuxContainerResources{CpusetCpus: "all"}), codes.InvalidArgument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, socketOptions, func(e *env) {
				imageID := e.pull("busybox:1")
				sb := e.sandbox("web", 0)
				cfg := shellConfig("main")
				tc.edit(cfg)
				sent := proto.Clone(cfg).(*runtimeapi.ContainerConfig)
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, podConfig("web", 0))
				e.code(err, tc.want)
				list, lerr := e.c.ListContainers(e.ctx, nil)
				e.ok(lerr)
				if err != nil {
					if id != "" || len(list) != 0 {
						t.Errorf("a failed call left %q, %v", id, list)
					}
					_, err := e.c.CreateContainer(e.ctx, sb, shellConfig("main"), nil) // and the name is free
					e.ok(err)
					return
				}
				resp, err := e.c.ContainerStatus(e.ctx, id, true)
				e.ok(err)
				checkEcho(t, resp.Status, sent, imageID)
				if len(list) != 1 || !proto.Equal(list[0].Metadata, sent.Metadata) || list[0].PodSandboxId != sb || !proto.Equal(list[0].Image, sent.Image) ||
					!equalMaps(list[0].Labels, sent.Labels) || !equalMaps(list[0].Annotations, sent.Annotations) || list[0].State != records.StateCreated {
					t.Errorf("list %v", list)
				}
				if resp.Status.LogPath != "" && resp.Status.LogPath != "/var/log/pods/web/"+sent.LogPath || (sent.LogPath == "") != (resp.Status.LogPath == "") {
					t.Errorf("log path %q", resp.Status.LogPath)
				}
				var info struct {
					SandboxID   string
					PID         int
					RuntimeSpec struct{ Process struct{ Args []string } }
				}
				if err := json.Unmarshal([]byte(resp.Info["info"]), &info); err != nil || info.SandboxID != sb || info.PID != 0 || len(info.RuntimeSpec.Process.Args) == 0 {
					t.Errorf("info %s: %v", resp.Info["info"], err)
				}
				_, err = e.c.CreateContainer(e.ctx, sb, shellConfig("main"), nil)
				e.code(err, codes.AlreadyExists)
			})
		})
	}
}

func equalMaps(a, b map[string]string) bool {
	return proto.Equal(&runtimeapi.Container{Labels: a}, &runtimeapi.Container{Labels: b})
}

// checkEcho compares a status with the configuration that was sent.
func checkEcho(t *testing.T, st *runtimeapi.ContainerStatus, sent *runtimeapi.ContainerConfig, imageID string) {
	t.Helper()
	if !proto.Equal(st.Metadata, sent.Metadata) || !equalMaps(st.Labels, sent.Labels) || !equalMaps(st.Annotations, sent.Annotations) ||
		st.State != records.StateCreated || st.CreatedAt <= 0 || st.StartedAt != 0 || st.ImageId != imageID || st.Image.GetImage() == "" || st.ImageRef == "" {
		t.Errorf("status %v", st)
	}
	if len(st.Mounts) != len(sent.Mounts) {
		t.Fatalf("mounts %v, want %v", st.Mounts, sent.Mounts)
	}
	for i, m := range sent.Mounts {
		if m.Image != nil {
			m.Image.ImageRef = imageID // it is told besides
		}
		if !proto.Equal(st.Mounts[i], m) {
			t.Errorf("mount %v, want %v", st.Mounts[i], m)
		}
	}
	if want := sent.GetLinux().GetResources(); want != nil && !proto.Equal(st.Resources.GetLinux(), want) {
		t.Errorf("resources %v, want %v", st.Resources, want)
	}
	if sent.StopSignal != 0 && st.StopSignal != sent.StopSignal || st.StopSignal == 0 {
		t.Errorf("stop signal %v", st.StopSignal)
	}
}

// TestUsersOfOneImage has containers of one image, whose files are not known, run
// as different users by turns.
func TestUsersOfOneImage(t *testing.T) {
	run(t, Options{Images: []Image{{Name: "app:1", Present: true, User: "7"}}}, func(e *env) {
		sb := e.sandbox("web", 0)
		type whom struct {
			uid, gid int64
			groups   string
		}
		want := map[string]whom{}
		check := func(when string, id string) {
			u := e.status(id).User.GetLinux()
			if got := (whom{u.GetUid(), u.GetGid(), jsonOf(u.GetSupplementalGroups())}); got != want[id] {
				t.Errorf("%s: user %v, want %v", when, got, want[id])
			}
		}
		for i, tc := range []struct {
			sc *runtimeapi.LinuxContainerSecurityContext
			whom
		}{
			{nil, whom{7, 0, "[0]"}},
			{&runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1000)}, whom{1000, 0, "[0]"}},
			{&runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1000), RunAsGroup: int64Value(5)}, whom{1000, 5, "[5]"}},
			{&runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1000), RunAsGroup: int64Value(5), SupplementalGroups: []int64{3}}, whom{1000, 5, "[3,5]"}},
			{&runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1000), RunAsGroup: int64Value(5)}, whom{1000, 5, "[5]"}},
			{nil, whom{7, 0, "[0]"}},
		} {
			cfg := shellConfig("c" + strconv.Itoa(i))
			cfg.Image, cfg.Linux.SecurityContext = spec("app:1"), tc.sc
			id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
			e.ok(err)
			want[id] = tc.whom
			check("first", id)
		}
		for id := range want {
			check("again", id)
		}
	})
}

func TestContainerUsers(t *testing.T) {
	const predefined = suite + "test-image-predefined-group"
	strict := runtimeapi.SupplementalGroupsPolicy_Strict
	for _, tc := range []struct {
		name, image string
		sc          *runtimeapi.LinuxContainerSecurityContext
		uid, gid    int64
		groups      []int64
	}{
		{"root", suite + "test-image-1", nil, 0, 0, []int64{0, 10}},
		{"merge", predefined, &runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1000), SupplementalGroups: []int64{1234}}, 1000, 1000, []int64{1000, 1234, 50000}},
		{"strict", predefined, &runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1000), SupplementalGroups: []int64{1234}, SupplementalGroupsPolicy: strict}, 1000, 1000, []int64{1000, 1234}},
		{"the image's", predefined, nil, 1000, 1000, []int64{1000, 50000}},
		{"the image's, by name", suite + "test-image-user-username", nil, 33, 33, []int64{33}},
		{"by name", "busybox:1", &runtimeapi.LinuxContainerSecurityContext{RunAsUsername: "nobody"}, 65534, 65534, []int64{65534}},
		{"with group", "busybox:1", &runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1001), RunAsGroup: int64Value(1002)}, 1001, 1002, []int64{1002}},
		{"with groups", "busybox:1", &runtimeapi.LinuxContainerSecurityContext{RunAsUser: int64Value(1001), SupplementalGroups: []int64{7, 5, 7}}, 1001, 0, []int64{0, 5, 7}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, socketOptions, func(e *env) {
				e.pull(tc.image)
				cfg := shellConfig("main")
				cfg.Image, cfg.Linux.SecurityContext = spec(tc.image), tc.sc
				sb := e.sandbox("web", 0)
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				check := func(when string) {
					u := e.status(id).User.GetLinux()
					if u.GetUid() != tc.uid || u.GetGid() != tc.gid || !slices.Equal(u.GetSupplementalGroups(), tc.groups) {
						t.Errorf("%s: user %v, want %d %d %v", when, u, tc.uid, tc.gid, tc.groups)
					}
				}
				check("created")
				e.ok(e.c.StartContainer(e.ctx, id))
				check("running")
				out, _, err := e.c.ExecSync(e.ctx, id, []string{"id", "-G"}, 0)
				e.ok(err)
				if want := strings.Trim(strings.ReplaceAll(strings.Trim(jsonOf(tc.groups), "[]"), ",", " "), " "); strings.TrimSpace(string(out)) != want {
					t.Errorf("id -G: %q, want %q", out, want)
				}
				e.ok(e.c.StopContainer(e.ctx, id, 0))
				check("exited")
			})
		})
	}
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func TestContainerLifecycleErrors(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("busybox:1")
		sb := e.sandbox("web", 0)
		create := func(name string, cmd ...string) string {
			cfg := shellConfig(name)
			if cmd != nil {
				cfg.Command = cmd
			}
			id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
			e.ok(err)
			return id
		}
		// A command that is not there.
		missing := create("missing", "/no/such/command")
		err := e.c.StartContainer(e.ctx, missing)
		e.code(err, codes.Unknown)
		if !strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("error %v", err)
		}
		st := e.status(missing)
		if st.State != records.StateExited || st.ExitCode != 128 || st.Reason != "StartError" || !strings.Contains(st.Message, "no such file") {
			t.Errorf("status %v", st)
		}
		e.code(e.c.StartContainer(e.ctx, missing), codes.FailedPrecondition)
		// What runs, and has run, is not started again.
		main := create("main")
		e.ok(e.c.StartContainer(e.ctx, main))
		e.code(e.c.StartContainer(e.ctx, main), codes.FailedPrecondition)
		var info struct{ PID int }
		resp, err := e.c.ContainerStatus(e.ctx, main, true)
		e.ok(err)
		if err := json.Unmarshal([]byte(resp.Info["info"]), &info); err != nil || info.PID <= 0 {
			t.Errorf("info %v: %v", resp.Info, err)
		}
		if d := e.took(func() { e.ok(e.c.StopContainer(e.ctx, main, 60)) }); d >= 60*time.Second {
			t.Errorf("the stop took %s", d)
		}
		e.ok(e.c.StopContainer(e.ctx, main, 60))
		e.code(e.c.StartContainer(e.ctx, main), codes.FailedPrecondition)
		// The reasons.
		for _, tc := range []struct {
			cmd    string
			code   int32
			reason string
		}{{"exit 0", 0, "Completed"}, {"exit 7", 7, "Error"}} {
			id := create(strings.ReplaceAll(tc.cmd, " ", "-"), "sh", "-c", tc.cmd)
			e.ok(e.c.StartContainer(e.ctx, id))
			e.sleep(time.Second)
			e.exited(id, tc.code, tc.reason)
		}
		// Each state can be removed.
		running := create("running")
		e.ok(e.c.StartContainer(e.ctx, running))
		for _, id := range []string{create("created"), running, main} {
			e.ok(e.c.RemoveContainer(e.ctx, id))
			e.ok(e.c.RemoveContainer(e.ctx, id))
			if list, err := e.c.ListContainers(e.ctx, &runtimeapi.ContainerFilter{Id: id}); err != nil || len(list) != 0 {
				t.Errorf("removed: %v, %v", list, err)
			}
		}
		// A stopped sandbox takes none.
		left := create("left")
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		_, err = e.c.CreateContainer(e.ctx, sb, shellConfig("late"), nil)
		e.code(err, codes.FailedPrecondition)
		e.code(e.c.StartContainer(e.ctx, left), codes.FailedPrecondition)
		e.ok(e.c.RemovePodSandbox(e.ctx, sb))
		if list, err := e.c.ListContainers(e.ctx, nil); err != nil || len(list) != 0 {
			t.Errorf("after the sandbox: %v, %v", list, err)
		}
	})
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	start := &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 20_000, CpuShares: 512, MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 128 << 20}
	for _, tc := range []struct {
		name   string
		change *runtimeapi.LinuxContainerResources
		want   *runtimeapi.LinuxContainerResources // nil: refused
	}{
		{"nothing", nil, start},
		{"shares", &runtimeapi.LinuxContainerResources{CpuShares: 1024}, &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 20_000, CpuShares: 1024, MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 128 << 20}},
		{"memory", &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 96 << 20}, &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 20_000, CpuShares: 512, MemoryLimitInBytes: 96 << 20, MemorySwapLimitInBytes: 128 << 20}},
		{"shares and negative memory", &runtimeapi.LinuxContainerResources{CpuShares: 1024, MemoryLimitInBytes: -1}, nil},
		{"shares and bad cpus", &runtimeapi.LinuxContainerResources{CpuShares: 1024, CpusetCpus: "x"}, nil},
		{"period", &runtimeapi.LinuxContainerResources{CpuShares: 1024, CpuPeriod: 5}, nil},
		{"memory above the swap limit that stays", &runtimeapi.LinuxContainerResources{CpuShares: 1024, MemoryLimitInBytes: 256 << 20}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, socketOptions, func(e *env) {
				e.pull("busybox:1")
				cfg := shellConfig("main")
				cfg.Linux.Resources = start
				id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				err = e.c.UpdateContainerResources(e.ctx, id, &runtimeapi.ContainerResources{Linux: tc.change})
				want := tc.want
				if want == nil {
					e.code(err, codes.InvalidArgument)
					want = start
				} else {
					e.ok(err)
				}
				if got := e.status(id).Resources.GetLinux(); !proto.Equal(got, want) {
					t.Errorf("resources %v, want %v", got, want)
				}
				e.ok(e.c.StopContainer(e.ctx, id, 0))
				e.code(e.c.UpdateContainerResources(e.ctx, id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuShares: 9}}), codes.FailedPrecondition)
			})
		})
	}
}

func TestTargetContainer(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("busybox:1")
		sb := e.sandbox("web", 0)
		target, err := e.c.CreateContainer(e.ctx, sb, shellConfig("target"), nil)
		e.ok(err)
		debug := func(name string) (string, error) {
			cfg := shellConfig(name)
			cfg.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: target}}
			return e.c.CreateContainer(e.ctx, sb, cfg, nil)
		}
		_, err = debug("early")
		e.code(err, codes.FailedPrecondition)
		e.ok(e.c.StartContainer(e.ctx, target))
		id, err := debug("debug")
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, id))
		out, _, err := e.c.ExecSync(e.ctx, id, []string{"sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline"}, 0)
		e.ok(err)
		if !strings.HasPrefix(string(out), "top") && !strings.HasPrefix(string(out), "sh -c top") {
			t.Errorf("pid 1 is %q", out)
		}
		e.ok(e.c.StopContainer(e.ctx, target, 0))
		_, err = debug("late")
		e.code(err, codes.FailedPrecondition)
	})
}
