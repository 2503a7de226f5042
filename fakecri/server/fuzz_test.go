//go:build linux

package server_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rawCodec sends bytes as they are, and drops what comes.
type rawCodec struct{ encoding.CodecV2 }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rawCodec) Name() string                         { return proto.Name }

// method is a method of one of the services.
type method struct {
	name   string
	stream bool
}

func methods() (out []method) {
	for _, d := range []grpc.ServiceDesc{runtimeapi.RuntimeService_ServiceDesc, runtimeapi.ImageService_ServiceDesc} {
		for _, m := range d.Methods {
			out = append(out, method{"/" + d.ServiceName + "/" + m.MethodName, false})
		}
		for _, m := range d.Streams {
			out = append(out, method{"/" + d.ServiceName + "/" + m.StreamName, true})
		}
	}
	return out
}

// send makes a call of raw bytes and returns its error.
func send(ctx context.Context, conn *grpc.ClientConn, m method, raw []byte) error {
	opt := grpc.ForceCodecV2(rawCodec{})
	var out []byte
	if !m.stream {
		return conn.Invoke(ctx, m.name, raw, &out, opt)
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, m.name, opt)
	if err != nil {
		return err
	}
	if err := s.SendMsg(raw); err != nil {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for err == nil {
		err = s.RecvMsg(&out)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// FuzzServer sends raw requests to every method: none may make the server
// panic, or fail for a reason that it can't name.
func FuzzServer(f *testing.F) {
	add := func(m protobuf.Message) {
		raw, err := protobuf.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		for i := range methods() {
			f.Add(uint8(i), raw)
		}
	}
	add(&runtimeapi.VersionRequest{})
	add(&runtimeapi.StopContainerRequest{ContainerId: "x", Timeout: -1})
	add(&runtimeapi.StopContainerRequest{ContainerId: "x", Timeout: 1 << 62})
	add(&runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{}})
	add(&runtimeapi.RunPodSandboxRequest{Config: sandboxConfig("web")})
	add(&runtimeapi.RunPodSandboxRequest{Config: sandboxConfig("web"), RuntimeHandler: "none"})
	add(&runtimeapi.CreateContainerRequest{PodSandboxId: "x", Config: containerConfig("app"), SandboxConfig: sandboxConfig("web")})
	add(&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: 77}}})
	add(&runtimeapi.ExecSyncRequest{ContainerId: "x", Cmd: []string{"true"}, Timeout: 1})
	add(&runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "Not A Reference"}})
	add(&runtimeapi.PortForwardRequest{PodSandboxId: "x", Port: []int32{-1}})
	for i := range methods() {
		f.Add(uint8(i), []byte{0xff})
		f.Add(uint8(i), []byte("\x0a\x02\xff\xfe")) // a text that isn't UTF-8
	}

	r := newRig(f, sleeper)
	sandbox := r.runSandbox(f, "fuzz")
	container := r.runContainer(f, sandbox, containerConfig("fuzz"))
	conn := r.Dial()
	f.Fuzz(func(t *testing.T, which uint8, raw []byte) {
		all := methods()
		m := all[int(which)%len(all)]
		before, err := r.Server.Server().State()
		if err != nil {
			t.Fatal(err)
		}
		// Requests that name what is there get further.
		raw = []byte(strings.NewReplacer("SANDBOX", sandbox, "CONTAINER", container).Replace(string(raw)))
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		err = send(ctx, conn, m, raw)
		switch code := status.Code(err); {
		case code == codes.Internal:
			t.Errorf("%s: %v", m.name, err)
		case code == codes.Unknown && strings.Contains(err.Error(), "panic"):
			t.Errorf("%s: %v", m.name, err)
		}
		if after, err := r.Server.Server().State(); err != nil || after.Panics != before.Panics {
			t.Fatalf("%s: %d panics, %v", m.name, after.Panics-before.Panics, err)
		}
	})
}

// Every method refuses a request that can't be decoded as InvalidArgument.
func TestMalformed(t *testing.T) {
	r := newRig(t)
	conn := r.Dial()
	for _, m := range methods() {
		wantCode(t, m.name, send(testContext(t), conn, m, []byte{0xff}), codes.InvalidArgument)
	}
}

// Every method that needs something refuses an empty request.
func TestEmptyRequests(t *testing.T) {
	r := newRig(t)
	conn := r.Dial()
	fine := map[string]bool{
		"Version": true, "Status": true, "RuntimeConfig": true, "UpdateRuntimeConfig": true, "GetContainerEvents": true,
		"ListMetricDescriptors": true, "ImageFsInfo": true,
	}
	for _, m := range methods() {
		name := m.name[strings.LastIndexByte(m.name, '/')+1:]
		ctx, cancel := context.WithTimeout(testContext(t), 5*time.Second)
		if name == "GetContainerEvents" {
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		}
		err := send(ctx, conn, m, nil)
		cancel()
		switch code := status.Code(err); {
		case fine[name] || strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Stream"):
			if code != codes.OK && code != codes.DeadlineExceeded && code != codes.Unimplemented {
				t.Errorf("%s: %v", name, err)
			}
		default:
			wantCode(t, name, err, codes.InvalidArgument)
		}
	}
}

// What a request lacks or has too much of is named.
func TestValidation(t *testing.T) {
	r := newRig(t, sleeper)
	ctx := testContext(t)
	long := strings.Repeat("x", 5000)
	run := func(change func(*runtimeapi.PodSandboxConfig)) func() error {
		return func() error {
			c := sandboxConfig("web")
			change(c)
			_, err := r.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
			return err
		}
	}
	create := func(change func(*runtimeapi.ContainerConfig)) func() error {
		return func() error {
			c := containerConfig("app")
			change(c)
			_, err := r.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: "x", Config: c})
			return err
		}
	}
	for _, tc := range []struct {
		want string
		call func() error
	}{
		{"config.metadata: must be set", run(func(c *runtimeapi.PodSandboxConfig) { c.Metadata = nil })},
		{"config.metadata.name: must be set", run(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Name = "" })},
		{"config.metadata.uid: must be set", run(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Uid = "" })},
		{"config.metadata.namespace: must be set", run(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Namespace = "" })},
		{"config.metadata.name: 5000 bytes are more than 4096", run(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Name = long })},
		{"config.port_mappings[0]: 70000 to 80 is not within 0 and 65535", run(func(c *runtimeapi.PodSandboxConfig) {
			c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 80, HostPort: 70000}}
		})},
		{"config.metadata: must be set", create(func(c *runtimeapi.ContainerConfig) { c.Metadata = nil })},
		{"config.metadata.name: must be set", create(func(c *runtimeapi.ContainerConfig) { c.Metadata.Name = "" })},
		{"config.image: must be set", create(func(c *runtimeapi.ContainerConfig) { c.Image = nil })},
		{"config.image: must be set", create(func(c *runtimeapi.ContainerConfig) { c.Image.Image = "" })},
		{"config.mounts[0].container_path: must be set", create(func(c *runtimeapi.ContainerConfig) { c.Mounts = []*runtimeapi.Mount{{HostPath: "/x"}} })},
		{"config.linux.resources.cpu_shares: -5 is less than 0", create(func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuShares: -5}}
		})},
		{"timeout: -1 is negative", func() error {
			_, err := r.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: "x", Timeout: -1})
			return err
		}},
		{"timeout: -1 is negative", func() error {
			_, err := r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: "x", Cmd: []string{"true"}, Timeout: -1})
			return err
		}},
		{"cmd: must not be empty", func() error {
			_, err := r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: "x"})
			return err
		}},
		{"image: must be set", func() error {
			_, err := r.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{}})
			return err
		}},
	} {
		err := tc.call()
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tc.want {
			t.Errorf("error %v, want InvalidArgument: %s", err, tc.want)
		}
	}
}
