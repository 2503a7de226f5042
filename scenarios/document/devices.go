package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// Devices are what a device plugin of a node offers. The plugin runs from the start, and registers with each kubelet.
type Devices struct {
	// The resource that pods ask for ("nvidia.com/gpu").
	Resource string `json:"resource" required:""`
	// How many there are. They are called as the resource's last part, with a number: gpu-0, gpu-1 and so on.
	Count int `json:"count" required:""`
	// The NUMA nodes that they are near, parted evenly among these in their order. Near none unless said.
	NUMA []int `json:"numa,omitempty"`
	// How many groups of devices there are that are linked to each other, as by NVLink: the devices are parted evenly among these in their order. A plugin that is asked (preferred) prefers devices of one island: of that with the fewest free ones that has enough. None unless said.
	Islands int `json:"islands,omitempty"`
	// The plugin is called before each start of a container that has devices.
	PreStart bool `json:"preStart,omitempty"`
	// The plugin is asked which devices it prefers: those of one island or, without islands, those whose names sort last.
	Preferred bool `json:"preferred,omitempty"`
	// What goes wrong with the kubelet's calls from the start; the action `plugin` does the same later.
	Fail []action.PluginFailure `json:"fail,omitempty"`
}

// maxDevices is more than any machine has.
const maxDevices = 10_000

// checkDevices wants names of resources that plugins may have, each once, and NUMA nodes
// that there are.
func (g *NodeGroup) checkDevices(at decode.Place) {
	nodes := 1
	if t := g.machineTopology(); t != nil {
		nodes = len(t.Nodes)
	}
	for i := range g.Devices {
		d, at := &g.Devices[i], at.Index(i)
		if slices.ContainsFunc(g.Devices[:i], func(o Devices) bool { return o.Resource == d.Resource }) {
			at.Field("resource").Errorf("%s is there twice", d.Resource)
		}
		d.Problems(func(field, text string) { at.Field(field).Errorf("%s", text) })
		checkFailures(at.Field("fail"), d.Fail, action.DeviceMethods())
		for k, n := range d.NUMA {
			if n < 0 || n >= nodes {
				at.Field("numa").Index(k).Errorf("%d: the machine has the NUMA nodes 0 to %d; see topology", n, nodes-1)
			}
		}
	}
}

// Problems tells what is wrong with them whatever the machine is, by field.
func (d *Devices) Problems(bad func(field, text string)) {
	domain, _, slash := strings.Cut(d.Resource, "/")
	switch {
	case d.Resource == "": // told of already
	case !slash || len(validation.IsQualifiedName(d.Resource)) > 0:
		bad("resource", fmt.Sprintf("%q is no resource of a device plugin, such as example.com/gpu", decode.Short(d.Resource)))
	case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"):
		bad("resource", fmt.Sprintf("%q: the kubelet takes no plugin for a resource of %s", d.Resource, domain))
	}
	if d.Count < 0 || d.Count > maxDevices {
		bad("count", fmt.Sprintf("must be between 0 and %d", maxDevices))
	}
	switch {
	case d.Islands < 0 || d.Islands > max(d.Count, 0):
		bad("islands", "must be between 0 and the number of devices")
	case d.Islands > 0 && !d.Preferred:
		bad("islands", "has no effect without preferred: true")
	}
}

// Plugin is the plugin that offers them.
func (d *Devices) Plugin() plugins.Device {
	list := d.list()
	return plugins.Device{
		Resource: d.Resource, Devices: list, Islands: d.islands(list), PreStart: d.PreStart, Preferred: d.Preferred, Reregister: true,
		Answer: func(ids []string) *pluginapi.ContainerAllocateResponse {
			return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{d.variable(): strings.Join(ids, ",")}}
		},
	}
}

// variable is the environment variable that has a container's devices: NVIDIA_COM_GPU.
func (d *Devices) variable() string { return variable(d.Resource) }

// variable makes a variable's name of a text.
func variable(text string) string {
	return strings.ToUpper(strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(text))
}

// islands are the devices by island; nil: there are none.
func (d *Devices) islands(list []*pluginapi.Device) [][]string {
	if d.Islands == 0 {
		return nil
	}
	out := make([][]string, d.Islands)
	for i, dev := range list {
		k := i * d.Islands / len(list)
		out[k] = append(out[k], dev.ID)
	}
	return out
}

func (d *Devices) list() []*pluginapi.Device {
	name := d.Resource[strings.LastIndexByte(d.Resource, '/')+1:]
	digits := len(strconv.Itoa(max(d.Count-1, 0)))
	out := make([]*pluginapi.Device, d.Count)
	for i := range out {
		out[i] = &pluginapi.Device{ID: fmt.Sprintf("%s-%0*d", name, digits, i), Health: pluginapi.Healthy}
		if len(d.NUMA) > 0 {
			n := d.NUMA[i*len(d.NUMA)/d.Count]
			out[i].Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(n)}}}
		}
	}
	return out
}
