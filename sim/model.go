package sim

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet"
)

// model is what nodes share that were made alike: a configuration and a
// capacity take kilobytes, and in a cluster of 100,000 nodes few differ. Nothing
// writes to either.
type model struct {
	config   *kubeletconfig.KubeletConfiguration
	capacity v1.ResourceList
	settings *kubelet.Settings
}

// maxModels is how many models a cluster remembers, so that a cluster of nodes
// which all differ does not compare each with all others.
const maxModels = 16

// share gives the node the configuration, capacity and settings of one made
// alike before it, if there is one. A configuration that a kubelet refuses has
// no settings: each of its kubelets finds that out, and exits.
func (n *Node) share() {
	c := n.cluster
	for _, m := range c.models {
		if reflect.DeepEqual(m.config, n.config) && reflect.DeepEqual(m.capacity, n.machine.capacity) {
			n.config, n.machine.capacity, n.settings = m.config, m.capacity, m.settings
			return
		}
	}
	settings, err := kubelet.NewSettings(n.config, n.machine.capacity, false)
	if err != nil {
		return
	}
	n.settings = settings
	if len(c.models) == maxModels {
		c.models = append(c.models[:0], c.models[1:]...)
	}
	c.models = append(c.models, model{n.config, n.machine.capacity, settings})
}
