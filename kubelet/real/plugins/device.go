//go:build linux

package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// kubeletSocket is where device plugins register, in their directory (KubeletSocket of
// deviceplugin/v1beta1).
const kubeletSocket = "kubelet.sock"

// DevicePlugins are the machine's device plugins.
type DevicePlugins struct {
	g       *loop.Group
	sockets *Sockets
	dir     string
	log     func(format string, args ...any)

	mu     sync.Mutex
	server *grpc.Server // nil: none serves yet
	closed bool
}

var _ cm.DevicePlugins = (*DevicePlugins)(nil)

// NewDevicePlugins returns those whose sockets are in dir, for tasks of g. log takes lines
// from any goroutine.
func NewDevicePlugins(g *loop.Group, dir string, log func(format string, args ...any)) *DevicePlugins {
	return &DevicePlugins{g: g, sockets: NewSockets(g, log), dir: dir, log: log}
}

// Dial implements cm.DevicePlugins. An endpoint is a socket's name in the directory, or
// the path of one elsewhere.
func (p *DevicePlugins) Dial(ctx context.Context, endpoint string) (cm.DevicePlugin, error) {
	if !filepath.IsAbs(endpoint) {
		endpoint = filepath.Join(p.dir, endpoint)
	}
	c, err := pluginmanager.Dial(ctx, p.sockets, endpoint)
	if err != nil {
		return nil, fmt.Errorf("failed to dial device plugin: %w", err)
	}
	return &devicePlugin{pluginapi.NewDevicePluginClient(c), c}, nil
}

// Serve implements cm.DevicePlugins: it removes the sockets of before, by which plugins see
// that the kubelet is a new one, and listens. The server ends with the group. Without it no
// plugin can register, and the kubelet runs on; upstream's exits.
func (p *DevicePlugins) Serve(register func(ctx context.Context, req *pluginapi.RegisterRequest) error) {
	go func() {
		if err := p.serve(register); err != nil {
			p.log("Error while serving device plugin registration grpc server: %v", err)
		}
	}()
}

func (p *DevicePlugins) serve(register func(ctx context.Context, req *pluginapi.RegisterRequest) error) error {
	if err := removeSockets(p.dir); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(p.dir, kubeletSocket))
	if err != nil {
		return fmt.Errorf("listen for device plugins: %w", err)
	}
	s := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(s, &registration{g: p.g, register: register})
	p.mu.Lock()
	if p.server = s; p.closed {
		s.Stop()
	}
	p.mu.Unlock()
	if err := s.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err //nolint:wrapcheck // who logs it says what it is of
	}
	return nil
}

// Close ends the server. It is called when no task runs any more.
func (p *DevicePlugins) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.server != nil {
		p.server.Stop()
	}
}

// removeSockets removes the sockets in a directory (CleanupPluginDirectory).
func removeSockets(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("failed to cleanup the device plugin directory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); isSocket(path) {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// registration is what plugins register with: each request is a task of the kubelet's.
type registration struct {
	pluginapi.UnimplementedRegistrationServer
	g        *loop.Group
	register func(ctx context.Context, req *pluginapi.RegisterRequest) error
}

// Register implements pluginapi.RegistrationServer.
func (r *registration) Register(ctx context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	return run(ctx, r.g, "register-device-plugin", func(ctx context.Context) (*pluginapi.Empty, error) {
		return &pluginapi.Empty{}, r.register(ctx, req)
	})
}

// devicePlugin is a connection to a plugin.
type devicePlugin struct {
	c    pluginapi.DevicePluginClient
	conn pluginmanager.Conn
}

// GetDevicePluginOptions implements cm.DevicePlugin.
func (p *devicePlugin) GetDevicePluginOptions(ctx context.Context) (*pluginapi.DevicePluginOptions, error) {
	return p.c.GetDevicePluginOptions(ctx, &pluginapi.Empty{}) //nolint:wrapcheck // gRPC's, as it is
}

// GetPreferredAllocation implements cm.DevicePlugin.
func (p *devicePlugin) GetPreferredAllocation(ctx context.Context, req *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	return p.c.GetPreferredAllocation(ctx, req) //nolint:wrapcheck // gRPC's, as it is
}

// Allocate implements cm.DevicePlugin.
func (p *devicePlugin) Allocate(ctx context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	return p.c.Allocate(ctx, req) //nolint:wrapcheck // gRPC's, as it is
}

// PreStartContainer implements cm.DevicePlugin.
func (p *devicePlugin) PreStartContainer(ctx context.Context, req *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return p.c.PreStartContainer(ctx, req) //nolint:wrapcheck // gRPC's, as it is
}

// Close implements cm.DevicePlugin.
func (p *devicePlugin) Close() { _ = p.conn.Close() }

// ListAndWatch implements cm.DevicePlugin.
func (p *devicePlugin) ListAndWatch(ctx context.Context, list func([]*pluginapi.Device)) error {
	s, err := p.c.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return err //nolint:wrapcheck // gRPC's, as it is
	}
	for {
		m, err := s.Recv()
		if err != nil {
			return err //nolint:wrapcheck // gRPC's, as it is
		}
		list(m.Devices)
	}
}
