package devicemanager

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// fakePlugin offers a device until it is closed.
type fakePlugin struct {
	cm.DevicePlugin
	broken bool
	closed loop.Event
}

func (p *fakePlugin) GetDevicePluginOptions(context.Context) (*pluginapi.DevicePluginOptions, error) {
	if p.broken {
		return nil, context.DeadlineExceeded
	}
	return &pluginapi.DevicePluginOptions{}, nil
}

func (p *fakePlugin) ListAndWatch(ctx context.Context, list func([]*pluginapi.Device)) error {
	list([]*pluginapi.Device{{ID: "a", Health: pluginapi.Healthy}})
	return p.closed.Wait(ctx)
}

func (p *fakePlugin) Close() { p.closed.Fire() }

func (p *fakePlugin) Dial(context.Context, string) (cm.DevicePlugin, error) { return p, nil }

func (p *fakePlugin) Serve(func(ctx context.Context, req *pluginapi.RegisterRequest) error) {}

// TestHandler: a plugin that the plugin manager has found is as one that registered; with it
// its connection goes, and one that can't be asked keeps none.
func TestHandler(t *testing.T) {
	l := loop.New(loop.Options{Start: time.Unix(0, 0)})
	defer l.Close()
	g := l.NewGroup("kubelet")
	fs := memfs.New(memfs.Options{Loop: l})
	p := &fakePlugin{}
	m := New(Config{Group: g, Plugins: p, FS: fs, Dir: "/device-plugins", Changed: func([]types.UID) {}})
	if err := fs.MkdirAll("/device-plugins", 0o750); err != nil {
		t.Fatal(err)
	}
	h := m.Handler()
	if _, err := fs.Stat("/device-plugins/DEPRECATION"); err != nil {
		t.Error(err)
	}
	for _, bad := range []struct{ name, version string }{{"vendor.test/gpu", "v1"}, {"gpu", "v1beta1"}, {"kubernetes.io/gpu", "v1beta1"}} {
		if err := h.ValidatePlugin(bad.name, "", []string{bad.version}); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	if err := h.ValidatePlugin("vendor.test/gpu", "", []string{"v1", "v1beta1"}); err != nil {
		t.Error(err)
	}
	healthy := func() int64 {
		_, allocatable := m.Capacity()
		n := allocatable["vendor.test/gpu"]
		return n.Value()
	}
	g.Go("test", func(ctx context.Context) {
		if err := h.RegisterPlugin(ctx, "vendor.test/gpu", "/gpu.sock", nil); err != nil {
			t.Error(err)
		}
		_ = l.Sleep(ctx, time.Second)
		if healthy() != 1 {
			t.Errorf("%d devices after the registration", healthy())
		}
		h.DeRegisterPlugin(ctx, "vendor.test/gpu", "/gpu.sock")
		if healthy() != 0 || !p.closed.Fired() {
			t.Errorf("%d devices once the plugin is gone, its connection closed: %v", healthy(), p.closed.Fired())
		}
		p.broken, p.closed = true, loop.Event{}
		if err := h.RegisterPlugin(ctx, "vendor.test/gpu", "/gpu.sock", nil); err == nil || !p.closed.Fired() {
			t.Errorf("a plugin that can't be asked: %v, its connection closed: %v", err, p.closed.Fired())
		}
	})
	if err := l.RunUntil(time.Unix(10, 0)); err != nil {
		t.Fatal(err)
	}
}
