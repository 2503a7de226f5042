// Package csi takes in drivers of CSI that register with the kubelet, and tells the API of
// them: in the CSINode object, and by the node's annotation and topology labels. It is also
// the plugin of the drivers' volumes: it has drivers stage them for the node and publish them
// to pods. It mirrors upstream's pkg/volume/csi and its nodeinfomanager.
package csi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// callTimeout is how long a call to a driver may take (csiTimeout).
const callTimeout = 2 * time.Minute

// Options are what a Handler is made of.
type Options struct {
	Loop     *loop.Loop
	NodeName string
	Sockets  pluginmanager.Sockets
	// Client is nil without an API: then no driver can register.
	Client Client
	// VolumeHealth: drivers are asked for the condition of volumes (gate CSIVolumeHealth).
	VolumeHealth bool
	Log          func(format string, args ...any)
}

// driver is one that is registered.
type driver struct {
	endpoint string
	version  *version.Version // the highest that it and the kubelet know
}

// Handler is the node's pluginmanager.Handler of drivers of CSI.
type Handler struct {
	o       Options
	drivers map[string]driver
}

// NewHandler returns a handler that knows no driver.
func NewHandler(o Options) *Handler { return &Handler{o: o} }

// text makes the words of an error or a log line, as upstream's plugin begins them.
func text(format string, args ...any) string {
	return fmt.Sprintf("kubernetes.io/csi: "+format, args...)
}

// ValidatePlugin implements pluginmanager.Handler.
func (h *Handler) ValidatePlugin(name, endpoint string, versions []string) error {
	if _, err := h.highest("ValidatePlugin", name, versions); err != nil {
		return fmt.Errorf("validation failed for CSI Driver %s at endpoint %s: %w", name, endpoint, err)
	}
	return nil
}

// highest is the highest version that a driver and the kubelet know. A driver of a name
// that is there already has to know a higher one (validateVersions).
func (h *Handler) highest(caller, name string, versions []string) (*version.Version, error) {
	if len(versions) == 0 {
		return nil, errors.New(text("%s for CSI driver %q failed. Plugin returned an empty list for supported versions", caller, name))
	}
	v, err := version.HighestSupportedVersion(versions)
	if err != nil {
		return nil, fmt.Errorf("%s err=%w", text("%s for CSI driver %q failed. None of the versions specified %q are supported.", caller, name, versions), err)
	}
	if d, ok := h.drivers[name]; ok && !d.version.LessThan(v) {
		return nil, errors.New(text("%s for CSI driver %q failed. Another driver with the same name is already registered with a higher supported version: %q", caller, name, d.version))
	}
	return v, nil
}

// RegisterPlugin implements pluginmanager.Handler.
func (h *Handler) RegisterPlugin(ctx context.Context, name, endpoint string, versions []string) error {
	h.o.Log("%s", text("Register new plugin with name: %s at endpoint: %s, versions: %s", name, endpoint, strings.Join(versions, ",")))
	v, err := h.highest("RegisterPlugin", name, versions)
	if err != nil {
		return err
	}
	if h.drivers == nil {
		h.drivers = map[string]driver{}
	}
	h.drivers[name] = driver{endpoint, v}
	info, err := h.nodeInfo(ctx, endpoint)
	if err == nil {
		err = h.install(ctx, name, info)
	}
	if err != nil {
		h.DeRegisterPlugin(ctx, name, endpoint)
		return err
	}
	return nil
}

// nodeInfo asks a driver what it knows of the node.
func (h *Handler) nodeInfo(ctx context.Context, endpoint string) (*csispec.NodeGetInfoResponse, error) {
	ctx, cancel := loop.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := h.o.Sockets.Dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return csispec.NewNodeClient(conn).NodeGetInfo(ctx, &csispec.NodeGetInfoRequest{})
}

// DeRegisterPlugin implements pluginmanager.Handler.
func (h *Handler) DeRegisterPlugin(ctx context.Context, name, endpoint string) {
	h.o.Log("%s", text("registrationHandler.DeRegisterPlugin request for plugin %s, endpoint %s", name, endpoint))
	delete(h.drivers, name)
	if err := h.uninstall(ctx, name); err != nil {
		h.o.Log("%s", text("registrationHandler.DeRegisterPlugin failed: %v", err))
	}
}
