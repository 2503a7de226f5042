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
	// The plugin is called before each start of a container that has devices.
	PreStart bool `json:"preStart,omitempty"`
	// The plugin is asked which devices it prefers: those whose names sort last.
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
		domain, _, slash := strings.Cut(d.Resource, "/")
		switch {
		case d.Resource == "": // told of already
		case !slash || len(validation.IsQualifiedName(d.Resource)) > 0:
			at.Field("resource").Errorf("%q is no resource of a device plugin, such as example.com/gpu", decode.Short(d.Resource))
		case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"):
			at.Field("resource").Errorf("%q: the kubelet takes no plugin for a resource of %s", d.Resource, domain)
		case slices.ContainsFunc(g.Devices[:i], func(o Devices) bool { return o.Resource == d.Resource }):
			at.Field("resource").Errorf("%s is there twice", d.Resource)
		}
		if d.Count < 0 || d.Count > maxDevices {
			at.Field("count").Errorf("must be between 0 and %d", maxDevices)
		}
		checkFailures(at.Field("fail"), d.Fail, action.DeviceMethods())
		for k, n := range d.NUMA {
			if n < 0 || n >= nodes {
				at.Field("numa").Index(k).Errorf("%d: the machine has the NUMA nodes 0 to %d; see topology", n, nodes-1)
			}
		}
	}
}

// Plugin is the plugin that offers them.
func (d *Devices) Plugin() plugins.Device {
	return plugins.Device{
		Resource: d.Resource, Devices: d.list(), PreStart: d.PreStart, Preferred: d.Preferred, Reregister: true,
		Answer: func(ids []string) *pluginapi.ContainerAllocateResponse {
			return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{d.variable(): strings.Join(ids, ",")}}
		},
	}
}

// variable is the environment variable that has a container's devices: NVIDIA_COM_GPU.
func (d *Devices) variable() string {
	return strings.ToUpper(strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(d.Resource))
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
