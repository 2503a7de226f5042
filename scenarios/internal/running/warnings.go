package running

import (
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/noeffect"
)

// KubeletWarnings says, one line each, what a KubeletConfiguration asks for that
// a simulated kubelet does not act on. cgroupDriver is the runtime's, "" for
// cgroupfs. A configuration of nil asks for nothing. It compares what the configuration comes to
// with what an empty one comes to, both after upstream's defaults; so only fields that were
// really set otherwise are told.
func KubeletWarnings(c *kubeletconfig.KubeletConfiguration, cgroupDriver string) []string {
	if c == nil {
		return nil
	}
	now, base := c.DeepCopy(), &kubeletconfig.KubeletConfiguration{CgroupDriver: cgroupDriver}
	kubeletcfg.SetDefaults(now)
	kubeletcfg.SetDefaults(base)
	// A configuration that leaves the driver open gets the runtime's
	// (KubeletCgroupDriverFromCRI), which is no choice to warn of.
	if c.CgroupDriver == "" {
		now.CgroupDriver = base.CgroupDriver
	}
	return noeffect.ToldOfSimulation(now, base)
}

// warnOfKubelets warns of what the nodes' KubeletConfigurations ask for and the
// kubelets do not act on. In real time the kubelet is a real one, of which all has an effect.
func (p *performance) warnOfKubelets() {
	for i := range p.s.Spec.Nodes {
		g := &p.s.Spec.Nodes[i]
		config := g.Kubelet
		if g.Certificates != nil && config != nil { // then these two have an effect
			config = config.DeepCopy()
			config.RotateCertificates, config.ServerTLSBootstrap = false, false
		}
		for _, what := range KubeletWarnings(config, g.Runtime.CgroupDriver) {
			p.journal.warn("kubelet configuration: " + what)
		}
	}
}
