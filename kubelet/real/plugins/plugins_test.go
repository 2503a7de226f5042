//go:build linux

package plugins

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// onLoop runs a loop of the wall clock for a test; its lines come out of the channel.
func onLoop(t *testing.T, begin func(g *loop.Group, say func(format string, args ...any))) (<-chan string, *loop.Group) {
	t.Helper()
	l := loop.NewReal(loop.Options{Name: "node"})
	g := l.NewGroup("kubelet")
	said := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	l.Post(func() { begin(g, func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }) })
	go func() {
		defer close(done)
		if err := l.RunReal(ctx); err != nil {
			t.Error(err)
		}
		g.Kill()
		l.Close()
	}()
	t.Cleanup(func() { cancel(); <-done })
	return said, g
}

// await waits for a line.
func await(t *testing.T, said <-chan string, want string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case line := <-said:
			if strings.Contains(line, want) {
				return
			}
			t.Logf("said: %s", line)
		case <-limit:
			t.Fatalf("nobody said %q", want)
		}
	}
}

// serve serves on a socket until stop is called, or the test ends.
func serve(t *testing.T, socket string, register func(s *grpc.Server)) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return s.Stop
}

// driver registers as a driver of CSI.
type driver struct {
	registerapi.UnimplementedRegistrationServer
	name string
	told chan *registerapi.RegistrationStatus
}

func (d *driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: d.name, SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	d.told <- s
	return &registerapi.RegistrationStatusResponse{}, nil
}

// handler says what it is asked.
type handler func(format string, args ...any)

func (handler) ValidatePlugin(name, _ string, _ []string) error {
	if name == "bad" {
		return fmt.Errorf("not %s", name)
	}
	return nil
}

func (h handler) RegisterPlugin(_ context.Context, name, endpoint string, _ []string) error {
	h("registered %s at %s", name, filepath.Base(endpoint))
	return nil
}

func (h handler) DeRegisterPlugin(_ context.Context, name, _ string) { h("unregistered %s", name) }

// TestRegistration has the plugin manager find sockets that are there, that come, in new
// directories too, and that go; hidden ones and files that are no sockets don't count.
func TestRegistration(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reg")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	told := make(chan *registerapi.RegistrationStatus, 10)
	start := func(file, name string) func() {
		return serve(t, filepath.Join(dir, file), func(s *grpc.Server) {
			registerapi.RegisterRegistrationServer(s, &driver{name: name, told: told})
		})
	}
	stop := start("a.sock", "first")
	start(".hidden.sock", "hidden")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said, _ := onLoop(t, func(g *loop.Group, say func(string, ...any)) {
		m := pluginmanager.New(pluginmanager.Options{Group: g, Sockets: NewSockets(g, say), Dir: dir, Log: say})
		m.AddHandler(registerapi.CSIPlugin, handler(say))
		m.Start()
	})
	await(t, said, "registered first at a.sock")
	if s := <-told; !s.PluginRegistered {
		t.Errorf("told %v", s)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o750); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // a socket that comes before the directory is watched is found as well, by its walk
	start("sub/b.sock", "second")
	await(t, said, "registered second at b.sock")
	<-told
	start("c.sock", "bad")
	if s := <-told; s.PluginRegistered || !strings.Contains(s.Error, "not bad") {
		t.Errorf("told %v", s)
	}
	stop()
	await(t, said, "unregistered first")
	start("a.sock", "third")
	await(t, said, "registered third at a.sock")
	for len(said) > 0 {
		if line := <-said; strings.Contains(line, "hidden") {
			t.Error(line)
		}
	}
}

// gpu is a device plugin.
type gpu struct {
	pluginapi.UnimplementedDevicePluginServer
	lists chan []*pluginapi.Device
}

func (*gpu) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{PreStartRequired: true}, nil
}

func (p *gpu) ListAndWatch(_ *pluginapi.Empty, s pluginapi.DevicePlugin_ListAndWatchServer) error {
	for list := range p.lists {
		if err := s.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
	}
	return status.Error(codes.Aborted, "enough")
}

func (*gpu) Allocate(ctx context.Context, _ *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	<-ctx.Done() // it hangs
	return nil, ctx.Err()
}

// TestDevicePlugin has a plugin register, which is dialed, listed and asked; a call that
// hangs ends by the caller's deadline.
func TestDevicePlugin(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	var p *DevicePlugins
	said, _ := onLoop(t, func(g *loop.Group, say func(string, ...any)) {
		p = NewDevicePlugins(g, dir, say)
		p.Serve(func(ctx context.Context, req *pluginapi.RegisterRequest) error {
			if req.ResourceName != "vendor.test/gpu" {
				return fmt.Errorf("no %s here", req.ResourceName)
			}
			plugin, err := p.Dial(ctx, req.Endpoint)
			if err != nil {
				return err
			}
			o, err := plugin.GetDevicePluginOptions(ctx)
			if err != nil {
				return err
			}
			say("options: prestart %v", o.PreStartRequired)
			g.Go("list", func(ctx context.Context) {
				err := plugin.ListAndWatch(ctx, func(list []*pluginapi.Device) { say("listed %d", len(list)) })
				say("ended: %v", status.Code(err))
			})
			g.Go("allocate", func(ctx context.Context) {
				ctx, cancel := loop.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				_, err := plugin.Allocate(ctx, &pluginapi.AllocateRequest{})
				say("allocated: %v", status.Code(err))
			})
			return nil
		})
	})
	t.Cleanup(func() { p.Close() })
	socket := filepath.Join(dir, kubeletSocket)
	for i := 0; !isSocket(socket) && i < 1000; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if isSocket(stale) {
		t.Error("a socket of before is still there")
	}
	lists := make(chan []*pluginapi.Device, 2)
	serve(t, filepath.Join(dir, "gpu.sock"), func(s *grpc.Server) { pluginapi.RegisterDevicePluginServer(s, &gpu{lists: lists}) })
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	register := func(name string) error {
		_, err := pluginapi.NewRegistrationClient(c).Register(t.Context(), &pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "gpu.sock", ResourceName: name})
		return err
	}
	if err := register("vendor.test/other"); err == nil || !strings.Contains(err.Error(), "no vendor.test/other here") {
		t.Errorf("the other: %v", err)
	}
	if err := register("vendor.test/gpu"); err != nil {
		t.Fatal(err)
	}
	await(t, said, "options: prestart true")
	await(t, said, "allocated: DeadlineExceeded")
	lists <- []*pluginapi.Device{{ID: "a"}, {ID: "b"}}
	await(t, said, "listed 2")
	close(lists)
	await(t, said, "ended: Aborted")
}

// TestDialOfOneThatEnds dials a socket where the first connections end as soon as they are
// made: a plugin that is killed while it registers. The dial ends all the same.
func TestDialOfOneThatEnds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	const flaky = 20
	ready := make(chan net.Conn, 1)
	go func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// The settings of HTTP/2 make the connection ready.
			_, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
			if i < flaky {
				_ = c.Close()
				continue
			}
			select { // a dial that gave up on this one has another
			case ready <- c:
			default:
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	said, _ := onLoop(t, func(g *loop.Group, say func(string, ...any)) {
		s := NewSockets(g, say)
		g.Go("dial", func(ctx context.Context) {
			for {
				if c, err := s.Dial(ctx, socket); err == nil && c.(*conn).c.GetState() == connectivity.Ready && len(ready) > 0 {
					say("connected")
					return
				}
			}
		})
	})
	await(t, said, "connected")
}
