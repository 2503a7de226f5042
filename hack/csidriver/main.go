//go:build linux

// Command csidriver is a small CSI driver for trying a kubelet on a real machine: volumes
// are files of one directory, with a file system behind a loop device, or the loop device
// itself as a block volume, or (parameter kind: dir) a directory that is bound.
//
//	csidriver --data DIR --node NAME [--root /var/lib/kubelet]
//
// It is controller and node plugin in one process, and registers with the kubelet by
// itself. Public sidecars (provisioner, attacher, resizer) reach it by its socket,
// ROOT/plugins/dir.csi.drydock/csi.sock. File systems are ext4 or
// xfs. It wants root, losetup, findmnt, and mkfs.ext4 and resize2fs or mkfs.xfs and
// xfs_growfs. It is for trials only: nothing that it does is checked against attacks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	driverName    = "dir.csi.drydock"
	driverVersion = "1.0.0"
)

func main() {
	data := flag.String("data", "", "the directory with the volumes")
	node := flag.String("node", "", "the node's name")
	root := flag.String("root", "/var/lib/kubelet", "the kubelet's root directory")
	flag.Parse()
	if *data == "" || *node == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "csidriver: --data and --node are needed, and nothing else")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *data, *node, *root); err != nil {
		fmt.Fprintln(os.Stderr, "csidriver:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, data, node, root string) error {
	endpoint := filepath.Join(root, "plugins", driverName, "csi.sock")
	registry := filepath.Join(root, "plugins_registry", driverName+"-reg.sock")
	for _, dir := range []string{data, filepath.Dir(endpoint), filepath.Dir(registry)} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	ended := make(chan error, 2)
	serve := func(socket string, register func(s *grpc.Server)) (*grpc.Server, error) {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		s := grpc.NewServer()
		register(s)
		go func() { ended <- s.Serve(l) }()
		return s, nil
	}
	volumes := &volumes{dir: data}
	d, err := serve(endpoint, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, identity{})
		csi.RegisterControllerServer(s, &controller{volumes: volumes})
		csi.RegisterNodeServer(s, &nodeServer{volumes: volumes, name: node})
	})
	if err != nil {
		return err
	}
	defer d.Stop()
	r, err := serve(registry, func(s *grpc.Server) {
		registerapi.RegisterRegistrationServer(s, registration{endpoint: endpoint})
	})
	if err != nil {
		return err
	}
	defer r.Stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// registration tells the kubelet where the driver is.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	endpoint string
}

func (r registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: driverName, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (registration) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintln(os.Stderr, "csidriver: the kubelet refused:", s.Error)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// identity is the driver's identity service.
type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: driverVersion}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}},
	}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
