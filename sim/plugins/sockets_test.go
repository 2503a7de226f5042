package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// driver offers itself.
type driver struct {
	registerapi.UnimplementedRegistrationServer
	kind, name string
}

func (d driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: d.kind, Name: d.name, Endpoint: "/plugins/" + d.name, SupportedVersions: []string{"1.0.0"}}, nil
}

func (driver) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

// handler notes what it is told.
type handler func(format string, args ...any)

func (handler) ValidatePlugin(name, _ string, _ []string) error {
	if name == "bad" {
		return errors.New("bad name")
	}
	return nil
}

func (h handler) RegisterPlugin(_ context.Context, name, endpoint string, _ []string) error {
	h("registered %s at %s", name, endpoint)
	if name == "refused" {
		return errors.New("no room")
	}
	return nil
}

func (h handler) DeRegisterPlugin(_ context.Context, name, _ string) { h("deregistered %s", name) }

// TestRegistration shows when drivers are taken in and given up, and what they are told.
func TestRegistration(t *testing.T) {
	const dir = "/r"
	type step struct {
		at time.Duration
		do func(h *plugins.Host, listen func(kind, name string) *plugins.Server)
	}
	start := func(at time.Duration, kind, name string) step {
		return step{at, func(_ *plugins.Host, listen func(kind, name string) *plugins.Server) { listen(kind, name) }}
	}
	for name, tt := range map[string]struct {
		steps []step
		want  []string
	}{
		"comes and goes": {[]step{start(300*time.Millisecond, "CSIPlugin", "a"), {2500 * time.Millisecond, func(_ *plugins.Host, listen func(kind, name string) *plugins.Server) {
			listen("CSIPlugin", "a").Close()
		}}}, []string{"1s registered a at /plugins/a", "1s told true ", "3s deregistered a"}},
		// Letting go of the old one is the socket's only operation of that second.
		"comes anew": {[]step{start(300*time.Millisecond, "CSIPlugin", "a"), start(2500*time.Millisecond, "CSIPlugin", "a")},
			[]string{"1s registered a at /plugins/a", "1s told true ", "3s deregistered a", "4s registered a at /plugins/a", "4s told true "}},
		"refused, and asked again": {[]step{start(0, "CSIPlugin", "refused"), {2500 * time.Millisecond, func(_ *plugins.Host, listen func(kind, name string) *plugins.Server) {
			listen("CSIPlugin", "refused").Close()
		}}}, []string{"1s registered refused at /plugins/refused", "1s told false RegisterPlugin error -- plugin registration failed with err: no room",
			"2s registered refused at /plugins/refused", "2s told false RegisterPlugin error -- plugin registration failed with err: no room"}},
		"type unknown, again after 500 ms and more": {[]step{start(0, "Other", "o")}, []string{
			"1s told false RegisterPlugin error -- no handler registered for plugin type: Other at socket /r/o",
			"2s told false RegisterPlugin error -- no handler registered for plugin type: Other at socket /r/o",
			"4s told false RegisterPlugin error -- no handler registered for plugin type: Other at socket /r/o",
			"7s told false RegisterPlugin error -- no handler registered for plugin type: Other at socket /r/o",
		}},
		"answers late": {[]step{{0, func(h *plugins.Host, listen func(kind, name string) *plugins.Server) {
			h.AddRules(plugins.Rule{Plugin: "a", Method: "GetInfo", Times: 1, Delay: 5 * time.Second})
			listen("CSIPlugin", "a")
		}}}, []string{"3s registered a at /plugins/a", "3s told true "}},
		"not valid": {[]step{start(0, "CSIPlugin", "bad"), {1500 * time.Millisecond, func(_ *plugins.Host, listen func(kind, name string) *plugins.Server) {
			listen("CSIPlugin", "bad").Close()
		}}}, []string{"1s told false RegisterPlugin error -- plugin validation failed with err: bad name"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := loop.New(loop.Options{})
			defer l.Close()
			begin := l.Now()
			var got []string
			say := func(format string, args ...any) {
				got = append(got, fmt.Sprintf("%v ", l.Since(begin).Truncate(time.Millisecond))+fmt.Sprintf(format, args...))
			}
			h := plugins.NewHost(l, plugins.Options{Observe: func(c plugins.Call) {
				if s, ok := c.Req.(*registerapi.RegistrationStatus); ok {
					say("told %v %s", s.PluginRegistered, s.Error)
				}
			}})
			m := pluginmanager.New(pluginmanager.Options{Group: l.NewGroup("kubelet"), Sockets: h.Sockets(), Dir: dir})
			m.AddHandler(registerapi.CSIPlugin, handler(say))
			m.Start()
			for _, s := range tt.steps {
				l.Root().After(s.at, func() {
					s.do(h, func(kind, name string) *plugins.Server {
						return h.Listen(dir+"/"+name, name, func(s *plugins.Server) { registerapi.RegisterRegistrationServer(s, driver{kind: kind, name: name}) })
					})
				})
			}
			if err := l.RunUntil(begin.Add(8 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
