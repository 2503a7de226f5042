package fakecri

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

func usernsPod(maps ...*runtimeapi.IDMapping) *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: maps, Gids: maps}}
}

func idMap(container, host, length uint32) *runtimeapi.IDMapping {
	return &runtimeapi.IDMapping{ContainerId: container, HostId: host, Length: length}
}

func withNamespaces(c *runtimeapi.PodSandboxConfig, o *runtimeapi.NamespaceOption) {
	c.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: o}
}

func TestSandboxConfigs(t *testing.T) {
	for _, tc := range []struct {
		name    string
		edit    func(c *runtimeapi.PodSandboxConfig)
		handler string
		want    codes.Code
	}{
		{"plain", func(*runtimeapi.PodSandboxConfig) {}, "", codes.OK},
		{"handler", func(*runtimeapi.PodSandboxConfig) {}, "runc", codes.OK},
		{"unknown handler", func(*runtimeapi.PodSandboxConfig) {}, "kata", codes.InvalidArgument},
		{"no metadata", func(c *runtimeapi.PodSandboxConfig) { c.Metadata = nil }, "", codes.InvalidArgument},
		{"no name", func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Name = "" }, "", codes.InvalidArgument},
		{"no namespace", func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Namespace = "" }, "", codes.InvalidArgument},
		{"no uid", func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Uid = "" }, "", codes.InvalidArgument},
		{"nothing but metadata", func(c *runtimeapi.PodSandboxConfig) {
			c.Labels, c.Annotations, c.Linux, c.LogDirectory = nil, nil, nil, ""
		}, "", codes.OK},
		{"hostname of 64", func(c *runtimeapi.PodSandboxConfig) { c.Hostname = strings.Repeat("h", 64) }, "", codes.OK},
		{"hostname of 65", func(c *runtimeapi.PodSandboxConfig) { c.Hostname = strings.Repeat("h", 65) }, "", codes.InvalidArgument},
		{"host network", func(c *runtimeapi.PodSandboxConfig) {
			withNamespaces(c, &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE})
		}, "", codes.OK},
		{"network of a container", func(c *runtimeapi.PodSandboxConfig) {
			withNamespaces(c, &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_CONTAINER})
		}, "", codes.InvalidArgument},
		{"ipc of a target", func(c *runtimeapi.PodSandboxConfig) {
			withNamespaces(c, &runtimeapi.NamespaceOption{Ipc: runtimeapi.NamespaceMode_TARGET})
		}, "", codes.InvalidArgument},
		{"userns", func(c *runtimeapi.PodSandboxConfig) { withNamespaces(c, usernsPod(idMap(0, 65536, 65536))) }, "", codes.OK},
		{"userns, two mappings", func(c *runtimeapi.PodSandboxConfig) { withNamespaces(c, usernsPod(idMap(0, 1, 1), idMap(1, 2, 1))) }, "", codes.InvalidArgument},
		{"userns, no mapping", func(c *runtimeapi.PodSandboxConfig) { withNamespaces(c, usernsPod()) }, "", codes.InvalidArgument},
		{"userns, not from 0", func(c *runtimeapi.PodSandboxConfig) { withNamespaces(c, usernsPod(idMap(1, 65536, 65536))) }, "", codes.InvalidArgument},
		{"userns, no length", func(c *runtimeapi.PodSandboxConfig) { withNamespaces(c, usernsPod(idMap(0, 65536, 0))) }, "", codes.InvalidArgument},
		{"userns of a container", func(c *runtimeapi.PodSandboxConfig) {
			o := usernsPod(idMap(0, 65536, 65536))
			o.UsernsOptions.Mode = runtimeapi.NamespaceMode_CONTAINER
			withNamespaces(c, o)
		}, "", codes.InvalidArgument},
		{"userns of a target", func(c *runtimeapi.PodSandboxConfig) {
			o := usernsPod(idMap(0, 65536, 65536))
			o.UsernsOptions.Mode = runtimeapi.NamespaceMode_TARGET
			withNamespaces(c, o)
		}, "", codes.InvalidArgument},
		{"userns of the node", func(c *runtimeapi.PodSandboxConfig) {
			withNamespaces(c, &runtimeapi.NamespaceOption{UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}})
		}, "", codes.OK},
		{"ports", func(c *runtimeapi.PodSandboxConfig) {
			c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 80}, {ContainerPort: 80, HostPort: 12000, HostIp: "127.0.0.1"}}
		}, "", codes.OK},
		{"bad port", func(c *runtimeapi.PodSandboxConfig) {
			c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 70000}}
		}, "", codes.InvalidArgument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, socketOptions, func(e *env) {
				cfg := podConfig("web", 2)
				tc.edit(cfg)
				sent := proto.Clone(cfg).(*runtimeapi.PodSandboxConfig)
				id, err := e.c.RunPodSandbox(e.ctx, cfg, tc.handler)
				e.code(err, tc.want)
				list, lerr := e.c.ListPodSandbox(e.ctx, nil)
				e.ok(lerr)
				if err != nil {
					if id != "" || len(list) != 0 {
						t.Errorf("a failed call left %q, %v", id, list)
					}
					e.sandbox("web", 2) // and the name is free
					return
				}
				resp, err := e.c.PodSandboxStatus(e.ctx, id, true)
				e.ok(err)
				st := resp.Status
				if st.Id != id || !proto.Equal(st.Metadata, sent.Metadata) || st.State != records.SandboxReady || st.CreatedAt <= 0 || st.RuntimeHandler != tc.handler {
					t.Errorf("status %v", st)
				}
				entry := &runtimeapi.PodSandbox{Id: id, Metadata: sent.Metadata, CreatedAt: st.CreatedAt, Labels: sent.Labels, Annotations: sent.Annotations, RuntimeHandler: tc.handler}
				if len(list) != 1 || !proto.Equal(list[0], entry) {
					t.Errorf("list %v, want %v", list, entry)
				}
				if !proto.Equal(&runtimeapi.PodSandboxConfig{Labels: st.Labels, Annotations: st.Annotations}, &runtimeapi.PodSandboxConfig{Labels: sent.Labels, Annotations: sent.Annotations}) {
					t.Errorf("labels %v and annotations %v", st.Labels, st.Annotations)
				}
				o := sent.GetLinux().GetSecurityContext().GetNamespaceOptions()
				if got := st.Linux.GetNamespaces().GetOptions(); o != nil && !proto.Equal(got, o) || got == nil {
					t.Errorf("namespaces %v, want %v", got, o)
				}
				if onHost := o.GetNetwork() == runtimeapi.NamespaceMode_NODE; st.Network == nil || onHost != (st.Network.Ip == "") {
					t.Errorf("network %v", st.Network)
				}
				checkSandboxInfo(t, resp.Info, sent)
				e.ok(e.c.StopPodSandbox(e.ctx, id))
				e.ok(e.c.StopPodSandbox(e.ctx, id))
				resp, err = e.c.PodSandboxStatus(e.ctx, id, false)
				e.ok(err)
				if resp.Status.State != records.SandboxNotReady || resp.Info != nil {
					t.Errorf("stopped: %v", resp)
				}
				e.ok(e.c.RemovePodSandbox(e.ctx, id))
				e.ok(e.c.RemovePodSandbox(e.ctx, id))
				_, err = e.c.PodSandboxStatus(e.ctx, id, false)
				e.code(err, codes.NotFound)
			})
		})
	}
}

func checkSandboxInfo(t *testing.T, infos map[string]string, sent *runtimeapi.PodSandboxConfig) {
	t.Helper()
	var info struct {
		PID         int
		Config      runtimeapi.PodSandboxConfig
		RuntimeSpec struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(infos["info"]), &info); err != nil || info.PID == 0 || info.RuntimeSpec.Annotations["io.kubernetes.cri.sandbox-name"] != sent.Metadata.Name {
		t.Errorf("info %s: %v", infos["info"], err)
	}
	if len(info.Config.PortMappings) != len(sent.PortMappings) || info.Config.Metadata.GetUid() != sent.Metadata.Uid {
		t.Errorf("info has the config %v", &info.Config)
	}
}

func TestSandboxNames(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		first := e.sandbox("web", 0)
		_, err := e.c.RunPodSandbox(e.ctx, podConfig("web", 0), "")
		e.code(err, codes.AlreadyExists)
		e.sandbox("web", 1)
		other := podConfig("web", 0)
		other.Metadata.Uid = "another"
		_, err = e.c.RunPodSandbox(e.ctx, other, "")
		e.ok(err)
		e.ok(e.c.StopPodSandbox(e.ctx, first))
		_, err = e.c.RunPodSandbox(e.ctx, podConfig("web", 0), "")
		e.code(err, codes.AlreadyExists)
		e.ok(e.c.RemovePodSandbox(e.ctx, first))
		if e.sandbox("web", 0) == first {
			t.Error("an id was used again")
		}
	})
}

// Ids are found by their beginnings, as those that crictl prints.
func TestShortIDs(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("busybox")
		sb := e.sandbox("web", 0)
		cfg := containerConfig("web", "main", 0)
		cfg.Image, cfg.Command = spec("busybox"), []string{"sleep", "1000"}
		id, err := e.c.CreateContainer(e.ctx, sb[:13], cfg, nil)
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, id[:13]))
		_, err = e.c.ContainerStatus(e.ctx, id[:13], true)
		e.ok(err)
		_, err = e.c.ContainerStats(e.ctx, id[:13])
		e.ok(err)
		_, err = e.c.PodSandboxStatus(e.ctx, sb[:10], true)
		e.ok(err)
		_, err = e.c.PodSandboxStats(e.ctx, sb[:10])
		e.ok(err)
		out, _, err := e.c.ExecSync(e.ctx, id[:13], []string{"echo", "hi"}, 0)
		e.ok(err)
		if string(out) != "hi\n" {
			t.Errorf("exec: %q", out)
		}
		e.ok(e.c.UpdateContainerResources(e.ctx, id[:13], &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuShares: 3}}))
		cs, err := e.c.ListContainers(e.ctx, &runtimeapi.ContainerFilter{Id: id[:5], PodSandboxId: sb[:5]})
		e.ok(err)
		ss, err := e.c.ListPodSandbox(e.ctx, &runtimeapi.PodSandboxFilter{Id: sb[:5]})
		e.ok(err)
		if len(cs) != 1 || len(ss) != 1 {
			t.Errorf("lists %v %v", cs, ss)
		}
		// What many begin with is nobody's.
		for i := range uint32(20) {
			e.sandbox("other", i)
		}
		digit := ""
		seen := map[byte]bool{}
		for _, s := range e.rt.recs.Sandboxes {
			if seen[s.ID[0]] {
				digit = s.ID[:1]
			}
			seen[s.ID[0]] = true
		}
		_, err = e.c.PodSandboxStatus(e.ctx, digit, false)
		e.code(err, codes.InvalidArgument)
		e.code(e.c.StopPodSandbox(e.ctx, digit), codes.InvalidArgument)
		e.code(e.c.RemovePodSandbox(e.ctx, digit), codes.InvalidArgument)
		if ss, err = e.c.ListPodSandbox(e.ctx, &runtimeapi.PodSandboxFilter{Id: digit}); err != nil || len(ss) != 0 {
			t.Errorf("list by %s: %v, %v", digit, ss, err)
		}
		e.ok(e.c.StopContainer(e.ctx, id[:13], 0))
		e.ok(e.c.RemoveContainer(e.ctx, id[:13]))
		e.ok(e.c.StopPodSandbox(e.ctx, sb[:13]))
		e.ok(e.c.RemovePodSandbox(e.ctx, sb[:13]))
		_, err = e.c.PodSandboxStatus(e.ctx, sb, false)
		e.code(err, codes.NotFound)
		_, err = e.c.PodSandboxStatus(e.ctx, "", false)
		e.code(err, codes.NotFound)
	})
}

// What nobody knows is stopped and removed again and again.
func TestUnknownIDs(t *testing.T) {
	unknown := strings.Repeat("0123456789abcdef", 4)
	run(t, socketOptions, func(e *env) {
		for range 2 {
			e.ok(e.c.StopPodSandbox(e.ctx, unknown))
			e.ok(e.c.RemovePodSandbox(e.ctx, unknown))
			e.ok(e.c.StopContainer(e.ctx, unknown, 0))
			e.ok(e.c.RemoveContainer(e.ctx, unknown))
			e.ok(e.c.RemoveImage(e.ctx, spec(unknown)))
			e.ok(e.c.RemoveImage(e.ctx, spec("sha256:"+unknown)))
		}
		for name, call := range map[string]func(ctx context.Context) error{
			"sandbox status":   func(ctx context.Context) error { _, err := e.c.PodSandboxStatus(ctx, unknown, false); return err },
			"container status": func(ctx context.Context) error { _, err := e.c.ContainerStatus(ctx, unknown, false); return err },
			"container stats":  func(ctx context.Context) error { _, err := e.c.ContainerStats(ctx, unknown); return err },
			"sandbox stats":    func(ctx context.Context) error { _, err := e.c.PodSandboxStats(ctx, unknown); return err },
			"start":            func(ctx context.Context) error { return e.c.StartContainer(ctx, unknown) },
			"exec":             func(ctx context.Context) error { _, _, err := e.c.ExecSync(ctx, unknown, []string{"x"}, 0); return err },
			"update":           func(ctx context.Context) error { return e.c.UpdateContainerResources(ctx, unknown, nil) },
			"reopen":           func(ctx context.Context) error { return e.c.ReopenContainerLog(ctx, unknown) },
			"create": func(ctx context.Context) error {
				_, err := e.c.CreateContainer(ctx, unknown, containerConfig("a", "b", 0), nil)
				return err
			},
		} {
			if err := call(e.ctx); status.Code(err) != codes.NotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
