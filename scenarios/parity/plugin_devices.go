package parity

import (
	"fmt"
	"path"
	"strings"

	"google.golang.org/grpc/codes"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/sim/plugins"
)

// pluginDir is where the recorder's plugins had files of their own.
const pluginDir = "/opt/plugins"

// scriptedDevice is a device as an action has it.
type scriptedDevice struct {
	ID     string  `json:"ID"`
	Health string  `json:"Health"`
	Numa   []int64 `json:"Numa"`
}

// scriptedFailure is a rule as an action has it.
type scriptedFailure struct {
	Name    string  `json:"name"`
	Method  string  `json:"method"`
	Match   string  `json:"match"`
	Times   int     `json:"times"`
	Delay   float64 `json:"delay"`
	Code    string  `json:"code"`
	Message string  `json:"msg"`
	// ClaimError is a DRA driver's answer for each claim.
	ClaimError string `json:"claimError"`
}

func scriptedDevices(list []scriptedDevice) []*pluginapi.Device {
	out := make([]*pluginapi.Device, len(list))
	for i, d := range list {
		out[i] = &pluginapi.Device{ID: d.ID, Health: d.Health}
		if len(d.Numa) > 0 {
			out[i].Topology = &pluginapi.TopologyInfo{}
		}
		for _, n := range d.Numa {
			out[i].Topology.Nodes = append(out[i].Topology.Nodes, &pluginapi.NUMANode{ID: n})
		}
	}
	return out
}

// startDevice is dev-start. What containers get with devices is as the recorder's plugins
// had it.
func (p *pluginPlay) startDevice(a *PluginAction) error {
	name := a.Resource[strings.IndexByte(a.Resource, '/')+1:]
	p.node.Plugins().StartDevice(plugins.Device{
		Resource: a.Resource, Devices: scriptedDevices(a.Devices), PreStart: a.PreStart, Preferred: a.Preferred, Reregister: a.Reregister, Version: a.RegVersion,
		Answer: func(ids []string) *pluginapi.ContainerAllocateResponse {
			text := strings.Join(ids, ",")
			r := &pluginapi.ContainerAllocateResponse{
				Envs:        map[string]string{"DEV_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")): text},
				Annotations: map[string]string{"plugin.test/" + name: text},
			}
			if a.Mounts {
				r.Mounts = []*pluginapi.Mount{{ContainerPath: "/plugin/" + name, HostPath: path.Join(pluginDir, "devinfo"), ReadOnly: true}}
				for i := range ids {
					r.Devices = append(r.Devices, &pluginapi.DeviceSpec{ContainerPath: fmt.Sprintf("/dev/%s%d", name, i), HostPath: "/dev/null", Permissions: "rw"})
				}
			}
			if a.CDI {
				for _, id := range ids {
					r.CdiDevices = append(r.CdiDevices, &pluginapi.CDIDevice{Name: "plugin.test/dev=" + id})
				}
			}
			return r
		},
	})
	return nil
}

// addRules is rules.
func (p *pluginPlay) addRules(a *PluginAction) error {
	for _, r := range a.Rules {
		code := codes.OK
		if r.Code != "" {
			if err := code.UnmarshalJSON([]byte(`"` + screaming(r.Code) + `"`)); err != nil {
				return fmt.Errorf("rules: code: %w", err)
			}
		}
		p.node.Plugins().AddRules(plugins.Rule{Plugin: r.Name, Method: r.Method, Match: r.Match, Times: r.Times, Delay: seconds(r.Delay), Code: code, Message: r.Message, ClaimError: r.ClaimError})
	}
	return nil
}

// screaming is a code's name as its JSON has it: DeadlineExceeded, DEADLINE_EXCEEDED.
func screaming(name string) string {
	var out strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
		}
		out.WriteRune(r)
	}
	return strings.ToUpper(out.String())
}
