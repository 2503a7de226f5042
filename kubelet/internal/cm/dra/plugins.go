package dra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

const (
	// wipingDelay is for how long a driver that went away may come again before its
	// ResourceSlices are deleted.
	wipingDelay = 30 * time.Second
	// firstWipePause and maxWipePause are those between tries to delete them.
	firstWipePause = time.Second
	maxWipePause   = 5 * time.Minute
)

// services are the versions of drivers' API that are spoken.
var services = []string{drapb.DRAPluginService}

// SliceClient deletes the ResourceSlices of a node's driver, or of all its drivers: "".
type SliceClient interface {
	DeleteResourceSlices(ctx context.Context, nodeName, driver string) error
}

// PluginsConfig are what Plugins are made of.
type PluginsConfig struct {
	Group    *loop.Group
	Sockets  pluginmanager.Sockets
	NodeName string
	// Client is nil without an API.
	Client SliceClient
	// FS and Dir say where what drivers say of their devices' health is kept.
	FS  FS
	Dir string
	// HealthChanged is told that a driver says something else of devices, or that what it
	// said holds no longer: see Manager.Users. Only in the first case (synced) are the
	// pods that have them synced at once.
	HealthChanged func(driver string, devices []DeviceName, synced bool)
	Log           func(format string, args ...any)
}

// Plugins are the drivers that the plugin manager has found
// (plugin/dra_plugin_manager.go): its handler of them, and the DRA manager's way to them.
type Plugins struct {
	c       PluginsConfig
	drivers map[string][]*registered // by name; the last counts
	wipes   map[string]*loop.Timer   // by driver
	health  health
}

var (
	_ pluginmanager.Handler = (*Plugins)(nil)
	_ cm.DRAPlugins         = (*Plugins)(nil)
)

// registered is a driver's connection.
type registered struct {
	endpoint string
	conn     pluginmanager.Conn
	client   drapb.DRAPluginClient
	// unwatch ends the stream of the devices' health.
	unwatch context.CancelFunc
}

// NewPlugins returns none yet.
func NewPlugins(c PluginsConfig) *Plugins {
	return &Plugins{c: c, drivers: map[string][]*registered{}, wipes: map[string]*loop.Timer{}}
}

// Start has what drivers offered before this kubelet started deleted: pods could wait for
// one that never comes again.
func (p *Plugins) Start() {
	p.readHealth()
	p.c.Group.Go("dra-wipe", func(ctx context.Context) { p.wipe(ctx, "") })
}

// DRAPlugin implements cm.DRAPlugins.
func (p *Plugins) DRAPlugin(driver string) cm.DRAPlugin {
	list := p.drivers[driver]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// ValidatePlugin implements pluginmanager.Handler.
func (p *Plugins) ValidatePlugin(name, endpoint string, versions []string) error {
	err := errors.New("empty list of supported gRPC services (aka supported versions)")
	if len(versions) > 0 {
		if slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(services, v) }) {
			return nil
		}
		err = fmt.Errorf("none of services supported by the plugin (%q) are supported by the kubelet (%q)", versions, services)
	}
	return fmt.Errorf("invalid supported gRPC versions of DRA driver plugin %s at endpoint %s: %w", name, endpoint, err)
}

// RegisterPlugin implements pluginmanager.Handler.
func (p *Plugins) RegisterPlugin(ctx context.Context, name, endpoint string, _ []string) error {
	conn, err := p.c.Sockets.Dial(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("register DRA driver plugin %s: %w", name, err)
	}
	r := &registered{endpoint: endpoint, conn: conn, client: drapb.NewDRAPluginClient(conn)}
	p.drivers[name] = append(p.drivers[name], r)
	p.c.Group.Go("dra-health", func(ctx context.Context) {
		ctx, r.unwatch = loop.WithCancel(ctx)
		p.watchHealth(ctx, name, r)
	})
	if t := p.wipes[name]; t != nil {
		t.Stop()
		delete(p.wipes, name)
	}
	return nil
}

// DeRegisterPlugin implements pluginmanager.Handler.
func (p *Plugins) DeRegisterPlugin(_ context.Context, name, endpoint string) {
	p.drivers[name] = slices.DeleteFunc(p.drivers[name], func(r *registered) bool {
		if r.endpoint == endpoint {
			if r.unwatch != nil {
				r.unwatch()
			}
			_ = r.conn.Close() // whoever was there has gone
		}
		return r.endpoint == endpoint
	})
	if len(p.drivers[name]) > 0 || p.wipes[name] != nil {
		return
	}
	delete(p.drivers, name)
	p.wipes[name] = p.c.Group.After(wipingDelay, func() {
		delete(p.wipes, name)
		p.c.Group.Go("dra-wipe", func(ctx context.Context) { p.wipe(ctx, name) })
	})
}

// wipe deletes the ResourceSlices of a driver, trying until that has succeeded
// (wipeResourceSlices).
func (p *Plugins) wipe(ctx context.Context, driver string) {
	if p.c.Client == nil {
		return
	}
	for pause := firstWipePause; ; pause = min(2*pause, maxWipePause) {
		err := p.c.Client.DeleteResourceSlices(ctx, p.c.NodeName, driver)
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		p.c.Log("Deleting ResourceSlice failed, retrying driver=%q: %v", driver, err)
		if p.c.Group.Loop().Sleep(ctx, pause) != nil {
			return
		}
	}
}

// callTimeout is how long a driver may take (PluginClientTimeout).
const callTimeout = 45 * time.Second

// NodePrepareResources implements cm.DRAPlugin.
func (r *registered) NodePrepareResources(ctx context.Context, req *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	ctx, cancel := loop.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.client.NodePrepareResources(ctx, req)
}

// NodeUnprepareResources implements cm.DRAPlugin.
func (r *registered) NodeUnprepareResources(ctx context.Context, req *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	ctx, cancel := loop.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.client.NodeUnprepareResources(ctx, req)
}
